//! Requests at random, made to a schema and now and then against it.

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, KindVersion};

/// A generator of 64 random bits at a time.
pub(crate) struct Random {
    state: u64,
    /// The schemas that others refer to.
    components: Map<String, Value>,
    /// Whether a list may name the same item twice. Where it is one field in one
    /// version and many in another, the server cannot convert such an object.
    duplicates: bool,
}

impl Random {
    pub(crate) fn new(seed: u64, components: Map<String, Value>) -> Self {
        Self {
            state: seed,
            components,
            duplicates: true,
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n.max(1) as u64)).unwrap_or(0)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(crate) fn request(&mut self, kind: &Kind, live: Option<&Value>) -> Value {
        let op = if self.chance(60) { "apply" } else { "update" };
        let version = self.pick(&kind.versions);
        self.duplicates = kind.versions.len() == 1;
        let live = live.map(|live| self.live(kind, version, live));
        let mut object = match &version.json {
            Value::Null => self.anything(3),
            json => self.value(json, 0),
        };
        if !object.is_object() {
            object = json!({});
        }
        if op == "update"
            && let Some(live) = &live
        {
            if self.chance(50) {
                // As a patch does: an edit of what is there, not something new.
                let mut edited = live.clone();
                self.edit(&mut edited, &object);
                object = edited;
            }
            object["metadata"] = live["metadata"].clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        for (field, text) in [("apiVersion", &version.api_version), ("kind", &kind.kind)] {
            object[field] = text.as_str().into();
        }
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = "x".into();
        if self.chance(30) {
            object["metadata"]["labels"] = json!({"l": self.text(), "m": self.text()});
        }
        if self.chance(20) {
            object["metadata"]["finalizers"] = json!([self.text()]);
        }
        // Objects of built-in kinds are structs as soon as they are read.
        let mut zero = json!({});
        version.schema.normalize(&mut zero);
        if !kind.is_custom() && op == "update" {
            version.schema.normalize(&mut object);
        }
        let (subresource, reset): (_, &[&str]) = match self.below(10) {
            0 => ("status", &["metadata", "spec"]),
            1 => ("status", &["spec", "metadata.labels"]),
            2 | 3 => ("", &["status"]),
            _ => ("", &[]),
        };
        json!({
            "kind": kind.name,
            "op": op,
            "manager": self.pick(&["a", "b", "c"]),
            "force": self.chance(50),
            "subresource": subresource,
            "reset": reset,
            "live": live,
            "zero": zero,
            "object": object,
        })
    }

    /// The schema of a custom resource, with everything that decides on how it merges.
    pub(crate) fn resource(&mut self) -> Value {
        let mut properties = Map::new();
        for name in ["spec", "status", "data"] {
            properties.insert(name.to_owned(), self.schema(3));
        }
        let mut root = json!({"type": "object", "properties": properties});
        if self.chance(10) {
            root["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        root
    }

    fn schema(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 14 }) {
            0 | 1 => json!({"type": "string"}),
            2 => json!({"type": "integer"}),
            3 => json!({"type": "boolean"}),
            4 => json!({"x-kubernetes-int-or-string": true}),
            5 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            6..=8 => {
                let names = ["a", "b", "c"].map(str::to_owned);
                let properties: Map<String, Value> = names
                    .into_iter()
                    .map(|name| (name, self.schema(depth - 1)))
                    .collect();
                let mut out = json!({"type": "object", "properties": properties});
                match self.below(8) {
                    6 => out["x-kubernetes-map-type"] = "atomic".into(),
                    7 => out["x-kubernetes-preserve-unknown-fields"] = true.into(),
                    _ => {}
                }
                out
            }
            9 | 10 => {
                let values = self.schema(depth - 1);
                let mut out = json!({"type": "object", "additionalProperties": values});
                if self.chance(25) {
                    out["x-kubernetes-map-type"] = "atomic".into();
                }
                out
            }
            11 => json!({"type": "array", "items": self.schema(depth - 1)}),
            12 => json!({
                "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
            }),
            _ => {
                let keys = *self.pick(&[&["name"] as &[&str], &["id"], &["id", "kind"]]);
                json!({
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": keys,
                    "items": {"type": "object", "properties": {
                        "id": {"type": "integer"},
                        "kind": {"type": "string", "default": "x"},
                        "name": {"type": "string"},
                        "value": self.schema(depth - 1),
                    }},
                })
            }
        }
    }

    /// The object as it is read in a version. Now and then an owner has written at
    /// another one.
    fn live(&mut self, kind: &Kind, version: &KindVersion, live: &Value) -> Value {
        let mut live = live.clone();
        live["apiVersion"] = version.api_version.as_str().into();
        if kind.is_custom()
            && self.chance(5)
            && let Some(entry) = live.pointer_mut("/metadata/managedFields/0/apiVersion")
        {
            let versions: Vec<&str> = kind
                .versions
                .iter()
                .map(|version| version.api_version.as_str())
                .collect();
            *entry = (*self.pick(&versions)).into();
        }
        live
    }

    /// Takes some of the fields from another object, and drops some.
    fn edit(&mut self, object: &mut Value, other: &Value) {
        let (Some(object), Some(other)) = (object.as_object_mut(), other.as_object()) else {
            return;
        };
        for (name, value) in other {
            match object.get_mut(name) {
                Some(own) if own.is_object() && self.chance(60) => self.edit(own, value),
                _ if self.chance(50) => {
                    object.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        let names: Vec<String> = object.keys().cloned().collect();
        for name in names {
            if name != "metadata" && self.chance(10) {
                object.remove(&name);
            }
        }
    }

    fn text(&mut self) -> Value {
        (*self.pick(&["a", "b", "c", "d<&\"", ""])).into()
    }

    /// A value of a type, now and then of another, empty or null.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let target = schema.get("$ref").unwrap_or(&schema["allOf"][0]["$ref"]);
        if let Some(name) = target.as_str().and_then(|target| target.rsplit('/').next()) {
            let scalars = ["Quantity", "Time", "MicroTime", "IntOrString"];
            return match name.rsplit('.').next() {
                Some("ObjectMeta") => json!({}),
                Some(name) if scalars.contains(&name) => self.text(),
                // Some types contain themselves.
                _ if depth > 12 => Value::Null,
                _ => {
                    let schema = self.components[name].clone();
                    self.value(&schema, depth + 1)
                }
            };
        }
        match self.below(200) {
            0 => return Value::Null,
            1 => return self.anything(1),
            _ => {}
        }
        match schema["type"].as_str() {
            Some("string") => self.text(),
            Some("integer") => self.below(4).into(),
            Some("number") => self
                .pick(&[json!(1), json!(1.5), json!(2.0), json!(100_000_000.0)])
                .clone(),
            Some("boolean") => self.chance(50).into(),
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let keyed = schema["x-kubernetes-list-type"].is_string();
                let mut items: Vec<Value> = Vec::new();
                for _ in 0..self.below(5) {
                    let mut item = self.value(&schema["items"], depth + 1);
                    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array()
                        && let Some(item) = item.as_object_mut()
                    {
                        for key in keys.iter().filter_map(Value::as_str) {
                            let value = match key {
                                "id" | "port" | "containerPort" => self.below(4).into(),
                                _ => self.text(),
                            };
                            // A key that is a map is refused, but the text of
                            // the refusal varies with the order of the map.
                            let missing = key != "kind" && !item.contains_key(key);
                            if missing || item.get(key).is_some_and(Value::is_object) {
                                item.insert(key.to_owned(), value);
                            }
                        }
                    }
                    // Twice the same is an error in an apply, and rare.
                    if !keyed
                        || (self.duplicates && self.chance(2))
                        || !items.iter().any(|other| alike(other, &item))
                    {
                        items.push(item);
                    }
                }
                items.into()
            }
            _ => self.anything(2),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut out = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                if self.chance(if depth == 0 { 80 } else { 35 }) {
                    out.insert(name.clone(), self.value(property, depth + 1));
                }
            }
        }
        match &schema["additionalProperties"] {
            Value::Null => {}
            additional => {
                for _ in 0..self.below(3) {
                    let name = *self.pick(&["k", "l", "m.n/o"]);
                    out.insert(name.to_owned(), self.value(additional, depth + 1));
                }
            }
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            for _ in 0..self.below(3) {
                let name = *self.pick(&["x", "y"]);
                out.insert(name.to_owned(), self.anything(2));
            }
        }
        if self.chance(1) {
            out.insert("undeclared".to_owned(), 1.into());
        }
        out.into()
    }

    fn anything(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => self.text(),
            1 => self.below(3).into(),
            2 => self.chance(50).into(),
            3 if self.chance(30) => Value::Null,
            3 => json!(0.5),
            4 => (0..self.below(3))
                .map(|_| self.anything(depth - 1))
                .collect(),
            _ => {
                let mut out = Map::new();
                for _ in 0..self.below(4) {
                    let name = *self.pick(&["x", "y", "z"]);
                    out.insert(name.to_owned(), self.anything(depth - 1));
                }
                out.into()
            }
        }
    }
}

/// Whether two items may have the same name in their list.
fn alike(a: &Value, b: &Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            let kind = |map: &Map<String, Value>| map.get("kind").cloned().unwrap_or("x".into());
            a.get("id") == b.get("id") && a.get("name") == b.get("name") && kind(a) == kind(b)
        }
        _ => a == b,
    }
}

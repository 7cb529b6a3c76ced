//! Decoding: an object from outside against the type of its kind.
//!
//! The real server decodes JSON into Go structures, which shows in two ways: a
//! field that the structure does not have is dropped, and a value of another
//! type is refused in the words of Go's JSON package.

use serde_json::{Map, Number, Value};

use super::shape::{Fields, Shape, Shapes};
use super::{find, time};

/// No more unknown fields than this are told, as with the real server.
const TOLD: usize = 100;

/// The fields that were dropped, as `spec.containers[0].imag`; or the first value
/// that cannot be decoded.
pub(crate) type Decoded = Result<Vec<String>, Undecodable>;

/// A value that is not what its field holds, in the words of the real server.
/// They are of the decoder at work: that of JSON, or that of strategic merge
/// patches, which knows less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undecodable {
    pub(crate) json: String,
    pub(crate) patch: String,
}

impl From<String> for Undecodable {
    fn from(why: String) -> Self {
        Undecodable {
            json: why.clone(),
            patch: why,
        }
    }
}

/// Decodes an object of a built-in kind in place. A kind whose type is not known
/// stays as it is.
pub(crate) fn decode(group: &str, version: &str, kind: &str, object: &mut Value) -> Decoded {
    match find(group, version, kind) {
        Some(found) => Decoder::new(Shapes::of(found)).run(object),
        None => Ok(Vec::new()),
    }
}

/// Decodes the `metadata` of a custom resource in place, which the real server
/// decodes by itself: what is wrong has no `metadata` in front.
pub(crate) fn decode_metadata(metadata: &mut Value) -> Decoded {
    let unknown = Decoder::new(Shapes::of_metadata()).run(metadata)?;
    Ok(unknown
        .iter()
        .map(|path| format!("metadata.{path}"))
        .collect())
}

/// A step of the way to a value.
enum Step {
    /// A field of a struct.
    Field(String),
    /// An entry of a map, which Go leaves out when it says where a value is.
    Key(String),
    /// An item of a list, which it leaves out too.
    Item(usize),
}

struct Decoder {
    shapes: &'static Shapes,
    steps: Vec<Step>,
    unknown: Vec<String>,
    wrong: Option<Undecodable>,
}

impl Decoder {
    fn new(shapes: &'static Shapes) -> Self {
        Decoder {
            shapes,
            steps: Vec::new(),
            unknown: Vec::new(),
            wrong: None,
        }
    }

    fn run(mut self, value: &mut Value) -> Decoded {
        let shapes = self.shapes;
        let root = Shape::Struct(shapes.root.clone());
        self.value(value, &root, "");
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.unknown),
        }
    }

    /// `owner` is the struct that the value is in.
    fn value(&mut self, value: &mut Value, shape: &Shape, owner: &str) {
        let shapes = self.shapes;
        let shape = shapes.resolve(shape);
        match (shape, value) {
            (Shape::Any, _) | (_, Value::Null) => {}
            (Shape::Struct(name), Value::Object(object)) => {
                if let Some(fields) = shapes.fields(name) {
                    self.fields(object, fields, short(name));
                }
            }
            (Shape::Map(values), Value::Object(entries)) => {
                for (key, value) in entries {
                    self.steps.push(Step::Key(key.clone()));
                    self.value(value, values, owner);
                    self.steps.pop();
                }
            }
            (Shape::List(items), Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.steps.push(Step::Item(index));
                    self.value(item, items, owner);
                    self.steps.pop();
                }
            }
            (Shape::Text, Value::String(_))
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::IntOrString, Value::String(_)) => {}
            (Shape::Bytes, Value::String(text)) => {
                if let Some(at) = not_base64(text) {
                    self.refuse(format!("illegal base64 data at input byte {at}").into());
                }
            }
            (Shape::Time, Value::String(text)) => {
                if let Some(why) = time::not_a_time(text) {
                    self.refuse(why.into());
                }
            }
            (Shape::Integer(bits), Value::Number(number)) if fits(number, *bits) => {}
            (Shape::IntOrString, Value::Number(number)) if fits(number, 32) => {}
            (Shape::Integer(_) | Shape::IntOrString, Value::Number(number)) => {
                self.mismatch(&format!("number {number}"), "int64", shape, owner);
            }
            (shape, other) => self.mismatch(json_kind(other), go_kind(other), shape, owner),
        }
    }

    fn fields(&mut self, object: &mut Map<String, Value>, fields: &Fields, owner: &str) {
        object.retain(|name, value| {
            let Some(shape) = fields.get(name) else {
                let path = self.told(name);
                if self.unknown.len() < TOLD {
                    self.unknown.push(path);
                }
                return false;
            };
            self.steps.push(Step::Field(name.clone()));
            self.value(value, shape, owner);
            self.steps.pop();
            true
        });
    }

    /// `found` as the decoder of JSON says it, and as that of patches does.
    fn mismatch(&mut self, found: &str, found_kind: &str, wanted: &Shape, owner: &str) {
        let fields = self.steps.iter().filter_map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            _ => None,
        });
        let path = fields.collect::<Vec<_>>().join(".");
        let kind = go_type(wanted);
        let json = format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {kind}"
        );
        let patch = match wanted {
            Shape::List(_) | Shape::Bytes => {
                format!("cannot restore slice from {found_kind}")
            }
            Shape::Map(_) => format!("cannot restore map from {found_kind}"),
            Shape::Struct(_) => format!("cannot restore struct from: {found_kind}"),
            Shape::Time | Shape::IntOrString | Shape::Any => json.clone(),
            _ => format!("unrecognized type: {kind}"),
        };
        self.refuse(Undecodable { json, patch });
    }

    /// The first refusal counts.
    fn refuse(&mut self, why: Undecodable) {
        self.wrong.get_or_insert(why);
    }

    /// The path of an unknown field.
    fn told(&self, name: &str) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Item(index) => path.push_str(&format!("[{index}]")),
                Step::Field(name) | Step::Key(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path + name
    }
}

/// `PodSpec` for `io.k8s.api.core.v1.PodSpec`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// What a JSON value is called where it is read as Go's `interface{}`.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// What Go's JSON package calls a value.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What Go calls a type, apart from texts of a named type.
fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Any => "interface {}".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        // These read texts and numbers themselves.
        Shape::Time => "string".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::Integer(bits) => format!("int{bits}"),
        Shape::Number => "float64".to_owned(),
        Shape::IntOrString => "int32".to_owned(),
        Shape::List(items) => format!("[]{}", go_type(items)),
        Shape::Map(values) => format!("map[string]{}", go_type(values)),
        // The package is named like the version.
        Shape::Struct(name) => {
            let mut parts = name.rsplit('.');
            let (name, package) = (parts.next(), parts.next());
            format!(
                "{}.{}",
                package.unwrap_or_default(),
                name.unwrap_or_default()
            )
        }
    }
}

fn fits(number: &Number, bits: u32) -> bool {
    match number.as_i64() {
        Some(number) => bits == 64 || i32::try_from(number).is_ok(),
        None => false,
    }
}

/// Where a text stops being base64, as Go finds it: line breaks are skipped,
/// padding is needed.
fn not_base64(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_break = |byte: u8| matches!(byte, b'\n' | b'\r');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut quantum = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if is_break(byte) {
            continue;
        }
        if is_digit(byte) {
            quantum = (quantum + 1) % 4;
            continue;
        }
        if byte != b'=' || quantum < 2 {
            return Some(at - 1);
        }
        // Padding, which completes the last group and ends the text.
        let mut rest = (at..bytes.len()).filter(|i| !is_break(bytes[*i]));
        if quantum == 2 {
            match rest.next() {
                Some(next) if bytes[next] == b'=' => {}
                Some(next) => return Some(next),
                None => return Some(bytes.len()),
            }
        }
        return rest.next();
    }
    // An incomplete group is complained about at its start.
    (quantum != 0).then(|| bytes.len() - quantum)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(
        kind: (&str, &str, &str),
        mut object: Value,
        expected: Result<&[&str], &str>,
        left: Value,
    ) {
        let found = decode(kind.0, kind.1, kind.2, &mut object);
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, expected);
                assert_eq!(object, left);
            }
            (found, expected) => assert_eq!(found.unwrap_err().json, expected.unwrap_err()),
        }
    }

    const POD: (&str, &str, &str) = ("", "v1", "Pod");

    #[test]
    fn unknown_fields_are_dropped_and_told() {
        check(
            POD,
            json!({"kind": "Pod", "metadata": {"name": "a", "lables": {}},
                "spec": {"containers": [{"name": "a", "prots": [1], "env": [{"valu": 1}]}],
                    "nodeSelector": {"any": "thing"}}, "more": 1}),
            Ok(&[
                "metadata.lables",
                "more",
                "spec.containers[0].env[0].valu",
                "spec.containers[0].prots",
            ]),
            json!({"kind": "Pod", "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "a", "env": [{}]}],
                    "nodeSelector": {"any": "thing"}}}),
        );
        let definition = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let schema = json!({"properties": {"a": {"x-any": 1, "default": {"b": [1]}}}});
        check(
            definition,
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}),
            Ok(&["spec.versions[0].schema.openAPIV3Schema.properties.a.x-any"]),
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema":
                {"properties": {"a": {"default": {"b": [1]}}}}}}]}}),
        );
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let refused = |object: Value, why: &str| check(POD, object, Err(why), Value::Null);
        let container = |field: &str, value: Value| json!({"spec": {"containers": [{"name": "a", field: value}]}});
        refused(
            json!({"metadata": {"name": 1}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        );
        refused(
            json!({"metadata": {"labels": {"a": true}}}),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        );
        refused(
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        );
        refused(
            json!({"spec": {"containers": {}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        );
        refused(
            container("ports", json!([{"containerPort": "80"}])),
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        );
        refused(
            container("ports", json!([{"containerPort": 80_000_000_000_u64}])),
            "json: cannot unmarshal number 80000000000 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        );
        check(
            POD,
            json!({"spec": {"hostNetwork": null, "terminationGracePeriodSeconds": 80_000_000_000_u64}}),
            Ok(&[]),
            json!({"spec": {"hostNetwork": null, "terminationGracePeriodSeconds": 80_000_000_000_u64}}),
        );
    }

    #[test]
    fn base64_is_as_go_reads_it() {
        for (text, expected) in [
            ("", None),
            ("YQ==", None),
            ("YWI=", None),
            ("YW\nJj", None),
            ("not base64", Some(3)),
            ("YQ", Some(0)),
            ("YQ=", Some(3)),
            ("YQ==x", Some(4)),
            ("?", Some(0)),
            ("=", Some(0)),
        ] {
            assert_eq!(not_base64(text), expected, "{text:?}");
        }
    }
}

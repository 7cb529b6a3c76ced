//! Pack objects.

use reeve_sdk::patch::{PatchError, Patches};
use reeve_sdk::prelude::*;
use serde_json::Map;

use crate::findings::{Findings, below};
use crate::graph::Specs;
use crate::json::{Json, text};
use crate::kinds::{ORIGIN, PACK};

/// What is in each finalizer by which an agent has a Pack wait.
const HOLDS: &str = "reeve.dev/";

/// A Pack, as far as it is read.
pub(crate) struct Pack {
    pub(crate) name: String,
    /// The document that has asked for it.
    pub(crate) origin: String,
    /// Whether it is being deleted.
    pub(crate) is_going: bool,
    /// Whether its end has to wait, because there is something of it.
    pub(crate) is_held: bool,
    pub(crate) spec: Spec,
}

/// What somebody says of a pack, in its object or in the desired state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    /// Whether it is to be installed; so it is unless this is false.
    pub(crate) enabled: Option<bool>,
    /// Whether it stays as it is, whatever is wanted of it.
    pub(crate) suspend: Option<bool>,
    /// A version of its charts, or a range of versions.
    pub(crate) version: Option<String>,
    pub(crate) wave: Option<i64>,
    pub(crate) depends_on: Option<Vec<String>>,
    /// Values of its releases, by the name of the release.
    pub(crate) values: Option<Map<String, Value>>,
    /// Patches of its objects, as they were written.
    pub(crate) patches: Option<Vec<Value>>,
}

impl Spec {
    /// The fields that say something of a pack.
    pub(crate) const FIELDS: [&str; 7] = [
        "enabled",
        "suspend",
        "version",
        "wave",
        "dependsOn",
        "values",
        "patches",
    ];

    /// Reads what stands at a path, noting what is wrong with it.
    pub(crate) fn read(path: &str, fields: &Map<String, Value>, findings: &mut Findings) -> Self {
        let mut field = |name: &str, expected: &str, fits: &dyn Fn(&Value) -> bool| {
            let value = fields.get(name).filter(|value| !value.is_null())?;
            if !fits(value) {
                findings.error(&below(path, name), format_args!("expected {expected}"));
                return None;
            }
            Some(value)
        };
        let truth = "true or false";
        let enabled = field("enabled", truth, &Value::is_boolean).and_then(Value::as_bool);
        let suspend = field("suspend", truth, &Value::is_boolean).and_then(Value::as_bool);
        let is_version = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
        let version = field("version", "a version, or a range of versions", &is_version);
        let wave = field("wave", "a whole number", &Value::is_i64).and_then(Value::as_i64);
        let is_list = |value: &Value| {
            let names = value.as_array();
            names.is_some_and(|names| names.iter().all(Value::is_string))
        };
        let depends_on = field("dependsOn", "a list of names of packs", &is_list);
        let names = |list: &Value| {
            let names = list.as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let values = "an object with the values of each release by its name";
        let values = field("values", values, &Value::is_object);
        let patches = field("patches", "a list of patches", &Value::is_array);
        let patches = patches.and_then(Value::as_array).cloned();
        Self {
            enabled,
            suspend,
            version: version.and_then(Value::as_str).map(str::to_owned),
            wave,
            depends_on: depends_on.map(names),
            values: values.and_then(Value::as_object).cloned(),
            patches,
        }
    }

    /// Applies its patches to objects, noting what is wrong with them: then none is left.
    /// Returns for each whether there was an object for it.
    pub(crate) fn patch(&self, objects: &mut Vec<Value>, findings: &mut Findings) -> Vec<bool> {
        self.try_to_patch(objects).unwrap_or_else(|errors| {
            for error in errors {
                findings.error(&format!("/spec/patches{}", error.path), error.problem);
            }
            objects.clear();
            Vec::new()
        })
    }

    /// The same for objects that are needed as far as they can be patched.
    pub(crate) fn try_to_patch(
        &self,
        objects: &mut Vec<Value>,
    ) -> Result<Vec<bool>, Vec<PatchError>> {
        let patches = self.patches.as_deref().unwrap_or_default();
        Patches::read(patches)?.apply(objects)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspend == Some(true)
    }

    /// The version of its charts; the newest unless somebody says.
    pub(crate) fn version(&self) -> &str {
        self.version.as_deref().unwrap_or("*")
    }

    /// What it says, as it stands in an object.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("enabled", self.enabled.map(Value::from));
        set("suspend", self.suspend.map(Value::from));
        set("version", self.version.clone().map(Value::from));
        set("wave", self.wave.map(Value::from));
        set("dependsOn", self.depends_on.clone().map(Value::from));
        set("values", self.values.clone().map(Value::from));
        set("patches", self.patches.clone().map(Value::from));
        Value::Object(fields)
    }
}

/// All Packs of the cluster.
pub(crate) struct Packs(Vec<Pack>);

impl Packs {
    /// What is read to have them.
    pub(crate) fn declared(manifest: Manifest) -> Manifest {
        manifest.reads((PACK, Scope::Cluster))
    }

    pub(crate) fn read(cx: &Context) -> Result<Self, Failure> {
        let parts = [
            "/spec",
            "/metadata/deletionTimestamp",
            "/metadata/annotations",
            "/metadata/finalizers",
        ];
        let packs: Vec<Json> = cx.list(&Query::of(PACK).projection(parts))?;
        Ok(Self(packs.iter().map(Pack::of).collect()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Pack> {
        self.iter().find(|pack| pack.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pack> {
        self.0.iter()
    }

    /// What each says, by name.
    pub(crate) fn specs(&self) -> Specs<'_> {
        let packs = self.iter();
        packs.map(|pack| (&*pack.name, &pack.spec)).collect()
    }
}

impl Pack {
    /// The definition of Packs lets no field be of another form than is read.
    fn of(Json(object): &Json) -> Self {
        let spec = object.get("spec").and_then(Value::as_object);
        let read = |fields| Spec::read("/spec", fields, &mut Findings::default());
        let annotations = &object["metadata"]["annotations"];
        let finalizers = object["metadata"]["finalizers"].to_string();
        Self {
            name: text(object, "/metadata/name").to_owned(),
            origin: annotations[ORIGIN].as_str().unwrap_or_default().to_owned(),
            is_going: object["metadata"]["deletionTimestamp"].is_string(),
            is_held: finalizers.contains(HOLDS),
            spec: spec.map(read).unwrap_or_default(),
        }
    }
}

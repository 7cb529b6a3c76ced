//! Patches of what a plugin returns, as its users write them: differences of one
//! cluster, without another version of the plugin.
//!
//! There are three languages: Kubernetes' strategic merge patches, JSON patches
//! (RFC 6902) and merge patches (RFC 7386). Targets select objects as those of
//! kustomize do.
//!
//! ```yaml
//! patches:
//!   - patch:                                # strategic, of the object that it names
//!       apiVersion: v1
//!       kind: Namespace
//!       metadata: {name: istio-system, labels: {team: mesh}}
//!   - target: {kind: HelmRelease, name: istio-.*}
//!     patch:
//!       - {op: replace, path: /spec/interval, value: 10m}
//! ```

mod json;
mod pattern;
mod strategic;
mod target;
#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests;

use serde_json::{Map, Value};

use crate::pointer::below;
use json::Operation;
use target::Target;

/// What is wrong with a patch, or with using it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct PatchError {
    /// Which of the patches it is.
    pub index: usize,
    /// Where it is wrong: a JSON Pointer into the list of patches.
    pub path: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// Patches that are well formed, in the order in which they are applied.
#[derive(Debug)]
pub struct Patches(Vec<Patch>);

#[derive(Debug)]
struct Patch {
    target: Target,
    change: Change,
}

#[derive(Debug)]
enum Change {
    Json(Vec<Operation>),
    Merge(Map<String, Value>),
    Strategic(Map<String, Value>),
}

/// The fields of a patch.
const FIELDS: [&str; 3] = ["patch", "target", "type"];

impl Patches {
    /// Reads patches. Each has `patch`: a list is a JSON patch, an object a strategic
    /// one; `type` (`Json`, `Merge`, `Strategic`) says otherwise; a text holds one of
    /// these as JSON. `target` says which objects are meant, by patterns of `group`,
    /// `version`, `kind`, `namespace` and `name`, and by `labelSelector` and
    /// `annotationSelector`. Without it, an object is meant that the patch itself names.
    ///
    /// # Errors
    ///
    /// All that is wrong with them.
    pub fn read(list: &[Value]) -> Result<Self, Vec<PatchError>> {
        let mut patches = Vec::new();
        let mut errors = Vec::new();
        for (index, entry) in list.iter().enumerate() {
            let mut place = Place {
                index,
                errors: &mut errors,
            };
            patches.extend(Patch::read(entry, &mut place));
        }
        match errors.is_empty() {
            true => Ok(Self(patches)),
            false => Err(errors),
        }
    }

    /// Applies all patches, one after the other. Returns for each whether there was an
    /// object for it: as in kustomize, it is no error when there is none.
    ///
    /// What an object is called no patch changes: a strategic or merge patch that says
    /// something else is taken to mean the object that it was applied to. A strategic
    /// patch with `$patch: delete` takes the object out. Labels and annotations stay
    /// objects.
    ///
    /// # Errors
    ///
    /// All patches that cannot be applied; the objects are then half patched, and of no
    /// use.
    pub fn apply(&self, objects: &mut Vec<Value>) -> Result<Vec<bool>, Vec<PatchError>> {
        let mut errors = Vec::new();
        let mut found = Vec::new();
        for (index, patch) in self.0.iter().enumerate() {
            let mut place = Place {
                index,
                errors: &mut errors,
            };
            let mut matched = false;
            objects.retain_mut(|object| {
                if !patch.target.matches(object) {
                    return true;
                }
                matched = true;
                patch.apply(object, &mut place)
            });
            found.push(matched);
        }
        match errors.is_empty() {
            true => Ok(found),
            false => Err(errors),
        }
    }
}

/// Where errors of one patch are noted.
struct Place<'a> {
    index: usize,
    errors: &'a mut Vec<PatchError>,
}

impl Place<'_> {
    fn error(&mut self, path: &str, problem: impl Into<String>) {
        self.errors.push(PatchError {
            index: self.index,
            path: format!("/{}{path}", self.index),
            problem: problem.into(),
        });
    }
}

impl Patch {
    /// None of one with errors, which are noted.
    fn read(entry: &Value, place: &mut Place<'_>) -> Option<Self> {
        let before = place.errors.len();
        let Some(entry) = entry.as_object() else {
            place.error("", "expected an object with a patch");
            return None;
        };
        for key in entry.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
            place.error(
                &below("", key),
                format!("not known; there are {}", FIELDS.join(", ")),
            );
        }
        let target = entry.get("target").filter(|target| !target.is_null());
        let target = target.map(|target| Target::read(target, place));
        let change = Change::read(entry, place)?;
        let target = match target {
            Some(target) => target?,
            None => Target::named(&change, place)?,
        };
        (place.errors.len() == before).then_some(Self { target, change })
    }

    /// Whether the object stays.
    fn apply(&self, object: &mut Value, place: &mut Place<'_>) -> bool {
        let before = place.errors.len();
        let stays = self.carry_out(object, place);
        if stays
            && place.errors.len() == before
            && let Some(path) = misshapen(object)
        {
            let of = Identity::of(object).describe();
            let problem = format!("leaves no object at {path} of {of}; keep one there");
            place.error("/patch", problem);
        }
        stays
    }

    fn carry_out(&self, object: &mut Value, place: &mut Place<'_>) -> bool {
        let identity = Identity::of(object);
        match &self.change {
            Change::Json(operations) => {
                let is_secret = object["apiVersion"] == "v1" && object["kind"] == "Secret";
                for (number, operation) in operations.iter().enumerate() {
                    if is_secret && operation.bares_data() {
                        let of = identity.describe();
                        place.error(
                            &format!("/patch/{number}"),
                            format!(
                                "takes what {of} holds out of its data, where it would be \
                                 shown; leave it in /data or /stringData"
                            ),
                        );
                        return true;
                    }
                    if let Err(problem) = operation.apply(object) {
                        let of = identity.describe();
                        place.error(
                            &format!("/patch/{number}"),
                            format!("cannot be applied to {of}: {problem}"),
                        );
                        return true;
                    }
                }
                if Identity::of(object) != identity {
                    let problem = format!(
                        "changes apiVersion, kind, name or namespace of {}; leave them",
                        identity.describe()
                    );
                    place.error("/patch", problem);
                }
                true
            }
            Change::Merge(patch) => {
                if let Some(fields) = object.as_object_mut() {
                    json::merge(fields, patch);
                }
                identity.restore(object);
                true
            }
            Change::Strategic(patch) => {
                if patch.get(strategic::DIRECTIVE).and_then(Value::as_str) == Some("delete") {
                    return false;
                }
                let Some(fields) = object.as_object_mut() else {
                    return true;
                };
                let builtin = strategic::is_builtin(&identity.group());
                if let Err((path, problem)) = strategic::merge(fields, patch, builtin) {
                    place.error(&format!("/patch{path}"), problem);
                }
                identity.restore(object);
                true
            }
        }
    }
}

impl Change {
    fn read(entry: &Map<String, Value>, place: &mut Place<'_>) -> Option<Self> {
        const EXPECTED: &str =
            "expected an object, a list of operations, or one of these as JSON text";
        let text;
        let patch = match entry.get("patch") {
            Some(Value::String(json)) => match crate::parse_json::<crate::Json>(json) {
                Ok(crate::Json(value)) => {
                    text = value;
                    &text
                }
                Err(error) => {
                    place.error("/patch", format!("{EXPECTED}: {}", error.message()));
                    return None;
                }
            },
            Some(patch) => patch,
            None => {
                place.error("/patch", EXPECTED);
                return None;
            }
        };
        let kind = match entry.get("type").filter(|kind| !kind.is_null()) {
            None => None,
            Some(kind) => match kind.as_str() {
                Some(kind @ ("Json" | "Merge" | "Strategic")) => Some(kind),
                _ => {
                    place.error("/type", "expected one of Json, Merge, Strategic");
                    return None;
                }
            },
        };
        match (kind, patch) {
            (None | Some("Json"), Value::Array(operations)) => {
                let mut read = Vec::new();
                for (number, operation) in operations.iter().enumerate() {
                    match Operation::read(operation) {
                        Ok(operation) => read.push(operation),
                        Err(problem) => place.error(
                            &format!("/patch/{number}"),
                            format!("no operation of a JSON patch: {problem}"),
                        ),
                    }
                }
                (read.len() == operations.len()).then_some(Self::Json(read))
            }
            (Some("Merge"), Value::Object(patch)) => Some(Self::Merge(patch.clone())),
            (None | Some("Strategic"), Value::Object(patch)) => {
                Some(Self::Strategic(patch.clone()))
            }
            (Some("Json"), _) => {
                place.error("/patch", "expected a list of operations");
                None
            }
            (Some(_), Value::Array(_)) => {
                place.error(
                    "/patch",
                    "expected an object; a list is a patch of type Json",
                );
                None
            }
            _ => {
                place.error("/patch", EXPECTED);
                None
            }
        }
    }
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    api_version: Value,
    kind: Value,
    name: Value,
    namespace: Value,
}

impl Identity {
    fn of(object: &Value) -> Self {
        let at = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        Self {
            api_version: at("/apiVersion"),
            kind: at("/kind"),
            name: at("/metadata/name"),
            namespace: at("/metadata/namespace"),
        }
    }

    fn group(&self) -> String {
        let version = self.api_version.as_str().unwrap_or_default();
        let group = version.split_once('/').map(|(group, _)| group);
        group.unwrap_or_default().to_owned()
    }

    fn describe(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self.namespace.as_str() {
            Some(namespace) => format!("{} {namespace}/{}", text(&self.kind), text(&self.name)),
            None => format!("{} {}", text(&self.kind), text(&self.name)),
        }
    }

    fn restore(&self, object: &mut Value) {
        let put = |place: &mut Value, key: &str, value: &Value| {
            let Some(fields) = place.as_object_mut() else {
                return;
            };
            match value {
                Value::Null => drop(fields.remove(key)),
                value => drop(fields.insert(key.to_owned(), value.clone())),
            }
        };
        put(object, "apiVersion", &self.api_version);
        put(object, "kind", &self.kind);
        if let Some(fields) = object.as_object_mut() {
            let metadata = fields.entry("metadata").or_insert(Value::Null);
            if !metadata.is_object() {
                *metadata = Value::Object(Map::new());
            }
            put(metadata, "name", &self.name);
            put(metadata, "namespace", &self.namespace);
        }
    }
}

/// Which part of an object that others go on to work with is no object any more.
fn misshapen(object: &Value) -> Option<&'static str> {
    let parts = ["/metadata/labels", "/metadata/annotations"];
    let is_misshapen = |part: &&str| {
        let found = object.pointer(part);
        found.is_some_and(|found| !found.is_object() && !found.is_null())
    };
    parts.into_iter().find(is_misshapen)
}

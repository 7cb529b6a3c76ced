//! What an object of Flux has to wait for: its source, and those on which it depends.

use serde_json::Value;

use super::super::context::{self, Context};
use super::super::script::is_addressed;
use super::SOURCES;
use super::conditions::{self, READY, STALLED, Truth};
use crate::cel::{self, Outcome, Scope};
use crate::kinds::edit::{integer, items, text, text_at};
use crate::rest::meta;

/// How a source stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is not there, in the words of a controller.
    Missing(String),
    /// It is there.
    There(Box<Found>),
}

/// A source that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Why it is not ready.
    pub(super) unready: Option<String>,
    /// What it has: none where it has none, or where nobody plays sources.
    pub(super) artifact: Option<Value>,
    /// Whether it has to have an artifact.
    pub(super) is_played: bool,
    /// The object itself.
    pub(super) object: Value,
}

/// Looks for a source. One of a kind for which nobody acts counts as being there,
/// unless it says otherwise itself.
pub(super) fn source(context: &Context<'_>, kind: &str, namespace: &str, name: &str) -> Standing {
    let resources = context.shared.registry.customs();
    let resource = resources
        .iter()
        .find(|resource| resource.kind == kind && resource.group == SOURCES);
    let Some(resource) = resource else {
        return Standing::There(Box::default());
    };
    let is_played = context.settings.act_for(kind, SOURCES);
    let Some(object) = context.get(&resource.table, &format!("{namespace}/{name}")) else {
        return if is_played {
            // As caches of controllers say it, which know the kind alone.
            Standing::Missing(format!("{kind}.{SOURCES} \"{name}\" not found"))
        } else {
            Standing::There(Box::default())
        };
    };
    let artifact = object.pointer("/status/artifact").filter(|a| a.is_object());
    let is_judged = is_played
        || is_addressed(&object)
        || artifact.is_some()
        || items(&object["status"], "conditions").next().is_some();
    let found = Found {
        unready: if is_judged { unready(&object) } else { None },
        artifact: artifact.cloned(),
        is_played: is_judged,
        object: object.clone(),
    };
    Standing::There(Box::new(found))
}

/// Why a source is not ready.
fn unready(source: &Value) -> Option<String> {
    let status = &source["status"];
    let say = |condition: &str| {
        let condition = conditions::get(status, condition);
        condition.map_or("", |condition| text(condition, "message"))
    };
    let is_ready = conditions::is(status, READY, Truth::True);
    let why = if integer(status, "observedGeneration") != Some(meta::generation(source)) {
        if conditions::is(status, READY, Truth::False) {
            say(READY)
        } else {
            "latest generation of object has not been reconciled"
        }
    } else if conditions::is(status, STALLED, Truth::True) {
        say(STALLED)
    } else if !is_ready && status.get("artifact").is_none_or(Value::is_null) {
        "does not have an artifact"
    } else {
        return None;
    };
    let (kind, key) = (text(source, "kind"), context::key(source));
    Some(format!("{kind} '{key}' is not ready: {why}"))
}

/// Why one of those on which an object depends is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unmet {
    /// It may become so.
    Yet(String),
    /// What was asked cannot be answered, ever.
    Never(String),
}

/// The first of those on which an object depends that is not ready. `missing` says in
/// the words of the controller that there is none.
pub(super) fn dependency(
    context: &Context<'_>,
    table: &str,
    object: &Value,
    missing: impl Fn(&str, &str) -> String,
    outdated: impl Fn(&Value) -> bool,
) -> Option<Unmet> {
    let spec = object.get("spec")?;
    items(spec, "dependsOn").find_map(|reference| {
        let namespace = match text(reference, "namespace") {
            "" => meta::text(object, "namespace"),
            given => given,
        };
        let name = text(reference, "name");
        let key = format!("{namespace}/{name}");
        let Some(other) = context.get(table, &key) else {
            let why = format!("{table} \"{name}\" not found");
            return Some(Unmet::Yet(missing(&key, &why)));
        };
        let rule = text(reference, "readyExpr");
        if !rule.is_empty() {
            let scope = Scope::new([("self", object), ("dep", &other)]);
            return match scope.evaluate(rule) {
                Ok(Outcome::Bool(true)) => None,
                Ok(_) => Some(Unmet::Yet(format!(
                    "dependency '{key}' is not ready according to readyExpr eval"
                ))),
                // What cannot be read stays so; a field that is not there yet does not.
                Err(why) if cel::parse(rule).is_err() => Some(Unmet::Never(format!(
                    "terminal error: failed to evaluate dependency {name}: failed to parse the CEL expression '{rule}': {why}"
                ))),
                Err(why) => Some(Unmet::Yet(format!(
                    "failed to evaluate the CEL expression '{rule}': {why}"
                ))),
            };
        }
        let observed = other.pointer("/status/observedGeneration");
        let is_current = observed.and_then(Value::as_i64) == Some(meta::generation(&other));
        if !is_current || !conditions::is(&other["status"], READY, Truth::True) {
            return Some(Unmet::Yet(format!("dependency '{key}' is not ready")));
        }
        outdated(&other)
            .then(|| Unmet::Yet(format!("dependency '{key}' revision is not up to date")))
    })
}

/// Where a reference leads: its kind, its namespace and its name.
pub(super) fn place<'o>(object: &'o Value, pointer: &str) -> (&'o str, &'o str, &'o str) {
    let at = |field: &str| text_at(object, &format!("{pointer}/{field}"));
    let namespace = match at("namespace") {
        "" => meta::text(object, "namespace"),
        given => given,
    };
    (at("kind"), namespace, at("name"))
}

//! What is to be released: which chart, in which version, with which values.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::super::script::Failure;
use super::super::needs::{self, Standing};
use super::super::scene::Scene;
use super::super::{ASKED_FOR, CHARTS, SOURCES, conditions, hash, revision};
use super::{INTERVAL, RELEASED, REQUEUE};
use crate::clock;
use crate::decode::{self, Document};
use crate::kinds::edit::{flag, items, present, remove, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// The longest name of a release, and how much of it is left of a longer one.
const NAME_MAX: usize = 53;
const NAME_KEPT: usize = 40;
const HASH_KEPT: usize = 12;

/// What is to be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) chart: String,
    pub(super) version: String,
    /// Of the artifact, where a registry has it.
    pub(super) digest: Option<String>,
    /// Of the values.
    pub(super) config: String,
}

/// Why nothing can be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// When to look again, unless something happens before.
    pub(super) again: Option<Duration>,
}

impl Lack {
    fn new(reason: &'static str, message: String) -> Self {
        Lack {
            reason,
            message,
            again: None,
        }
    }
}

/// Looks for what is to be released.
pub(super) fn wanted(scene: &mut Scene<'_, '_>) -> Result<Wanted, Lack> {
    let (kind, namespace, name) = reference(scene);
    let found = match needs::source(scene.context, kind, namespace, &name) {
        Standing::Missing(why) => {
            let message = format!("could not get Source object: {why}");
            return Err(Lack::new("ArtifactFailed", message));
        }
        Standing::There(found) => found,
    };
    if let Some(why) = &found.unready {
        return Err(Lack::new("SourceNotReady", why.clone()));
    }
    let config = values(scene)?;
    if let Some(why) = unloadable(scene) {
        return Err(why);
    }
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let template = spec.pointer("/chart/spec");
    let path = match template {
        Some(template) => text(template, "chart"),
        None if kind == "OCIRepository" => text_at(&found.object, "/spec/url"),
        None => text_at(&found.object, "/spec/chart"),
    };
    let chart = path.trim_end_matches('/').rsplit('/').next();
    let chart = chart.filter(|chart| !chart.is_empty()).unwrap_or(&name);
    let told = found.artifact.as_ref().map(|a| text(a, "revision"));
    let (version, digest) = match told {
        Some(told) => exact(told),
        None => {
            let wanted = template.map_or("", |template| text(template, "version"));
            (revision::chart(wanted, &scene.script), None)
        }
    };
    if present(spec, "valuesFrom").is_some() {
        // Nobody tells of other values.
        let interval = scene.span("/spec/interval", INTERVAL);
        scene.wake_in(interval.max(Duration::from_secs(1)));
    }
    Ok(Wanted {
        name: release_name(scene.before),
        namespace: match scene.said("/spec/targetNamespace") {
            "" => scene.namespace().to_owned(),
            target => target.to_owned(),
        },
        chart: chart.to_owned(),
        version,
        digest,
        config,
    })
}

/// Where the chart comes from: kind, namespace and name of the source.
fn reference<'s>(scene: &Scene<'s, '_>) -> (&'s str, &'s str, String) {
    if scene.before.pointer("/spec/chartRef").is_some() {
        let (kind, namespace, name) = needs::place(scene.before, "/spec/chartRef");
        return (kind, namespace, name.to_owned());
    }
    let (_, namespace, _) = needs::place(scene.before, "/spec/chart/spec/sourceRef");
    ("HelmChart", namespace, chart_name(scene))
}

fn chart_name(scene: &Scene<'_, '_>) -> String {
    format!("{}-{}", scene.namespace(), scene.name())
}

/// The version of a chart and the digest of its artifact: one of a registry carries a
/// part of the digest in its version.
fn exact(told: &str) -> (String, Option<String>) {
    match told.split_once('@') {
        Some((version, digest)) => {
            let digits = digest.rsplit(':').next().unwrap_or_default();
            let digits: String = digits.chars().take(HASH_KEPT).collect();
            let version = revision::version(version);
            let version = version.split('+').next().unwrap_or_default();
            (format!("{version}+{digits}"), Some(digest.to_owned()))
        }
        None => (told.to_owned(), None),
    }
}

/// `[targetNamespace-]name`, shortened where Helm could not take it.
fn release_name(object: &Value) -> String {
    let given = text_at(object, "/spec/releaseName");
    if !given.is_empty() {
        return given.to_owned();
    }
    let name = meta::text(object, "name");
    let whole = match text_at(object, "/spec/targetNamespace") {
        "" => name.to_owned(),
        target => format!("{target}-{name}"),
    };
    if whole.len() <= NAME_MAX {
        return whole;
    }
    let kept: String = whole.chars().take(NAME_KEPT).collect();
    format!("{kept}-{:.HASH_KEPT$}", hash(&whole))
}

/// The digest of the values, from wherever they come.
fn values(scene: &Scene<'_, '_>) -> Result<String, Lack> {
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let mut all = String::new();
    for reference in items(spec, "valuesFrom") {
        let (kind, name) = (text(reference, "kind"), text(reference, "name"));
        let table = match kind {
            "Secret" => "secrets",
            _ => "configmaps",
        };
        let field = match text(reference, "valuesKey") {
            "" => "values.yaml",
            given => given,
        };
        let key = format!("{}/{name}", scene.namespace());
        let found = scene.context.get(table, &key);
        let value = found.as_ref().and_then(|found| found["data"].get(field));
        let why = match (&found, value) {
            (_, Some(_)) if !text(reference, "targetPath").is_empty() => None,
            (_, Some(value)) => unreadable(kind, value),
            _ if flag(reference, "optional") => None,
            (None, None) => Some(format!("{table} \"{name}\" not found")),
            (Some(_), None) => Some("key not found".to_owned()),
        };
        if let Some(why) = why {
            let message = format!(
                "could not resolve {kind} chart values reference '{key}' with key '{field}': {why}"
            );
            return Err(Lack {
                again: Some(REQUEUE),
                ..Lack::new("ValuesError", message)
            });
        }
        all.push_str(&value.map(Value::to_string).unwrap_or_default());
        all.push_str(text(reference, "targetPath"));
    }
    all.push_str(&spec.get("values").map(Value::to_string).unwrap_or_default());
    Ok(format!("sha256:{}", hash(&all)))
}

/// Why values of a ConfigMap or a Secret are none: they are a map, in YAML.
fn unreadable(kind: &str, value: &Value) -> Option<String> {
    let text = value.as_str().unwrap_or_default();
    let bytes = match kind {
        "Secret" => STANDARD.decode(text).unwrap_or_default(),
        _ => text.as_bytes().to_vec(),
    };
    let found = match decode::yaml(&bytes) {
        Ok((Document::Map(_) | Document::Null, _)) => return None,
        Ok((other, _)) => other.sort(),
        Err(why) => return Some(format!("error converting YAML to JSON: {why}")),
    };
    Some(format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type common.Values"
    ))
}

/// Why the chart cannot be loaded, where that is asked for: always, or some time after
/// it was released.
fn unloadable(scene: &mut Scene<'_, '_>) -> Option<Lack> {
    let lack = || {
        Lack::new(
            "ArtifactFailed",
            format!("Could not load chart: {ASKED_FOR}"),
        )
    };
    if scene.script.failure == Some(Failure::Fetch) {
        return Some(lack());
    }
    scene.script.degrade_after?;
    let released = conditions::get(&scene.before["status"], RELEASED);
    let released = released.filter(|released| text(released, "status") == "True")?;
    let since = clock::parse(text(released, "lastTransitionTime"))?;
    // It counts from when it was ready.
    let elapsed = scene.context.elapsed(since) + scene.script.ready_after;
    let (ready, next) = scene.script.readiness(elapsed);
    if let Some(next) = next {
        scene.wake_at(elapsed, next);
    }
    (!ready).then(lack)
}

/// Makes the HelmChart that a release asks for, or brings it up to date.
pub(super) fn template(scene: &mut Scene<'_, '_>) -> Result<(), ApiError> {
    let spec = scene.before.get("spec").unwrap_or(&Value::Null);
    let wanted = spec.get("chart").filter(|chart| chart.is_object());
    let (_, namespace, _) = needs::place(scene.before, "/spec/chart/spec/sourceRef");
    let key = format!("{namespace}/{}", chart_name(scene));
    let known = scene.said("/status/helmChart");
    if !known.is_empty() && (wanted.is_none() || known != key) {
        if let Some(chart) = scene.context.get(CHARTS, known) {
            scene.context.delete(CHARTS, &chart)?;
        }
        remove(scene.status(), "helmChart");
    }
    let Some(wanted) = wanted else {
        return Ok(());
    };
    if scene.context.shared.registry.find_table(CHARTS).is_none() {
        return Ok(());
    }
    let chart = chart(scene, wanted, namespace);
    let manager = "helm-controller";
    match scene.context.get(CHARTS, &key) {
        None => {
            scene.context.create(CHARTS, namespace, manager, chart)?;
        }
        Some(there) => {
            let fields = || chart["spec"].as_object().into_iter().flatten();
            if fields().any(|(field, value)| there["spec"].get(field) != Some(value)) {
                let change = |object: &mut Value| {
                    for (field, value) in fields() {
                        object["spec"][field] = value.clone();
                    }
                };
                scene.context.change(CHARTS, &there, manager, change)?;
            }
        }
    }
    set(scene.status(), "helmChart", key);
    Ok(())
}

fn chart(scene: &Scene<'_, '_>, wanted: &Value, namespace: &str) -> Value {
    let asked = wanted.get("spec").unwrap_or(&Value::Null);
    let mut spec = json!({
        "chart": text(asked, "chart"),
        "sourceRef": {
            "kind": text_at(asked, "/sourceRef/kind"),
            "name": text_at(asked, "/sourceRef/name"),
        },
        "interval": match text(asked, "interval") {
            "" => scene.said("/spec/interval"),
            given => given,
        },
    });
    for field in ["version", "reconcileStrategy", "valuesFiles", "verify"] {
        if let Some(value) = present(asked, field) {
            set(&mut spec, field, value.clone());
        }
    }
    let mut metadata = json!({"name": chart_name(scene), "namespace": namespace});
    for field in ["labels", "annotations"] {
        if let Some(given) = wanted.pointer(&format!("/metadata/{field}")) {
            set(&mut metadata, field, given.clone());
        }
    }
    for (label, value) in [("name", scene.name()), ("namespace", scene.namespace())] {
        metadata["labels"][format!("helm.toolkit.fluxcd.io/{label}")] = json!(value);
    }
    json!({
        "apiVersion": format!("{SOURCES}/v1"),
        "kind": "HelmChart",
        "metadata": metadata,
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_as_by_flux() {
        let named = |name: &str, target: &str| {
            release_name(&json!({"metadata": {"name": name}, "spec": {"targetNamespace": target}}))
        };
        assert_eq!(named("web", ""), "web");
        assert_eq!(named("web", "apps"), "apps-web");
        let long = named(&"n".repeat(60), "");
        assert_eq!(long.len(), NAME_MAX);
        assert!(long.starts_with(&format!("{}-", "n".repeat(40))), "{long}");
    }

    #[test]
    fn a_registry_puts_digests_into_versions() {
        let digest = "sha256:0123456789abcdef0123";
        assert_eq!(
            exact(&format!("6.5.0@{digest}")),
            ("6.5.0+0123456789ab".to_owned(), Some(digest.to_owned()))
        );
        assert_eq!(exact("6.5.0"), ("6.5.0".to_owned(), None));
    }
}

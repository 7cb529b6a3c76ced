//! What the charts render.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
pub(crate) use reeve_real::{chart_of, helm};
use serde_json::Value;

/// Where the chart of the agent is.
pub(crate) fn chart() -> PathBuf {
    chart_of("reeve")
}

/// The objects that the chart renders with these settings, each like
/// `image.tag=1` or, as JSON, `tolerations=[]`.
pub(crate) fn template(home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    template_of("reeve", home, settings)
}

/// The objects that a chart of this repository renders with these settings.
pub(crate) fn template_of(name: &str, home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    let mut arguments = vec!["--namespace", "reeve-system"];
    for setting in settings {
        arguments.extend(["--set-json", setting]);
    }
    template_with(name, name, home, &arguments)
}

/// The objects that a chart of this repository renders as this release, with these
/// arguments.
pub(crate) fn template_with(
    name: &str,
    release: &str,
    home: &Path,
    arguments: &[&str],
) -> Result<Vec<Value>> {
    let chart = chart_of(name);
    let chart = chart.to_string_lossy();
    let mut all = vec!["template", release, &chart];
    all.extend(arguments);
    let text = helm(home, None, &all)?;
    serde_saphyr::from_multiple(&text).context("what was rendered is no YAML")
}

/// That all names, and all that has to be a text beside them, are texts: what looks like a
/// number or a truth is none to the API server only in quotes.
pub(crate) fn names_are_texts(objects: &[Value]) -> Result<()> {
    ensure!(!objects.is_empty());
    for object in objects {
        let found = not_a_text(object, "");
        ensure!(
            found.is_none(),
            "{} {}: {found:?} is no text",
            object["kind"],
            object["metadata"]["name"]
        );
    }
    Ok(())
}

/// The first place that is to have a text and has none.
fn not_a_text(value: &Value, at: &str) -> Option<String> {
    const NAMES: [&str; 5] = [
        "name",
        "namespace",
        "policyName",
        "secretKey",
        "serviceAccountName",
    ];
    // Of these all that is in them.
    const TEXTS: [&str; 7] = [
        "annotations",
        "apiGroups",
        "labels",
        "matchLabels",
        "resourceNames",
        "resources",
        "selector",
    ];
    let all = |value: &Value| match value {
        Value::Object(map) => map.values().all(|one| one.is_string() || one.is_object()),
        Value::Array(list) => list.iter().all(Value::is_string),
        _ => false,
    };
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            let of_rule = at.contains("/rules/") || at.contains("/resourceRules/");
            let texts = TEXTS.contains(&&**key) && (key != "resources" || of_rule);
            let wrong = (NAMES.contains(&&**key) && !value.is_string()) || (texts && !all(value));
            match wrong {
                true => Some(at),
                false => not_a_text(value, &at),
            }
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(index, value)| not_a_text(value, &format!("{at}/{index}"))),
        _ => None,
    }
}

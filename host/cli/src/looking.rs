//! What `reeve plan`, `reeve explain` and `reeve record` share: a planner on the user's
//! cluster, and how fields are told.

use crate::bounds::LimitArgs;
use crate::compile::CacheArgs;
use crate::connection::ConnectionArgs;
use crate::style::Style;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use reeve_agent::planner::{FieldChange, Given, Planner, PlannerConfig, Shown};
use reeve_core::ObjectReference;
use serde_json::{Value, json};
use std::path::Path;

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How plugins are run here.
#[derive(Args, Clone)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl LookArgs {
    /// A planner that reads with the user's rights.
    pub(crate) async fn planner(&self) -> anyhow::Result<Planner> {
        let client = self.connection.client().await?;
        let engine = self.cache.engine()?;
        let namespace = self.connection.namespace.clone();
        Ok(Planner::new(PlannerConfig {
            limits: self.limits.limits()?,
            ..PlannerConfig::new(client, engine, namespace)
        }))
    }
}

/// A component and a configuration from files, in place of what is installed.
pub(crate) fn given(
    component: Option<&Path>,
    config: Option<&Path>,
) -> anyhow::Result<Option<Given>> {
    let Some(path) = component else {
        return Ok(None);
    };
    let component = std::fs::read(path)
        .with_context(|| format!("cannot read the component {}", path.display()))?;
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))
    };
    let config = config.map(read).transpose()?;
    Ok(Some(Given { component, config }))
}

/// The units that somebody means by `alice`, `alice/notebook`, `Profile alice` or
/// `Notebook alice/notebook`.
pub(crate) fn select(units: &[ObjectReference], text: &str) -> anyhow::Result<ObjectReference> {
    let text = text.trim();
    let is_meant = |unit: &&ObjectReference| {
        let full = unit.to_string();
        let name = full.split_once(' ').map_or(full.as_str(), |(_, name)| name);
        let short = format!("{}/{name}", unit.kind.kind.to_lowercase());
        text == full || text == name || text == unit.name || text.to_lowercase() == short
    };
    let meant: Vec<&ObjectReference> = units.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!(
            "it has no unit {text}; its units are named by their primaries{}",
            examples(units)
        ),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            bail!(
                "{text} may be any of {}; name one of them",
                names.join(", ")
            )
        }
    }
}

/// The first of the units, as help.
fn examples(units: &[ObjectReference]) -> String {
    const SHOWN: usize = 5;
    if units.is_empty() {
        return ", and there is none".to_owned();
    }
    let names: Vec<String> = units.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = units.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(": {}{more}", names.join(", "))
}

/// An object in JSON.
pub(crate) fn reference(object: &ObjectReference) -> Value {
    json!({
        "apiVersion": object.kind.api_version(),
        "kind": object.kind.kind,
        "namespace": object.namespace,
        "name": object.name,
    })
}

/// What is written for a value that nobody is to see.
pub(crate) const HIDDEN: &str = "(hidden)";

/// One side of a field for people. A long text is cut: it is to be recognised, not
/// to be read.
pub(crate) fn in_text(side: &Shown) -> Option<String> {
    const LONGEST: usize = 120;
    match side {
        Shown::Absent => None,
        Shown::Hidden => Some(HIDDEN.to_owned()),
        Shown::Value(value) => {
            let text = value.to_string();
            Some(match text.char_indices().nth(LONGEST) {
                None => text,
                Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
            })
        }
    }
}

/// A field that differs, for people; none where there is nothing to tell.
pub(crate) fn field_in_text(field: &FieldChange) -> Option<(Style, String)> {
    let path = &field.path;
    match (in_text(&field.old), in_text(&field.new)) {
        (None, Some(new)) => Some((Style::Added, format!("+ {path}: {new}"))),
        (Some(old), None) => Some((Style::Removed, format!("- {path}: {old}"))),
        (Some(old), Some(new)) if old == new => {
            Some((Style::Changed, format!("~ {path}: {new}, another value")))
        }
        (Some(old), Some(new)) => Some((Style::Changed, format!("~ {path}: {old} -> {new}"))),
        (None, None) => None,
    }
}

/// A field that differs, for programs.
pub(crate) fn field_in_json(field: &FieldChange) -> Value {
    json!({
        "path": field.path,
        "old": in_json(&field.old),
        "new": in_json(&field.new),
    })
}

/// One side of a field in JSON: `{}` where it is absent, `{"hidden": true}`, or
/// `{"value": …}`.
pub(crate) fn in_json(side: &Shown) -> Value {
    match side {
        Shown::Absent => json!({}),
        Shown::Hidden => json!({"hidden": true}),
        Shown::Value(value) => json!({"value": value}),
    }
}

/// Prints an answer in JSON.
pub(crate) fn print_json(answer: &Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(answer).context("cannot write JSON")?;
    crate::output::print(format_args!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;

    #[test]
    fn a_unit_goes_by_several_names() {
        let unit = |namespace: Option<&str>, name: &str| {
            let kind = GroupVersionKind::new("kubeflow.org", "v1", "Notebook");
            ObjectReference::new(kind, namespace.map(str::to_owned), name)
        };
        let units = [
            unit(Some("alice"), "one"),
            unit(Some("bob"), "one"),
            unit(Some("bob"), "two"),
        ];
        for (text, expected) in [
            ("alice/one", Ok("Notebook alice/one")),
            ("Notebook bob/one", Ok("Notebook bob/one")),
            ("notebook/bob/one", Ok("Notebook bob/one")),
            ("two", Ok("Notebook bob/two")),
            (
                "one",
                Err("one may be any of Notebook alice/one, Notebook bob/one; name one of them"),
            ),
            (
                "three",
                Err(
                    "it has no unit three; its units are named by their primaries: \
                     Notebook alice/one, Notebook bob/one, Notebook bob/two",
                ),
            ),
        ] {
            let found = select(&units, text).map(|unit| unit.to_string());
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
        }
        let none = select(&[], "a").unwrap_err().to_string();
        assert!(none.ends_with("and there is none"), "{none}");
    }

    #[test]
    fn long_values_are_cut() {
        let long = Shown::Value(Value::String("ä".repeat(300)));
        let text = in_text(&long).unwrap();
        assert!(text.ends_with("… (602 bytes)"), "{text}");
        assert_eq!(in_text(&Shown::Value(json!(1))), Some("1".to_owned()));
    }
}

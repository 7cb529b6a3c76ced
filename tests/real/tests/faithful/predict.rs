//! What `reeve_ssa` alone says of an apply, held against what the real server
//! does: whether it changes the object. The agent skips applies by this.
//!
//! Some fields the server sets to something else than was applied, each time. They
//! are not in OpenAPI, so they are in `settled.yaml`, by kind, as they were found
//! here: a caller that has sent a config before need not send it again for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;
use reeve_ssa::{Apply, Prediction, Schema, builtin, reset};
use serde::Deserialize;
use serde_json::Value;

use crate::corpus::{self, Scenario, Step};
use crate::exchange::Endpoint;
use crate::play::{Outcome, Player};

/// How predictions came out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Applies to objects that were there, which the server took.
    pub(crate) applies: usize,
    /// Those of them that changed nothing.
    pub(crate) unchanged: usize,
    /// The server changed something, and no change was predicted: the agent would
    /// have left out a write that was needed.
    pub(crate) missed: Vec<String>,
    /// The server made nothing but empty containers of what it had been sent before.
    pub(crate) hollow: usize,
    /// A change was predicted, and the server changed nothing: the agent would
    /// have sent a write for nothing.
    pub(crate) needless: Vec<String>,
    /// Fields that the server set otherwise than they were applied, by kind.
    pub(crate) settled: BTreeMap<String, BTreeSet<String>>,
    /// Those that it set otherwise only as the object was created, so that the next apply
    /// of the same takes that away.
    pub(crate) born: BTreeMap<String, BTreeSet<String>>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.applies += other.applies;
        self.unchanged += other.unchanged;
        self.hollow += other.hollow;
        self.missed.extend(other.missed);
        self.needless.extend(other.needless);
        for (kind, fields) in other.settled {
            self.settled.entry(kind).or_default().extend(fields);
        }
        for (kind, fields) in other.born {
            self.born.entry(kind).or_default().extend(fields);
        }
    }

    /// Fields that the server set otherwise and that are not written down, and what is
    /// written down and was not found.
    pub(crate) fn against(&self, path: &Path) -> Result<Settlement> {
        let listed: Vec<Settled> = corpus::parse(&fs::read_to_string(path)?)?;
        let mut unused: BTreeSet<String> = listed.iter().map(Settled::name).collect();
        let mut unlisted = Vec::new();
        for (found, once) in [(&self.settled, false), (&self.born, true)] {
            for (kind, fields) in found {
                for field in fields {
                    let rows = listed.iter().filter(|row| row.once || !once);
                    let mut rows = rows.filter(|row| row.has(kind, field)).peekable();
                    if rows.peek().is_none() {
                        let when = if once { " once, as it is created" } else { "" };
                        unlisted.push(format!("{kind} {field}{when}"));
                    }
                    for row in rows {
                        unused.remove(&row.name());
                    }
                }
            }
        }
        let unused = unused.into_iter().collect();
        Ok(Settlement { unlisted, unused })
    }
}

/// What was found, against `settled.yaml`.
pub(crate) struct Settlement {
    pub(crate) unlisted: Vec<String>,
    pub(crate) unused: Vec<String>,
}

/// A row of `settled.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settled {
    kind: String,
    /// The field, or one that it is in.
    field: String,
    /// Whether the server may do so only as the object is created.
    #[serde(default)]
    once: bool,
    /// What the server makes of it.
    #[serde(rename = "why")]
    _why: String,
}

impl Settled {
    fn name(&self) -> String {
        format!("{} {}", self.kind, self.field)
    }

    /// Whether `field` is the one of the row, or in it.
    fn has(&self, kind: &str, field: &str) -> bool {
        let rest = field.strip_prefix(&self.field);
        self.kind == kind
            && rest.is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.' | b'[')))
    }
}

/// What each manager sent last, by object and part of it.
type Sent = BTreeMap<(String, String), Last>;

/// What was sent last.
struct Last {
    config: Value,
    /// Whether it created the object.
    created: bool,
}

/// Plays a scenario on the real server, and judges each apply on the way.
pub(crate) async fn play(
    endpoint: &Endpoint,
    scenario: &Scenario,
    namespace: &str,
) -> Result<(Vec<Outcome>, Tally)> {
    let mut player = Player::new(endpoint, namespace).await?;
    let (mut outcomes, mut tally, mut sent) = (Vec::new(), Tally::default(), Sent::new());
    for step in &scenario.steps {
        let Some(attempt) = Attempt::of(step) else {
            outcomes.push(player.step(step).await?);
            continue;
        };
        let schema = attempt.schema(&mut player).await?;
        let before = player.look(attempt.object).await?;
        let config = player.resolve(attempt.config);
        let outcome = player.step(step).await?;
        let after = player.look(attempt.object).await?;
        let taken = matches!(&outcome, Outcome::Answer(answer) if answer.status < 300);
        let created = before.is_none();
        let part = format!("{} {}", attempt.object, attempt.subresource);
        let key = (part, attempt.manager.to_owned());
        if taken && let (Some(before), Some(after), Some(schema)) = (before, after, schema) {
            let last = sent.get(&key).filter(|last| last.config == config);
            let (again, born) = (last.is_some(), last.is_some_and(|last| last.created));
            // Of what it sets otherwise, nulls and empty lists among them, the server
            // writes the time anew if a second has passed. That is no change.
            let changed = content(&before) != content(&after);
            let predicted = match attempt.predict(&before, &config, &schema) {
                Some(Prediction::NoChange) => false,
                // What lost its last item is not there until it is applied once more. Nobody
                // needs it: the agent leaves it as it is.
                Some(Prediction::Settled(_))
                    if again && changed && grew_hollow(&content(&before), &content(&after)) =>
                {
                    tally.hollow += 1;
                    true
                }
                Some(Prediction::Settled(fields)) if again => {
                    let kind = config["kind"].as_str().unwrap_or_default().to_owned();
                    let fields: Vec<_> = fields.iter().map(|field| field.to_string()).collect();
                    // As with what is hollow: the agent leaves what it was created with. Where
                    // something else changed, that was missed.
                    let rest = |object| without(content(object), &fields);
                    let once = born && changed && rest(&before) == rest(&after);
                    let found = match once {
                        true => &mut tally.born,
                        false => &mut tally.settled,
                    };
                    found.entry(kind).or_default().extend(fields);
                    once
                }
                // What is refused counts as a change: then the server is asked.
                _ => true,
            };
            tally.applies += 1;
            tally.unchanged += usize::from(!changed);
            if changed != predicted {
                let case = format!("config {config}\n      on {before}\n      gave {after}");
                let list = if changed {
                    &mut tally.missed
                } else {
                    &mut tally.needless
                };
                list.push(case);
            }
        }
        if taken {
            sent.insert(key, Last { config, created });
        }
        outcomes.push(outcome);
    }
    Ok((outcomes, tally))
}

/// An object without what moves with each write.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("generation");
        if let Some(owners) = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
        {
            for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
                owner.remove("time");
            }
            // They are in the order of their times.
            owners.sort_by_key(ToString::to_string);
        }
    }
    object
}

/// An object without these fields; of one with keys or indices in it, without the list.
fn without(mut object: Value, fields: &[String]) -> Value {
    for field in fields {
        let plain = field.split('[').next().unwrap_or_default();
        let (parent, name) = plain.rsplit_once('.').unwrap_or_default();
        let parent = object.pointer_mut(&parent.replace('.', "/"));
        if let Some(parent) = parent.and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
    object
}

/// Whether one is the other with containers besides that have nothing in them.
fn grew_hollow(before: &Value, after: &Value) -> bool {
    fn is_hollow(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.values().all(is_hollow),
            Value::Array(items) => items.is_empty(),
            _ => false,
        }
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.keys().all(|name| after.contains_key(name))
                && after.iter().all(|(name, value)| match before.get(name) {
                    Some(before) => grew_hollow(before, value),
                    None => is_hollow(value),
                })
        }
        _ => before == after,
    }
}

/// An apply to an object.
struct Attempt<'a> {
    object: &'a str,
    /// The part that it goes to; empty for the object itself.
    subresource: &'static str,
    config: &'a Value,
    manager: &'a str,
    force: bool,
}

impl<'a> Attempt<'a> {
    fn of(step: &'a Step) -> Option<Self> {
        let (object, query) = step.patch.as_deref()?.split_once('?')?;
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if parameter("dryRun").is_some() {
            return None;
        }
        let (object, subresource) = match object.strip_suffix("/status") {
            Some(object) => (object, "status"),
            None => (object, ""),
        };
        Some(Self {
            object,
            subresource,
            config: step.apply.as_ref()?,
            manager: parameter("fieldManager")?,
            force: parameter("force") == Some("true"),
        })
    }

    /// How objects of the kind merge: from the table, or from the definition that the
    /// server has. None where it has none.
    async fn schema(&self, player: &mut Player<'_>) -> Result<Option<Schemas>> {
        let config = player.resolve(self.config);
        let (group, version, kind) = group_version_kind(&config);
        if let Some(schema) = builtin::schema(&group, &version, &kind) {
            return Ok(Some(Schemas::Builtin(schema)));
        }
        let plural = self.object.rsplit('/').nth(1).unwrap_or_default();
        let definition =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
        let Some(definition) = player.look(&definition).await? else {
            return Ok(None);
        };
        let versions = definition["spec"]["versions"].as_array();
        let found = versions
            .into_iter()
            .flatten()
            .find(|v| v["name"] == version.as_str());
        Ok(found.and_then(|version| {
            let schema = Schema::from_crd(version.pointer("/schema/openAPIV3Schema")?).ok()?;
            let has_status = version.pointer("/subresources/status").is_some();
            Some(Schemas::Custom(Box::new(schema), has_status))
        }))
    }

    /// What the apply will do; none where it would be refused.
    fn predict(&self, live: &Value, config: &Value, schema: &Schemas) -> Option<Prediction> {
        let (group, _, kind) = group_version_kind(config);
        let (schema, reset) = match schema {
            Schemas::Builtin(schema) => {
                let reset = reset::built_in(&group, &kind, self.subresource);
                (*schema, reset)
            }
            Schemas::Custom(schema, has_status) => {
                (&**schema, reset::custom(*has_status, self.subresource))
            }
        };
        let predicted = reeve_ssa::predict(Apply {
            schema,
            versions: &[],
            live: Some(live),
            config,
            manager: self.manager,
            force: self.force,
            subresource: self.subresource,
            now: "2001-01-01T00:00:00Z",
            reset: &reset,
        });
        predicted.ok()
    }
}

/// How objects merge.
enum Schemas {
    Builtin(&'static Schema),
    /// With whether the status is a subresource.
    Custom(Box<Schema>, bool),
}

fn group_version_kind(config: &Value) -> (String, String, String) {
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    (
        group.to_owned(),
        version.to_owned(),
        text("kind").to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_whole_fields_and_have_to_occur() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("settled.yaml");
        fs::write(
            &file,
            "- {kind: A, field: .spec.a, why: x}\n- {kind: A, field: .spec.b, why: x}\n",
        )?;
        let fields = [".spec.a", ".spec.a[0].c", ".spec.ab", ".spec.a.d"];
        let found = fields.map(str::to_owned).into();
        let tally = Tally {
            settled: [("A".to_owned(), found)].into(),
            ..Tally::default()
        };
        let Settlement { unlisted, unused } = tally.against(&file)?;
        assert_eq!(unlisted, ["A .spec.ab"]);
        assert_eq!(unused, ["A .spec.b"]);
        Ok(())
    }

    #[test]
    fn applies_of_a_status_are_attempts_of_it() {
        let mut step = Step::request("PATCH", "/x/a/status?fieldManager=m&force=true");
        step.apply = Some(Value::Null);
        let attempt = Attempt::of(&step).map(|attempt| (attempt.object, attempt.subresource));
        assert_eq!(attempt, Some(("/x/a", "status")));
        step.patch = Some("/x/a/status?fieldManager=m&dryRun=All".to_owned());
        assert!(Attempt::of(&step).is_none());
    }
}

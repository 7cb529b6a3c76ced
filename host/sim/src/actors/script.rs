//! What an object is asked to do: annotations, read into a script.
//!
//! A script is looked for on the object itself and then on its controllers, the
//! nearest first, so that a Deployment speaks for its pods, and one pod can be
//! told apart from the others.

use std::time::Duration;

use serde_json::Value;

use super::Actors;
use crate::kinds::edit::text_at;
use crate::span;

/// The domain of all annotations that actors read.
pub(super) const DOMAIN: &str = "actor.reeve.dev/";

/// What goes wrong, on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// No node takes the pod.
    Schedule,
    /// The image cannot be pulled.
    ImagePull,
    /// The program ends soon after each start.
    CrashLoop,
    /// The program of a pod that is to complete ends with an error.
    Exit,
    /// The node is short of disk, and the pod has to go.
    Evict,
    /// A source, or what it has, cannot be fetched.
    Fetch,
    /// What was fetched cannot be made objects of.
    Build,
    /// The objects cannot be applied.
    Apply,
    /// The objects are applied, and not healthy.
    Health,
    /// A release cannot be installed; upgrading it goes well.
    Install,
    /// A release cannot be upgraded; installing it goes well.
    Upgrade,
    /// The tests of a release fail.
    Test,
    /// A release cannot be uninstalled.
    Uninstall,
    /// What is there cannot be compared with what should be.
    Compare,
    /// Somebody changes what was deployed, and changes it again when it is put right.
    Drift,
    /// What was deployed is suspended.
    Suspend,
    /// The hook before a sync fails, and nothing is applied.
    PreSync,
    /// The hook after a sync fails, and everything is applied.
    PostSync,
}

impl Failure {
    const ALL: [(&'static str, Failure); 18] = [
        ("schedule", Failure::Schedule),
        ("image-pull", Failure::ImagePull),
        ("crash-loop", Failure::CrashLoop),
        ("exit", Failure::Exit),
        ("evict", Failure::Evict),
        ("fetch", Failure::Fetch),
        ("build", Failure::Build),
        ("apply", Failure::Apply),
        ("health", Failure::Health),
        ("install", Failure::Install),
        ("upgrade", Failure::Upgrade),
        ("test", Failure::Test),
        ("uninstall", Failure::Uninstall),
        ("compare", Failure::Compare),
        ("drift", Failure::Drift),
        ("suspend", Failure::Suspend),
        ("pre-sync", Failure::PreSync),
        ("post-sync", Failure::PostSync),
    ];
}

/// What an object does, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// Nobody acts for the object.
    pub(super) ignored: bool,
    /// It does not become ready, or is not any more, as long as this is said.
    pub(super) stalled: bool,
    /// How long it takes from its start until it is ready.
    pub(super) ready_after: Duration,
    /// How long it stays ready.
    pub(super) degrade_after: Option<Duration>,
    /// How long it then is not ready.
    pub(super) recover_after: Option<Duration>,
    /// How long a pod runs that is to complete.
    pub(super) complete_after: Duration,
    /// What goes wrong.
    pub(super) failure: Option<Failure>,
    /// Of how many pods of one controller, or attempts, it goes wrong; all when absent.
    pub(super) fail_times: Option<i64>,
    /// The container that ends with an error; all but the init containers when absent.
    pub(super) fail_container: Option<String>,
    /// With which code programs end that fail.
    pub(super) exit_code: i32,
    /// What programs leave as their last word.
    pub(super) termination_message: Option<String>,
    /// What a source has now, as its kind calls it.
    pub(super) revision: Option<String>,
}

/// An annotation that cannot be used, in words for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {DOMAIN}{name} is left out of account: {why}")]
pub(super) struct Unusable {
    name: String,
    why: String,
}

impl Script {
    /// What is done where nothing is asked for.
    pub(super) fn of(settings: &Actors) -> Self {
        Script {
            ignored: false,
            stalled: false,
            ready_after: settings.ready_after,
            degrade_after: None,
            recover_after: None,
            complete_after: settings.complete_after,
            failure: None,
            fail_times: None,
            fail_container: None,
            exit_code: 1,
            termination_message: None,
            revision: None,
        }
    }

    /// Reads the annotations of `objects`, of which the first counts most.
    pub(super) fn read(settings: &Actors, objects: &[&Value]) -> (Self, Vec<Unusable>) {
        let mut script = Script::of(settings);
        let mut unusable = Vec::new();
        for (distance, object) in objects.iter().enumerate().rev() {
            let annotations = object.pointer("/metadata/annotations");
            let annotations = annotations.and_then(Value::as_object);
            for (key, value) in annotations.into_iter().flatten() {
                let Some(name) = key.strip_prefix(DOMAIN) else {
                    continue;
                };
                let value = value.as_str().unwrap_or_default().trim();
                if let Err(why) = script.take(name, value) {
                    // Each object complains of its own annotations only.
                    if distance == 0 {
                        let name = name.to_owned();
                        unusable.push(Unusable { name, why });
                    }
                }
            }
        }
        (script, unusable)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let span = || span::parse(value).map_err(|error| error.to_string());
        match name {
            "ignore" => self.ignored = flag(value)?,
            "stall" => self.stalled = flag(value)?,
            "ready-after" => self.ready_after = span()?,
            "degrade-after" => self.degrade_after = Some(span()?),
            "recover-after" => self.recover_after = Some(span()?),
            "complete-after" => self.complete_after = span()?,
            "fail" => self.failure = failure(value)?,
            "fail-times" => {
                let times = value.parse().ok().filter(|times| *times >= 0);
                let why = || format!("{value:?} is no number of times; write 0, 1, 2, …");
                self.fail_times = Some(times.ok_or_else(why)?);
            }
            "fail-container" => self.fail_container = Some(container(value)?),
            "exit-code" => {
                let code = value.parse().ok().filter(|code| (1..=255).contains(code));
                let why = || format!("{value:?} is no code of a failure; write 1 to 255");
                self.exit_code = code.ok_or_else(why)?;
            }
            "termination-message" => self.termination_message = Some(value.to_owned()),
            "revision" => self.revision = Some(revision(value)?),
            _ => {
                return Err(format!(
                    "there is none of that name; there are {}",
                    NAMES.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Whether something that started `elapsed` ago is ready, and after which
    /// time since its start that changes.
    pub(super) fn readiness(&self, elapsed: Duration) -> (bool, Option<Duration>) {
        if self.stalled {
            return (false, None);
        }
        if elapsed < self.ready_after {
            return (false, Some(self.ready_after));
        }
        let Some(degrades) = self.degrade_after.map(|after| self.ready_after + after) else {
            return (true, None);
        };
        if elapsed < degrades {
            return (true, Some(degrades));
        }
        match self.recover_after.map(|after| degrades + after) {
            Some(recovers) if elapsed >= recovers => (true, None),
            recovers => (false, recovers),
        }
    }
}

/// The names of the annotations, without their domain.
const NAMES: [&str; 12] = [
    "complete-after",
    "degrade-after",
    "exit-code",
    "fail",
    "fail-container",
    "fail-times",
    "ignore",
    "ready-after",
    "recover-after",
    "revision",
    "stall",
    "termination-message",
];

fn flag(value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{value:?} is neither \"true\" nor \"false\"")),
    }
}

fn failure(value: &str) -> Result<Option<Failure>, String> {
    if value == "none" {
        return Ok(None);
    }
    let found = Failure::ALL.iter().find(|(name, _)| *name == value);
    match found {
        Some((_, failure)) => Ok(Some(*failure)),
        None => {
            let names: Vec<&str> = Failure::ALL.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "there is no failure {value:?}; there are {} and none",
                names.join(", ")
            ))
        }
    }
}

fn container(value: &str) -> Result<String, String> {
    match crate::names::dns1123_label(value).is_empty() {
        true => Ok(value.to_owned()),
        false => Err(format!("{value:?} is no name of a container")),
    }
}

/// A revision is a part of paths and of messages.
fn revision(value: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_graphic() && !"'\"".contains(c);
    if value.is_empty() || value.len() > 200 || !value.chars().all(fits) {
        return Err(format!(
            "{value:?} is no revision; write a version, a branch or a commit, such as 1.2.3 or main"
        ));
    }
    Ok(value.to_owned())
}

/// Whether an object carries any annotation for actors.
pub(super) fn is_addressed(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    let mut annotations = annotations.and_then(Value::as_object).into_iter().flatten();
    annotations.any(|(key, _)| key.starts_with(DOMAIN))
}

/// Whether two versions of an object ask for different things.
pub(super) fn differs(before: &Value, after: &Value) -> bool {
    let asked = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations");
        let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
        annotations
            .filter(|(key, _)| key.starts_with(DOMAIN))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Vec<_>>()
    };
    asked(before) != asked(after)
}

/// Whether nobody is to act for an object, by its own word.
pub(super) fn is_ignored(object: &Value) -> bool {
    text_at(object, "/metadata/annotations/actor.reeve.dev~1ignore") == "true"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> Value {
        let mut annotations = json!({});
        for (name, value) in pairs {
            annotations[format!("{DOMAIN}{name}")] = json!(value);
        }
        json!({"metadata": {"annotations": annotations}})
    }

    #[test]
    fn the_nearest_object_counts_most() {
        let pod = annotated(&[("ready-after", "5s")]);
        let set = annotated(&[("ready-after", "1m"), ("fail", "exit"), ("fail-times", "2")]);
        let (script, unusable) = Script::read(&Actors::default(), &[&pod, &set]);
        assert_eq!(unusable, []);
        assert_eq!(script.ready_after, Duration::from_secs(5));
        assert_eq!(script.failure, Some(Failure::Exit));
        assert_eq!(script.fail_times, Some(2));
    }

    #[test]
    fn annotations_that_cannot_be_used_are_named() {
        for (name, value, expected) in [
            (
                "ready-after",
                "5",
                "annotation actor.reeve.dev/ready-after is left out of account: \"5\" is no span of time; write numbers with units, such as 5s, 1m30s, 250ms or 0s",
            ),
            (
                "stall",
                "yes",
                "annotation actor.reeve.dev/stall is left out of account: \"yes\" is neither \"true\" nor \"false\"",
            ),
            (
                "fail",
                "often",
                "annotation actor.reeve.dev/fail is left out of account: there is no failure \"often\"; there are schedule, image-pull, crash-loop, exit, evict, fetch, build, apply, health, install, upgrade, test, uninstall, compare, drift, suspend, pre-sync, post-sync and none",
            ),
            (
                "fail-times",
                "-1",
                "annotation actor.reeve.dev/fail-times is left out of account: \"-1\" is no number of times; write 0, 1, 2, …",
            ),
            (
                "fail-container",
                "a/b",
                "annotation actor.reeve.dev/fail-container is left out of account: \"a/b\" is no name of a container",
            ),
            (
                "exit-code",
                "0",
                "annotation actor.reeve.dev/exit-code is left out of account: \"0\" is no code of a failure; write 1 to 255",
            ),
            (
                "revision",
                "a b",
                "annotation actor.reeve.dev/revision is left out of account: \"a b\" is no revision; write a version, a branch or a commit, such as 1.2.3 or main",
            ),
            (
                "redy-after",
                "5s",
                "annotation actor.reeve.dev/redy-after is left out of account: there is none of that name; there are complete-after, degrade-after, exit-code, fail, fail-container, fail-times, ignore, ready-after, recover-after, revision, stall, termination-message",
            ),
        ] {
            let object = annotated(&[(name, value)]);
            let (script, unusable) = Script::read(&Actors::default(), &[&object]);
            assert_eq!(script, Script::of(&Actors::default()), "{name}");
            let unusable: Vec<String> = unusable.iter().map(ToString::to_string).collect();
            assert_eq!(unusable, [expected]);
            let (_, unusable) = Script::read(&Actors::default(), &[&annotated(&[]), &object]);
            assert_eq!(
                unusable,
                [],
                "it is the owner of the annotation who complains"
            );
        }
    }

    #[test]
    fn readiness_follows_the_script() {
        let script =
            |pairs: &[(&str, &str)]| Script::read(&Actors::default(), &[&annotated(pairs)]).0;
        let degrading = [("ready-after", "2s"), ("degrade-after", "10s")];
        let recovering = [
            ("ready-after", "2s"),
            ("degrade-after", "10s"),
            ("recover-after", "3s"),
        ];
        for (pairs, elapsed, expected) in [
            (&degrading[..1], 1, (false, Some(2))),
            (&degrading[..1], 2, (true, None)),
            (&degrading[..], 2, (true, Some(12))),
            (&degrading[..], 12, (false, None)),
            (&recovering[..], 12, (false, Some(15))),
            (&recovering[..], 15, (true, None)),
            (
                &[("stall", "true"), ("ready-after", "2s")][..],
                9,
                (false, None),
            ),
        ] {
            let (ready, next) = script(pairs).readiness(Duration::from_secs(elapsed));
            assert_eq!(
                (ready, next.map(|n| n.as_secs())),
                expected,
                "{pairs:?} {elapsed}"
            );
        }
    }
}

//! What happened to the objects of a namespace, as the API server noted it.

use anyhow::{Context as _, Result, ensure};
use reeve_real::ControlPlane;
use reeve_test_support::platform::application;
use serde_json::Value;

/// As whom the plugin writes.
const ACCOUNT: &str = "system:serviceaccount:reeve-system:courier";

/// Who lets objects go that wait for those that they own.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The plugin made it.
    Made,
    /// The plugin changed it.
    Changed,
    /// Somebody else wrote its status.
    Reported,
    /// The plugin deleted it. What it owns may have to go first.
    Deleted,
    /// The garbage collector did something to it: the last of it lets it go.
    Collected,
}

#[derive(Clone, Debug)]
struct Entry {
    /// When the request came in, in the API server's words, which sort.
    at: String,
    what: Happened,
    /// `Kind/name`.
    name: String,
    /// Of a report, whether all is well by it.
    well: bool,
}

/// All of it, in order.
#[derive(Clone, Debug)]
pub(crate) struct History(Vec<Entry>);

impl History {
    /// What happened in a namespace so far.
    pub(crate) fn of(cluster: &ControlPlane, namespace: &str) -> Result<Self> {
        let mut entries: Vec<Entry> = cluster
            .audit_log()?
            .iter()
            .filter_map(|event| entry(event, namespace))
            .collect();
        entries.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(Self(entries))
    }

    /// What happened since there were so many entries.
    pub(crate) fn since(&self, count: usize) -> Self {
        Self(self.0[count.min(self.0.len())..].to_vec())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// To which objects something happened, in order.
    pub(crate) fn all(&self, what: Happened) -> Vec<&str> {
        let entries = self.0.iter().filter(|entry| entry.what == what);
        entries.map(|entry| entry.name.as_str()).collect()
    }

    /// The same, of the applications of the platform.
    pub(crate) fn applications(&self, what: Happened) -> Vec<&str> {
        let mut all = self.all(what);
        all.retain(|name| application(name).is_some());
        all
    }

    /// When something first happened to an object.
    pub(crate) fn first(&self, what: Happened, name: &str) -> Result<&str> {
        let mut entries = self.0.iter();
        let found = entries.find(|entry| entry.what == what && entry.name == name);
        let found = found.with_context(|| format!("{name} was never {what:?}: {:#?}", self.0));
        found.map(|entry| entry.at.as_str())
    }

    /// When an object was first reported to be well.
    fn well(&self, name: &str) -> Option<&str> {
        let mut entries = self.0.iter();
        let found = entries.find(|entry| entry.well && entry.name == name);
        found.map(|entry| entry.at.as_str())
    }

    /// Waves in the order in which something happened in them.
    pub(crate) fn waves(&self, what: Happened) -> Vec<i64> {
        let all = self.applications(what);
        let mut waves: Vec<i64> = all.iter().map(|name| wave_of(name)).collect();
        waves.dedup();
        waves
    }

    /// That the one was made when the other had been reported to be well. Whoever looks
    /// after it may have more to say later.
    pub(crate) fn made_after(&self, after: &str, before: &str) -> Result<()> {
        let reported = self.well(before);
        let reported = reported.with_context(|| format!("{before} was never well"))?;
        let made = self.first(Happened::Made, after)?;
        ensure!(
            reported <= made,
            "{after} was made at {made}, and {before} was well at {reported}"
        );
        Ok(())
    }

    /// That each of the two was made before the other was reported to be well.
    pub(crate) fn made_together(&self, one: &str, other: &str) -> Result<()> {
        for (one, other) in [(one, other), (other, one)] {
            let made = self.first(Happened::Made, one)?;
            let well = self.well(other);
            let well = well.with_context(|| format!("{other} was never well"))?;
            ensure!(
                made < well,
                "{one} was made at {made}, and {other} was well at {well}"
            );
        }
        Ok(())
    }

    /// When an object was let go after it was deleted.
    fn gone(&self, name: &str) -> Result<&str> {
        let ends = [Happened::Deleted, Happened::Collected];
        let mut entries = self.0.iter().rev();
        let last = entries.find(|entry| entry.name == name && ends.contains(&entry.what));
        let last = last.with_context(|| format!("{name} was never deleted"))?;
        Ok(&last.at)
    }

    /// Of every two applications in different waves, the one of the earlier wave was
    /// deleted when the other was gone.
    pub(crate) fn is_in_reverse(&self) -> Result<()> {
        let deleted = self.applications(Happened::Deleted);
        for first in &deleted {
            for then in deleted.iter().filter(|then| wave_of(then) < wave_of(first)) {
                let (gone, begun) = (self.gone(first)?, self.first(Happened::Deleted, then)?);
                ensure!(
                    gone <= begun,
                    "{then} was deleted at {begun}, and {first} was gone at {gone}"
                );
            }
        }
        Ok(())
    }

    /// Of every two applications in different waves, the one of the later wave was made
    /// when the other was healthy.
    pub(crate) fn is_in_waves(&self) -> Result<()> {
        let made = self.applications(Happened::Made);
        for before in &made {
            for after in made.iter().filter(|after| wave_of(before) < wave_of(after)) {
                self.made_after(after, before)?;
            }
        }
        Ok(())
    }
}

fn wave_of(full: &str) -> i64 {
    application(full).map_or(0, |one| one.wave)
}

fn entry(event: &Value, namespace: &str) -> Option<Entry> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    if text("/objectRef/namespace") != Some(namespace) {
        return None;
    }
    let kind = match text("/objectRef/resource")? {
        "deployments" => "Deployment",
        "jobs" => "Job",
        "widgets" => "Widget",
        _ => return None,
    };
    // What is only asked about does not happen.
    if text("/requestURI")?.contains("dryRun=") {
        return None;
    }
    let ours = text("/impersonatedUser/username") == Some(ACCOUNT);
    let collected = text("/user/username") == Some(COLLECTOR);
    let status = text("/objectRef/subresource") == Some("status");
    let code = event.pointer("/responseStatus/code")?.as_u64()?;
    let what = match text("/verb")? {
        "patch" | "update" if status => Happened::Reported,
        "patch" | "create" if ours && code == 201 => Happened::Made,
        "patch" if ours && code == 200 => Happened::Changed,
        "delete" if ours && code == 200 => Happened::Deleted,
        "patch" if collected && code == 200 => Happened::Collected,
        _ => return None,
    };
    Some(Entry {
        well: what == Happened::Reported && code < 300 && is_well(&event["requestObject"]),
        at: text("/requestReceivedTimestamp")?.to_owned(),
        what,
        name: format!("{kind}/{}", text("/objectRef/name")?),
    })
}

/// Whether an object, or a patch of one, says in its status that it works or is done.
fn is_well(reported: &Value) -> bool {
    let conditions = reported.pointer("/status/conditions");
    let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    let well = ["Available", "Complete", "Ready"].map(Value::from);
    conditions
        .filter(|condition| condition["status"] == "True")
        .any(|condition| well.contains(&condition["type"]))
}

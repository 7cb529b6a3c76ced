//! A platform of 23 applications, 28 dependencies and 10 waves, as a cluster with GPUs
//! gets it. Each application is a Deployment, a Job or a custom resource here.

use crate::workloads::{annotated, deployment, in_wave, job, widget};
use serde_json::Value;
use std::sync::OnceLock;

/// One application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Its tier; tier 3 is for clusters with GPUs.
    pub tier: u64,
    /// Its wave.
    pub wave: i64,
    /// Names of those that it depends on.
    pub needs: Vec<String>,
}

/// The waves that there are.
pub const WAVES: [i64; 10] = [-15, -10, -8, -5, -3, -2, -1, 0, 1, 2];

/// All applications.
///
/// # Panics
///
/// When the table of this crate is none.
#[must_use]
pub fn applications() -> &'static [Application] {
    static ALL: OnceLock<Vec<Application>> = OnceLock::new();
    ALL.get_or_init(|| match read(include_str!("../platform.json")) {
        Some(all) => all,
        #[expect(clippy::panic, reason = "the error message of a test")]
        None => panic!("platform.json is no table of applications"),
    })
}

fn read(text: &str) -> Option<Vec<Application>> {
    let rows: Vec<Value> = serde_json::from_str(text).ok()?;
    let application = |row: &Value| {
        let needs = row["needs"].as_array()?.iter();
        Some(Application {
            name: row["name"].as_str()?.to_owned(),
            tier: row["tier"].as_u64()?,
            wave: row["wave"].as_i64()?,
            needs: needs
                .map(|name| name.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        })
    };
    rows.iter().map(application).collect()
}

/// Operators run, what configures is done once, the rest is reconciled by others.
fn kind(name: &str) -> &'static str {
    if name.ends_with("operator") || name.ends_with("controller") {
        "Deployment"
    } else if name.ends_with("config") || name.ends_with("idms") {
        "Job"
    } else {
        "Widget"
    }
}

/// `Kind/name` of the object that stands for an application.
#[must_use]
pub fn full(name: &str) -> String {
    format!("{}/{name}", kind(name))
}

/// The application of a `Kind/name`, if it is one.
#[must_use]
pub fn application(full: &str) -> Option<&'static Application> {
    let (kind_of, name) = full.split_once('/')?;
    let mut all = applications().iter();
    all.find(|one| one.name == name && kind(name) == kind_of)
}

/// The objects of a cluster, with their waves and dependencies.
#[must_use]
pub fn objects(namespace: &str, gpu: bool) -> Vec<Value> {
    let all = applications().iter();
    let wanted = all.filter(|one| gpu || one.tier != 3);
    wanted.map(|one| object(namespace, one)).collect()
}

fn object(namespace: &str, application: &Application) -> Value {
    let name = &application.name;
    let object = match kind(name) {
        "Deployment" => deployment(namespace, name),
        "Job" => job(namespace, name),
        _ => widget(namespace, name),
    };
    let object = in_wave(object, application.wave);
    let needs: Vec<String> = application.needs.iter().map(|need| full(need)).collect();
    if needs.is_empty() {
        object
    } else {
        annotated(object, &[("reeve.dev/depends-on", &needs.join(","))])
    }
}

/// The objects of a cluster with GPUs, with changes to some, by name.
#[must_use]
pub fn changed(namespace: &str, change: impl Fn(&str, &mut Value)) -> Vec<Value> {
    let mut objects = objects(namespace, true);
    for object in &mut objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let name = name.to_owned();
        change(&name, object);
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_that_is_described() {
        let all = applications();
        assert_eq!(all.len(), 23);
        assert_eq!(all.iter().map(|one| one.needs.len()).sum::<usize>(), 28);
        let mut waves: Vec<_> = all.iter().map(|one| one.wave).collect();
        waves.dedup();
        assert_eq!(waves, WAVES);
        for need in all.iter().flat_map(|one| &one.needs) {
            assert!(application(&full(need)).is_some(), "{need}");
        }
        assert_eq!(objects("a", false).len(), 16);
    }
}

//! The limits of one profile: defaults, then labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

use reeve_sdk::names;
use reeve_sdk::pointer::below;
use reeve_sdk::prelude::*;
use serde::{Serialize, Serializer};

/// Limits of a profile without configuration and labels, in the order of their names.
pub(crate) const DEFAULTS: [(&str, &str); 9] = [
    ("limits.cpu", "70"),
    ("limits.memory", "368G"),
    ("pods", "100"),
    ("requests.cpu", "70"),
    ("requests.memory", "368G"),
    (GPU, "2"),
    ("requests.storage", "100T"),
    ("services.loadbalancers", "0"),
    ("services.nodeports", "0"),
];

/// The resource whose label is not named like it, since the name has a slash.
const GPU: &str = "requests.nvidia.com/gpu";

/// What stands behind the prefix in the label for GPUs.
const GPU_LABEL: &str = "gpu";

/// The number of GPUs that stands for a label that is no number.
const UNUSABLE_GPU: &str = "0";

/// Resources of which the API server counts whole ones only.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// What a quota can limit besides, of names without a slash: those that kube-apiserver's
/// validation calls standard resources for quota, and huge pages.
const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
const HUGE_PAGES: [&str; 2] = ["hugepages-", "requests.hugepages-"];

/// Limits by resource name, in the order of the names.
#[derive(Debug, PartialEq)]
pub(crate) struct Limits<'a>(Vec<(&'a str, Cow<'a, str>)>);

/// The limits of one profile.
#[derive(Debug, PartialEq)]
pub(crate) struct Hard<'a> {
    /// The limits by resource name.
    pub(crate) limits: Limits<'a>,
    /// Labels that could not be used, in the order of the resource names.
    pub(crate) unusable: Problems,
}

impl<'a> Hard<'a> {
    /// The limits for a profile with these labels.
    ///
    /// A label that cannot be used never spoils the others: what is used in its
    /// place stands beside it in `unusable`.
    pub(crate) fn for_labels(
        configured: &'a BTreeMap<String, Option<Quantity>>,
        prefix: &str,
        labels: &'a BTreeMap<String, String>,
    ) -> Self {
        let mut hard = Self {
            limits: Limits::of(configured),
            unusable: Problems::about(
                "Quota labels that cannot be used",
                "Set each to a number such as 10 or 4Gi, or remove it.",
            ),
        };
        // By what stands behind the prefix: a Profile has many labels, and few of these.
        let ours: Vec<_> = labels
            .iter()
            .filter_map(|(label, value)| Some((label.strip_prefix(prefix)?, label, value)))
            .collect();
        let label_of = |suffix: &str| ours.iter().find(|(one, ..)| *one == suffix);
        for (resource, limit) in &mut hard.limits.0 {
            if *resource == GPU
                && let Some(&(_, label, value)) = label_of(GPU_LABEL)
            {
                *limit = gpus(value).map_or_else(
                    |problem| {
                        hard.unusable
                            .add(unusable(label, value, problem, UNUSABLE_GPU));
                        UNUSABLE_GPU.into()
                    },
                    Cow::Owned,
                );
            }
            if let Some(&(_, label, value)) = label_of(resource) {
                match usable(resource, value) {
                    Ok(()) => *limit = value.into(),
                    Err(problem) => hard.unusable.add(unusable(label, value, problem, limit)),
                }
            }
        }
        hard
    }
}

impl<'a> Limits<'a> {
    /// The built-in limits with those of the configuration.
    fn of(configured: &'a BTreeMap<String, Option<Quantity>>) -> Self {
        let built_in = DEFAULTS.map(|(resource, limit)| (resource, limit.into()));
        let mut limits = Vec::from(built_in);
        for (resource, limit) in configured {
            let resource = resource.as_str();
            let found = limits.binary_search_by_key(&resource, |(one, _)| *one);
            match (found, limit) {
                (Ok(at), Some(limit)) => limits[at].1 = limit.to_string().into(),
                (Ok(at), None) => drop(limits.remove(at)),
                (Err(at), Some(limit)) => limits.insert(at, (resource, limit.to_string().into())),
                (Err(_), None) => {}
            }
        }
        Self(limits)
    }
}

/// As a map.
impl Serialize for Limits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(resource, limit)| (resource, limit)))
    }
}

/// A label that cannot be used, and what is used in its place.
fn unusable(label: &str, value: &str, problem: &str, used: &str) -> String {
    format!("{label}={value} ({problem}, using {used})")
}

/// The limit that the label for GPUs asks for: a decimal integer of 64 bits.
fn gpus(value: &str) -> Result<String, &'static str> {
    match value.parse::<i64>() {
        Ok(number) if number >= 0 => Ok(number.to_string()),
        Ok(_) => Err("below zero"),
        Err(_) => Err("not a whole number"),
    }
}

/// Whether the API server takes this text as the limit of this resource. What it
/// refuses must not reach it: it would refuse the other limits with it.
fn usable(resource: &str, value: &str) -> Result<(), &'static str> {
    let Ok(quantity) = value.parse::<Quantity>() else {
        return Err("not a quantity");
    };
    check(resource, &quantity)
}

fn check(resource: &str, quantity: &Quantity) -> Result<(), &'static str> {
    if quantity.is_negative() {
        Err("below zero")
    } else if !is_counted(resource) || quantity.milli_value() % 1000 == 0 {
        Ok(())
    } else if quantity.is_whole() {
        Err("more than the API server can count")
    } else {
        Err("not a whole number")
    }
}

/// Whether the API server takes no fractions of a resource, by the rules of its
/// `ValidateResourceQuantityValue`: of none in the list, nor of what has a domain of its
/// own, unless that is a request.
fn is_counted(resource: &str) -> bool {
    let extended = || {
        resource.contains('/')
            && !resource.contains("kubernetes.io/")
            && !resource.starts_with("requests.")
            && names::check_label_key(&format!("requests.{resource}")).is_ok()
    };
    COUNTED.contains(&resource) || extended()
}

/// Checks the limits of the configuration.
pub(crate) fn check_limits(limits: &BTreeMap<String, Option<Quantity>>) -> Result<(), ConfigError> {
    for (resource, limit) in limits {
        let problem = match limit {
            _ if resource.is_empty() => "a limit without a resource name; name one such as `pods`",
            _ if !is_limited(resource) => {
                "not a resource that a quota limits; name one such as `requests.cpu`, \
                 `count/deployments.apps` or `requests.example.com/gpu`"
            }
            Some(limit) => match check(resource, limit) {
                Ok(()) => continue,
                Err(problem) => problem,
            },
            None => continue,
        };
        return Err(ConfigError::new(below("/hard", resource), problem));
    }
    Ok(())
}

/// Whether the API server admits this name in a quota.
fn is_limited(resource: &str) -> bool {
    let qualified = names::check_label_key(resource).is_ok();
    let known = || {
        MEASURED.contains(&resource)
            || COUNTED.contains(&resource)
            || HUGE_PAGES.iter().any(|start| resource.starts_with(start))
    };
    qualified && (resource.contains('/') || known())
}

/// Checks the label prefix: every limit without a slash must get a label name
/// that the API server admits.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), ConfigError> {
    match names::check_label_key(&format!("{prefix}pods")) {
        Ok(()) if prefix.contains('/') => Ok(()),
        _ => Err(ConfigError::new(
            "/labelPrefix",
            "not the start of a label name; expected a domain and a slash such as `example.com/`",
        )),
    }
}

//! The LimitRanges of a namespace: what containers get that ask for nothing, and
//! how much they, their pods and claims may ask for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::amounts::{self, Amounts};
use crate::kinds::edit::{ensure_object, entries, items, items_mut, set, text, text_at};
use crate::quantity::Quantity;
use crate::server::Shared;

const LIMIT_RANGES: &str = "limitranges";
/// Says in a pod what it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives the containers of a new pod the amounts that they do not name.
pub(super) fn fill(server: &Shared, pod: &mut Value) {
    for range in ranges(server, pod) {
        let mut requests = BTreeMap::new();
        let mut limits = BTreeMap::new();
        for limit in limits_of(&range, "Container") {
            requests.extend(entries(limit, "defaultRequest"));
            limits.extend(entries(limit, "default"));
        }
        let mut given = Vec::new();
        for (list, called) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            let Some(spec) = pod.get_mut("spec") else {
                return;
            };
            for container in items_mut(spec, list) {
                // Both are looked at before either is told of, as a default limit is
                // no request of the one who wrote the pod.
                let filled_limits = fill_in(container, "limits", &limits);
                let filled_requests = fill_in(container, "requests", &requests);
                let name = text(container, "name");
                for (what, names) in [("request", filled_requests), ("limit", filled_limits)] {
                    if !names.is_empty() {
                        given.push(format!("{} {what} for {called} {name}", names.join(", ")));
                    }
                }
            }
        }
        if !given.is_empty()
            && let Some(metadata) = ensure_object(pod, "metadata")
            && let Some(annotations) = ensure_object(metadata, "annotations")
        {
            let told = format!("LimitRanger plugin set: {}", given.join("; "));
            set(annotations, ANNOTATION, told);
        }
    }
}

/// Sets the amounts that a container does not have. The answer names them.
fn fill_in(
    container: &mut Value,
    field: &str,
    defaults: &BTreeMap<&String, &Value>,
) -> Vec<String> {
    let lacks = |name: &str| {
        let amounts = container
            .get("resources")
            .and_then(|resources| resources.get(field));
        amounts.is_none_or(|amounts| amounts.get(name).is_none())
    };
    let missing: Vec<(String, Value)> = defaults
        .iter()
        .filter(|(name, _)| lacks(name))
        .map(|(name, amount)| ((*name).clone(), (*amount).clone()))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let names = missing.iter().map(|(name, _)| name.clone()).collect();
    if let Some(resources) = ensure_object(container, "resources")
        && let Some(amounts) = ensure_object(resources, field)
    {
        for (name, amount) in missing {
            set(amounts, &name, amount);
        }
    }
    names
}

/// Refuses a new pod that asks for less or more than it may.
pub(super) fn check_pod(server: &Shared, pod: &Value) -> Result<(), String> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    for range in ranges(server, pod) {
        let mut complaints = Vec::new();
        for limit in items(range.get("spec").unwrap_or(&Value::Null), "limits") {
            match text(limit, "type") {
                "Container" => {
                    for container in items(spec, "containers").chain(items(spec, "initContainers"))
                    {
                        let asked = Asked {
                            requests: amounts::asked(container, "requests"),
                            limits: amounts::asked(container, "limits"),
                        };
                        asked.check(limit, &mut complaints);
                    }
                }
                "Pod" => {
                    let asked = Asked {
                        requests: amounts::of_pod(spec, "requests"),
                        limits: amounts::of_pod(spec, "limits"),
                    };
                    asked.check(limit, &mut complaints);
                }
                _ => {}
            }
        }
        told(complaints)?;
    }
    Ok(())
}

/// Refuses a claim of less or more than it may ask for.
pub(super) fn check_claim(server: &Shared, claim: &Value) -> Result<(), String> {
    let requests = amounts::asked(claim.get("spec").unwrap_or(&Value::Null), "requests");
    for range in ranges(server, claim) {
        let mut complaints = Vec::new();
        for limit in limits_of(&range, "PersistentVolumeClaim") {
            for (name, least) in amounts::read(limit, "min") {
                let low = Bound::new("minimum", "PersistentVolumeClaim", &name, &least);
                complaints.extend(low.least(requests.get(&name), None));
            }
            for (name, most) in amounts::read(limit, "max") {
                let high = Bound::new("maximum", "PersistentVolumeClaim", &name, &most);
                complaints.extend(match requests.get(&name) {
                    None => Some(high.unspecified("request")),
                    Some(request) => (*request > most).then(|| high.broken("request", request)),
                });
            }
        }
        told(complaints)?;
    }
    Ok(())
}

/// All complaints as one, without those that were heard before.
fn told(mut complaints: Vec<String>) -> Result<(), String> {
    let mut heard = std::collections::HashSet::new();
    complaints.retain(|complaint| heard.insert(complaint.clone()));
    match complaints.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

/// What a container or a pod asks for.
struct Asked {
    requests: Amounts,
    limits: Amounts,
}

impl Asked {
    fn check(&self, limit: &Value, complaints: &mut Vec<String>) {
        let kind = text(limit, "type");
        for (name, least) in amounts::read(limit, "min") {
            let low = Bound::new("minimum", kind, &name, &least);
            complaints.extend(low.least(self.requests.get(&name), self.limits.get(&name)));
        }
        for (name, most) in amounts::read(limit, "max") {
            let high = Bound::new("maximum", kind, &name, &most);
            complaints.extend(high.most(self.requests.get(&name), self.limits.get(&name)));
        }
        for (name, ratio) in amounts::read(limit, "maxLimitRequestRatio") {
            let (request, limit) = (self.requests.get(&name), self.limits.get(&name));
            complaints.extend(check_ratio(kind, &name, &ratio, request, limit));
        }
    }
}

/// One end of what may be asked for.
struct Bound<'a> {
    end: &'static str,
    kind: &'a str,
    name: &'a str,
    amount: &'a Quantity,
}

impl<'a> Bound<'a> {
    fn new(end: &'static str, kind: &'a str, name: &'a str, amount: &'a Quantity) -> Self {
        Bound {
            end,
            kind,
            name,
            amount,
        }
    }

    fn least(&self, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<String> {
        let Some(request) = request else {
            return Some(self.unspecified("request"));
        };
        if request < self.amount {
            return Some(self.broken("request", request));
        }
        let limit = limit.filter(|limit| *limit < self.amount)?;
        Some(self.broken("limit", limit))
    }

    fn most(&self, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<String> {
        let Some(limit) = limit else {
            return Some(self.unspecified("limit"));
        };
        if limit > self.amount {
            return Some(self.broken("limit", limit));
        }
        let request = request.filter(|request| *request > self.amount)?;
        Some(self.broken("request", request))
    }

    fn unspecified(&self, what: &str) -> String {
        format!("{self}.  No {what} is specified")
    }

    fn broken(&self, what: &str, amount: &Quantity) -> String {
        format!("{self}, but {what} is {amount}")
    }
}

impl std::fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bound {
            end,
            kind,
            name,
            amount,
        } = self;
        write!(f, "{end} {name} usage per {kind} is {amount}")
    }
}

fn check_ratio(
    kind: &str,
    name: &str,
    ratio: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("{name} max limit to request ratio per {kind} is {ratio}");
    let given = |amount: Option<&Quantity>| amount.filter(|amount| !amount.is_zero()).cloned();
    let Some(request) = given(request) else {
        return Some(format!(
            "{rule}, but no request is specified or request is 0"
        ));
    };
    let Some(limit) = given(limit) else {
        return Some(format!("{rule}, but no limit is specified or limit is 0"));
    };
    let provided = ratio.is_less_than_ratio(&limit, &request)?;
    Some(format!("{rule}, but provided ratio is {provided}"))
}

/// The LimitRanges in the namespace of an object.
fn ranges(server: &Shared, object: &Value) -> Vec<Value> {
    let namespace = text_at(object, "/metadata/namespace");
    let found = server.store.in_namespace(LIMIT_RANGES, namespace);
    found.iter().map(|range| range.value()).collect()
}

/// The limits of a LimitRange for one type.
fn limits_of<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let limits = items(range.get("spec").unwrap_or(&Value::Null), "limits");
    limits.filter(move |limit| text(limit, "type") == kind)
}

//! The families of addresses of Services, on a cluster that has those of IPv4.

use serde_json::{Value, json};

use super::{NONE, validation};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{default_to, items, present, set, text};

const SPEC: Path<'static> = Path::new("spec");
const SINGLE: &str = "SingleStack";
const BOTH: &str = "RequireDualStack";
const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";

/// Chooses what a Service says nothing of: the policy, and the families. `old` is the
/// spec that it replaces. The answer is what is wrong with what it says.
pub(super) fn choose(spec: &mut Value, old: Option<&Value>) -> Errors {
    // Who gives a Service its endpoints by hand may give it those of both families.
    let is_open = text(spec, "clusterIP") == NONE && present(spec, "selector").is_none();
    let before = old.and_then(|old| present(old, "ipFamilyPolicy"));
    let policy = match before {
        Some(policy) => policy.clone(),
        None if is_open => BOTH.into(),
        None => SINGLE.into(),
    };
    default_to(spec, "ipFamilyPolicy", policy);
    let mut errors = Errors::new();
    validation::validate_cluster_ips(spec, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if let Some(old) = old {
        release(spec, old, &mut errors);
    }
    validate_single(spec, &mut errors);
    infer(spec, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if is_open {
        add_other(spec);
        return errors;
    }
    validate_configured(spec, &mut errors);
    if errors.is_empty() && present(spec, "ipFamilies").is_none() {
        set(spec, "ipFamilies", json!([IPV4]));
    }
    errors
}

fn is_single(spec: &Value) -> bool {
    text(spec, "ipFamilyPolicy") == SINGLE
}

fn wrong_policy(spec: &Value, why: &str) -> FieldError {
    let policy = text(spec, "ipFamilyPolicy");
    FieldError::invalid_str(&SPEC.child("ipFamilyPolicy"), policy, why)
}

/// With a policy of one family the second of each goes; with another it has to stay.
fn release(spec: &mut Value, old: &Value, errors: &mut Errors) {
    let lists = [
        (
            "clusterIPs",
            "must be 'SingleStack' to release the secondary cluster IP",
        ),
        (
            "ipFamilies",
            "must be 'SingleStack' to release the secondary IP family",
        ),
    ];
    for (field, why) in lists {
        let count = items(spec, field).count();
        if is_single(spec) {
            if count > 1
                && spec.get(field) == old.get(field)
                && let Some(list) = spec.get_mut(field).and_then(Value::as_array_mut)
            {
                list.truncate(1);
            }
        } else if count > 0 && count < items(old, field).count() {
            errors.push(wrong_policy(spec, why));
        }
    }
}

fn validate_single(spec: &Value, errors: &mut Errors) {
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if is_single(spec) && items(spec, field).count() == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are \
                 specified"
            );
            errors.push(wrong_policy(spec, &why));
        }
    }
}

/// Where no family is named for an address, it is that of the address.
fn infer(spec: &mut Value, errors: &mut Errors) {
    let ips = spec.get("clusterIPs").cloned().unwrap_or_default();
    let mut families: Vec<Value> = items(spec, "ipFamilies").cloned().collect();
    let named = families.len();
    for (index, ip) in ips.as_array().into_iter().flatten().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if ip == NONE {
            break;
        }
        if index < families.len() {
            continue;
        }
        if validation::is_ipv6(ip) {
            let path = SPEC.child("clusterIPs");
            let why = format!("{IPV6} is not configured on this cluster");
            errors.push(FieldError::invalid(&path.index(index), &ips, why));
        } else {
            families.push(json!(IPV4));
        }
    }
    if families.len() > named {
        set(spec, "ipFamilies", families);
    }
}

/// Adds what is missing of both families, unless one is enough.
fn add_other(spec: &mut Value) {
    let mut families: Vec<Value> = items(spec, "ipFamilies").cloned().collect();
    if families.is_empty() {
        families.push(json!(IPV4));
    }
    if let [one] = &families[..]
        && !is_single(spec)
    {
        let other = if *one == IPV4 { IPV6 } else { IPV4 };
        families.push(json!(other));
    }
    set(spec, "ipFamilies", families);
}

fn validate_configured(spec: &Value, errors: &mut Errors) {
    if text(spec, "ipFamilyPolicy") == BOTH {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(wrong_policy(spec, why));
    }
    let path = SPEC.child("ipFamilies");
    for (index, family) in items(spec, "ipFamilies").enumerate() {
        if *family != IPV4 {
            let why = "not configured on this cluster";
            errors.push(FieldError::invalid(&path.index(index), family, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_without_addresses_and_selector_has_both_families() {
        let check = |spec: Value, policy: &str, families: Value| {
            let mut spec = spec;
            assert_eq!(choose(&mut spec, None), Errors::new());
            assert_eq!(spec["ipFamilyPolicy"], policy);
            assert_eq!(spec["ipFamilies"], families);
        };
        let headless = json!({"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]});
        let with = |field: &str, value: Value| {
            let mut spec = headless.clone();
            spec[field] = value;
            spec
        };
        let both = json!(["IPv4", "IPv6"]);
        check(headless.clone(), "RequireDualStack", both.clone());
        let preferring = with("ipFamilyPolicy", json!("PreferDualStack"));
        check(preferring, "PreferDualStack", both);
        let reversed = with("ipFamilies", json!(["IPv6"]));
        check(reversed, "RequireDualStack", json!(["IPv6", "IPv4"]));
        let single = with("ipFamilyPolicy", json!("SingleStack"));
        check(single, "SingleStack", json!(["IPv4"]));
        let selecting = with("selector", json!({"a": "b"}));
        check(selecting, "SingleStack", json!(["IPv4"]));
    }

    #[test]
    fn what_the_cluster_does_not_have_is_refused() {
        let check = |mut spec: Value, old: Option<&Value>, expected: &str| {
            spec["type"] = json!("ClusterIP");
            assert_eq!(choose(&mut spec, old).aggregate(), expected, "{spec}");
        };
        check(
            json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4"]}),
            None,
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
             configured for dual-stack services",
        );
        check(
            json!({"ipFamilies": ["IPv6"]}),
            None,
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        );
        check(
            json!({"clusterIP": "::1:2", "clusterIPs": ["::1:2"]}),
            None,
            "spec.clusterIPs[0]: Invalid value: [\"::1:2\"]: IPv6 is not configured on this \
             cluster",
        );
        check(
            json!({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5", "10.96.0.6"]}),
            None,
            "spec.clusterIPs: Invalid value: [\"10.96.0.5\",\"10.96.0.6\"]: may specify no more \
             than one IP for each IP family",
        );
        check(
            json!({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5", "::1:2"]}),
            None,
            "[spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or \
             'PreferDualStack' when multiple cluster IPs are specified, spec.clusterIPs[1]: \
             Invalid value: [\"10.96.0.5\",\"::1:2\"]: IPv6 is not configured on this cluster]",
        );
        let one = json!({
            "clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        });
        let mut preferring = one.clone();
        preferring["ipFamilyPolicy"] = json!("PreferDualStack");
        assert_eq!(choose(&mut preferring.clone(), Some(&one)), Errors::new());
        assert_eq!(choose(&mut one.clone(), Some(&preferring)), Errors::new());
    }

    #[test]
    fn families_are_released_by_the_policy_alone() {
        let both = json!({
            "clusterIP": "None", "clusterIPs": ["None"],
            "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack",
        });
        let mut single = both.clone();
        single["ipFamilyPolicy"] = json!("SingleStack");
        assert_eq!(choose(&mut single, Some(&both)), Errors::new());
        assert_eq!(single["ipFamilies"], json!(["IPv4"]));
        let mut fewer = both.clone();
        fewer["ipFamilies"] = json!(["IPv4"]);
        assert_eq!(
            choose(&mut fewer, Some(&both)).aggregate(),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to \
             release the secondary IP family"
        );
    }
}

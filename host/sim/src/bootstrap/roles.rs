//! The roles and bindings that every cluster starts with.
//!
//! `roles.txt` is written by the tests of `tests/real` from what a live server has:
//!
//! ```text
//! ClusterRole edit <edit >admin
//! Role kube-public/system:controller:bootstrap-signer
//!  get,list,watch core configmaps
//!  update core configmaps cluster-info
//! ClusterRole system:public-info-viewer
//!  get /healthz,/livez
//! RoleBinding kube-public/system:controller:bootstrap-signer system:controller:bootstrap-signer
//!  ServiceAccount kube-system/bootstrap-signer
//! ```
//!
//! A role has its rules under it: verbs, groups, resources and maybe names, or verbs and
//! paths. `<view` says that its rules are those that others add to `view`, and `>view`
//! that it adds its own to it. A binding names its role, a ClusterRole if it is a
//! ClusterRoleBinding and a Role if not, and has its subjects under it.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::authz::{self, Policy};
use crate::store::{Form, TableName};

const TEXT: &str = include_str!("roles.txt");

const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings, and what they allow.
pub(super) struct Start {
    pub(super) objects: Vec<First>,
    /// All of them, read.
    pub(super) policy: Policy,
}

/// A role or binding.
pub(super) struct First {
    pub(super) table: TableName,
    pub(super) form: Form,
    pub(super) value: Value,
}

/// Read once in a process.
pub(super) static START: LazyLock<Start> = LazyLock::new(|| {
    let mut objects = parse(TEXT);
    gather(&mut objects);
    let mut policy = Policy::default();
    for object in &objects {
        policy.put(object["kind"].as_str().unwrap_or_default(), object);
    }
    Start {
        objects: objects.into_iter().filter_map(First::new).collect(),
        policy,
    }
});

impl First {
    fn new(value: Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let table = format!("{}s.{GROUP}", text(&value["kind"]).to_lowercase());
        let name = text(&value["metadata"]["name"]);
        let key = match value["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        Some(First {
            table: table.into(),
            form: Form::new(&key, value.clone())?,
            value,
        })
    }
}

fn parse(text: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix(' '), objects.last_mut()) {
            (None, _) => objects.push(head(line)),
            (Some(line), Some(object)) => {
                let (field, item) = match object.get("roleRef") {
                    Some(_) => ("subjects", subject(line)),
                    None => ("rules", rule(line)),
                };
                match object[field].as_array_mut() {
                    Some(items) => items.push(item),
                    None => object[field] = json!([item]),
                }
            }
            (Some(_), None) => {}
        }
    }
    objects
}

/// A role without rules, or a binding without subjects.
fn head(line: &str) -> Value {
    let mut words = line.split(' ');
    let kind = words.next().unwrap_or_default();
    let name = words.next().unwrap_or_default();
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    });
    place(&mut object["metadata"], name);
    if let Some(of) = kind.strip_suffix("Binding") {
        let role = words.next().unwrap_or_default();
        object["roleRef"] = json!({"apiGroup": GROUP, "kind": of, "name": role});
        return object;
    }
    for word in words {
        if let Some(role) = word.strip_prefix('<') {
            let selector = json!({"matchLabels": {adds_to(role): "true"}});
            object["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
        } else if let Some(role) = word.strip_prefix('>') {
            object["metadata"]["labels"][adds_to(role)] = json!("true");
        }
    }
    object
}

/// The label of roles whose rules are added to another.
fn adds_to(role: &str) -> String {
    format!("{GROUP}/aggregate-to-{role}")
}

/// Writes `namespace/name`, or `name`, into an object.
fn place(object: &mut Value, name: &str) {
    if let Some((namespace, name)) = name.split_once('/') {
        object["namespace"] = json!(namespace);
        object["name"] = json!(name);
    } else {
        object["name"] = json!(name);
    }
}

fn rule(line: &str) -> Value {
    let list = |word: &str| word.split(',').map(str::to_owned).collect::<Vec<_>>();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        [verbs, paths] => json!({"verbs": list(verbs), "nonResourceURLs": list(paths)}),
        [verbs, groups, resources, names @ ..] => {
            let groups = groups.split(',').map(|group| match group {
                "core" => "",
                named => named,
            });
            let mut rule = json!({
                "verbs": list(verbs),
                "apiGroups": groups.collect::<Vec<_>>(),
                "resources": list(resources),
            });
            if let [names] = names {
                rule["resourceNames"] = json!(list(names));
            }
            rule
        }
        _ => json!({"verbs": list(line)}),
    }
}

fn subject(line: &str) -> Value {
    let (kind, name) = line.split_once(' ').unwrap_or((line, ""));
    let mut subject = json!({"kind": kind});
    if kind != "ServiceAccount" {
        subject["apiGroup"] = json!(GROUP);
    }
    place(&mut subject, name);
    subject
}

/// Gives the roles that are made of others their rules. What they gather may be made of
/// others, too.
fn gather(objects: &mut [Value]) {
    let mut changed = true;
    while changed {
        changed = false;
        for at in 0..objects.len() {
            let found = objects.get(at).and_then(|role| {
                let roles = objects.iter();
                authz::aggregate(role, roles.filter(|role| role["kind"] == "ClusterRole"))
            });
            if let (Some(rules), Some(role)) = (found, objects.get_mut(at)) {
                role["rules"] = json!(rules);
                changed = true;
            }
        }
    }
}

/// Gives a role or binding that was there before what it lacks of `first`: labels and
/// annotations, what it gathers, rules, subjects. What somebody has added stays, and so does
/// all of one that somebody looks after (`autoupdate` is `false`). Says whether anything
/// changed.
pub(super) fn complete(live: &mut Value, first: &Value) -> bool {
    if live["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "false" {
        return false;
    }
    let before = live.clone();
    for field in ["labels", "annotations"] {
        for (name, value) in first["metadata"][field].as_object().into_iter().flatten() {
            if live["metadata"][field].get(name).is_none() {
                live["metadata"][field][name] = value.clone();
            }
        }
    }
    if let Some(rule) = first.get("aggregationRule") {
        let own = &mut live["aggregationRule"];
        add_items(own, rule, "clusterRoleSelectors");
    } else {
        // The rules of others come to those who gather them.
        add_items(live, first, "rules");
    }
    add_items(live, first, "subjects");
    *live != before
}

/// Adds the items of a list that are not in it.
fn add_items(to: &mut Value, from: &Value, field: &str) {
    for item in from[field].as_array().into_iter().flatten() {
        match to[field].as_array_mut() {
            Some(items) if items.contains(item) => {}
            Some(items) => items.push(item.clone()),
            None => to[field] = json!([item]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kind: &str, name: &str) -> &'static Value {
        let mut objects = START.objects.iter().map(|first| &first.value);
        objects
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
            .unwrap()
    }

    #[test]
    fn every_line_is_read() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        let (items, heads): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with(' '));
        assert_eq!(heads.len(), START.objects.len());
        let own = |object: &&Value| object.get("aggregationRule").is_none();
        let objects = START.objects.iter().map(|first| &first.value).filter(own);
        let count = |object: &Value| {
            ["rules", "subjects"].map(|field| object[field].as_array().map_or(0, Vec::len))
        };
        assert_eq!(objects.flat_map(count).sum::<usize>(), items.len());
        for first in &START.objects {
            for rule in first.value["rules"].as_array().into_iter().flatten() {
                let of_resources = rule["apiGroups"].is_array() && rule["resources"].is_array();
                assert!(of_resources || rule["nonResourceURLs"].is_array(), "{rule}");
            }
        }
    }

    #[test]
    fn roles_for_users_gather_those_of_others() {
        let rules = |name: &str| named("ClusterRole", name)["rules"].as_array().unwrap();
        let view = rules("system:aggregate-to-view");
        let edit = [rules("system:aggregate-to-edit"), view.as_slice()].concat();
        assert_eq!(rules("view"), view);
        assert_eq!(*rules("edit"), edit);
        let admin = [edit.as_slice(), rules("system:aggregate-to-admin")].concat();
        assert_eq!(*rules("admin"), admin);
    }

    #[test]
    fn objects_are_written_out() {
        assert_eq!(
            *named(
                "RoleBinding",
                "system::extension-apiserver-authentication-reader"
            ),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {
                    "name": "system::extension-apiserver-authentication-reader",
                    "namespace": "kube-system",
                    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
                    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
                },
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": "extension-apiserver-authentication-reader",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-controller-manager"},
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"},
                ],
            })
        );
        assert_eq!(
            named("ClusterRole", "system:kube-scheduler")["rules"][4],
            json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["nodes"]})
        );
        assert_eq!(
            named("ClusterRoleBinding", "system:node").get("subjects"),
            None
        );
    }
}

//! Expressions in CEL, which come with definitions and policies.

use std::time::{Duration, Instant};

use reeve_sim::crd::Schema;
use reeve_sim::field::Errors;
use serde_json::{Value, json};

use crate::cluster::{Answer, Cluster};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/fuzz.dev/v1/namespaces/default/widgets";
const THINGS: &str = "/apis/fuzz.dev/v1/namespaces/default/things";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const RULES: &str = "x-kubernetes-validations";

/// Of the five seconds that the rules for one object have.
const LONG: Duration = Duration::from_secs(1);

/// What is said of a rule that no definition should have been taken with.
const BROKEN: &[&str] = &["rule compile error", "did not evaluate to bool"];

/// The first byte says what the expression is for, a line feed ends it, and behind another
/// one stand objects, one a line, which it is asked about.
///
/// | Byte | The expression |
/// |---|---|
/// | `r` | a rule of `spec` in a definition |
/// | `o` | one about the change, whose `oldSelf` is optional |
/// | `i` | a rule of the items of a list |
/// | `m` | the `messageExpression` of a rule that no object keeps |
/// | `v` | a validation of a policy |
/// | `e` | the `messageExpression` of a validation |
/// | `c` | a match condition |
/// | `n` | a variable that a validation uses |
/// | `a` | an apply configuration of a policy that changes objects |
/// | `j` | a JSON patch of one |
///
/// Every expression is taken or refused in the server's form, whatever it does. What is
/// taken with a definition can be evaluated on any object, and what is evaluated twice
/// comes to the same. Nothing goes on for long, or takes much memory.
pub fn expressions(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let mut parts = rest.splitn(2, |&byte| byte == b'\n');
    let Some(Ok(text)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let objects = parts.next().unwrap_or_default();
    let objects = objects.split(|&byte| byte == b'\n').take(3);
    let objects: Vec<Value> = objects
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    match choice {
        b'r' | b'o' | b'i' | b'm' => rule(choice, text, &objects),
        _ => policy(choice, text, &objects),
    }
}

fn rule(choice: u8, text: &str, objects: &[Value]) {
    let mut schema = schema();
    let spec = &mut schema["properties"]["spec"];
    match choice {
        b'i' => spec["properties"]["list"]["items"][RULES] = json!([{"rule": text}]),
        b'm' => spec[RULES] = json!([{"rule": "self == oldSelf", "messageExpression": text}]),
        b'o' => spec[RULES] = json!([{"rule": text, "optionalOldSelf": true}]),
        _ => spec[RULES] = json!([{"rule": text, "message": "no"}]),
    }
    // What no definition would be taken with ends, too.
    let parsed = Schema::parse(&schema);
    let mut found = Vec::new();
    if let Ok(parsed) = &parsed {
        let mut old = None;
        for object in objects {
            let Some(said) = evaluated(parsed, object, old) else {
                return;
            };
            found.push(said);
            old = Some(object);
        }
    }

    let cluster = Cluster::new();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.fuzz.dev"},
        "spec": {
            "group": "fuzz.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let created = post(&cluster, DEFINITIONS, &definition);
    if !created.is_success() {
        return;
    }
    assert!(parsed.is_ok(), "{parsed:?}: {text}");
    for found in found {
        for broken in BROKEN {
            assert!(!found.contains(broken), "{text:?}: {found}");
        }
    }
    for object in objects {
        ask(&cluster, WIDGETS, "Widget", object, true);
    }
}

/// What a schema says of an object, and of the change from another one; nothing where it
/// has used up most of the time that it has: then it may end elsewhere the next time.
fn evaluated(schema: &Schema, object: &Value, old: Option<&Value>) -> Option<String> {
    let once = || {
        let mut errors = Errors::new();
        schema.validate(object, old, &mut errors);
        errors.aggregate()
    };
    let begun = Instant::now();
    let found = once();
    if begun.elapsed() > LONG {
        return None;
    }
    assert_eq!(once(), found, "by chance");
    Some(found)
}

fn policy(choice: u8, text: &str, objects: &[Value]) {
    let cluster = Cluster::new();
    let matched = json!({"resourceRules": [{"apiGroups": ["fuzz.dev"], "apiVersions": ["*"],
        "resources": ["things"], "operations": ["*"]}]});
    let never = json!([{"expression": "false", "messageExpression": text}]);
    let (sort, mut spec) = match choice {
        b'a' => (
            "Mutating",
            json!({"reinvocationPolicy": "IfNeeded", "mutations": [{
                "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}]}),
        ),
        b'j' => (
            "Mutating",
            json!({"reinvocationPolicy": "Never", "mutations": [{
                "patchType": "JSONPatch", "jsonPatch": {"expression": text}}]}),
        ),
        b'e' => ("Validating", json!({ "validations": never })),
        b'c' => (
            "Validating",
            json!({"matchConditions": [{"name": "c", "expression": text}],
                "validations": [{"expression": "false"}]}),
        ),
        b'n' => (
            "Validating",
            json!({"variables": [{"name": "v", "expression": text}],
                "validations": [{"expression": "variables.v == variables.v"}]}),
        ),
        _ => (
            "Validating",
            json!({"validations": [{"expression": text}],
                "auditAnnotations": [{"key": "k", "valueExpression": "string(object.spec.replicas)"}]}),
        ),
    };
    spec["matchConstraints"] = matched;
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let kind = format!("{sort}AdmissionPolicy");
    let meta = json!({"name": "p"});
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": meta, "spec": spec});
    let plural = format!("{}admissionpolic", sort.to_lowercase());
    let created = post(&cluster, &format!("{POLICIES}/{plural}ies"), &policy);
    if !created.is_success() {
        return;
    }
    let mut bound = json!({"policyName": "p", "paramRef": {"name": "a", "namespace": "default",
        "parameterNotFoundAction": "Deny"}});
    if sort == "Validating" {
        bound["validationActions"] = json!(["Deny", "Audit"]);
    }
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}Binding"), "metadata": meta, "spec": bound});
    let bound = post(&cluster, &format!("{POLICIES}/{plural}ybindings"), &binding);
    assert!(bound.is_success(), "{}", bound.json());
    // Who is made twice is another one.
    let is_sure = !text.contains("uid");
    for object in objects {
        ask(&cluster, THINGS, "Thing", object, is_sure);
    }
    // One that is there already, and one that goes.
    let path = format!("{THINGS}/a");
    let stored = cluster.get(&path);
    cluster.call("PUT", &path, "application/json", &stored.body);
    cluster.call("DELETE", &path, "", b"");
}

/// Asks twice what would become of an object, and then has it made. The answers are the
/// same where they depend on nothing else.
fn ask(cluster: &Cluster, collection: &str, kind: &str, object: &Value, is_sure: bool) {
    let mut object = match object {
        Value::Object(_) => object.clone(),
        other => json!({ "spec": other }),
    };
    object["apiVersion"] = "fuzz.dev/v1".into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": "z"});
    let tried = || post(cluster, &format!("{collection}?dryRun=All"), &object);
    let (once, twice) = (tried(), tried());
    // An evaluation ends after some seconds as well, which a busy machine may take for the
    // one and not for the other.
    let is_cut = |answer: &Answer| {
        let message = answer.json()["message"].to_string();
        message.contains("cost limit exceeded") || message.contains("cost budget")
    };
    if is_sure && !is_cut(&once) && !is_cut(&twice) {
        assert_eq!(
            once.status,
            twice.status,
            "{} {}",
            once.json(),
            twice.json()
        );
        assert_eq!(once.json()["message"], twice.json()["message"]);
    }
    assert_eq!(cluster.get(&format!("{collection}/z")).status, 404);
    let made = post(cluster, collection, &object);
    if !made.is_success() {
        return;
    }
    // Policies may give what is new another name.
    let name = made.json()["metadata"]["name"].clone();
    let path = format!("{collection}/{}", name.as_str().unwrap_or_default());
    let stored = cluster.get(&path);
    assert_eq!(stored.status, 200, "{}", stored.json());
    cluster.call("PUT", &path, "application/json", &stored.body);
    let deleted = cluster.call("DELETE", &path, "", b"");
    if deleted.is_success() {
        assert_eq!(cluster.get(&path).status, 404, "{}", deleted.json());
    }
}

fn post(cluster: &Cluster, path: &str, object: &Value) -> Answer {
    let body = object.to_string().into_bytes();
    cluster.call("POST", path, "application/json", &body)
}

/// A schema with values of every type, most of them with bounds: without these no rule that
/// goes through them is cheap enough.
fn schema() -> Value {
    let text = json!({"type": "string", "maxLength": 64});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "i": {"type": "integer"},
            "n": {"type": "number"},
            "s": text,
            "t": {"type": "string"},
            "b": {"type": "boolean"},
            "when": {"type": "string", "format": "date-time"},
            "long": {"type": "string", "format": "duration"},
            "raw": {"type": "string", "format": "byte", "maxLength": 64},
            "null": {"type": "string", "nullable": true},
            "choice": {"type": "string", "enum": ["a", "b"]},
            "either": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "maxItems": 8, "items": {"type": "integer"}},
            "many": {"type": "array", "items": text},
            "set": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "set", "items": text},
            "map": {"type": "object", "maxProperties": 8, "additionalProperties": text},
            "things": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"],
                    "properties": {"k": text, "v": {"type": "integer"}}}},
            "nested": {"type": "array", "maxItems": 4,
                "items": {"type": "array", "maxItems": 4, "items": text}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "x-y.z": {"type": "integer"},
            "namespace": {"type": "integer"},
        }},
    }})
}

//! What an apply would do, predicted from an object and its managed fields.

#![expect(clippy::unwrap_used, reason = "tests panic where they fail")]

use reeve_ssa::{
    Apply, FieldSet, ManagedFields, Prediction, Schema, Update, Version, apply, builtin, predict,
    reset, update,
};
use serde_json::{Value, json};

const THEN: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:00:09Z";

/// A kind, and the versions of it that are understood.
struct Kind {
    schema: Schema,
    reset: FieldSet,
}

fn native(group: &str, version: &str, kind: &str) -> Kind {
    Kind {
        schema: builtin::schema(group, version, kind).unwrap().clone(),
        reset: reset::built_in(group, kind, ""),
    }
}

fn custom() -> Kind {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "name": text,
            "amount": {"x-kubernetes-int-or-string": true},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "value": text}},
            },
        },
    }}});
    Kind {
        schema: Schema::from_crd(&schema).unwrap(),
        reset: reset::custom(true, ""),
    }
}

impl Kind {
    fn request<'a>(
        &'a self,
        live: Option<&'a Value>,
        config: &'a Value,
        now: &'a str,
    ) -> Apply<'a> {
        Apply {
            schema: &self.schema,
            versions: &[],
            live,
            config,
            manager: "me",
            force: true,
            subresource: "",
            now,
            reset: &self.reset,
        }
    }

    /// The object as the server gives it out after an apply by `me`.
    fn applied(&self, live: Option<&Value>, config: &Value) -> Value {
        let mut object = apply(self.request(live, config, THEN)).unwrap().object;
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.insert("uid".to_owned(), "u".into());
        metadata.insert("resourceVersion".to_owned(), "1".into());
        metadata.insert("creationTimestamp".to_owned(), THEN.into());
        object
    }

    /// The object after somebody else has written it.
    fn written(&self, live: &Value, manager: &str, edit: impl FnOnce(&mut Value)) -> Value {
        let mut object = live.clone();
        edit(&mut object);
        update(Update {
            schema: &self.schema,
            versions: &[],
            live: Some(live),
            object,
            manager,
            subresource: "",
            now: THEN,
            reset: &self.reset,
        })
    }

    fn predict(&self, live: &Value, config: &Value) -> Prediction {
        let request = self.request(Some(live), config, NOW);
        predict(request).unwrap()
    }

    /// What is predicted, in one line.
    fn says(&self, live: &Value, config: &Value) -> String {
        text(&self.predict(live, config))
    }
}

fn text(prediction: &Prediction) -> String {
    match prediction {
        Prediction::NoChange => "no change".to_owned(),
        Prediction::Settled(values) => format!("settled{}", paths("", values)),
        Prediction::Change(change) => {
            let mut out = "change".to_owned();
            if change.created {
                out.push_str(" created");
            }
            if change.untracked {
                out.push_str(" untracked");
            }
            out.push_str(&paths(" gained", &change.gained));
            out.push_str(&paths(" released", &change.released));
            for (id, lost) in &change.taken {
                out.push_str(&paths(&format!(" from {}", id.manager), lost));
            }
            if let Some(version) = &change.version {
                out.push_str(&format!(" version {version}"));
            }
            out.push_str(&paths(" values", &change.values));
            out
        }
    }
}

fn paths(word: &str, set: &FieldSet) -> String {
    if set.is_empty() {
        return String::new();
    }
    let paths: Vec<_> = set.iter().map(|path| format!(" {path}")).collect();
    format!("{word}{}", paths.concat())
}

fn quota(hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "n"}, "spec": {"hard": hard}})
}

fn service(ports: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "s", "namespace": "n"}, "spec": {"ports": ports}})
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "test/v1", "kind": "Thing",
        "metadata": {"name": "t", "namespace": "n"}, "spec": spec})
}

#[test]
fn the_same_again_is_no_change() {
    for (kind, config) in [
        (
            native("", "v1", "ResourceQuota"),
            quota(&json!({"pods": "1"})),
        ),
        (native("", "v1", "Service"), service(&json!([{"port": 80}]))),
        (
            custom(),
            thing(&json!({"name": "a", "set": ["x"], "items": [{"name": "i"}]})),
        ),
    ] {
        let live = kind.applied(None, &config);
        assert_eq!(kind.says(&live, &config), "no change", "{config}");
    }
}

#[test]
fn an_absent_object_would_be_created() {
    let kind = custom();
    let config = thing(&json!({"name": "a"}));
    let prediction = predict(kind.request(None, &config, NOW)).unwrap();
    assert_eq!(text(&prediction), "change created gained .spec.name");
}

#[test]
fn a_newer_config_is_told_from_one_that_drops_or_adds_fields() {
    let kind = custom();
    let live = kind.applied(None, &thing(&json!({"name": "a", "set": ["x"]})));
    for (spec, expected) in [
        (json!({"name": "b", "set": ["x"]}), "settled .spec.name"),
        (
            json!({"name": "a"}),
            "change released .spec.set[=\"x\"] values .spec.set .spec.set[=\"x\"]",
        ),
        (
            json!({"name": "a", "set": ["x", "y"]}),
            "change gained .spec.set[=\"y\"] values .spec.set[=\"y\"]",
        ),
        (
            json!({"name": "a", "set": ["x"], "amount": 1}),
            "change gained .spec.amount values .spec.amount",
        ),
    ] {
        assert_eq!(kind.says(&live, &thing(&spec)), expected, "{spec}");
    }
}

#[test]
fn empty_keyed_lists_are_nothing() {
    let kind = native("", "v1", "Service");
    let mut bare = service(&json!([]));
    bare["spec"] = json!({"selector": {"app": "a"}});
    let mut empty = bare.clone();
    empty["spec"]["ports"] = json!([]);
    let live = kind.applied(None, &bare);
    assert_eq!(kind.says(&live, &empty), "no change");
    assert_eq!(kind.says(&live, &bare), "no change");
    // Items of others are none of the manager's business.
    let live = kind.written(&live, "other", |o| {
        o["spec"]["ports"] = json!([{"port": 80}])
    });
    assert_eq!(kind.says(&live, &empty), "no change");

    // A custom resource keeps an empty list, which nobody owns: it comes once.
    let kind = custom();
    let config = thing(&json!({"name": "a", "items": [], "set": []}));
    let live = kind.applied(None, &thing(&json!({"name": "a"})));
    assert_eq!(kind.says(&live, &config), "settled .spec.items .spec.set");
    let live = kind.applied(Some(&live), &config);
    assert_eq!(kind.says(&live, &config), "no change");
}

#[test]
fn the_notation_of_quantities_makes_no_difference() {
    let kind = native("", "v1", "ResourceQuota");
    let config = quota(&json!({"cpu": "1000m", "memory": "1024Mi", "pods": 3}));
    let mut live = kind.applied(None, &config);
    live["spec"]["hard"] = json!({"cpu": "1", "memory": "1Gi", "pods": "3"});
    assert_eq!(kind.says(&live, &config), "no change");
    live["spec"]["hard"]["cpu"] = "2".into();
    assert_eq!(kind.says(&live, &config), "settled .spec.hard.cpu");

    // The server compares texts before it reads them, so a co-owner loses.
    live["spec"]["hard"]["cpu"] = "1".into();
    let canonical = quota(&json!({"cpu": "1"}));
    let mut request = kind.request(Some(&live), &canonical, THEN);
    request.manager = "other";
    let shared = apply(request).unwrap().object;
    assert_eq!(
        kind.says(&shared, &config),
        "change from other .spec.hard.cpu"
    );

    // In a custom resource it is just text.
    let kind = custom();
    let config = thing(&json!({"amount": "1000m"}));
    let mut live = kind.applied(None, &config);
    live["spec"]["amount"] = "1".into();
    assert_eq!(kind.says(&live, &config), "settled .spec.amount");
}

#[test]
fn defaults_belong_to_nobody_and_stay() {
    let kind = native("", "v1", "Service");
    let config = service(&json!([{"port": 80}]));
    let mut live = kind.applied(None, &config);
    live["spec"]["ports"][0]["protocol"] = "TCP".into();
    live["spec"]["ports"][0]["targetPort"] = 80.into();
    live["spec"]["clusterIP"] = "10.0.0.7".into();
    live["spec"]["type"] = "ClusterIP".into();
    live["status"] = json!({"loadBalancer": {}});
    assert_eq!(kind.says(&live, &config), "no change");
    // The key that was filled in may as well be named: then it is owned.
    let named = service(&json!([{"port": 80, "protocol": "TCP"}]));
    assert_eq!(
        kind.says(&live, &named),
        "change gained .spec.ports[port=80,protocol=\"TCP\"].protocol"
    );
}

#[test]
fn what_admission_changed_is_settled() {
    let kind = native("", "v1", "ConfigMap");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "1", "b": "2"}});
    let live = kind.applied(None, &config);
    // After ownership is worked out, so that entries stay as they are.
    for (pointer, value, expected) in [
        ("/data/a", json!("other"), "settled .data.a"),
        ("/data", json!({"a": "1"}), "settled .data.b"),
        ("/data", json!({"a": "1", "b": "2", "c": "3"}), "no change"),
    ] {
        let mut live = live.clone();
        *live.pointer_mut(pointer).unwrap() = value.clone();
        assert_eq!(kind.says(&live, &config), expected, "{pointer} {value}");
    }
}

#[test]
fn what_another_writes_is_lost_and_what_it_shares_is_not() {
    let kind = native("", "v1", "ConfigMap");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "1"}});
    let live = kind.applied(None, &config);

    let taken = kind.written(&live, "edit", |o| o["data"]["a"] = "2".into());
    let expected = "change gained .data.a from edit .data.a values .data.a";
    assert_eq!(kind.says(&taken, &config), expected);
    let removed = kind.written(&live, "edit", |o| o["data"] = json!({}));
    let expected = "change untracked gained .data.a values .data .data.a";
    assert_eq!(kind.says(&removed, &config), expected);
    let beside = kind.written(&live, "edit", |o| o["data"]["b"] = "2".into());
    assert_eq!(kind.says(&beside, &config), "no change");

    // Two appliers of one value own it together.
    let mut request = kind.request(Some(&live), &config, THEN);
    request.manager = "other";
    let shared = apply(request).unwrap().object;
    assert_eq!(kind.says(&shared, &config), "no change");
    let mut newer = config.clone();
    newer["data"]["a"] = "2".into();
    let expected = "change from other .data.a values .data.a";
    assert_eq!(kind.says(&shared, &newer), expected);
    // What is given up stays with the other.
    let mut less = config;
    less["data"] = json!({});
    assert_eq!(
        kind.says(&shared, &less),
        "change gained .data released .data.a"
    );
}

#[test]
fn a_conflict_is_one_unless_forced() {
    let kind = native("", "v1", "ConfigMap");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "1"}});
    let live = kind.applied(None, &config);
    let live = kind.written(&live, "edit", |o| o["data"]["a"] = "2".into());
    let mut request = kind.request(Some(&live), &config, NOW);
    request.force = false;
    assert_eq!(
        predict(request).unwrap_err().to_string(),
        "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.a"
    );
}

#[test]
fn entries_of_other_versions_are_understood_or_left_alone() {
    let kind = custom();
    let config = thing(&json!({"name": "a"}));
    let with_version = |index: usize, version: &str| {
        let live = kind.applied(None, &config);
        let mut live = kind.written(&live, "edit", |o| o["spec"]["amount"] = 1.into());
        live["metadata"]["managedFields"][index]["apiVersion"] = version.into();
        live
    };
    // The manager's own entry is rewritten in terms of the config's version.
    let live = with_version(0, "test/v1beta1");
    let old = custom();
    let versions = [Version {
        api_version: "test/v1beta1",
        schema: &old.schema,
        conversion: None,
    }];
    let known = Apply {
        versions: &versions,
        ..kind.request(Some(&live), &config, NOW)
    };
    assert_eq!(
        text(&predict(known).unwrap()),
        "change version test/v1beta1"
    );
    assert_eq!(kind.says(&live, &config), "change version test/v1beta1");
    // Another's entry is no reason to write.
    let live = with_version(1, "test/v1beta1");
    assert_eq!(kind.says(&live, &config), "no change");
    let known = Apply {
        versions: &versions,
        ..kind.request(Some(&live), &config, NOW)
    };
    assert_eq!(text(&predict(known).unwrap()), "no change");
}

#[test]
fn what_the_server_decides_counts_as_it_is() {
    let kind = native("", "v1", "ResourceQuota");
    let config = quota(&json!({"pods": "1"}));
    let live = kind.applied(None, &config);
    let mut live = live;
    live["status"] = json!({"hard": {"pods": "1"}, "used": {"pods": "0"}});
    live["metadata"]["generation"] = 2.into();
    let mut config = config;
    config["status"] = json!({"hard": {"pods": "9"}});
    config["metadata"]["creationTimestamp"] = Value::Null;
    config["metadata"]["generation"] = 1.into();
    assert_eq!(kind.says(&live, &config), "no change");
}

#[test]
fn an_object_that_nobody_tracked_would_be_taken_over() {
    let kind = native("", "v1", "ConfigMap");
    let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "1"}});
    let mut live = kind.applied(None, &config);
    ManagedFields::default().write_to(&mut live);
    assert_eq!(kind.says(&live, &config), "change untracked gained .data.a");
    config.as_object_mut().unwrap().remove("data");
    assert_eq!(kind.says(&live, &config), "change untracked");
}

#[test]
fn the_order_of_items_is_written_too() {
    let kind = custom();
    let config = thing(&json!({"items": [{"name": "a"}, {"name": "b"}]}));
    let mut live = kind.applied(None, &config);
    live["spec"]["items"].as_array_mut().unwrap().reverse();
    assert_eq!(kind.says(&live, &config), "settled");
}

#[test]
fn nonsense_is_an_error() {
    let kind = native("", "v1", "ConfigMap");
    let live = kind.applied(
        None,
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c"}}),
    );
    let mut malformed = live.clone();
    malformed["metadata"]["managedFields"] = json!([{"operation": "Own"}]);
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "x": 1});
    for (live, expected) in [
        (
            &malformed,
            "failed to decode managed fields: operation must be `Apply` or `Update`",
        ),
        (
            &live,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .x: field not declared in schema",
        ),
    ] {
        let error = predict(kind.request(Some(live), &config, NOW)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

//! Patches as their users write them, on objects as plugins return them.

use serde_json::{Value, json};

use super::Patches;
use super::pattern::Pattern;

fn object(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "labels": {"app": name}, "annotations": {"a": "b"}},
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn objects() -> Vec<Value> {
    let mut release = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "sgp", "train");
    release["spec"] = json!({"interval": "30m", "containers": [{"name": "a"}]});
    let mut deployment = object("apps/v1", "Deployment", "flux-system", "source");
    deployment["spec"] = json!({"template": {"spec": {
        "containers": [{
            "name": "manager", "image": "i", "args": ["--a"],
            "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80}],
        }],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }}});
    vec![
        object("v1", "Namespace", "", "sgp"),
        release,
        deployment,
        object("v1", "Namespace", "", "istio-system"),
    ]
}

fn patched(patches: Value) -> Result<(Vec<Value>, Vec<bool>), Vec<String>> {
    let texts = |errors: Vec<super::PatchError>| -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    };
    let patches = Patches::read(patches.as_array().unwrap()).map_err(texts)?;
    let mut objects = objects();
    let matched = patches.apply(&mut objects).map_err(texts)?;
    Ok((objects, matched))
}

/// What stands at a place of one of the objects after a patch.
#[track_caller]
fn check(patch: Value, index: usize, pointer: &str, expected: Value) {
    let (objects, matched) = patched(json!([patch])).unwrap();
    assert_eq!(matched, [true], "{patch}");
    let found = objects[index].pointer(pointer).cloned();
    assert_eq!(found.unwrap_or_default(), expected, "{patch}");
}

#[test]
fn each_language_changes_what_it_says() {
    let release = json!({"kind": "HelmRelease"});
    check(
        json!({"target": release, "patch": [{"op": "replace", "path": "/spec/interval", "value": "1m"}]}),
        1,
        "/spec/interval",
        json!("1m"),
    );
    check(
        json!({"target": release, "patch": "[{\"op\": \"remove\", \"path\": \"/spec/interval\"}]"}),
        1,
        "/spec",
        json!({"containers": [{"name": "a"}]}),
    );
    check(
        json!({"target": release, "type": "Merge", "patch": {"spec": {"interval": null, "b": 1}}}),
        1,
        "/spec",
        json!({"containers": [{"name": "a"}], "b": 1}),
    );
    // A list of a kind that nobody knows takes the place of another.
    check(
        json!({"target": release, "patch": {"spec": {"containers": [{"name": "b"}]}}}),
        1,
        "/spec/containers",
        json!([{"name": "b"}]),
    );
    let named = json!({"patch": {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "istio-system", "labels": {"team": "mesh"}},
    }});
    check(
        named,
        3,
        "/metadata/labels",
        json!({"app": "istio-system", "team": "mesh"}),
    );
}

#[test]
fn lists_of_the_builtin_kinds_are_merged_by_their_keys() {
    let pod = |patch: Value| json!({"target": {"kind": "Deployment"}, "patch": {"spec": {"template": {"spec": patch}}}});
    let containers = "/spec/template/spec/containers";
    check(
        pod(json!({"containers": [
            {"name": "manager", "args": ["--b"], "env": [{"name": "Y", "value": null}, {"name": "X", "value": "2"}],
             "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
            {"name": "beside", "image": "b", "stdin": null},
        ]})),
        2,
        containers,
        json!([
            {"name": "manager", "image": "i", "args": ["--b"],
             "env": [{"name": "X", "value": "2"}, {"name": "Y"}],
             "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
            {"name": "beside", "image": "b"},
        ]),
    );
    check(
        pod(json!({"containers": [{"name": "manager", "$patch": "delete"}]})),
        2,
        containers,
        json!([]),
    );
    check(
        pod(json!({"containers": [{"$patch": "replace"}, {"name": "only"}]})),
        2,
        containers,
        json!([{"name": "only"}]),
    );
    check(
        pod(
            json!({"volumes": [{"name": "tmp", "$retainKeys": ["name"], "configMap": {"name": "c"}}]}),
        ),
        2,
        "/spec/template/spec/volumes",
        json!([{"name": "tmp", "configMap": {"name": "c"}}]),
    );
    check(
        pod(json!({"containers": [{"name": "manager", "$deleteFromPrimitiveList/args": ["--a"]}]})),
        2,
        "/spec/template/spec/containers/0/args",
        json!([]),
    );
    check(
        json!({"target": {"kind": "Deployment"}, "patch": {"spec": {"$patch": "replace", "paused": true}}}),
        2,
        "/spec",
        json!({"paused": true}),
    );
}

#[test]
fn targets_mean_what_they_do_in_kustomize() {
    for (target, expected) in [
        (json!({}), vec![0, 1, 2, 3]),
        (json!({"kind": "Namespace"}), vec![0, 3]),
        (json!({"kind": "Name"}), vec![]),
        (json!({"kind": "Name.*|Deployment"}), vec![0, 2, 3]),
        (json!({"name": "istio-.*"}), vec![3]),
        (json!({"name": "^(sgp|train)$"}), vec![0, 1]),
        (json!({"namespace": "sgp"}), vec![1]),
        (json!({"group": "apps", "version": "v1"}), vec![2]),
        (json!({"group": "", "version": "v1"}), vec![0, 2, 3]),
        (
            json!({"labelSelector": "app in (sgp,train)", "kind": "HelmRelease"}),
            vec![1],
        ),
        (json!({"labelSelector": "app!=sgp"}), vec![1, 2, 3]),
        (
            json!({"annotationSelector": "a=b", "name": "source"}),
            vec![2],
        ),
        (json!({"annotationSelector": "!a"}), vec![]),
    ] {
        let patch = json!({"target": target, "patch": {"metadata": {"name": "not-important", "labels": {"hit": "1"}}}});
        let (objects, matched) = patched(json!([patch])).unwrap();
        let hit = |(index, object): (usize, &Value)| {
            (object["metadata"]["labels"]["hit"] == "1").then_some(index)
        };
        let found: Vec<usize> = objects.iter().enumerate().filter_map(hit).collect();
        assert_eq!(found, expected, "{target}");
        assert_eq!(matched, [!expected.is_empty()], "{target}");
        // What a patch says of names is no new name.
        let names = |objects: &[Value]| -> Vec<Value> {
            objects
                .iter()
                .map(|one| one["metadata"]["name"].clone())
                .collect()
        };
        assert_eq!(names(&objects), names(&self::objects()));
    }
}

#[test]
fn objects_are_taken_out_and_patches_come_one_after_the_other() {
    let (objects, _) = patched(json!([
        {"target": {"kind": "Namespace"}, "patch": {"$patch": "delete"}},
        {"target": {"kind": "HelmRelease"}, "patch": [{"op": "add", "path": "/spec/a", "value": 1}]},
        {"target": {"kind": "HelmRelease"}, "patch": [{"op": "test", "path": "/spec/a", "value": 1}]},
    ]))
    .unwrap();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["spec"]["a"], 1);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let release = json!({"kind": "HelmRelease"});
    for (patch, expected) in [
        (json!(1), "/0: expected an object with a patch"),
        (
            json!({"target": {}}),
            "/0/patch: expected an object, a list of operations, or one of these as JSON text",
        ),
        (
            json!({"patch": "a: b"}),
            "/0/patch: expected an object, a list of operations, or one of these as JSON text: ",
        ),
        (
            json!({"patch": {}, "target": release, "path": "x"}),
            "/0/path: not known; there are patch, target, type",
        ),
        (
            json!({"patch": {}, "target": release, "type": "json"}),
            "/0/type: expected one of Json, Merge, Strategic",
        ),
        (
            json!({"patch": [], "target": release, "type": "Merge"}),
            "/0/patch: expected an object; a list is a patch of type Json",
        ),
        (
            json!({"patch": {}, "target": release, "type": "Json"}),
            "/0/patch: expected a list of operations",
        ),
        (
            json!({"patch": {"kind": "Namespace"}}),
            "/0/target: missing: say which objects are meant, or name one in the patch",
        ),
        (
            json!({"patch": []}),
            "/0/target: missing: say which objects are meant",
        ),
        (
            json!({"patch": {}, "target": {"kid": "a"}}),
            "/0/target/kid: not known; there are annotationSelector, ",
        ),
        (
            json!({"patch": {}, "target": {"name": "a("}}),
            "/0/target/name: `a(` is no pattern that can be used: a `(` has no `)`",
        ),
        (
            json!({"patch": {}, "target": {"name": 1}}),
            "/0/target/name: expected a text",
        ),
        (
            json!({"patch": {}, "target": {"labelSelector": "a=b,"}}),
            "/0/target/labelSelector: selector `a=b,` ends with a comma",
        ),
        (
            json!({"patch": [{"op": "swap", "path": "/a"}], "target": release}),
            "/0/patch/0: no operation of a JSON patch: ",
        ),
        (
            json!({"patch": [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/spec/x"}], "target": release}),
            "/0/patch/1: ",
        ),
        (
            json!({"patch": [{"op": "replace", "path": "/metadata/name", "value": "x"}], "target": release}),
            "/0/patch: changes apiVersion, kind, name or namespace of HelmRelease sgp/train; leave them",
        ),
        (
            json!({"patch": {"metadata": {"annotations": "x"}}, "target": release, "type": "Merge"}),
            "/0/patch: leaves no object at /metadata/annotations of HelmRelease sgp/train; keep one there",
        ),
        (
            json!({"patch": [{"op": "replace", "path": "/metadata/labels", "value": []}], "target": release}),
            "/0/patch: leaves no object at /metadata/labels of HelmRelease sgp/train; keep one there",
        ),
        (
            json!({"patch": {"spec": {"$setElementOrder/a": []}}, "target": release}),
            "/0/patch/spec/$setElementOrder~1a: not supported; ",
        ),
        (
            json!({"patch": {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}, "target": {"kind": "Deployment"}}),
            "/0/patch/spec/template/spec/containers/0: lacks `name`",
        ),
        (
            json!({"patch": {"spec": {"$patch": "drop"}}, "target": release}),
            "/0/patch/spec/$patch: expected one of delete, merge, replace",
        ),
    ] {
        let errors = patched(json!([patch])).unwrap_err();
        assert!(errors[0].starts_with(expected), "{patch}: {errors:?}");
    }
    // Those after one that leaves no object find none.
    let replaced = json!([{"op": "replace", "path": "", "value": "x"}]);
    let errors = patched(json!([
        {"target": release, "patch": replaced}, {"target": {}, "patch": {}, "type": "Merge"},
    ]));
    assert_eq!(errors.unwrap_err().len(), 1);
    // All of them at once.
    let all = patched(json!([{"patch": 1}, {"patch": {}, "target": {"a": "x", "b": "x"}}]));
    assert_eq!(all.unwrap_err().len(), 3);
}

#[test]
fn patterns_match_whole_texts() {
    for (pattern, yes, no) in [
        ("a", "a", "aa"),
        ("a*", "aaa", "ab"),
        ("a+b?", "aa", "b"),
        ("a|bc", "bc", "abc"),
        ("(a|b)*c", "abbac", "abba"),
        ("(?:ab)+", "abab", "aba"),
        ("[a-c]x", "bx", "dx"),
        ("[^a-c-]", "d", "-"),
        ("[a-]", "-", "b"),
        ("[]a]", "]", "b"),
        (r"a\.b", "a.b", "axb"),
        ("^a.*z$", "abcz", "abc"),
        ("", "", "a"),
        (
            "(a*)*b",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
        ("ä.", "äö", "ä"),
    ] {
        let parsed = Pattern::parse(pattern).unwrap();
        assert!(parsed.matches(yes), "{pattern} {yes}");
        assert!(!parsed.matches(no), "{pattern} {no}");
    }
    for pattern in [
        "(", ")", "a)", "[", "[a", "*", "a{2}", r"\d", "a^b", "[z-a]", "(?=a)", "[[a]]",
    ] {
        assert!(Pattern::parse(pattern).is_err(), "{pattern}");
    }
    assert!(Pattern::parse(&"(".repeat(100)).is_err());
    assert!(Pattern::parse(&"a".repeat(257)).is_err());
    assert!(Pattern::literal("a.b").matches("a.b"));
    assert!(!Pattern::literal("a.b").matches("axb"));
}

/// Annotations are shown in plans, conditions and journals, where data is not.
#[test]
fn what_a_secret_holds_stays_in_its_data() {
    let secret = || {
        let mut secret = object("v1", "Secret", "sgp", "values");
        secret["data"] = json!({"values.yaml": "Y2FuYXJ5"});
        secret["stringData"] = json!({});
        secret
    };
    let patched = |operations: &Value, mut object: Value| {
        object["metadata"]["name"] = json!("values");
        let list = [json!({"target": {"name": "values"}, "patch": operations})];
        let patches = Patches::read(&list).unwrap();
        let mut objects = vec![object];
        let errors = patches.apply(&mut objects).err().unwrap_or_default();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    };
    let annotation = "/metadata/annotations/reeve.dev~1depends-on";
    for (op, from, path, refused) in [
        ("copy", "/data/values.yaml", annotation, true),
        ("move", "/data/values.yaml", "/metadata/labels/a", true),
        ("copy", "/stringData", "/metadata/annotations", true),
        ("copy", "", "/copy", true),
        ("copy", "/data/values.yaml", "/data/other", false),
        ("move", "/data/values.yaml", "/stringData/a", false),
        ("copy", "/metadata/labels/app", annotation, false),
    ] {
        let renamed = json!([
            {"op": "replace", "path": "/kind", "value": "ConfigMap"},
            {"op": op, "from": from, "path": path},
            {"op": "replace", "path": "/kind", "value": "Secret"},
        ]);
        for operations in [json!([{"op": op, "from": from, "path": path}]), renamed] {
            let errors = patched(&operations, secret());
            let expected = "takes what Secret sgp/values holds out of its data";
            assert_eq!(errors.contains(expected), refused, "{operations}: {errors}");
            assert!(!errors.contains("Y2FuYXJ5"), "{errors}");
            let mut other = secret();
            other["kind"] = json!("ConfigMap");
            let errors = patched(&operations, other);
            assert!(!errors.contains("out of its data"), "{errors}");
        }
    }
}

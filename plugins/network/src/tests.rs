//! Labels, configuration and cluster in, policies out.

mod content;

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

const GITEA: &str = "sourcecontrol.statcan.gc.ca/enabled";
const S3: &str = "s3.statcan.gc.ca/enabled";
const EMPLOYEES: &str = "state.aaw.statcan.gc.ca/exists-non-cloud-main-user";

/// What the table of the original lists before Gitea, in its order.
const ALWAYS: [&str; 10] = [
    "notebooks-allow-system-to-notebook",
    "allow-ingress-from-knative-serving",
    "allow-egress-to-cluster-local-gateway",
    "unclassified-allow-same-namespace",
    "unclassified-allow-egress",
    "unclassified-allow-egress-to-ingress-gateway",
    "notebooks-protected-b-allow-https-egress",
    "vault-egress",
    "unclassified-elasticsearch-egress",
    "allow-jfrog-egress",
];
const OF_GITEA: [&str; 4] = [
    "allow-gitea-to-postgres",
    "gitea-allow-system-to-gitea",
    "allow-gitea-http-egress-prot-b",
    "allow-gitea-http-ingress-prot-b",
];
const OF_TRINO: [&str; 2] = [
    "allow-egress-protb-notebook-to-trino-protb-system",
    "allow-egress-notebook-to-trino-system",
];

fn run(labels: &BTreeMap<String, String>, config: &Value, cx: Context) -> Outcome {
    let profile = json!({"metadata": {"name": "alice", "uid": "1", "labels": labels}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx).unwrap()
}

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

fn names(outcome: &Outcome) -> Vec<String> {
    let objects = outcome.objects_json();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    objects.iter().map(name).collect()
}

fn problem(label: &str, value: &str) -> String {
    format!("label {label}={value}: not a boolean; set it to true or false, or remove it")
}

#[test]
fn each_gate_and_preset_has_its_policies() {
    // Each gate: absent, open, closed and garbage.
    for (gitea, has_gitea) in [
        (None, false),
        (Some("1"), true),
        (Some("F"), false),
        (Some("on"), false),
    ] {
        for (s3, has_s3) in [
            (None, false),
            (Some("True"), true),
            (Some("0"), false),
            (Some(""), false),
        ] {
            for (non_employee, employees) in [
                (None, false),
                (Some("false"), true),
                (Some("true"), false),
                // The original grants access here.
                (Some("no"), false),
            ] {
                let given = [(GITEA, gitea), (S3, s3), (EMPLOYEES, non_employee)];
                let given: Vec<_> = given
                    .iter()
                    .filter_map(|(k, v)| Some((*k, (*v)?)))
                    .collect();
                let bad: Vec<_> = given
                    .iter()
                    .filter(|(_, value)| ["on", "", "no"].contains(value))
                    .map(|(label, value)| problem(label, value))
                    .collect();
                for preset in ["readme", "main"] {
                    let main = preset == "main";
                    let outcome = run(&labels(&given), &json!({"preset": preset}), Context::test());
                    let mut expected = ALWAYS.to_vec();
                    match (has_gitea, main) {
                        (true, true) => expected.extend(OF_GITEA),
                        (true, false) => expected.push(OF_GITEA[1]),
                        (false, _) => {}
                    }
                    if main {
                        expected.extend(
                            employees.then_some("allow-employee-egress-to-cloud-main-system"),
                        );
                        expected.extend(has_s3.then_some("s3proxy-allow-ingress"));
                        expected.extend(OF_TRINO);
                    } else {
                        expected.push("unclassified-pipelines-egress");
                    }
                    assert_eq!(names(&outcome), expected, "{preset} {given:?}");
                    let told: Vec<_> = outcome
                        .conditions()
                        .iter()
                        .map(|c| c.message.clone())
                        .collect();
                    let expected = if bad.is_empty() {
                        vec![]
                    } else {
                        vec![bad.join("; ")]
                    };
                    assert_eq!(told, expected);
                    assert_eq!(outcome.events().len(), told.len());
                }
            }
        }
    }
    let all = labels(&[(GITEA, "true"), (S3, "true"), (EMPLOYEES, "false")]);
    let count = |labels: &BTreeMap<String, String>, preset: &str| {
        names(&run(labels, &json!({"preset": preset}), Context::test())).len()
    };
    assert_eq!(count(&all, "main"), 18);
    assert_eq!(count(&labels(&[]), "main"), 12);
    assert_eq!(count(&all, "readme"), 12);
    assert_eq!(count(&labels(&[]), "readme"), 11);
}

#[test]
fn single_policies_are_turned_on_and_off_whatever_the_preset_says() {
    let config = json!({"policies": {
        "vault-egress": false,
        "unclassified-minio-egress": true,
        // Its label still decides.
        "s3proxy-allow-ingress": true,
    }});
    let without = names(&run(&labels(&[]), &config, Context::test()));
    assert_eq!(without.len(), 11);
    assert!(
        !without
            .iter()
            .any(|name| name == "vault-egress" || name == "s3proxy-allow-ingress")
    );
    assert!(
        without
            .iter()
            .any(|name| name == "unclassified-minio-egress")
    );
    let with = names(&run(&labels(&[(S3, "true")]), &config, Context::test()));
    assert_eq!(with.len(), 12);
    assert!(with.iter().any(|name| name == "s3proxy-allow-ingress"));
}

#[test]
fn labels_and_blocks_are_configured() {
    let config = json!({
        "preset": "main",
        "sourceControlLabel": "example.com/git",
        "s3Label": "example.com/s3",
        "nonEmployeeLabel": "guests",
        "postgresBlocks": ["10.1.2.3/32", "10.2.0.0/16"],
    });
    let old = labels(&[(GITEA, "true"), (S3, "true"), (EMPLOYEES, "false")]);
    assert_eq!(names(&run(&old, &config, Context::test())).len(), 12);
    let new = labels(&[
        ("example.com/git", "true"),
        ("example.com/s3", "t"),
        ("guests", "0"),
    ]);
    let outcome = run(&new, &config, Context::test());
    assert_eq!(names(&outcome).len(), 18);
    let objects = outcome.objects_json();
    let postgres = objects
        .iter()
        .find(|o| o["metadata"]["name"] == "allow-gitea-to-postgres");
    assert_eq!(
        postgres.unwrap()["spec"]["egress"][0]["to"],
        json!([{"ipBlock": {"cidr": "10.1.2.3/32"}}, {"ipBlock": {"cidr": "10.2.0.0/16"}}])
    );
}

/// A policy in a namespace, and whether it is to go.
#[test]
fn strays_and_former_policies_go_only_where_that_is_wanted() {
    let owned =
        json!([{"apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": "alice", "uid": "1"}]);
    let other =
        json!([{"apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": "alice", "uid": "0"}]);
    let pod = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]);
    let ours = json!({"reeve.dev/plugin": "network"});
    let main = json!({"preset": "main"});
    let former = "notebooks-allow-ingress-gateway";
    for (name, owners, marks, config, goes) in [
        ("stray", &owned, json!({}), &main, true),
        ("stray", &json!([]), json!({}), &main, false),
        ("stray", &other, json!({}), &main, false),
        ("stray", &pod, json!({}), &main, false),
        ("stray", &owned, ours.clone(), &main, false),
        ("stray", &owned, json!({}), &json!({}), false),
        (
            "stray",
            &owned,
            json!({}),
            &json!({"removeStrays": true}),
            true,
        ),
        (
            "stray",
            &owned,
            json!({}),
            &json!({"preset": "main", "removeStrays": false}),
            false,
        ),
        // Wanted: that it is not ours is for the host to say.
        ("vault-egress", &owned, json!({}), &main, false),
        (former, &json!([]), json!({}), &main, true),
        (former, &other, json!({}), &main, true),
        (former, &json!([]), ours, &main, false),
        (former, &json!([]), json!({}), &json!({}), false),
        (
            former,
            &json!([]),
            json!({}),
            &json!({"removeFormer": true}),
            true,
        ),
        (
            former,
            &json!([]),
            json!({}),
            &json!({"preset": "main", "removeFormer": false}),
            false,
        ),
    ] {
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": "alice", "uid": "7", "labels": marks,
                "ownerReferences": owners},
        });
        let elsewhere = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": "bob", "uid": "8", "ownerReferences": owners},
        });
        let cx = Context::test().with_object(policy).with_object(elsewhere);
        let expected = Kind::new("networking.k8s.io/v1", "NetworkPolicy")
            .object(name)
            .in_namespace("alice")
            .if_uid("7");
        let expected: Vec<_> = goes.then_some(expected).into_iter().collect();
        let outcome = run(&labels(&[]), config, cx);
        assert_eq!(outcome.absences(), expected, "{name} {owners} {config}");
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    let block = "not an IPv4 block; expected one such as 10.1.2.3/32";
    let refused = |config: Value| {
        let error = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        (error.path, error.message)
    };
    let (path, message) = refused(json!({"policies": {"vault/egress": true}}));
    assert_eq!(path, "/policies/vault~1egress");
    assert!(message.starts_with("no policy has this name; there are notebooks-allow-system"));
    for (config, path, message) in [
        (
            json!({"s3Label": "a/b/c"}),
            "/s3Label",
            "expected letters, digits, `-`, `_` and `.` with a letter or digit at both ends, \
             and before it, if anything, a domain and a slash",
        ),
        (
            json!({"nonEmployeeLabel": ""}),
            "/nonEmployeeLabel",
            "empty",
        ),
        (
            json!({"postgresBlocks": []}),
            "/postgresBlocks",
            "empty, which Kubernetes takes as everywhere; name a block such as 10.1.2.3/32",
        ),
        (
            json!({"postgresBlocks": ["0.0.0.0/0", "10.1.2.3"]}),
            "/postgresBlocks/1",
            block,
        ),
        (
            json!({"postgresBlocks": ["10.1.2.3/33"]}),
            "/postgresBlocks/0",
            block,
        ),
        (
            json!({"postgresBlocks": ["10.1.2.3/+8"]}),
            "/postgresBlocks/0",
            block,
        ),
        (
            json!({"postgresBlocks": ["10.1.2.3/08"]}),
            "/postgresBlocks/0",
            block,
        ),
        (
            json!({"postgresBlocks": ["db/8"]}),
            "/postgresBlocks/0",
            block,
        ),
    ] {
        assert_eq!(refused(config), (path.to_owned(), message.to_owned()));
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let policies = Kind::new("networking.k8s.io/v1", "NetworkPolicy");
    let place = || Scope::NamespaceNamedLikePrimary;
    let base = Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
        .projection(["/metadata/labels"])
        .writes(policies.clone(), place());
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(base.clone()));
    assert_eq!(
        ReevePlugin::describe(br#"{"preset": "main"}"#),
        Ok(base.reads((policies, place())))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any labels give whole policies, and a name to each that says nothing.
    #[test]
    fn any_labels_give_whole_policies_or_a_named_problem(
        gates in proptest::collection::btree_map(
            proptest::sample::select(vec![GITEA, S3, EMPLOYEES, "example.com/other"]),
            proptest::prop_oneof!["[01tTfF]", "true|false|True|FALSE", "[ -~]{0,8}"],
            0..5,
        ),
        main: bool,
    ) {
        let labels: BTreeMap<_, _> = gates.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let preset = if main { "main" } else { "readme" };
        let outcome = run(&labels, &json!({"preset": preset}), Context::test());
        let objects = outcome.objects_json();
        for object in &objects {
            let typed: NetworkPolicy = serde_json::from_value(object.clone()).unwrap();
            prop_assert_eq!(&json!(typed), object);
            // A rule without peers would be one for everybody.
            for rule in ["ingress", "egress"].iter().flat_map(|side| object["spec"][*side].as_array()).flatten() {
                let peers = rule["from"].as_array().or(rule["to"].as_array());
                prop_assert!(peers.is_some_and(|peers| !peers.is_empty()));
            }
        }
        let values = |set: &[&str], key: &str| gates.get(key).is_some_and(|value| set.contains(&&**value));
        const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
        const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];
        let extra = if main {
            12 + 4 * usize::from(values(&TRUE, GITEA)) + usize::from(values(&TRUE, S3))
                + usize::from(values(&FALSE, EMPLOYEES))
        } else {
            11 + usize::from(values(&TRUE, GITEA))
        };
        prop_assert_eq!(objects.len(), extra);
        let told = outcome.conditions().first().map_or(String::new(), |c| c.message.clone());
        for key in [GITEA, S3, EMPLOYEES] {
            let bad = gates.get(key).is_some_and(|v| !TRUE.contains(&&**v) && !FALSE.contains(&&**v));
            prop_assert_eq!(told.contains(key), bad);
        }
    }
}

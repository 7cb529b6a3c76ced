//! Label, configuration and cluster in, routes out.

mod properties;

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

const LABEL: &str = "state.aaw.statcan.gc.ca/exists-non-cloud-main-user";
const NAME: &str = "direct-through-cloud-main-egress-gateway";

fn run(label: Option<&str>, config: &Value, cx: Context) -> Outcome {
    let labels = match label {
        Some(value) => json!({LABEL: value}),
        None => json!({}),
    };
    let profile = json!({"metadata": {"name": "alice", "uid": "1", "labels": labels}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx).unwrap()
}

fn kind(kind: &'static str) -> Kind {
    Kind::new("networking.istio.io/v1beta1", kind)
}

fn expected(host: &str, namespace: &str, gateway: &str) -> [Value; 3] {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "networking.istio.io/v1beta1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "alice"},
            "spec": spec,
        })
    };
    let service = format!("{gateway}.{namespace}.svc.cluster.local");
    let through = format!("{namespace}/{gateway}");
    [
        object(
            "VirtualService",
            NAME,
            json!({
                "hosts": [host],
                "gateways": ["mesh", through],
                "exportTo": ["alice", namespace],
                "tls": [
                    {
                        "match": [{"gateways": ["mesh"], "port": 443, "sniHosts": [host]}],
                        "route": [{"destination": {
                            "host": service, "subset": "cloud-main-hosts", "port": {"number": 443},
                        }}],
                    },
                    {
                        "match": [{"gateways": [through], "port": 443, "sniHosts": [host]}],
                        "route": [{"destination": {"host": host, "port": {"number": 443}}, "weight": 100}],
                    },
                ],
            }),
        ),
        object(
            "ServiceEntry",
            "cloud-main-hosts",
            json!({
                "hosts": [host],
                "ports": [{"number": 443, "name": "tls", "protocol": "TLS"}],
                "resolution": "DNS",
                "exportTo": ["alice", namespace],
            }),
        ),
        object(
            "DestinationRule",
            NAME,
            json!({
                "host": service,
                "subsets": [{"name": "cloud-main-hosts"}],
                "exportTo": ["alice", namespace],
            }),
        ),
    ]
}

#[test]
fn only_a_profile_that_is_known_to_have_no_guests_gets_through() {
    let standard = expected(
        "gitlab.k8s.cloud.statcan.ca",
        "cloud-main-system",
        "cloud-main-egress-gateway",
    );
    for preset in ["readme", "main"] {
        let config = json!({"preset": preset});
        for value in ["false", "f", "0", "False"] {
            let outcome = run(Some(value), &config, Context::test());
            assert_eq!(outcome.objects_json(), standard, "{value}");
            assert!(outcome.conditions().is_empty());
        }
        for value in [None, Some("true"), Some("1")] {
            let outcome = run(value, &config, Context::test());
            assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
        }
        // The original lets these through.
        for value in ["", "no", "none", "FAlse"] {
            let outcome = run(Some(value), &config, Context::test());
            assert!(outcome.objects_json().is_empty());
            let problem = format!(
                "label {LABEL}={value}: not a boolean; set it to true or false, or remove it"
            );
            assert_eq!(
                outcome.conditions(),
                [Condition::fails(
                    "LabelsUsable",
                    "UnusableLabels",
                    &*problem
                )]
            );
            assert_eq!(
                outcome.events(),
                [Event::warning("UnusableLabels", problem)]
            );
        }
    }
}

#[test]
fn host_gateway_and_label_are_configured() {
    let config = json!({
        "host": "git.example.com", "gatewayNamespace": "egress", "gateway": "out",
    });
    let outcome = run(Some("false"), &config, Context::test());
    assert_eq!(
        outcome.objects_json(),
        expected("git.example.com", "egress", "out")
    );
    let config = json!({"nonEmployeeLabel": "guests"});
    let outcome = run(Some("false"), &config, Context::test());
    assert!(outcome.objects_json().is_empty());
}

#[test]
fn objects_of_others_go_only_where_that_is_wanted() {
    for (config, label, marks, goes) in [
        (json!({"preset": "main"}), None, json!({}), true),
        (json!({"preset": "main"}), Some("true"), json!({}), true),
        (json!({"preset": "main"}), Some("?"), json!({}), true),
        (json!({"preset": "main"}), Some("false"), json!({}), false),
        (
            json!({"preset": "main"}),
            None,
            json!({"reeve.dev/plugin": "cloudmain"}),
            false,
        ),
        (
            json!({"preset": "main", "removeForeign": false}),
            None,
            json!({}),
            false,
        ),
        (json!({}), None, json!({}), false),
        (json!({"removeForeign": true}), None, json!({}), true),
    ] {
        let mut cx = Context::test();
        let mut all = Vec::new();
        for (kind, name) in [
            (kind("VirtualService"), NAME),
            (kind("ServiceEntry"), "cloud-main-hosts"),
            (kind("DestinationRule"), NAME),
        ] {
            cx = cx.with_object(json!({
                "apiVersion": kind.api_version(), "kind": kind.kind(),
                "metadata": {"name": name, "namespace": "alice", "uid": "7", "labels": marks},
            }));
            all.push(kind.object(name).in_namespace("alice").if_uid("7"));
        }
        all.retain(|_| goes);
        assert_eq!(
            run(label, &config, cx).absences(),
            all,
            "{config} {label:?}"
        );
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, path) in [
        (json!({"host": ""}), "/host"),
        (json!({"host": "*.example.com"}), "/host"),
        (json!({"gatewayNamespace": "a.b"}), "/gatewayNamespace"),
        (json!({"gateway": "Gateway"}), "/gateway"),
        (json!({"nonEmployeeLabel": "a b"}), "/nonEmployeeLabel"),
        (json!({"preset": "x"}), "/preset"),
    ] {
        let error = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let place = || Scope::NamespaceNamedLikePrimary;
    let base = Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
        .projection(["/metadata/labels"])
        .writes(kind("VirtualService"), place())
        .writes(kind("ServiceEntry"), place())
        .writes(kind("DestinationRule"), place());
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(base.clone()));
    let named = |name: &'static str, of| ReadRule::new(kind(of), place()).names([name]);
    assert_eq!(
        ReevePlugin::describe(br#"{"preset": "main"}"#),
        Ok(base
            .reads(named(NAME, "VirtualService"))
            .reads(named("cloud-main-hosts", "ServiceEntry"))
            .reads(named(NAME, "DestinationRule")))
    );
}

proptest! {
    #[test]
    fn any_label_opens_the_way_closes_it_or_is_named(value in ".{0,8}|[01fFtT]|false|true") {
        let outcome = run(Some(&value), &json!({}), Context::test());
        let is_false = ["0", "f", "F", "FALSE", "false", "False"].contains(&&*value);
        let is_true = ["1", "t", "T", "TRUE", "true", "True"].contains(&&*value);
        prop_assert_eq!(outcome.objects_json().len(), if is_false { 3 } else { 0 });
        prop_assert_eq!(outcome.conditions().is_empty(), is_false || is_true);
    }
}

//! Label, configuration and cluster in, proxy out.

mod properties;

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

const LABEL: &str = "s3.statcan.gc.ca/enabled";

fn try_run(label: Option<&str>, config: &Value, cx: Context) -> Result<Outcome, Failure> {
    let labels = match label {
        Some(value) => json!({LABEL: value}),
        None => json!({}),
    };
    let profile = json!({"metadata": {"name": "alice", "uid": "1", "labels": labels}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx)
}

fn config() -> Value {
    json!({
        "source": {"repoUrl": "https://git.example.com/manifests.git", "path": "s3proxy"},
        "rootUrl": "https://kubeflow.example.com",
    })
}

fn run(label: Option<&str>) -> Outcome {
    try_run(label, &config(), Context::test()).unwrap()
}

#[test]
fn a_profile_that_asks_gets_all_three() {
    let objects = run(Some("true")).objects_json();
    let route = json!([{"destination": {
        "host": "s3proxy-web.alice.svc.cluster.local", "port": {"number": 80},
    }}]);
    let bucket = |name: &str, path: &str| {
        let from = |page: &str| {
            json!({
                "headers": {"referer": {"exact": format!("https://kubeflow.example.com/s3/alice/{page}")}},
                "uri": {"prefix": path},
            })
        };
        json!({"name": name, "match": [from("index.html"), from("sw_modify_header.js")], "route": route})
    };
    assert_eq!(
        objects[0],
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "s3proxy-alice", "namespace": "profiles-argocd-system"},
            "spec": {
                "project": "default",
                "destination": {"name": "in-cluster", "namespace": "alice"},
                "source": {
                    "repoURL": "https://git.example.com/manifests.git",
                    "targetRevision": "HEAD",
                    "path": "s3proxy",
                    "directory": {
                        "recurse": true,
                        "jsonnet": {"extVars": [{"name": "userNamespace", "value": "alice"}]},
                    },
                },
                "syncPolicy": {"automated": {}},
            },
        })
    );
    assert_eq!(
        objects[1]["metadata"],
        json!({"name": "s3proxy-nginx-conf", "namespace": "alice"})
    );
    let nginx = objects[1]["data"]["nginx.conf"].as_str().unwrap();
    assert!(nginx.contains("location ~ ^/s3/alice/ {"), "{nginx}");
    assert!(nginx.contains("location ~ ^/s3/(fonts|webfonts)/ {"));
    assert_eq!(nginx.matches('{').count(), nginx.matches('}').count());
    assert_eq!(
        objects[2],
        json!({
            "apiVersion": "networking.istio.io/v1beta1",
            "kind": "VirtualService",
            "metadata": {"name": "s3-virtualservice", "namespace": "alice"},
            "spec": {
                "hosts": ["kubeflow.example.com"],
                "gateways": ["kubeflow/kubeflow-gateway"],
                "exportTo": ["alice", "istio-system", "ingress-general-system"],
                "http": [
                    {
                        "name": "s3-route-s3proxy-requests",
                        "match": [{"uri": {"prefix": "/s3/alice/"}}],
                        "route": route,
                    },
                    {
                        "name": "s3-uri-redirect",
                        "match": [{"headers": {"referer": {
                            "exact": "https://kubeflow.example.com/_/s3/?ns=alice",
                        }}}],
                        "redirect": {"uri": "/s3/alice/index.html"},
                    },
                    bucket("s3-unclassified-bucket", "/unclassified"),
                    bucket("s3-unclassified-ro-bucket", "/unclassified-ro"),
                    bucket("s3-protected-b-bucket", "/protected-b"),
                ],
            },
        })
    );
    assert_eq!(objects.len(), 3);
}

#[test]
fn only_a_true_label_asks() {
    for value in ["true", "1", "T"] {
        assert_eq!(run(Some(value)).objects_json().len(), 3);
    }
    for value in [None, Some("false"), Some("0")] {
        let outcome = run(value);
        assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
    }
    let outcome = run(Some("on"));
    assert!(outcome.objects_json().is_empty());
    let problem = format!("label {LABEL}=on: not a boolean; set it to true or false, or remove it");
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

#[test]
fn a_proxy_stays_after_opting_out_only_where_that_is_wanted() {
    let application = |labels: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "s3proxy-alice", "namespace": "profiles-argocd-system", "labels": labels},
        })
    };
    let ours = || json!({"reeve.dev/plugin": "s3proxy"});
    for (changes, labels, stays) in [
        (json!({}), ours(), false),
        (json!({"preset": "main"}), ours(), true),
        (json!({"keepOnOptOut": true}), ours(), true),
        (
            json!({"preset": "main", "keepOnOptOut": false}),
            ours(),
            false,
        ),
        // Somebody else's is none of ours.
        (json!({"preset": "main"}), json!({}), false),
    ] {
        let mut config = config();
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        let cx = Context::test().with_object(application(labels));
        let outcome = try_run(Some("false"), &config, cx).unwrap();
        assert_eq!(
            outcome.objects_json().len(),
            if stays { 3 } else { 0 },
            "{config}"
        );
        let outcome = try_run(None, &config, Context::test()).unwrap();
        assert!(outcome.objects_json().is_empty());
    }
}

#[test]
fn what_the_configuration_does_not_say_is_named_only_to_who_asks() {
    let outcome = try_run(None, &json!({}), Context::test()).unwrap();
    assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
    for (config, missing) in [
        (json!({}), "/source/repoUrl, /source/path, /rootUrl"),
        (
            json!({"source": {"repoUrl": "https://x", "path": "p"}}),
            "/rootUrl",
        ),
    ] {
        assert_eq!(
            try_run(Some("true"), &config, Context::test()).unwrap_err(),
            Failure::terminal(format!(
                "the Profile asks for s3proxy by its label {LABEL}: the configuration does not say \
                 {missing}; set it in config.yaml"
            ))
        );
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, path) in [
        (json!({"rootUrl": "kubeflow.example.com"}), "/rootUrl"),
        (
            json!({"rootUrl": "https://kubeflow.example.com/"}),
            "/rootUrl",
        ),
        (json!({"rootUrl": "https://a:b"}), "/rootUrl"),
        (json!({"rootUrl": "https://"}), "/rootUrl"),
        (json!({"prefix": "a/b"}), "/prefix"),
        (json!({"prefix": ""}), "/prefix"),
        (json!({"argocdNamespace": "A"}), "/argocdNamespace"),
        (json!({"project": ""}), "/project"),
        (
            json!({"source": {"targetRevision": ""}}),
            "/source/targetRevision",
        ),
        (
            json!({"gatewayNamespaces": ["a", "b.c"]}),
            "/gatewayNamespaces/1",
        ),
        (json!({"enabledLabel": ""}), "/enabledLabel"),
    ] {
        let error = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
    for url in ["http://localhost:8080", "https://a.b-c.d"] {
        assert!(ReevePlugin::describe(json!({"rootUrl": url}).to_string().as_bytes()).is_ok());
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let place = || Scope::NamespaceNamedLikePrimary;
    let applications = Kind::new("argoproj.io/v1alpha1", "Application");
    let argocd = |name: &str| Scope::Namespaces(vec![name.to_owned()]);
    let base = |namespace: &str| {
        Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
            .projection(["/metadata/labels"])
            .writes(applications.clone(), argocd(namespace))
            .writes(Kind::new("v1", "ConfigMap"), place())
            .writes(
                Kind::new("networking.istio.io/v1beta1", "VirtualService"),
                place(),
            )
    };
    assert_eq!(
        ReevePlugin::describe(b"{}"),
        Ok(base("profiles-argocd-system"))
    );
    assert_eq!(
        ReevePlugin::describe(br#"{"preset": "main", "argocdNamespace": "argocd"}"#),
        Ok(base("argocd").reads((applications.clone(), argocd("argocd"))))
    );
}

proptest! {
    #[test]
    fn any_label_asks_does_not_or_is_named(value in ".{0,8}|[01fFtT]|false|true") {
        let outcome = run(Some(&value));
        let is_true = ["1", "t", "T", "TRUE", "true", "True"].contains(&&*value);
        let is_false = ["0", "f", "F", "FALSE", "false", "False"].contains(&&*value);
        prop_assert_eq!(outcome.objects_json().len(), if is_true { 3 } else { 0 });
        prop_assert_eq!(outcome.conditions().is_empty(), is_false || is_true);
    }
}

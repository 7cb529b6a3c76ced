//! Label, configuration and cluster in, Gitea out.

mod database;
mod properties;

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

const LABEL: &str = "sourcecontrol.statcan.gc.ca/enabled";
const SERVER: &str = "pg.example.com";

fn config(class: &str) -> Value {
    json!({
        "classification": class,
        "postgres": {"host": SERVER},
        "source": {"repoUrl": "https://git.example.com/manifests.git", "path": "gitea"},
        "rootUrl": "https://kubeflow.example.com",
    })
}

fn with(class: &str, changes: &Value) -> Value {
    let mut config = config(class);
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn try_run(
    profile: &str,
    label: Option<&str>,
    config: &Value,
    cx: Context,
) -> Result<Outcome, Failure> {
    let labels = match label {
        Some(value) => json!({LABEL: value}),
        None => json!({}),
    };
    let profile = json!({"metadata": {"name": profile, "uid": "1", "labels": labels}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx)
}

fn run(label: Option<&str>, config: &Value, cx: Context) -> Outcome {
    try_run("alice", label, config, cx).unwrap()
}

/// A cluster in which the database is there.
fn with_database() -> Context {
    Context::test().with_fact("database", json!({"database": "gitea_alice"}))
}

/// A cluster with the Application, and these labels on it.
fn deployed(class: &str, labels: &Value) -> Context {
    Context::test().with_object(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": format!("gitea-alice-{class}"), "namespace": "profiles-argocd-system",
            "labels": labels,
        },
    }))
}

fn names(outcome: &Outcome) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |object: &Value| {
        format!(
            "{} {}",
            text(&object["kind"]),
            text(&object["metadata"]["name"])
        )
    };
    outcome.objects_json().iter().map(name).collect()
}

const BANNER: &str = "ConfigMap gitea-banner-unclassified";
const ENTRY: &str = "ServiceEntry gitea-postgresql-service-entry-unclassified";
const APPLICATION: &str = "Application gitea-alice-unclassified";
const ROUTES: &str = "VirtualService gitea-virtualservice-unclassified";

#[test]
fn a_profile_that_asks_gets_everything() {
    let outcome = run(Some("true"), &config("unclassified"), with_database());
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
    assert_eq!(
        outcome.objects_json(),
        [
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "gitea-banner-unclassified", "namespace": "alice"},
                "data": {"body_inner_pre.tmpl": "Unclassified / Non classifié"},
            }),
            json!({
                "apiVersion": "networking.istio.io/v1beta1",
                "kind": "ServiceEntry",
                "metadata": {
                    "name": "gitea-postgresql-service-entry-unclassified", "namespace": "alice",
                },
                "spec": {
                    "exportTo": ["."],
                    "hosts": ["pg.example.com"],
                    "ports": [{"name": "tcp-pgsql", "protocol": "TCP", "number": 5432}],
                    "resolution": "DNS",
                },
            }),
            json!({
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {
                    "name": "gitea-alice-unclassified",
                    "namespace": "profiles-argocd-system",
                    "annotations": {"reeve.dev/ignore-healthcheck": "true"},
                },
                "spec": {
                    "project": "default",
                    "destination": {"name": "in-cluster", "namespace": "alice"},
                    "source": {
                        "repoURL": "https://git.example.com/manifests.git",
                        "targetRevision": "HEAD",
                        "path": "gitea",
                    },
                    "syncPolicy": {},
                },
            }),
            json!({
                "apiVersion": "networking.istio.io/v1beta1",
                "kind": "VirtualService",
                "metadata": {"name": "gitea-virtualservice-unclassified", "namespace": "alice"},
                "spec": {
                    "hosts": ["*"],
                    "gateways": ["kubeflow/kubeflow-gateway"],
                    "http": [
                        {
                            "name": "gitea-route-unclassified",
                            "match": [{"uri": {"prefix": "/gitea-unclassified/alice/"}}],
                            "rewrite": {"uri": "/"},
                            "route": [{"destination": {
                                "host": "gitea-unclassified-http.alice.svc.cluster.local",
                                "port": {"number": 80},
                            }}],
                        },
                        {
                            "name": "gitea-redirect-unclassified",
                            "match": [
                                {
                                    "uri": {"exact": "/gitea-unclassified/"},
                                    "queryParams": {"ns": {"exact": "alice"}},
                                },
                                {"headers": {"referer": {"exact":
                                    "https://kubeflow.example.com/_/gitea-unclassified/?ns=alice"}}},
                            ],
                            "redirect": {"uri": "/gitea-unclassified/alice/"},
                        },
                    ],
                },
            }),
        ]
    );
}

#[test]
fn protected_b_has_names_of_its_own_and_no_routes() {
    let config = with(
        "protected-b",
        &json!({"rootUrl": "", "loginHint": "Log in as superuser"}),
    );
    let outcome = run(Some("1"), &config, with_database());
    assert_eq!(
        names(&outcome),
        [
            "ConfigMap gitea-banner-protected-b",
            "ServiceEntry gitea-postgresql-service-entry-protected-b",
            "Application gitea-alice-protected-b",
        ]
    );
    assert_eq!(
        outcome.objects_json()[0]["data"]["body_inner_pre.tmpl"],
        "Protected-b / Protégé-b. Log in as superuser"
    );
}

#[test]
fn every_name_can_be_configured() {
    let config = with(
        "unclassified",
        &json!({
            "postgres": {"host": SERVER, "port": 6432, "connection": "main"},
            "service": {"name": "git", "port": 8080},
            "urlPrefix": "code",
            "bannerConfigMap": "banner",
            "argocdNamespace": "argocd",
            "project": "tenants",
            "source": {"repoUrl": "https://git", "path": "p", "targetRevision": "main"},
        }),
    );
    let objects = run(Some("true"), &config, with_database()).objects_json();
    assert_eq!(objects[0]["metadata"]["name"], "banner");
    assert_eq!(objects[1]["spec"]["ports"][0]["number"], 6432);
    assert_eq!(objects[2]["metadata"]["namespace"], "argocd");
    assert_eq!(objects[2]["spec"]["project"], "tenants");
    assert_eq!(objects[2]["spec"]["source"]["targetRevision"], "main");
    let http = &objects[3]["spec"]["http"];
    assert_eq!(http[0]["match"][0]["uri"]["prefix"], "/code/alice/");
    let destination = &http[0]["route"][0]["destination"];
    assert_eq!(destination["host"], "git.alice.svc.cluster.local");
    assert_eq!(destination["port"]["number"], 8080);
}

#[test]
fn nothing_is_deployed_before_its_database_is_there() {
    let outcome = run(Some("true"), &config("unclassified"), Context::test());
    assert_eq!(names(&outcome), [BANNER, ENTRY, ROUTES]);
    // What is deployed stays, also when the fact was lost.
    let cx = deployed("unclassified", &json!({"reeve.dev/plugin": "gitea"}));
    let outcome = run(Some("true"), &config("unclassified"), cx);
    assert_eq!(names(&outcome), [BANNER, ENTRY, APPLICATION, ROUTES]);
}

#[test]
fn only_a_true_label_asks() {
    let config = config("unclassified");
    for value in ["true", "1", "T"] {
        assert_eq!(names(&run(Some(value), &config, with_database())).len(), 4);
    }
    for value in [None, Some("false"), Some("0")] {
        let outcome = run(value, &config, Context::test());
        assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
        // A database is a Gitea too, whatever has become of what deploys it.
        let outcome = run(value, &config, with_database());
        assert_eq!(names(&outcome).len(), 4);
        assert_eq!(outcome.conditions().len(), 1, "it is kept");
    }
}

#[test]
fn an_unusable_label_changes_nothing_and_is_named() {
    // With these, who does not ask loses everything.
    let config = with(
        "unclassified",
        &json!({"removeOnOptOut": true, "dropDatabase": true, "routesForAll": true}),
    );
    for value in ["on", "yes", "maybe", "TrUe", " true", ""] {
        for cx in [
            Context::test(),
            with_database(),
            deployed("unclassified", &json!({"reeve.dev/plugin": "gitea"})),
        ] {
            assert_eq!(
                try_run("alice", Some(value), &config, cx),
                Err(Failure::terminal(format!(
                    "Profile alice: label {LABEL}={value}: not a boolean; set it to true or false, or \
                     remove it. Until then nothing of its Gitea is made, changed or removed"
                )))
            );
        }
    }
}

#[test]
fn opting_out_leaves_gitea_and_says_how_to_remove_it() {
    let none: &[&str] = &[];
    let all: &[&str] = &[BANNER, ENTRY, APPLICATION, ROUTES];
    let ours = || deployed("unclassified", &json!({"reeve.dev/plugin": "gitea"}));
    for (changes, cx, left, said) in [
        (json!({}), ours(), all, true),
        (json!({"preset": "main"}), ours(), all, true),
        (json!({"removeOnOptOut": true}), ours(), none, false),
        // Somebody else's is none of ours.
        (json!({}), deployed("unclassified", &json!({})), none, false),
        (json!({}), Context::test(), none, false),
        // The original makes these for everybody.
        (json!({"preset": "main"}), Context::test(), &[ROUTES], false),
        (
            json!({"routesForAll": true}),
            Context::test(),
            &[ROUTES],
            false,
        ),
        (
            json!({"preset": "main", "routesForAll": false}),
            Context::test(),
            none,
            false,
        ),
        (
            json!({"routesForAll": true, "rootUrl": ""}),
            Context::test(),
            none,
            false,
        ),
    ] {
        let outcome = run(Some("false"), &with("unclassified", &changes), cx);
        assert_eq!(names(&outcome), left, "{changes}");
        let told = format!(
            "the Profile's label {LABEL} no longer asks for Gitea, which stays with its data. To remove \
             it, set removeOnOptOut: true in config.yaml; then drop database and role gitea_alice of the \
             server {SERVER}, unless dropDatabase is set, and delete their login: kubectl delete secret \
             gitea-postgresql-secret-unclassified -n alice"
        );
        let conditions = [Condition::holds("KeptAfterOptOut", "OptedOut", told)];
        assert_eq!(
            outcome.conditions(),
            if said { &conditions[..] } else { &[] }
        );
    }
    let protected_b = with("protected-b", &json!({"preset": "main"}));
    assert!(names(&run(None, &protected_b, Context::test())).is_empty());
}

#[test]
fn what_stays_is_told_while_gitea_goes() {
    let ours = |class: &str| deployed(class, &json!({"reeve.dev/plugin": "gitea"}));
    let no_longer =
        format!("the Profile's label {LABEL} no longer asks for Gitea, which is being removed");
    let database = format!("database and role gitea_alice of the server {SERVER}");
    for (class, drop, told) in [
        (
            "unclassified",
            false,
            format!(
                "{no_longer}; {database} stay, and so does their login. Without use for the data, drop \
                 both, and then: kubectl delete secret gitea-postgresql-secret-unclassified -n alice"
            ),
        ),
        (
            "protected-b",
            true,
            format!(
                "{no_longer}; {database} are being dropped. Their login stays; to delete it: kubectl delete \
                 secret gitea-postgresql-secret-protected-b -n alice"
            ),
        ),
    ] {
        let config = with(
            class,
            &json!({"removeOnOptOut": true, "dropDatabase": drop}),
        );
        let outcome = run(None, &config, ours(class));
        assert_eq!(outcome.events(), [Event::normal("OptedOut", told)]);
        assert!(outcome.objects_json().is_empty() && outcome.actions().is_empty());
        // Of what is gone, and of what somebody else has, there is nothing to say.
        for cx in [Context::test(), deployed(class, &json!({}))] {
            assert!(run(None, &config, cx).events().is_empty());
        }
        assert!(run(Some("true"), &config, ours(class)).events().is_empty());
    }
}

#[test]
fn what_the_configuration_does_not_say_is_named_only_to_who_asks() {
    let outcome = run(None, &json!({}), Context::test());
    assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
    for (config, missing) in [
        (
            json!({}),
            "/postgres/host, /source/repoUrl, /source/path, /rootUrl",
        ),
        (
            json!({"classification": "protected-b", "postgres": {"host": "h"}}),
            "/source/repoUrl, /source/path",
        ),
    ] {
        assert_eq!(
            try_run("alice", Some("true"), &config, Context::test()).unwrap_err(),
            Failure::terminal(format!(
                "the Profile asks for Gitea by its label {LABEL}, and the configuration does not say \
                 {missing}; set it in config.yaml"
            ))
        );
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, path) in [
        (json!({"classification": "secret"}), "/classification"),
        (json!({"classification": ""}), "/classification"),
        (json!({"enabledLabel": ""}), "/enabledLabel"),
        (json!({"argocdNamespace": "A"}), "/argocdNamespace"),
        (json!({"project": ""}), "/project"),
        (json!({"urlPrefix": "a/b"}), "/urlPrefix"),
        (json!({"bannerConfigMap": "A"}), "/bannerConfigMap"),
        (json!({"service": {"name": "a.b"}}), "/service/name"),
        (json!({"service": {"port": 0}}), "/service/port"),
        (json!({"postgres": {"port": 0}}), "/postgres/port"),
        (json!({"postgres": {"port": 65536}}), "/postgres/port"),
        (json!({"postgres": {"host": "a b"}}), "/postgres/host"),
        (
            json!({"postgres": {"connection": "A"}}),
            "/postgres/connection",
        ),
        (json!({"postgres": {"locale": ""}}), "/postgres/locale"),
        (
            json!({"source": {"targetRevision": ""}}),
            "/source/targetRevision",
        ),
        (json!({"rootUrl": "kubeflow.example.com"}), "/rootUrl"),
        (
            json!({"rootUrl": "https://kubeflow.example.com/"}),
            "/rootUrl",
        ),
        (json!({"rootUrl": "https://a:b"}), "/rootUrl"),
    ] {
        let error = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let place = || Scope::NamespaceNamedLikePrimary;
    let argocd = || Scope::Namespaces(vec!["profiles-argocd-system".to_owned()]);
    let application = Kind::new("argoproj.io/v1alpha1", "Application");
    let istio = |kind| Kind::new("networking.istio.io/v1beta1", kind);
    let base = |connection: &str| {
        Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
            .projection(["/metadata/labels"])
            .reads((application.clone(), argocd()))
            .writes(application.clone(), argocd())
            .writes(Kind::new("v1", "ConfigMap"), place())
            .writes(istio("VirtualService"), place())
            .writes(istio("ServiceEntry"), place())
            .action(
                ActionRule::new("database")
                    .describe("a role and a database in PostgreSQL for the Gitea of each Profile that asks")
                    .sql(connection)
                    .secrets(place()),
            )
    };
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(base("gitea-unclassified")));
    let config = br#"{"classification": "protected-b"}"#;
    assert_eq!(ReevePlugin::describe(config), Ok(base("gitea-protected-b")));
}

proptest! {
    #[test]
    fn any_label_asks_does_not_or_is_named(value in ".{0,8}|[01fFtT]|false|true") {
        let outcome = try_run("alice", Some(&value), &config("unclassified"), Context::test());
        let objects = outcome.ok().map(|outcome| outcome.objects_json().len());
        let is_true = ["1", "t", "T", "TRUE", "true", "True"].contains(&&*value);
        let is_false = ["0", "f", "F", "FALSE", "false", "False"].contains(&&*value);
        let expected = if is_true { Some(3) } else { is_false.then_some(0) };
        prop_assert_eq!(objects, expected);
    }
}

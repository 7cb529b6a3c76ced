//! Whatever else is on a Profile, only its name and the one label count.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::btree_map;
use proptest::option;
use proptest::sample::select;
use reeve_sdk::names::check_dns_subdomain;

use super::*;

const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];
const ARGO: &str = "profiles-argocd-system";

type Texts = BTreeMap<String, String>;

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[01fFtT]|false|true", ".{0,8}"]
}

/// Labels of others, some of which look like ours.
fn others() -> impl Strategy<Value = Texts> {
    let key = prop_oneof![
        select(vec![
            "sourcecontrol.statcan.gc.ca/enable",
            "sourcecontrol.statcan.gc.ca/Enabled",
            "sourcecontrol.statcan.gc.ca/",
            "enabled",
            "s3.statcan.gc.ca/enabled",
            "reeve.dev/plugin",
        ])
        .prop_map(str::to_owned),
        "[a-z.]{1,12}/[a-z]{1,8}",
        ".{0,12}",
    ];
    btree_map(key, value(), 0..6)
}

/// What is in the cluster, and whether that is a Gitea of ours.
#[derive(Clone, Copy, Debug)]
enum There {
    Nothing,
    Database,
    Application,
    Foreign,
}

impl There {
    fn is_ours(self) -> bool {
        matches!(self, Self::Database | Self::Application)
    }

    fn cluster(self, profile: &str, class: &str) -> Context {
        let application = |labels: Value| {
            Context::test().with_object(json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {
                    "name": format!("gitea-{profile}-{class}"), "namespace": ARGO, "labels": labels,
                },
            }))
        };
        match self {
            Self::Nothing => Context::test(),
            Self::Database => with_database(),
            Self::Application => application(json!({"reeve.dev/plugin": "gitea"})),
            Self::Foreign => application(json!({"app": "gitea"})),
        }
    }
}

fn reconcile(
    name: &str,
    [labels, annotations]: [&Texts; 2],
    config: &Value,
    cx: Context,
) -> Result<Outcome, Failure> {
    let profile = json!({"metadata": {
        "name": name, "uid": "1", "labels": labels, "annotations": annotations,
    }});
    let config = config.to_string();
    let cx = cx.declaring(ReevePlugin::describe(config.as_bytes()).unwrap());
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx)
}

proptest! {
    /// Any Profile gives what its label asks for, whole and where it belongs; or a failure
    /// that names it.
    #[test]
    fn any_profile_gets_what_its_label_asks_for(
        name in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        label in option::of(value()),
        others in others(),
        annotations in others(),
        class in select(vec!["unclassified", "protected-b"]),
        there in select(vec![There::Nothing, There::Database, There::Application, There::Foreign]),
        [goes, drops, main] in any::<[bool; 3]>(),
    ) {
        let config = with(class, &json!({
            "preset": if main { "main" } else { "readme" }, "removeOnOptOut": goes, "dropDatabase": drops,
        }));
        let own: Texts = label.iter().map(|value| (LABEL.to_owned(), value.clone())).collect();
        // An annotation of that name asks for nothing.
        let mut annotations = annotations;
        annotations.insert(LABEL.to_owned(), "true".to_owned());
        let mut labels = others;
        labels.remove(LABEL);
        labels.extend(own.clone());
        let run = |texts| reconcile(&name, texts, &config, there.cluster(&name, class));
        let outcome = run([&labels, &annotations]);
        prop_assert_eq!(&outcome, &run([&own, &Texts::new()]));

        let says = |set: &[&str]| label.as_deref().is_some_and(|value| set.contains(&value));
        let (asks, refuses) = (says(&TRUE), label.is_none() || says(&FALSE));
        let kept = refuses && there.is_ours() && !goes;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                let Failure::Terminal(told) = &failure else {
                    return Err(TestCaseError::fail(format!("{failure:?}")));
                };
                prop_assert!(told.starts_with(&format!("Profile {name}: ")), "{told}");
                let too_long = name.len() > 57;
                prop_assert!(!asks && !refuses || (asks || kept) && too_long, "{told}");
                return Ok(());
            }
        };
        prop_assert!(asks || refuses);
        prop_assert_eq!(outcome.actions().len(), usize::from(asks || kept));
        prop_assert_eq!(outcome.conditions().len(), usize::from(kept));
        let (objects, mut names) = (outcome.objects_json(), BTreeSet::new());
        for object in &objects {
            let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
            let place = if kind == "Application" { ARGO } else { &name };
            prop_assert_eq!(&metadata["namespace"], place);
            let called = metadata["name"].as_str().unwrap();
            prop_assert!(check_dns_subdomain(called).is_ok(), "{called}");
            prop_assert!(names.insert((kind, called)), "{kind} {called} twice");
        }
        let count = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
        prop_assert_eq!(count("Application"), usize::from((asks || kept) && there.is_ours()));
        prop_assert_eq!(count("ConfigMap"), usize::from(asks || kept));
        prop_assert_eq!(count("ServiceEntry"), usize::from(asks || kept));
        let routes = class == "unclassified" && (asks || kept || main);
        prop_assert_eq!(count("VirtualService"), usize::from(routes));
        // Nothing is of another Profile.
        for object in &objects {
            let about = format!("/{name}/");
            let is_about = match object["kind"].as_str() {
                Some("Application") => object["spec"]["destination"]["namespace"] == *name,
                Some("VirtualService") => object["spec"]["http"][1]["redirect"]["uri"]
                    .as_str().is_some_and(|uri| uri.ends_with(&about)),
                _ => true,
            };
            prop_assert!(is_about, "{object}");
        }
    }
}

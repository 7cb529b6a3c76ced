//! Whatever else is on a Profile, only its name and the one label count.

use std::collections::BTreeMap;

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
            "s3.statcan.gc.ca/enable",
            "s3.statcan.gc.ca/Enabled",
            "s3.statcan.gc.ca/",
            "enabled",
            "sourcecontrol.statcan.gc.ca/enabled",
            "reeve.dev/plugin",
        ])
        .prop_map(str::to_owned),
        "[a-z.]{1,12}/[a-z]{1,8}",
        ".{0,12}",
    ];
    btree_map(key, value(), 0..6)
}

fn reconcile(
    name: &str,
    [labels, annotations]: [&Texts; 2],
    config: &Value,
    cx: Context,
) -> Outcome {
    let profile = json!({"metadata": {
        "name": name, "uid": "1", "labels": labels, "annotations": annotations,
    }});
    let config = config.to_string();
    let cx = cx.declaring(ReevePlugin::describe(config.as_bytes()).unwrap());
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx).unwrap()
}

proptest! {
    /// Any Profile gets a whole proxy of its own or nothing, and a label that says neither
    /// is named.
    #[test]
    fn any_profile_gets_what_its_label_asks_for(
        name in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        label in option::of(value()),
        others in others(),
        annotations in others(),
        application in option::of(select(vec!["reeve.dev/plugin", "app"])),
        main: bool,
    ) {
        let mut config = config();
        config["preset"] = json!(if main { "main" } else { "readme" });
        let own: Texts = label.iter().map(|value| (LABEL.to_owned(), value.clone())).collect();
        // An annotation of that name asks for nothing.
        let mut annotations = annotations;
        annotations.insert(LABEL.to_owned(), "true".to_owned());
        let mut labels = others;
        labels.remove(LABEL);
        labels.extend(own.clone());
        let run = |texts| {
            let cx = match application {
                Some(mark) => Context::test().with_object(json!({
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                    "metadata": {
                        "name": format!("s3proxy-{name}"), "namespace": ARGO, "labels": {mark: "s3proxy"},
                    },
                })),
                None => Context::test(),
            };
            reconcile(&name, texts, &config, cx)
        };
        let outcome = run([&labels, &annotations]);
        prop_assert_eq!(&outcome, &run([&own, &Texts::new()]));

        let says = |set: &[&str]| label.as_deref().is_some_and(|value| set.contains(&value));
        let asks = says(&TRUE);
        let stays = main && application == Some("reeve.dev/plugin");
        let is_named = !asks && !says(&FALSE) && label.is_some();
        let told: Vec<_> = outcome.conditions().iter().map(|condition| &condition.message).collect();
        prop_assert_eq!(told.len(), usize::from(is_named));
        prop_assert!(told.iter().all(|told| told.contains(LABEL)), "{told:?}");
        prop_assert_eq!(outcome.events().len(), usize::from(is_named));

        let objects = outcome.objects_json();
        let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        let expected: &[&str] = match asks || stays {
            true => &["Application", "ConfigMap", "VirtualService"],
            false => &[],
        };
        prop_assert_eq!(&kinds, expected);
        for object in &objects {
            let metadata = &object["metadata"];
            let place = if object["kind"] == "Application" { ARGO } else { &name };
            prop_assert_eq!(&metadata["namespace"], place);
            prop_assert!(check_dns_subdomain(metadata["name"].as_str().unwrap()).is_ok());
        }
        if let [application, nginx, routes] = &objects[..] {
            prop_assert_eq!(&application["spec"]["destination"]["namespace"], &name);
            let text = nginx["data"]["nginx.conf"].as_str().unwrap();
            let location = format!("location ~ ^/s3/{name}/ {{");
            prop_assert!(text.contains(&location));
            prop_assert_eq!(text.matches('{').count(), text.matches('}').count());
            prop_assert_eq!(&routes["spec"]["exportTo"][0], &name);
            // No rule lets a request of another Profile's pages in.
            for rule in routes["spec"]["http"].as_array().unwrap() {
                let text = rule.to_string();
                let is_own = text.contains(&format!("/s3/{name}/")) || text.contains(&format!("ns={name}\""));
                prop_assert!(is_own, "{rule}");
            }
        }
    }
}

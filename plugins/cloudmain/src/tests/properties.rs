//! Whatever else is on a Profile, only its name and the one label count.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::btree_map;
use proptest::option;
use proptest::sample::select;

use super::*;

const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];

type Texts = BTreeMap<String, String>;

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[01fFtT]|false|true", ".{0,8}"]
}

/// Labels of others, some of which look like ours.
fn others() -> impl Strategy<Value = Texts> {
    let key = prop_oneof![
        select(vec![
            "state.aaw.statcan.gc.ca/exists-non-cloud-main-users",
            "state.aaw.statcan.gc.ca/Exists-non-cloud-main-user",
            "state.aaw.statcan.gc.ca/",
            "exists-non-cloud-main-user",
            "state.aaw.statcan.gc.ca/exists-non-sas-notebook-user",
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

/// All that there may be: its kind, and its name.
const OBJECTS: [(&str, &str); 3] = [
    ("VirtualService", NAME),
    ("ServiceEntry", "cloud-main-hosts"),
    ("DestinationRule", NAME),
];

proptest! {
    /// Any Profile gets through or does not, and a label that says neither is named; what
    /// should not be there goes only where others made it and that is wanted.
    #[test]
    fn any_profile_gets_what_its_label_says(
        name in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        label in option::of(value()),
        others in others(),
        annotations in others(),
        there in btree_map(select(&OBJECTS[..]), any::<bool>(), 0..4),
        main: bool,
    ) {
        let config = json!({"preset": if main { "main" } else { "readme" }});
        let own: Texts = label.iter().map(|value| (LABEL.to_owned(), value.clone())).collect();
        // An annotation of that name opens nothing.
        let mut annotations = annotations;
        annotations.insert(LABEL.to_owned(), "false".to_owned());
        let mut labels = others;
        labels.remove(LABEL);
        labels.extend(own.clone());
        let run = |texts| {
            let mut cx = Context::test();
            for ((of, called), is_ours) in &there {
                let mark = if *is_ours { "reeve.dev/plugin" } else { "app" };
                cx = cx.with_object(json!({
                    "apiVersion": kind(of).api_version(), "kind": of,
                    "metadata": {"name": called, "namespace": name, "uid": of, "labels": {mark: "x"}},
                }));
            }
            reconcile(&name, texts, &config, cx)
        };
        let outcome = run([&labels, &annotations]);
        prop_assert_eq!(&outcome, &run([&own, &Texts::new()]));

        let says = |set: &[&str]| label.as_deref().is_some_and(|value| set.contains(&value));
        let opens = says(&FALSE);
        let is_named = !opens && !says(&TRUE) && label.is_some();
        let told: Vec<_> = outcome.conditions().iter().map(|condition| &condition.message).collect();
        prop_assert_eq!(told.len(), usize::from(is_named));
        prop_assert!(told.iter().all(|told| told.contains(LABEL)), "{told:?}");
        prop_assert_eq!(outcome.events().len(), usize::from(is_named));

        let objects = outcome.objects_json();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()))
            .collect();
        let expected: &[_] = if opens { &OBJECTS } else { &[] };
        prop_assert_eq!(&found, expected);
        for object in &objects {
            prop_assert_eq!(&object["metadata"]["namespace"], &name);
            // Nobody sees the way but the Profile and the gateway.
            prop_assert_eq!(&object["spec"]["exportTo"], &json!([name, "cloud-main-system"]));
        }
        let goes: BTreeSet<_> = there
            .iter()
            .filter(|(_, is_ours)| main && !opens && !**is_ours)
            .map(|((of, called), _)| format!("{:?}", kind(of).object(*called).in_namespace(&name).if_uid(*of)))
            .collect();
        let absent: BTreeSet<_> = outcome.absences().iter().map(|absent| format!("{absent:?}")).collect();
        prop_assert_eq!(absent, goes);
    }
}

//! Whatever the labels and amounts are, the limit range is whole, or what is wrong is named.

use k8s_openapi::api::core::v1::LimitRange;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;
use reeve_sdk::Quantity;

use super::*;

/// Where the four amounts are.
const PLACES: [(&str, &str); 4] = [
    ("default", "cpu"),
    ("default", "memory"),
    ("defaultRequest", "cpu"),
    ("defaultRequest", "memory"),
];

fn unless_set(resource: &str) -> &'static str {
    match resource {
        "cpu" => "250m",
        _ => "256M",
    }
}

/// An amount, and how much that is in millionths; none for what is no amount or below
/// zero.
fn amount() -> impl Strategy<Value = (String, Option<u64>)> {
    let of = |unit: &'static str, millionths: u64| {
        (0..5000_u64).prop_map(move |n| (format!("{n}{unit}"), Some(n * millionths)))
    };
    prop_oneof![
        4 => of("u", 1),
        8 => of("m", 1000),
        8 => of("", 1_000_000),
        8 => of("k", 1_000_000_000),
        8 => of("Ki", 1_024_000_000),
        8 => of("M", 1_000_000_000_000),
        8 => of("e3", 1_000_000_000),
        2 => "-[1-9][0-9]{0,3}m?".prop_map(|text| (text, None)),
        2 => "[a-d]{3,8}|[1-9](x|K|ki| Gi|,5)|".prop_map(|text| (text, None)),
        1 => select(vec!["NaN", "nan", "inf", "Infinity", "-inf", "0x10", "٣"])
            .prop_map(|text| (text.to_owned(), None)),
    ]
}

fn reconcile(labels: &Value, config: &Value) -> Outcome {
    let profile = json!({"metadata": {"name": "alice", "uid": "1", "labels": labels}});
    let (profile, config) = (profile.to_string(), config.to_string());
    ReevePlugin::reconcile(profile.as_bytes(), config.as_bytes(), &Context::test()).unwrap()
}

proptest! {
    /// Each configuration gives a limit range that the API server takes, with each amount
    /// as it was written, or is refused with the place of one that cannot be used.
    #[test]
    fn any_amounts_give_a_whole_limit_range_or_are_named(
        given in btree_map(select(&PLACES[..]), amount(), 0..5),
    ) {
        let mut config = json!({});
        for ((kind, resource), (text, _)) in &given {
            config[*kind][*resource] = json!(text);
        }
        let millionths = |kind: &'static str, resource: &'static str| match given.get(&(kind, resource)) {
            Some((_, amount)) => *amount,
            None => Some(if resource == "cpu" { 250_000 } else { 256_000_000_000_000 }),
        };
        let is_amount = |(kind, resource): &(&'static str, &'static str)| millionths(kind, resource).is_some();
        let fits = |resource| millionths("defaultRequest", resource) <= millionths("default", resource);
        let described = ReevePlugin::describe(config.to_string().as_bytes());
        if !PLACES.iter().all(is_amount) {
            let error = described.unwrap_err();
            let wrong = PLACES.iter().find(|place| !is_amount(place)).unwrap();
            prop_assert_eq!(&error.path, &format!("/{}/{}", wrong.0, wrong.1), "{}", error);
            return Ok(());
        }
        if let Some(resource) = ["cpu", "memory"].into_iter().find(|resource| !fits(resource)) {
            let error = described.unwrap_err();
            prop_assert_eq!(&error.path, &format!("/defaultRequest/{resource}"), "{}", error);
            prop_assert!(error.to_string().ends_with("; set both"), "{error}");
            return Ok(());
        }
        prop_assert!(described.is_ok(), "{config}: {described:?}");
        let outcome = reconcile(&json!({}), &config);
        prop_assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
        let [object] = outcome.objects_json().try_into().unwrap();
        let typed: LimitRange = serde_json::from_value(object.clone()).unwrap();
        prop_assert_eq!(&json!(typed), &object);
        let [item] = object["spec"]["limits"].as_array().unwrap().clone().try_into().unwrap();
        for (kind, resource) in PLACES {
            let written = given.get(&(kind, resource)).map_or(unless_set(resource), |(text, _)| text);
            let used = item[kind][resource].as_str().unwrap();
            prop_assert_eq!(used, written);
            prop_assert!(used.parse::<Quantity>().is_ok_and(|amount| !amount.is_negative()));
        }
    }

    /// Labels of the profile say nothing, whatever they are.
    #[test]
    fn no_label_changes_anything(
        labels in btree_map("(quotas\\.statcan\\.gc\\.ca/)?[a-z./]{1,12}", ".{0,12}", 0..5),
    ) {
        let outcome = reconcile(&json!(labels), &json!({}));
        prop_assert_eq!(outcome.objects_json(), reconcile(&json!({}), &json!({})).objects_json());
        prop_assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
    }
}

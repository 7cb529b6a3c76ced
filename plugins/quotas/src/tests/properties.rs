//! Whatever the labels are, the quota is whole, and no label is lost without a word.

use k8s_openapi::api::core::v1::ResourceQuota;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;
use reeve_sdk::Quantity;

use super::*;

/// What the API server counts, of the limits that there are.
const COUNTED: [&str; 3] = ["pods", "services.loadbalancers", "services.nodeports"];

/// The suffixes of the labels, with what each is about.
const LABELS: [(&str, &str); 9] = [
    ("requests.cpu", "requests.cpu"),
    ("limits.cpu", "limits.cpu"),
    ("requests.memory", "requests.memory"),
    ("limits.memory", "limits.memory"),
    ("requests.storage", "requests.storage"),
    ("gpu", GPU),
    ("pods", "pods"),
    ("services.nodeports", "services.nodeports"),
    ("services.loadbalancers", "services.loadbalancers"),
];
const GPU: &str = "requests.nvidia.com/gpu";

/// A value of which it is known what it is, however quantities are read.
#[derive(Clone, Debug)]
enum Given {
    /// A decimal integer.
    Integer(String),
    /// An amount without a fraction, with a unit.
    Whole(String),
    /// An amount with a fraction.
    Fraction(String),
    /// An amount below zero.
    Negative(String),
    /// No amount.
    Word(String),
}

impl Given {
    fn text(&self) -> &str {
        match self {
            Self::Integer(text)
            | Self::Whole(text)
            | Self::Fraction(text)
            | Self::Negative(text)
            | Self::Word(text) => text,
        }
    }

    /// The limit that comes of it for a resource, or what is wrong with it.
    fn expected(&self, resource: &str) -> Result<&str, &'static str> {
        match self {
            Self::Integer(text) => Ok(text),
            Self::Negative(_) => Err("below zero"),
            _ if resource == GPU => Err("not a whole number"),
            Self::Whole(text) => Ok(text),
            Self::Fraction(_) if COUNTED.contains(&resource) => Err("not a whole number"),
            Self::Fraction(text) => Ok(text),
            Self::Word(_) => Err("not a quantity"),
        }
    }
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        "[1-9][0-9]{0,5}|0".prop_map(Given::Integer),
        "[1-9][0-9]{0,2}(k|M|Ki|Mi|Gi|e3|E2|000m)".prop_map(Given::Whole),
        "[0-9]{0,4}[1-9]m|[0-9]{1,4}\\.[0-9]?[1-9]".prop_map(Given::Fraction),
        "-[1-9][0-9]{0,5}".prop_map(Given::Negative),
        "[a-d]{3,8}|[1-9](x|K|ki| Gi|,5)|".prop_map(Given::Word),
    ]
}

/// The limits of the one object, which is a ResourceQuota and nothing more.
fn limits(outcome: &Outcome) -> Result<BTreeMap<String, String>, TestCaseError> {
    let [object] = outcome.objects_json().try_into().unwrap();
    let typed: ResourceQuota = serde_json::from_value(object.clone()).unwrap();
    prop_assert_eq!(&json!(typed), &object);
    prop_assert_eq!(
        &object["metadata"],
        &json!({"name": "quotas", "namespace": "alice"})
    );
    let limits: BTreeMap<String, String> =
        serde_json::from_value(object["spec"]["hard"].clone()).unwrap();
    prop_assert!(limits.keys().eq(defaults().keys()), "{limits:?}");
    for (resource, limit) in &limits {
        let amount: Quantity = limit.parse().unwrap();
        prop_assert!(!amount.is_negative(), "{resource}: {limit}");
        let counted = COUNTED.contains(&resource.as_str());
        prop_assert!(
            !counted || amount.milli_value() % 1000 == 0,
            "{resource}: {limit}"
        );
    }
    Ok(limits)
}

/// What is told of labels, in the condition; the event is there with it.
fn told(outcome: &Outcome) -> Result<String, TestCaseError> {
    prop_assert_eq!(outcome.conditions().len(), outcome.events().len());
    let condition = outcome.conditions().first();
    Ok(condition.map_or_else(String::new, |condition| condition.message.clone()))
}

fn run_all(labels: &BTreeMap<String, String>) -> Outcome {
    let labels: Vec<_> = labels
        .iter()
        .map(|(label, value)| (label.as_str(), value.as_str()))
        .collect();
    run(&labels, "{}")
}

proptest! {
    /// Each label gives its limit, or keeps the default (of GPUs, none) and is named with
    /// its value, what is wrong with it and what is used.
    #[test]
    fn each_label_gives_its_limit_or_is_named(given in btree_map(select(&LABELS[..]), given(), 0..10)) {
        let labels = given
            .iter()
            .map(|((suffix, _), value)| (format!("{PREFIX}{suffix}"), value.text().to_owned()))
            .collect();
        let outcome = run_all(&labels);
        let (mut expected, mut reports) = (defaults(), 0);
        let told = told(&outcome)?;
        for ((suffix, resource), value) in &given {
            let limit = expected.get_mut(*resource).unwrap();
            match value.expected(resource) {
                Ok(used) => used.clone_into(limit),
                Err(problem) => {
                    if *resource == GPU {
                        "0".clone_into(limit);
                    }
                    let report = format!("{PREFIX}{suffix}={} ({problem}, using {limit})", value.text());
                    prop_assert!(told.contains(&report), "{report}\n{told}");
                    reports += 1;
                }
            }
        }
        prop_assert_eq!(told.matches(", using ").count(), reports, "{}", told);
        prop_assert_eq!(limits(&outcome)?, expected);
    }

    /// Any text in any label gives a quota that the API server takes; what is used is what
    /// was written, and all else is named.
    #[test]
    fn any_labels_give_a_whole_quota_and_none_is_lost(
        labels in btree_map(
            prop_oneof![
                select(&LABELS[..]).prop_map(|(suffix, _)| format!("{PREFIX}{suffix}")),
                Just(format!("{PREFIX}{GPU}")),
                "quotas\\.statcan\\.gc\\.ca/[a-z./]{0,12}",
                "[a-z./]{0,12}",
            ],
            prop_oneof![
                "[-+]?[0-9]{0,20}\\.?[0-9]{0,20}([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{0,19})?",
                select(vec!["NaN", "nan", "inf", "Infinity", "-inf", "1e400", "0x10", "٣"]).prop_map(str::to_owned),
                ".{0,12}",
            ],
            0..12,
        ),
    ) {
        let outcome = run_all(&labels);
        let (limits, told, defaults) = (limits(&outcome)?, told(&outcome)?, defaults());
        let full = labels.get(&format!("{PREFIX}{GPU}"));
        for (suffix, resource) in LABELS {
            let (label, limit) = (format!("{PREFIX}{suffix}"), &limits[resource]);
            let Some(value) = labels.get(&label) else {
                prop_assert!(*limit == defaults[resource] || resource == GPU && full == Some(limit));
                continue;
            };
            let used = match resource {
                GPU => full == Some(limit) || value.parse() == limit.parse::<i64>(),
                _ => limit == value,
            };
            let named = told.contains(&format!("{label}={value} ("));
            prop_assert!(used || named, "{label}={value} gave {limit}: {told}");
            prop_assert!(!named || resource == GPU || *limit == defaults[resource]);
        }
    }

    /// What is configured for a resource stands in for the default, also where a label
    /// cannot be used.
    #[test]
    fn a_word_keeps_what_is_configured(configured in "[1-9][0-9]{0,3}", word in "[a-d]{3,8}") {
        let config = json!({"hard": {"pods": configured}}).to_string();
        let outcome = run(&[("quotas.statcan.gc.ca/pods", &word)], &config);
        prop_assert_eq!(&limits(&outcome)?["pods"], &configured);
        let report = format!("{PREFIX}pods={word} (not a quantity, using {configured})");
        prop_assert!(told(&outcome)?.contains(&report));
    }
}

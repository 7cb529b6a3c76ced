//! Faults read from all their forms, and what is said of those that cannot be.

use proptest::prelude::*;
use serde_json::json;

use super::read::VERBS;
use super::*;

#[test]
fn faults_are_written_as_they_are_read() {
    for text in [
        "latency: delay=200ms",
        "latency: delay=200ms, jitter=1s, verb=list|watch, resource=pods|deployments.apps",
        "slow-admission: delay=1s, namespace=alice",
        "too-many-requests: retry-after=5s, probability=0.25, count=3",
        "unavailable: retry-after=1s, user=system:serviceaccount:*, for=1m30s",
        "internal-error",
        "conflict: agent=kubectl/*",
        "reset",
        "lost-answer",
        "lost-answer: delay=3s, verb=patch",
        "truncated-watch: after=3s",
        "silent-watch: resource=pods",
        "expired",
        "clock-jump: by=-1h",
    ] {
        let fault: Fault = text.parse().unwrap();
        assert_eq!(fault.to_string(), text);
    }
}

#[test]
fn texts_and_maps_say_the_same() {
    let map = json!({"fault": "latency", "delay": "1s", "verb": ["get", "list"],
        "probability": 0.5, "count": 2});
    let text = "latency: delay=1s, verb=get|list, probability=0.5, count=2";
    assert_eq!(Fault::from_value(&map), text.parse());
    assert_eq!(Fault::from_value(&json!(text)), text.parse());
}

#[test]
fn what_is_no_fault_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "slow",
            "there is no fault \"slow\"; there are clock-jump, conflict, expired, internal-error, latency, lost-answer, reset, silent-watch, slow-admission, too-many-requests, truncated-watch, unavailable",
        ),
        (
            "latency",
            "fault latency: field delay is missing; write latency: delay=200ms",
        ),
        (
            "latency: delay=5",
            "fault latency: field delay: \"5\" is no span of time; write numbers with units, such as 5s, 1m30s, 250ms or 0s",
        ),
        (
            "latency: delay",
            "fault latency: \"delay\" is no field; write FIELD=VALUE, and commas between fields",
        ),
        (
            "reset: verb=get, verb=list",
            "fault reset: field verb is given twice; write several values as a|b",
        ),
        (
            "reset: verb=read",
            "fault reset: field verb: there is no verb \"read\"; there are get, list, watch, create, update, patch, delete, deletecollection",
        ),
        (
            "reset: delay=1s",
            "fault reset: there is no field \"delay\"; there are agent, count, for, namespace, probability, resource, user, verb",
        ),
        (
            "reset: probability=2",
            "fault reset: field probability: \"2\" is no share; write a number from 0 to 1, such as 0.3",
        ),
        (
            "reset: count=0",
            "fault reset: field count: \"0\" is no number of times; write 1, 2, 3, …",
        ),
        (
            "reset: user=a||b",
            "fault reset: field user: \"a||b\" has an empty value; write a|b, or leave the field out",
        ),
        (
            "clock-jump: by=1h, verb=get",
            "fault clock-jump: there is no field \"verb\"; there are by",
        ),
        (
            "clock-jump",
            "fault clock-jump: field by is missing; write clock-jump: by=1h",
        ),
    ] {
        assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), expected);
    }
    for value in [
        json!(1),
        json!({"delay": "1s"}),
        json!({"fault": "reset", "verb": [1]}),
    ] {
        let error = Fault::from_value(&value).unwrap_err().to_string();
        assert!(error.ends_with("is no fault; write a text such as \"latency: delay=200ms\" or a map with the field `fault`"), "{error}");
    }
}

fn effect() -> impl Strategy<Value = Effect> {
    let span = || (0..10_000_000_u64).prop_map(Duration::from_millis);
    prop_oneof![
        (span(), span()).prop_map(|(delay, jitter)| Effect::Latency { delay, jitter }),
        (span(), span()).prop_map(|(delay, jitter)| Effect::SlowAdmission { delay, jitter }),
        (1..100_000_u32).prop_map(|retry_after| Effect::TooManyRequests { retry_after }),
        (1..100_000_u32).prop_map(|retry_after| Effect::Unavailable { retry_after }),
        span().prop_map(|after| Effect::TruncatedWatch { after }),
        Just(Effect::InternalError),
        Just(Effect::Conflict),
        Just(Effect::Reset),
        Just(Effect::SilentWatch),
        Just(Effect::Expired),
    ]
}

fn matcher() -> impl Strategy<Value = Matcher> {
    let texts = || proptest::collection::vec("[a-z][a-z:./*-]{0,8}", 0..3);
    let verbs = proptest::collection::vec(proptest::sample::select(VERBS.to_vec()), 0..3);
    (verbs, texts(), texts(), texts(), texts()).prop_map(
        |(verbs, resources, namespaces, users, agents)| Matcher {
            verbs,
            resources,
            namespaces,
            users,
            agents,
        },
    )
}

fn fault() -> impl Strategy<Value = Fault> {
    let count = proptest::option::of(1..1000_u64);
    let lasts = proptest::option::of((0..10_000_000_u64).prop_map(Duration::from_millis));
    (effect(), matcher(), 0.0..=1.0, count, lasts).prop_map(
        |(effect, matcher, probability, count, lasts)| Fault {
            effect,
            matcher,
            probability,
            count,
            lasts,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(fault in fault()) {
        prop_assert_eq!(fault.to_string().parse(), Ok(fault));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(latency|reset|clock-jump|x)?:?[-a-z0-9=|, .]{0,40}") {
        if let Ok(fault) = text.parse::<Fault>() {
            prop_assert_eq!(fault.to_string().parse(), Ok(fault));
        }
    }
}

//! Decisions in, reports out.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use reeve_sdk::Actuates;
use reeve_sdk::prelude::*;

use super::{About, LONGEST_FACT, action, declared, known, report};
use crate::ReevePlugin;
use crate::config::Config;
use crate::names::MODEL_DEPLOYMENT;
use crate::state::{Build, Decision, Deploy, Health, Phase};

const URL: &str = "https://app.datarobot.com/api/v2/remoteEvents/";

fn config() -> Config {
    let mut config = Config::default();
    config.supervisor.report.url = URL.to_owned();
    config
}

fn decision(phase: Phase, health: Health, current: Option<&str>) -> Decision {
    Decision {
        phase,
        health,
        reason: "Reason",
        message: format!("{phase:?} it is"),
        build: Build::Left,
        deploy: Deploy::Nothing,
        current_model: current.map(str::to_owned),
        old_model_in_use: false,
    }
}

/// The report of a decision, where this was told before.
fn told(decision: &Decision, config: &Config, known: Option<&Value>) -> Option<Value> {
    told_in(&Context::test(), decision, config, known)
}

fn told_in(
    cx: &Context,
    decision: &Decision,
    config: &Config,
    known: Option<&Value>,
) -> Option<Value> {
    let about = About {
        environment: "env",
        deployment: "64f0",
        uid: "uid-1",
        model: Some("m2"),
        prediction_url: None,
    };
    report(&about, decision, config, known, cx)
}

#[test]
fn words_that_change_are_no_news_and_are_not_too_many() {
    let config = config();
    let mut errored = decision(Phase::Errored, Health::Failing, None);
    errored.message = "é".repeat(2000);
    let first = told(&errored, &config, None).unwrap();
    assert_eq!(first["message"].as_str().unwrap().len(), 1024);
    errored.message = "\"\u{1b}".repeat(2000);
    let escaped = told(&errored, &config, None).unwrap()["message"].to_string();
    assert!((1010..=1026).contains(&escaped.len()), "{escaped}");
    errored.message = "1 of 3 servers".to_owned();
    errored.reason = "Other";
    assert_eq!(told(&errored, &config, Some(&first)), Some(first));
}

#[test]
fn nothing_is_told_of_what_has_no_word() {
    let mut config = config();
    config.supervisor.report.events.health_degraded = String::new();
    let degraded = decision(Phase::Degraded, Health::Warning, None);
    assert_eq!(told(&degraded, &config, None), None);
    let ready = decision(Phase::Ready, Health::Passing, Some("m1"));
    let ready = told(&ready, &config, None).unwrap();
    // It is remembered, and changes nothing of what is being told.
    let silent = told(&degraded, &config, Some(&ready)).unwrap();
    assert_eq!(silent["unsaid"], "healthDegraded");
    assert_eq!(action(&silent), action(&ready));
    assert_eq!(told(&degraded, &config, Some(&silent)), Some(silent));
    // Nobody wants any server.
    let none = decision(Phase::Ready, Health::Unknown, None);
    assert_eq!(told(&none, &config, Some(&ready)), Some(ready));
    config.supervisor.report.url = String::new();
    assert_eq!(told(&degraded, &config, None), None);
}

#[test]
fn what_was_told_of_another_deployment_says_nothing_of_this_one() {
    let config = config();
    let ready = decision(Phase::Ready, Health::Passing, Some("m1"));
    let mut other = told(&ready, &config, None).unwrap();
    other["happened"] = json!("healthDegraded");
    let same = other.clone();
    for (field, value) in [("deploymentId", "other"), ("uid", "of one before it")] {
        other = same.clone();
        other[field] = json!(value);
        let now = told(&ready, &config, Some(&other)).unwrap();
        assert_eq!(
            (&now["happened"], &now["deploymentId"]),
            (&json!("launchSucceeded"), &json!("64f0"))
        );
    }
    // Reports once had no uid.
    other = same;
    other["uid"].take();
    let now = told(&ready, &config, Some(&other)).unwrap();
    assert_eq!(now["happened"], "healthRestored");
}

#[test]
fn the_later_of_what_was_told_and_what_is_recorded_counts() {
    let config = config();
    let pending = told(
        &decision(Phase::Pending, Health::Unknown, None),
        &config,
        None,
    );
    let pending = pending.unwrap();
    let ready = decision(Phase::Ready, Health::Passing, Some("m1"));
    let ready = told(&ready, &config, Some(&pending)).unwrap();
    let nothing_told = Context::test();
    let told = |report: &Value| Context::test().with_fact("report", report);
    assert_eq!(known(None, &nothing_told), None);
    // The record could not be written, or was taken away.
    assert_eq!(known(None, &told(&pending)), Some(pending.clone()));
    assert_eq!(
        known(Some(pending.clone()), &told(&ready)),
        Some(ready.clone())
    );
    // The next one is being told.
    assert_eq!(
        known(Some(ready.clone()), &told(&pending)),
        Some(ready.clone())
    );
    assert_eq!(
        known(Some(ready.clone()), &told(&ready)),
        Some(ready.clone())
    );
    // Told by a version that reported no fact.
    assert_eq!(
        known(Some(ready.clone()), &told(&Value::Null)),
        Some(ready.clone())
    );

    // A moment later, with a record that is behind, nothing is told twice.
    let later = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    let now = Context::test().at(later);
    let serving = decision(Phase::Ready, Health::Passing, Some("m1"));
    let again = |known: Option<Value>| told_in(&now, &serving, &config, known.as_ref());
    assert_eq!(
        again(known(Some(pending), &told(&ready))),
        Some(ready.clone())
    );
    assert_ne!(again(None).unwrap()["since"], ready["since"]);
}

/// What is sent of a report, and what comes of an answer.
fn sent(config: &Value, verb: Verb, status: u16) -> (Vec<Request>, Result<Completion, Failure>) {
    let told = json!({
        "environmentId": "env", "deploymentId": "64/f0", "event": "e", "since": "t",
        "message": "m", "modelId": "m2", "reason": "r", "currentModelId": null,
    });
    let seen = Rc::new(RefCell::new(Vec::new()));
    let requests = Rc::clone(&seen);
    let outside = Outside::test().with_http(move |request| {
        requests.borrow_mut().push(request.clone());
        Ok(Response {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        })
    });
    let call = Actuation::new(&Action::new("report", "report").input(&told), verb);
    let done = ReevePlugin::actuate(&call, config.to_string().as_bytes(), &outside);
    (seen.take(), done)
}

#[test]
fn the_documented_event_is_sent_and_remembered() {
    let config = json!({"supervisor": {"report": {"url": URL}}});
    let (requests, done) = sent(&config, Verb::Apply, 201);
    let _ = done.unwrap();
    let [request] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!((&*request.method, &*request.url), ("POST", URL));
    let body: Json = reeve_sdk::parse_json(std::str::from_utf8(&request.body).unwrap()).unwrap();
    assert_eq!(
        body.0,
        json!({
            "eventType": "e", "timestamp": "t", "deploymentId": "64/f0",
            "predictionEnvironmentId": "env", "message": "m",
            "data": {"newModelId": "m2", "reason": "r"},
        })
    );
    for verb in [Verb::Verify, Verb::Retire] {
        let (requests, done) = sent(&config, verb, 500);
        assert_eq!(requests, []);
        let _ = done.unwrap();
    }
}

#[test]
fn what_was_told_is_the_fact_where_it_fits() {
    let config = json!({"supervisor": {"report": {"url": URL}}});
    let config = config.to_string();
    let outside = || {
        Outside::test().with_http(|_| {
            Ok(Response {
                status: 201,
                headers: Vec::new(),
                body: Vec::new(),
            })
        })
    };
    let done = |told: &Value| {
        let action = Action::new("report", "report").input(told);
        let call = Actuation::new(&action, Verb::Apply);
        ReevePlugin::actuate(&call, config.as_bytes(), &outside()).unwrap()
    };
    let told = json!({"deploymentId": "64f0", "number": 3});
    assert_eq!(done(&told), Completion::with_fact(&told));
    let long = json!({"predictionUrl": "x".repeat(LONGEST_FACT)});
    assert_eq!(done(&long), Completion::done());
}

#[test]
fn another_supervisor_is_told_in_its_own_form() {
    let report = json!({
        "url": "https://e.example/v1/{deploymentId}/state", "method": "PUT",
        "body": {"model": "{currentModelId}", "text": "{event}: {message}"},
    });
    let config = json!({"supervisor": {"report": report}});
    let (requests, _) = sent(&config, Verb::Apply, 200);
    assert_eq!(requests[0].method, "PUT");
    assert_eq!(requests[0].url, "https://e.example/v1/64%2Ff0/state");
    assert_eq!(requests[0].body, br#"{"text":"e: m"}"#);
}

#[test]
fn what_a_supervisor_refuses_is_tried_again_and_says_what_to_look_at() {
    let config = json!({"supervisor": {"report": {"url": URL}}});
    for (status, advice) in [
        (401, "API token"),
        (404, "know the deployment"),
        (422, "expects"),
        (503, "503"),
    ] {
        let (_, done) = sent(&config, Verb::Apply, status);
        let Err(Failure::Retry(text)) = done else {
            panic!("{done:?}");
        };
        assert!(text.contains(advice) && text.contains(URL), "{text}");
    }
}

#[test]
fn only_what_can_be_sent_is_declared() {
    let manifest = || Manifest::controller(MODEL_DEPLOYMENT);
    assert!(declared(&config(), manifest()).is_ok());
    let refused = |change: &dyn Fn(&mut Config), path: &str| {
        let mut changed = config();
        change(&mut changed);
        assert_eq!(declared(&changed, manifest()).unwrap_err().path, path);
    };
    for url in [
        "app.datarobot.com",
        "ftp://e.example/",
        "https://",
        "https:///x",
        "https://e.example",
        "https://{state}.example/",
        "https://user:password@e.example/",
        "https://e.example/{predictionUrl}",
    ] {
        refused(
            &|config| config.supervisor.report.url = url.to_owned(),
            "/supervisor/report/url",
        );
    }
    refused(
        &|config| config.supervisor.report.method = "post".to_owned(),
        "/supervisor/report/method",
    );
    refused(
        &|config| config.supervisor.report.body = Json(json!({"a": "{stat}"})),
        "/supervisor/report/body/a",
    );
    let nothing = declared(&Config::default(), manifest()).unwrap();
    assert_eq!(format!("{nothing:?}"), format!("{:?}", manifest()));
}

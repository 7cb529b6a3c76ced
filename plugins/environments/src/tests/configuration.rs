//! The configuration: what follows from it, and what makes no sense.

use std::time::Duration;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use super::{describe, list, listing, run, run_for};
use crate::ReevePlugin;

/// The value at a path that is made of it.
fn at(path: &str, value: &Value) -> Value {
    path.split('/')
        .filter(|key| !key.is_empty())
        .rev()
        .fold(value.clone(), |inner, key| json!({key: inner}))
}

fn expected(namespace: &str) -> Manifest {
    let kind = |kind: &'static str| Kind::new("models.reeve.dev/v1alpha1", kind);
    let place = || Scope::Namespaces(vec![namespace.to_owned()]);
    Manifest::controller(kind("PredictionEnvironment"))
        .projection(["/spec"])
        .reads((kind("ModelDeployment"), place()))
        .writes(kind("ModelDeployment"), place())
        .writes(kind("PredictionEnvironment"), place())
}

fn page(number: u32, url: &str, seconds: u64) -> SourceRule {
    SourceRule::url(format!("deployments-{number}"), url)
        .describe(format!("page {number} of the list of deployments"))
        .every(Duration::from_secs(seconds))
}

#[test]
fn without_any_configuration_one_page_of_datarobot_is_read() {
    let url = "https://app.datarobot.com/api/v2/deployments/?executionEnvironmentType=external\
               &orderBy=createdAtTimestamp&limit=100&offset=0";
    assert_eq!(
        ReevePlugin::describe(b"{}"),
        Ok(expected("datarobot-mlops").source(page(1, url, 60)))
    );
}

#[test]
fn each_page_and_the_index_is_a_source() {
    let config = json!({
        "datarobot": {"url": "https://robot.example.com/"},
        "supervisor": {
            "deployments": {"query": "a=b", "pages": 2, "pageSize": 20, "pollSeconds": 5},
            "packages": {"url": "https://a.example.com/index.json?key=x", "pollSeconds": 7},
        },
    });
    let list = "https://robot.example.com/api/v2/deployments/?a=b&limit=20&offset=";
    let packages = SourceRule::url("packages", "https://a.example.com/index.json?key=x")
        .describe("where the packages of models are, and their SHA-256")
        .every(Duration::from_secs(7));
    let expected = expected("models")
        .source(page(1, &format!("{list}0"), 5))
        .source(page(2, &format!("{list}19"), 5))
        .source(packages);
    assert_eq!(describe(&config), Ok(expected));
}

#[test]
fn a_query_is_added_to_whatever_the_url_has() {
    for (url, query, whole) in [
        ("http://a/x", "", "http://a/x?limit=100&offset=0"),
        ("http://a/x?b=c", "", "http://a/x?b=c&limit=100&offset=0"),
        (
            "http://a/x?b=c",
            "d=e",
            "http://a/x?b=c&d=e&limit=100&offset=0",
        ),
        ("http://a/x?", "d=e", "http://a/x?d=e&limit=100&offset=0"),
        ("http://a/x?b=c&", "", "http://a/x?b=c&limit=100&offset=0"),
    ] {
        let config = json!({"supervisor": {"deployments": {"url": url, "query": query}}});
        let expected = expected("models").source(page(1, whole, 60));
        assert_eq!(describe(&config), Ok(expected), "{url} {query}");
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused_with_its_path() {
    let list = "/supervisor/deployments";
    let fields = "/supervisor/fields";
    let at_index = |path: &str| path.strip_suffix("/1").map(str::to_owned);
    for (path, value) in [
        ("/namespaces".to_owned(), json!([])),
        ("/namespaces/1".to_owned(), json!(["models", "A"])),
        ("/datarobot/url".to_owned(), json!("app.datarobot.com")),
        (format!("{list}/url"), json!("ftp://a/b")),
        (format!("{list}/url"), json!("https://a/b#c")),
        (format!("{list}/url"), json!("https://a/b?limit=3")),
        (format!("{list}/query"), json!("?a=b")),
        (format!("{list}/query"), json!("a b")),
        (format!("{list}/query"), json!("a=b&offset=3")),
        (format!("{list}/pages"), json!(0)),
        (format!("{list}/pages"), json!(32)),
        (format!("{list}/pageSize"), json!(0)),
        (format!("{list}/pageSize"), json!(1001)),
        (format!("{list}/pollSeconds"), json!(86_401)),
        ("/supervisor/packages/url".to_owned(), json!("/index.json")),
        ("/supervisor/packages/pollSeconds".to_owned(), json!(0)),
        (format!("{fields}/id"), json!("")),
        (format!("{fields}/environmentId"), json!("")),
        (format!("{fields}/modelId"), json!("model/id")),
        (format!("{fields}/managed"), json!("/a~2")),
        (format!("{fields}/total"), json!("/a~")),
    ] {
        let config = at(&at_index(&path).unwrap_or(path.clone()), &value);
        let error = describe(&config).unwrap_err();
        assert_eq!(error.path, path, "{value}: {error}");
    }
    for (set, path) in [
        ("packageUrl", format!("{fields}/packageSha256")),
        ("packageSha256", format!("{fields}/packageUrl")),
    ] {
        let config = at(&format!("{fields}/{set}"), &json!("/x"));
        let error = describe(&config).unwrap_err();
        assert_eq!(error.path, path);
        assert!(error.message.contains(set), "{error}");
    }
}

#[test]
fn a_namespace_that_is_not_served_is_refused() {
    let config = json!({"namespaces": ["a", "b"]});
    assert_eq!(
        run(&config, listing(&[list(&[])])),
        Err(Failure::terminal(
            "namespace models is not among /namespaces of the configuration (a, b); add it, or \
             make the PredictionEnvironment in one of them"
        ))
    );
}

#[test]
fn an_environment_whose_id_is_no_label_is_refused() {
    for id in ["a b", "-a", &"a".repeat(64)] {
        let Err(Failure::Terminal(text)) = run_for(id, &json!({}), listing(&[list(&[])])) else {
            panic!("{id}");
        };
        assert!(text.starts_with(&format!("spec.id: `{id}`: ")), "{text}");
    }
}

//! What both servers publish in OpenAPI: all kinds, built in and defined, and all
//! requests, in version 2 and version 3. Only descriptions are left out, which are
//! nobody's interface, and what [`OTHERWISE`] lists.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use crate::compare::{Difference, differences};
use crate::corpus;
use crate::exchange::{Answer, Caller, Endpoint, Message};
use crate::servers::Servers;

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What is defined before documents are compared.
const DEFINITIONS: &str = include_str!("openapi.yaml");
/// How long the real server may take to publish what was defined.
const PATIENCE: Duration = Duration::from_secs(60);

/// Places that may differ, by how they begin, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("paths./.well-known/", "there is no issuer of tokens"),
    ("paths./openid/", "there is no issuer of tokens"),
    (
        "definitions.io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions.x-kubernetes-group-version-kind",
        "versions that are not served are not listed",
    ),
    (
        "definitions.io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent.x-kubernetes-group-version-kind",
        "versions that are not served are not listed",
    ),
];

async fn get(endpoint: &Endpoint, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
    let message = Message {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Message::default()
    };
    Caller::new(endpoint).send(&message).await
}

async fn document(endpoint: &Endpoint, path: &str) -> Result<Value> {
    let answer = get(endpoint, path, &[]).await?;
    ensure!(answer.status == 200, "{path} is answered {}", answer.status);
    serde_json::from_slice(&answer.body).with_context(|| path.to_owned())
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut headers = answer.headers.iter();
    let found = headers.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// Makes the definitions, and waits until all of them are published.
async fn define(endpoint: &Endpoint) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definitions: Vec<Value> = corpus::parse(DEFINITIONS)?;
    for definition in &definitions {
        let message = Message {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: definition.to_string().into(),
            ..Message::default()
        };
        let answer = Caller::new(endpoint).send(&message).await?;
        let said = String::from_utf8_lossy(&answer.body);
        ensure!(answer.status == 201, "{} {said}", answer.status);
    }
    let wanted: Vec<&str> = definitions
        .iter()
        .filter_map(|definition| definition.pointer("/spec/names/kind")?.as_str())
        .collect();
    let published = async || -> Result<bool> {
        let document = document(endpoint, "/openapi/v2").await?;
        let names = document["definitions"]
            .as_object()
            .context("no definitions")?;
        let is = |kind: &&str| names.keys().any(|name| name.ends_with(&format!(".{kind}")));
        Ok(wanted.iter().all(is))
    };
    let waited = tokio::time::timeout(PATIENCE, async {
        while !published().await? {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    });
    waited.await.context("not published")?
}

/// A document without what is not compared. Parameters are written out with each
/// operation, in order.
fn normal(mut document: Value) -> Value {
    let shared = document["parameters"].take();
    let mut paths = document["paths"].take();
    for item in paths
        .as_object_mut()
        .into_iter()
        .flatten()
        .map(|(_, item)| item)
    {
        let Some(methods) = item.as_object_mut() else {
            continue;
        };
        let common = methods.remove("parameters").unwrap_or_default();
        for operation in methods.values_mut() {
            let own = operation["parameters"].take();
            let all = [&common, &own].into_iter().filter_map(Value::as_array);
            let mut all: Vec<Value> = all.flatten().map(|p| resolve(p, &shared)).collect();
            all.sort_by_key(ToString::to_string);
            operation["parameters"] = json!(all);
        }
    }
    let definitions = match document.get_mut("definitions") {
        Some(definitions) => definitions.take(),
        None => document["components"]["schemas"].take(),
    };
    let mut normal = json!({"paths": paths, "definitions": definitions});
    strip(&mut normal);
    normal
}

fn resolve(parameter: &Value, shared: &Value) -> Value {
    let name = parameter["$ref"].as_str();
    let mut found = match name.and_then(|name| name.strip_prefix("#/parameters/")) {
        Some(name) => shared[name].clone(),
        None => parameter.clone(),
    };
    // They are put in order by what is left.
    strip(&mut found);
    found
}

/// Takes descriptions away, and the order of what has none.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A field may have that name, too.
            if fields.get("description").is_some_and(Value::is_string) {
                fields.remove("description");
            }
            if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
                required.sort_by_key(ToString::to_string);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The differences of two documents that nobody has accepted; the places of the others
/// are added to `met`.
fn unexpected(real: Value, embedded: Value, met: &mut BTreeSet<&'static str>) -> Vec<Difference> {
    let mut found = differences(&normal(real), &normal(embedded));
    found.retain(|difference| {
        let mut known = OTHERWISE.iter();
        let known = known.find(|(place, _)| difference.at.starts_with(place));
        met.extend(known.map(|(place, _)| *place));
        known.is_none()
    });
    found
}

fn report(title: &str, found: &[Difference]) -> Option<String> {
    const SHOWN: usize = 40;
    if found.is_empty() {
        return None;
    }
    let shorten = |text: &str| text.chars().take(300).collect::<String>();
    let lines = found.iter().take(SHOWN).map(|difference| {
        let (real, embedded) = (shorten(&difference.real), shorten(&difference.embedded));
        format!(
            "{}\n  real:     {real}\n  embedded: {embedded}\n",
            difference.at
        )
    });
    let lines: String = lines.collect();
    Some(format!("{title}: {} differences\n{lines}", found.len()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_say_the_same_of_kinds_and_requests() -> Result<()> {
    let servers = Servers::start().await?;
    let (real, embedded) = (&servers.real, &servers.embedded);
    define(real).await?;
    define(embedded).await?;

    let path = "/openapi/v2";
    let (theirs, ours) = (document(real, path).await?, document(embedded, path).await?);
    let kinds = ours["definitions"].as_object().map_or(0, Map::len);
    ensure!(kinds > 500, "only {kinds} definitions");
    let (mut reports, mut met) = (Vec::new(), BTreeSet::new());
    reports.extend(report(path, &unexpected(theirs, ours, &mut met)));

    let index = document(real, "/openapi/v3").await?;
    let index = index["paths"].as_object().context("no paths")?;
    let versions: BTreeSet<&str> = index
        .keys()
        .map(String::as_str)
        .filter(|path| *path == "api/v1" || path.matches('/').count() == 2)
        .filter(|path| path.starts_with("api"))
        .collect();
    ensure!(versions.len() > 20, "only {versions:?}");
    for version in versions {
        let path = format!("/openapi/v3/{version}");
        let theirs = document(real, &path).await?;
        let ours = document(embedded, &path).await?;
        reports.extend(report(&path, &unexpected(theirs, ours, &mut met)));
    }
    ensure!(reports.is_empty(), "{}", reports.join("\n"));
    for (place, why) in OTHERWISE {
        ensure!(met.contains(place), "{place} is the same ({why})");
    }

    for endpoint in [real, embedded] {
        for accept in [PROTOBUF, OLD_PROTOBUF] {
            let answer = get(endpoint, "/openapi/v2", &[("accept", accept)]).await?;
            ensure!(answer.status == 200 && header(&answer, "content-type") == Some(PROTOBUF));
            ensure!(answer.body.starts_with(b"\x0a\x032.0"));
        }
        let refused = get(endpoint, "/openapi/v2", &[("accept", "text/plain")]).await?;
        ensure!(refused.status == 406 && refused.body.is_empty());
        let answer = get(endpoint, "/openapi/v2", &[]).await?;
        ensure!(header(&answer, "content-type") == Some("application/json"));
        ensure!(header(&answer, "vary").is_some_and(|vary| vary.contains("Accept")));
        let tag = header(&answer, "etag").context("no ETag")?;
        let again = get(endpoint, "/openapi/v2", &[("if-none-match", tag)]).await?;
        ensure!(
            again.status == 304 && again.body.is_empty() && header(&again, "etag") == Some(tag)
        );
    }
    Ok(())
}

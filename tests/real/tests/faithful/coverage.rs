//! Whether the corpus asks for everything that is served: each kind that can be made,
//! read, applied and deleted is, somewhere in it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use reeve_sim::{Config, Server};
use serde_json::Value;

use crate::corpus::{self, Step};
use crate::exchange::{Caller, Endpoint, Message};
use crate::suite::folder;

/// What a request to a resource is, by what discovery calls it. Of patches, an apply is
/// meant.
const VERBS: [&str; 4] = ["create", "get", "patch", "delete"];

/// The path of a resource without namespace: `/apis/apps/v1/deployments`.
type Resource = String;

/// What is asked of which resource by a step.
fn asked(step: &Step) -> Option<(Resource, &'static str)> {
    let (method, path) = step.target()?;
    let path = path.split('?').next()?;
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let start = match parts.first()? {
        &"api" => 2,
        _ => 3,
    };
    // Namespaces are a resource, too.
    if parts.len() > start + 2 && parts[start] == "namespaces" {
        parts.drain(start..start + 2);
    }
    let (resource, name) = match parts.get(start..)? {
        [resource] => (resource, None),
        [resource, name] => (resource, Some(name)),
        _ => return None,
    };
    let verb = match (method, name) {
        ("POST", None) => "create",
        ("GET", Some(_)) => "get",
        ("PATCH", Some(_)) if step.apply.is_some() => "patch",
        ("DELETE", Some(_)) => "delete",
        _ => return None,
    };
    let group = parts[..start].join("/");
    Some((format!("/{group}/{resource}"), verb))
}

/// What can be done with all that a new server has, by resource.
async fn served() -> Result<BTreeMap<Resource, BTreeSet<String>>> {
    let serving = Server::new(Config::default())
        .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .await?;
    let certificate = serving.certificate().as_bytes();
    let endpoint = Endpoint::new(serving.address(), certificate, serving.token())?;
    let mut caller = Caller::new(&endpoint);
    let mut read = async |path: &str| -> Result<Value> {
        let message = Message {
            method: "GET".to_owned(),
            path: path.to_owned(),
            ..Message::default()
        };
        let answer = caller.send(&message).await?;
        Ok(serde_json::from_slice(&answer.body)?)
    };
    let mut paths = vec!["/api/v1".to_owned()];
    let groups = read("/apis").await?;
    for group in groups["groups"].as_array().context("no groups")? {
        for version in group["versions"].as_array().context("no versions")? {
            let version = version["groupVersion"].as_str().context("no version")?;
            paths.push(format!("/apis/{version}"));
        }
    }
    let mut served = BTreeMap::new();
    for path in paths {
        let list = read(&path).await?;
        for resource in list["resources"].as_array().context("no resources")? {
            let name = resource["name"].as_str().context("no name")?;
            let verbs = resource["verbs"].as_array().context("no verbs")?;
            let verbs = verbs
                .iter()
                .filter_map(|verb| Some(verb.as_str()?.to_owned()));
            if !name.contains('/') {
                served.insert(format!("{path}/{name}"), verbs.collect());
            }
        }
    }
    Ok(served)
}

#[tokio::test]
async fn each_kind_that_is_served_is_in_the_corpus() -> Result<()> {
    let scenarios = corpus::read(&folder().join("corpus"))?;
    let steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
    let asked: BTreeSet<_> = steps.filter_map(asked).collect();
    let mut missing = Vec::new();
    for (resource, verbs) in served().await? {
        for verb in VERBS.iter().filter(|verb| verbs.contains(**verb)) {
            if !asked.contains(&(resource.clone(), *verb)) {
                missing.push(format!("{verb} {resource}"));
            }
        }
    }
    assert!(missing.is_empty(), "add steps for these: {missing:#?}");
    Ok(())
}

#[test]
fn steps_are_told_apart() {
    for (method, path, expected) in [
        (
            "POST",
            "/api/v1/namespaces/$ns/pods?dryRun=All",
            Some(("/api/v1/pods", "create")),
        ),
        (
            "POST",
            "/api/v1/namespaces",
            Some(("/api/v1/namespaces", "create")),
        ),
        (
            "GET",
            "/api/v1/namespaces/$ns",
            Some(("/api/v1/namespaces", "get")),
        ),
        ("GET", "/apis/apps/v1/deployments", None),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/$ns/deployments/a",
            Some(("/apis/apps/v1/deployments", "delete")),
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/$ns/deployments/a/scale",
            None,
        ),
        ("PATCH", "/api/v1/nodes/a", None),
        ("GET", "/version", None),
    ] {
        let found = asked(&Step::request(method, path));
        let expected = expected.map(|(resource, verb)| (resource.to_owned(), verb));
        assert_eq!(found, expected, "{method} {path}");
    }
}

//! What a build and its pods need of others: Secrets, a ConfigMap, an account.

use std::collections::BTreeMap;

use reeve_sdk::Strings;
use reeve_sdk::prelude::*;

use crate::config::Builder;
use crate::names::{CONFIG_MAP, DELETE, OF, Place, SECRET, SERVICE_ACCOUNT, object};
use crate::settings::{Credentials, Settings};

/// A ConfigMap with credentials.
#[input]
struct LiveCredentials {
    data: Option<Strings>,
    binary_data: Option<Strings>,
}

#[input]
struct LiveSecret {
    r#type: Option<String>,
}

#[input]
struct LiveAccount {
    metadata: Metadata,
}

/// The account that builds run as, as far as it is this deployment's.
pub(crate) struct Account {
    /// The object, if this deployment makes it.
    pub(crate) object: Option<Value>,
    /// What keeps builds from running as it.
    pub(crate) missing: Option<String>,
    /// What its cloud does not know of it.
    pub(crate) problem: Option<String>,
}

/// The Secrets by name that a configuration speaks of.
pub(crate) fn secrets<'a>(settings: &Settings<'a>) -> Vec<&'a str> {
    let config = settings.config;
    let mut names = vec![&*config.datarobot.api_secret_name];
    if let Credentials::Secret(name) = settings.credentials {
        names.push(name);
    }
    let pull = &config.prediction_server.image_pull_secrets;
    names.extend(pull.iter().map(String::as_str));
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

/// What a Secret is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Token,
    Push,
    Pull,
}

/// What servers need and is not there, or is of no use.
pub(crate) fn of_servers(
    place: &Place,
    settings: &Settings<'_>,
    cx: &Context,
) -> Result<Vec<String>, Failure> {
    let mut missing = Vec::new();
    if settings.tracking.is_some() {
        missing.extend(token(place, settings, cx)?);
    }
    for name in &settings.config.prediction_server.image_pull_secrets {
        missing.extend(secret(place, name, Use::Pull, cx)?);
    }
    Ok(missing)
}

/// The same of a build, and of the servers that are to come.
pub(crate) fn of_build(
    place: &Place,
    settings: &Settings<'_>,
    cx: &Context,
) -> Result<Vec<String>, Failure> {
    let namespace = &place.namespace;
    let mut missing = Vec::new();
    missing.extend(token(place, settings, cx)?);
    match settings.credentials {
        Credentials::Account => {}
        Credentials::Secret(name) => missing.extend(secret(place, name, Use::Push, cx)?),
        Credentials::ConfigMap(name) => {
            let reference = place.object(&CONFIG_MAP, name);
            let parts = ["/data/config.json", "/binaryData/config.json"];
            let found: Option<LiveCredentials> = cx.get_parts(&reference, parts)?;
            let has = |keys: &Option<Strings>| {
                let keys = keys.as_ref();
                keys.is_some_and(|keys| keys.contains_key("config.json"))
            };
            match found {
                None => missing.push(format!(
                    "ConfigMap {namespace}/{name} does not exist; make it with a key config.json"
                )),
                Some(found) if !has(&found.data) && !has(&found.binary_data) => {
                    missing.push(format!(
                        "ConfigMap {namespace}/{name} has no key config.json; add it, with what \
                         registries are logged in to"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    for more in of_servers(place, settings, cx)? {
        if !missing.contains(&more) {
            missing.push(more);
        }
    }
    Ok(missing)
}

fn token(place: &Place, settings: &Settings<'_>, cx: &Context) -> Result<Option<String>, Failure> {
    let name = &settings.config.datarobot.api_secret_name;
    secret(place, name, Use::Token, cx)
}

/// What is wrong with a Secret. Of what it holds its type alone is read: the rest is none of
/// a plugin's business.
fn secret(place: &Place, name: &str, needed: Use, cx: &Context) -> Result<Option<String>, Failure> {
    let namespace = &place.namespace;
    let live: Option<LiveSecret> = cx.get_parts(&place.object(&SECRET, name), ["/type"])?;
    let Some(live) = live else {
        return Ok(Some(format!(
            "Secret {namespace}/{name} does not exist; make it as the documentation of models says"
        )));
    };
    let kind = live.r#type.unwrap_or_default();
    let is_usable = match needed {
        Use::Token => true,
        Use::Push => kind == DOCKER_CONFIG,
        // A kubelet reads both.
        Use::Pull => kind == DOCKER_CONFIG || kind == "kubernetes.io/dockercfg",
    };
    Ok((!is_usable).then(|| {
        format!(
            "Secret {namespace}/{name} is of type {kind}; for a registry it has to be of type \
             {DOCKER_CONFIG}, as kubectl create secret docker-registry makes it"
        )
    }))
}

/// The type of a Secret with which registries are logged in to.
const DOCKER_CONFIG: &str = "kubernetes.io/dockerconfigjson";

/// The account. All deployments share it: the first one makes it, and it stays.
pub(crate) fn account(
    place: &Place,
    settings: &Settings<'_>,
    cx: &Context,
) -> Result<Account, Failure> {
    let wanted = &settings.config.image_builder.service_account;
    let nothing = Account {
        object: None,
        missing: None,
        problem: None,
    };
    if settings.config.image_builder.builder == Builder::Mount {
        return Ok(nothing);
    }
    let reference = place.object(&SERVICE_ACCOUNT, &wanted.name);
    let parts = ["/metadata/labels", "/metadata/annotations"];
    let live: Option<LiveAccount> = cx.get_parts(&reference, parts)?;
    let ours = |live: &LiveAccount| live.metadata.labels.get(OF) == Some(&place.name);
    Ok(match &live {
        None if !wanted.create => Account {
            missing: Some(format!(
                "{reference} does not exist; make it, or set \
                 /imageBuilder/serviceAccount/create"
            )),
            ..nothing
        },
        Some(live) if !wanted.create || !ours(live) => Account {
            problem: lacking(&wanted.annotations, &live.metadata.annotations).map(|key| {
                format!(
                    "{reference} has another annotation {key} than \
                     /imageBuilder/serviceAccount/annotations says; annotate it, or delete it to \
                     have it made anew"
                )
            }),
            ..nothing
        },
        _ => Account {
            object: Some(account_of(place, &reference, &wanted.annotations)),
            ..nothing
        },
    })
}

fn account_of(
    place: &Place,
    reference: &ObjectReference,
    annotations: &BTreeMap<String, String>,
) -> Value {
    let mut annotations = annotations.clone();
    // It is not to go with whichever deployment was first.
    annotations.insert(DELETE.to_owned(), "never".to_owned());
    object(
        reference,
        json!({"labels": {OF: place.name}, "annotations": annotations}),
        "automountServiceAccountToken",
        json!(false),
    )
}

/// The first annotation that is wanted and not there.
fn lacking<'a>(
    wanted: &'a BTreeMap<String, String>,
    live: &BTreeMap<String, String>,
) -> Option<&'a str> {
    let mut wanted = wanted.iter();
    let lacking = wanted.find(|(key, value)| live.get(*key) != Some(value));
    lacking.map(|(key, _)| key.as_str())
}

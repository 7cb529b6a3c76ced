//! What a build and its pods need of others: Secrets, a ConfigMap, an account.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use crate::config::Builder;
use crate::names::{CONFIG_MAP, DELETE, OF, Place, SECRET, SERVICE_ACCOUNT, object};
use crate::settings::{Credentials, Settings};

/// Of an object of which only existence counts.
#[input]
struct Present {}

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

/// What is not there, or is of no use.
pub(crate) fn missing(
    place: &Place,
    settings: &Settings<'_>,
    cx: &Context,
) -> Result<Vec<String>, Failure> {
    let mut missing = Vec::new();
    let namespace = &place.namespace;
    let api = &*settings.config.datarobot.api_secret_name;
    for name in secrets(settings) {
        // Their type only: what they hold is none of a plugin's business.
        let secret: Option<LiveSecret> = cx.get_parts(&place.object(&SECRET, name), ["/type"])?;
        match secret {
            None => missing.push(format!(
                "Secret {namespace}/{name} does not exist; make it as the documentation of \
                 models says"
            )),
            Some(secret) if name != api => {
                let kind = secret.r#type.unwrap_or_default();
                if kind != "kubernetes.io/dockerconfigjson" {
                    missing.push(format!(
                        "Secret {namespace}/{name} is of type {kind}; for a registry it has to be \
                         of type kubernetes.io/dockerconfigjson, as kubectl create secret \
                         docker-registry makes it"
                    ));
                }
            }
            Some(_) => {}
        }
    }
    if let Credentials::ConfigMap(name) = settings.credentials {
        let reference = place.object(&CONFIG_MAP, name);
        let found: Option<Present> = cx.get_parts(&reference, ["/metadata/name"])?;
        if found.is_none() {
            missing.push(format!(
                "ConfigMap {namespace}/{name} does not exist; make it with a key config.json"
            ));
        }
    }
    Ok(missing)
}

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

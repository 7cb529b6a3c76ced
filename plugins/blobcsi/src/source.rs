//! What describes buckets, and what it answers.

use std::time::Duration;

use reeve_sdk::prelude::*;

use crate::CONFIG_MAP;
use crate::bucket::{self, Described};
use crate::config::{Buckets, Class, Config, Source};

/// The keys of the ConfigMap in the order in which they count: of two buckets with
/// one name, the first has it.
const KEYS: [(Class, bool); 4] = [
    (Class::Unclassified, true),
    (Class::ProtectedB, true),
    (Class::ProtectedB, false),
    (Class::Unclassified, false),
];

/// A description of buckets of one classification in one storage account.
pub(crate) struct Answer<'a> {
    pub(crate) class: Class,
    pub(crate) account: &'a str,
    /// Where it stands, for people.
    pub(crate) place: String,
    /// What it says, or why it says nothing.
    pub(crate) says: Result<Described, String>,
}

impl Answer<'_> {
    /// Whether all of it can be read, so that what is not in it is withdrawn.
    pub(crate) fn is_whole(&self) -> bool {
        self.says
            .as_ref()
            .is_ok_and(|said| said.unreadable.is_empty())
    }

    /// What is wrong with it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let place = &self.place;
        match &self.says {
            Ok(said) => said
                .unreadable
                .iter()
                .map(|one| format!("{place}: {one}"))
                .collect(),
            Err(error) => vec![format!("{place}: {error}")],
        }
    }
}

#[input]
struct ConfigMap {
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

/// Asks for all descriptions that the configuration names.
pub(crate) fn answers<'a>(config: &'a Config, cx: &Context) -> Result<Vec<Answer<'a>>, Failure> {
    match config.source() {
        Source::ConfigMap => of_config_map(config, cx),
        Source::Opa => of_opa(config, cx),
    }
}

/// What is read to have them.
pub(crate) fn declared(config: &Config, manifest: Manifest) -> Manifest {
    let map = &config.fdi.config_map;
    match config.source() {
        Source::ConfigMap if keys(config).next().is_some() => {
            let place = Scope::Namespaces(vec![map.namespace.clone()]);
            manifest.reads(ReadRule::new(CONFIG_MAP, place).names([&map.name]))
        }
        Source::ConfigMap => manifest,
        Source::Opa => gateways(config).fold(manifest, |manifest, (class, settings)| {
            manifest.source(
                SourceRule::url(class.name(), &settings.opa_endpoint)
                    .describe(format!("{} buckets, and who may use them", class.name()))
                    .every(Duration::from_secs(u64::from(config.fdi.poll_seconds))),
            )
        }),
    }
}

fn of_opa<'a>(config: &'a Config, cx: &Context) -> Result<Vec<Answer<'a>>, Failure> {
    let mut answers = Vec::new();
    for (class, settings) in gateways(config) {
        let says = match cx.source(class.name()) {
            Ok(document) => match std::str::from_utf8(&document.body) {
                Ok(text) => bucket::of_opa(text),
                Err(error) => Err(format!("no text: {error}")),
            },
            // Volumes of others need not wait.
            Err(ReadError::NotSynced(error) | ReadError::Forbidden(error)) => Err(error),
            Err(error) => return Err(error.into()),
        };
        answers.push(Answer {
            class,
            account: &settings.storage_account,
            place: format!("OPA gateway {}", settings.opa_endpoint),
            says,
        });
    }
    Ok(answers)
}

/// The OPA gateways that are asked.
fn gateways(config: &Config) -> impl Iterator<Item = (Class, &Buckets)> {
    let all = Class::ALL
        .into_iter()
        .map(|class| (class, config.fdi.of(class)));
    all.filter(|(_, settings)| !settings.opa_endpoint.is_empty())
}

fn of_config_map<'a>(config: &'a Config, cx: &Context) -> Result<Vec<Answer<'a>>, Failure> {
    let keys: Vec<_> = keys(config).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let map = &config.fdi.config_map;
    let reference = CONFIG_MAP.object(&map.name).in_namespace(&map.namespace);
    let found: Option<ConfigMap> = cx.get_parts(&reference, ["/data"])?;
    let answer = |(class, key, account): (Class, String, &'a str)| {
        let says = match &found {
            None => Err("it does not exist".to_owned()),
            Some(map) => match map.data.get(&key) {
                None => Err("there is no such key".to_owned()),
                Some(text) => bucket::of_config_map(text),
            },
        };
        let place = format!("{reference}: data[{key:?}]");
        Answer {
            class,
            account,
            place,
            says,
        }
    };
    Ok(keys.into_iter().map(answer).collect())
}

/// The keys that are looked at: those with a storage account.
fn keys(config: &Config) -> impl Iterator<Item = (Class, String, &str)> {
    KEYS.into_iter().filter_map(|(class, internal)| {
        let settings = config.fdi.of(class);
        let (word, account) = match internal {
            true => ("internal", &settings.internal_storage_account),
            false => ("external", &settings.external_storage_account),
        };
        let key = format!("fdi-{}-{word}.json", class.name());
        (!account.is_empty()).then_some((class, key, account.as_str()))
    })
}

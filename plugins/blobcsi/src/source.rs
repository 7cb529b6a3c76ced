//! What describes buckets, and what it answers.

use std::time::Duration;

use reeve_sdk::Strings;
use reeve_sdk::prelude::*;

use crate::CONFIG_MAP;
use crate::bucket::{self, Described, Unreadable};
use crate::config::{Buckets, Class, Config, Source};
use crate::live::malformed;

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
    /// Whether it may well name no bucket at all.
    pub(crate) may_be_empty: bool,
    /// Where it stands, for people.
    pub(crate) place: String,
    /// What it says, or why it says nothing.
    pub(crate) says: Result<Described, String>,
}

impl Answer<'_> {
    /// Whether it names no bucket at all, which nobody said may be.
    pub(crate) fn is_empty(&self) -> bool {
        !self.may_be_empty && self.says.as_ref().is_ok_and(Described::is_empty)
    }

    /// What of it that concerns a Profile cannot be read.
    pub(crate) fn unreadable(&self, profile: &str) -> impl Iterator<Item = &Unreadable> {
        let said = self.says.iter().flat_map(|said| &said.unreadable);
        said.filter(move |one| one.concerns(profile))
    }

    /// Tells what is wrong with it for a Profile. Returns whether any of that is a bucket
    /// which that Profile may be meant to read.
    pub(crate) fn tell(&self, profile: &str, problems: &mut Problems) -> bool {
        let (place, account) = (&self.place, self.account);
        if let Err(error) = &self.says {
            problems.add(format_args!("{place}: {error}"));
        }
        let mut names_one = false;
        for Unreadable { problem, which, .. } in self.unreadable(profile) {
            if which.is_known() {
                problems.add(format_args!("{place}: {problem}"));
                names_one = true;
                continue;
            }
            problems.add(format_args!(
                "{place}: {problem}, so nobody can tell which bucket it is about, and it may be any of \
                 storage account {account} ({})",
                self.class.name()
            ));
        }
        names_one
    }
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
            may_be_empty: settings.allow_empty_answer,
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
    let found: Option<Fields> = cx.get_parts(&reference, ["/data"])?;
    let data: Option<Strings> = found
        .map(|map| map.read("data").map_err(malformed(CONFIG_MAP)))
        .transpose()?;
    let answer = |(class, key, account): (Class, String, &'a str)| {
        let says = match &data {
            None => Err("it does not exist".to_owned()),
            Some(data) => match data.get(&key) {
                None => Err("there is no such key".to_owned()),
                Some(text) => bucket::of_config_map(text),
            },
        };
        let place = format!("{reference}: data[{key:?}]");
        Answer {
            class,
            account,
            may_be_empty: config.fdi.of(class).allow_empty_answer,
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

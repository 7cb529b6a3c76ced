//! Reading the documents, wherever they are.

use std::time::Duration;

use reeve_sdk::prelude::*;

use crate::configuration::{self, Configuration};
use crate::findings::Findings;
use crate::forms;
use crate::json::Json;
use crate::kinds::{CONFIG_MAP, SECRET};
use crate::settings::{Config, Entry, Located};

/// How often a URL is looked at. What is published under a version does not change.
const HOURLY: Duration = Duration::from_secs(3600);

impl Located<'_> {
    /// The place, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Secret(at) => format!("{}, entry {}", at.of(&SECRET), at.key),
            Self::ConfigMap(at) => format!("{}, entry {}", at.of(&CONFIG_MAP), at.key),
            Self::File(path) => format!("file {path}"),
            // What is behind a question mark may be for nobody to see.
            Self::Url(url) => url.split('?').next().unwrap_or_default().to_owned(),
        }
    }

    /// What is read to have the document, which is called `name` if it is outside.
    pub(crate) fn declared(&self, name: &str, manifest: Manifest) -> Manifest {
        let entry = |kind: Kind, at: &Entry<'_>| {
            let place = Scope::Namespaces(vec![at.namespace.to_owned()]);
            ReadRule::new(kind, place).names([at.name])
        };
        match self {
            Self::Secret(at) => manifest.reads(entry(SECRET, at)),
            Self::ConfigMap(at) => manifest.reads(entry(CONFIG_MAP, at)),
            Self::File(path) => {
                let about = format!("the document {name} of the packs");
                manifest.source(SourceRule::file(name, *path).describe(about))
            }
            Self::Url(url) => {
                let about = format!("the document {name} of the packs");
                let source = SourceRule::url(name, *url).describe(about);
                manifest.source(source.every(HOURLY))
            }
        }
    }

    /// The text of the document; none where there is no such object or entry.
    pub(crate) fn read(&self, name: &str, cx: &Context) -> Result<Option<String>, Failure> {
        let bytes = match self {
            Self::Secret(at) => {
                let entry = at.read(&SECRET, cx)?;
                let decode = |text: String| {
                    forms::decode(&text)
                        .or_terminal(format_args!("{} is no base64", self.describe()))
                };
                entry.map(decode).transpose()?
            }
            Self::ConfigMap(at) => at.read(&CONFIG_MAP, cx)?.map(String::into_bytes),
            Self::File(_) | Self::Url(_) => Some(cx.source(name)?.body),
        };
        let text = |bytes| {
            String::from_utf8(bytes)
                .ok()
                .or_terminal(format_args!("{} is no UTF-8", self.describe()))
        };
        bytes.map(text).transpose()
    }
}

impl Entry<'_> {
    fn of(&self, kind: &Kind) -> ObjectReference {
        kind.object(self.name).in_namespace(self.namespace)
    }

    fn read(&self, kind: &Kind, cx: &Context) -> Result<Option<String>, Failure> {
        let part = format!("/data/{}", self.key);
        let found: Option<Json> = cx.get_parts(&self.of(kind), [&part])?;
        let text = found.as_ref().and_then(|Json(found)| found.pointer(&part));
        Ok(text.and_then(Value::as_str).map(str::to_owned))
    }
}

/// The name of the configuration where it is a file.
const CONFIGURATION: &str = "configuration";

/// What is read to have the configuration.
pub(crate) fn declare_configuration(config: &Config, manifest: Manifest) -> Manifest {
    config.configuration().declared(CONFIGURATION, manifest)
}

/// The configuration, with what should be said of it.
pub(crate) fn configuration(
    config: &Config,
    cx: &Context,
) -> Result<(Configuration, Findings), Failure> {
    let place = config.configuration();
    let name = described(configuration::DOCUMENT, &place);
    let text = place.read(CONFIGURATION, cx)?;
    let text = text.or_not_ready(format_args!("{name} is not there yet; store it"))?;
    let mut findings = Findings::default();
    let parsed = Configuration::parse(&text, &mut findings);
    if let (Some(parsed), Located::ConfigMap(_)) = (&parsed, &place) {
        for path in parsed.secrets() {
            findings.error(
                path,
                "a secret, which a ConfigMap does not keep; use a Secret",
            );
        }
    }
    findings.check(&name)?;
    let parsed = parsed.or_terminal(format_args!("{name} cannot be used"))?;
    Ok((parsed, findings))
}

/// A document and its place, for people.
pub(crate) fn described(document: &str, place: &Located<'_>) -> String {
    format!("{document} ({})", place.describe())
}

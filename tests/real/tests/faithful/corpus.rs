//! Scenarios as data.
//!
//! A scenario is a list of requests that are sent in order, in a namespace of
//! their own. A request is a map whose first key is the method:
//!
//! ```yaml
//! - scenario: a ConfigMap is replaced
//!   steps:
//!   - POST: /api/v1/namespaces/$ns/configmaps
//!     body: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
//!     save: made
//!   - PUT: /api/v1/namespaces/$ns/configmaps/a
//!     edit: {of: made, set: {/data/x: "1"}}
//! ```
//!
//! | Key | Meaning |
//! |---|---|
//! | `body`, `apply`, `merge`, `strategic`, `json` | the body as JSON, with the content type that goes with it |
//! | `text` | the body as it is |
//! | `repeat` | `{before, unit, times, middle, close, after}`: a body too long to be written down, `unit` so many times, and `close` as many |
//! | `long` | `{unit, times}`: what `$long` stands for in the path, with the number of each in place of `#` |
//! | `edit` | `{of, set, remove}`: a saved answer with changes at JSON pointers |
//! | `headers`, `accept`, `type` | headers; `accept` and `type` for the two most used. With `Authorization` among them no token is added; an empty one means no credentials at all |
//! | `as` | the token of the caller, in place of the administrator's |
//! | `save` | keeps the answer: `${name.metadata.uid}` is a text of it, from then on |
//! | `until` | asks again until this is the status |
//! | `where` | with `until`: `{pointer: value}` that the answer must have, too |
//! | `watch` | a GET that stays open under this name |
//! | `events` | in place of a method: reads from that watch, `count` events, those `through` the first one about an object of this name, or all to its end |
//!
//! A scenario with `alone: true` is played when all others are over: what it makes means
//! something to the whole cluster, and is deleted at its end.
//!
//! `$ns` is the namespace; `${ns}.example.com` serves as a group.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A list of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    #[serde(rename = "scenario")]
    pub(crate) name: String,
    /// Whether it changes what the requests of others come to, and is played by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) alone: bool,
    pub(crate) steps: Vec<Step>,
}

impl Scenario {
    /// Whether it waits for a state.
    pub(crate) fn waits(&self) -> bool {
        self.steps.iter().any(|step| step.until.is_some())
    }
}

/// One request, or a look at a watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "lowercase")]
pub(crate) struct Step {
    #[serde(rename = "GET", skip_serializing_if = "Option::is_none")]
    pub(crate) get: Option<String>,
    #[serde(rename = "HEAD", skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    #[serde(rename = "POST", skip_serializing_if = "Option::is_none")]
    pub(crate) post: Option<String>,
    #[serde(rename = "PUT", skip_serializing_if = "Option::is_none")]
    pub(crate) put: Option<String>,
    #[serde(rename = "PATCH", skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
    #[serde(rename = "DELETE", skip_serializing_if = "Option::is_none")]
    pub(crate) delete: Option<String>,
    #[serde(rename = "OPTIONS", skip_serializing_if = "Option::is_none")]
    pub(crate) options: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) through: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) apply: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategic: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<Repeat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) edit: Option<Edit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) long: Option<Long>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Texts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) save: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<u16>,
    #[serde(rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) having: BTreeMap<String, Value>,
}

/// One value of a header, or several of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }
}

/// A body that is too long to be written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Repeat {
    pub(crate) before: String,
    pub(crate) unit: String,
    pub(crate) times: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) middle: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) close: String,
    pub(crate) after: String,
}

/// A part of a path that is too long to be written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Long {
    pub(crate) unit: String,
    pub(crate) times: usize,
}

impl Long {
    /// What is put into the path.
    pub(crate) fn text(&self) -> String {
        let units = (0..self.times).map(|number| self.unit.replace('#', &number.to_string()));
        units.collect()
    }
}

/// A saved answer with changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Edit {
    pub(crate) of: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) set: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<String>,
}

/// Whom requests come from that do not say it themselves.
const USER_AGENT: &str = "faithful/1";

impl Step {
    /// A request without a body.
    pub(crate) fn request(method: &str, path: impl Into<String>) -> Self {
        let mut step = Self::default();
        let path = Some(path.into());
        match method {
            "GET" => step.get = path,
            "HEAD" => step.head = path,
            "POST" => step.post = path,
            "PUT" => step.put = path,
            "PATCH" => step.patch = path,
            "OPTIONS" => step.options = path,
            _ => step.delete = path,
        }
        step
    }

    /// The method and the path; none for a look at a watch.
    pub(crate) fn target(&self) -> Option<(&'static str, &str)> {
        let methods = [
            ("GET", &self.get),
            ("HEAD", &self.head),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("OPTIONS", &self.options),
        ];
        methods
            .into_iter()
            .find_map(|(method, path)| Some((method, path.as_deref()?)))
    }

    /// What the step does, in a line.
    pub(crate) fn title(&self) -> String {
        match (self.target(), &self.events) {
            (Some((method, path)), _) => format!("{method} {path}"),
            (None, Some(watch)) => format!("events {watch}"),
            (None, None) => "nothing".to_owned(),
        }
    }

    /// The body as JSON and what it is called.
    pub(crate) fn json_body(&self) -> Option<(&Value, &'static str)> {
        let bodies = [
            (&self.body, "application/json"),
            (&self.apply, "application/apply-patch+yaml"),
            (&self.merge, "application/merge-patch+json"),
            (&self.strategic, "application/strategic-merge-patch+json"),
            (&self.json, "application/json-patch+json"),
        ];
        bodies
            .into_iter()
            .find_map(|(body, media)| Some((body.as_ref()?, media)))
    }

    /// The headers, before anything is put in for variables.
    pub(crate) fn all_headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let given = |name: &str| self.headers.keys().any(|k| k.eq_ignore_ascii_case(name));
        if !given("user-agent") {
            headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        let media = match (&self.content_type, self.json_body(), &self.edit) {
            (Some(media), ..) => Some(media.as_str()),
            (None, Some((_, media)), _) => Some(media),
            (None, None, Some(_)) => Some("application/json"),
            (None, None, None) => None,
        };
        if let Some(media) = media {
            headers.push(("content-type".to_owned(), media.to_owned()));
        }
        if let Some(accept) = &self.accept {
            headers.push(("accept".to_owned(), accept.clone()));
        }
        for (name, values) in &self.headers {
            for value in values.all() {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers
    }
}

/// Reads all scenarios below `folder`; each is called `file/name`.
pub(crate) fn read(folder: &Path) -> Result<Vec<Scenario>> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    let mut scenarios = Vec::new();
    for file in files {
        let behaviour = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&file)?;
        let read: Vec<Scenario> =
            parse(&text).with_context(|| format!("cannot read {}", file.display()))?;
        scenarios.extend(read.into_iter().map(|mut scenario| {
            scenario.name = format!("{behaviour}/{}", scenario.name);
            scenario
        }));
    }
    Ok(scenarios)
}

/// Reads YAML by way of JSON, so that numbers and texts stay what they are.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options)?;
    Ok(serde_json::from_value(value)?)
}

/// Scenarios as a file of the corpus.
pub(crate) fn print(scenarios: &[Scenario]) -> Result<String> {
    Ok(serde_saphyr::to_string(&serde_json::to_value(scenarios)?)?)
}

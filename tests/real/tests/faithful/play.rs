//! Plays a scenario on one server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::corpus::{Edit, Repeat, Scenario, Step};
use crate::exchange::{Answer, Caller, Endpoint, Message, Next, Opened, Watch};

/// How long to wait for an event that must come, or for a state.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long to wait for an event that must not come.
const SILENCE: Duration = Duration::from_millis(150);
/// How long to wait for the next event before one that must come: a scenario that is
/// made smaller may have lost it.
const MARKED: Duration = Duration::from_secs(10);
/// How often to look for a state.
const INTERVAL: Duration = Duration::from_millis(20);

/// What a step came to.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// A request was answered.
    Answer(Answer),
    /// Events of a watch, and whether it ended.
    Events(Vec<String>, bool),
}

/// What was saved, and the namespace.
struct Scope<'a> {
    namespace: &'a str,
    saved: BTreeMap<String, Value>,
}

/// Sends the requests of a scenario, in `namespace`, which is made first.
pub(crate) async fn play(
    endpoint: &Endpoint,
    scenario: &Scenario,
    namespace: &str,
) -> Result<Vec<Outcome>> {
    let mut player = Player::new(endpoint, namespace).await?;
    let mut outcomes = Vec::with_capacity(scenario.steps.len());
    for step in &scenario.steps {
        let outcome = player.step(step).await;
        outcomes.push(outcome.with_context(|| format!("{}: {}", scenario.name, step.title()))?);
    }
    Ok(outcomes)
}

/// Somebody who plays steps, one after the other.
pub(crate) struct Player<'a> {
    endpoint: &'a Endpoint,
    caller: Caller,
    watches: BTreeMap<String, Watch>,
    scope: Scope<'a>,
}

impl<'a> Player<'a> {
    pub(crate) async fn new(endpoint: &'a Endpoint, namespace: &'a str) -> Result<Self> {
        let mut caller = Caller::new(endpoint);
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let made = caller
            .send(&Message {
                method: "POST".to_owned(),
                path: "/api/v1/namespaces".to_owned(),
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                body: object.to_string().into(),
                token: None,
            })
            .await?;
        if made.status != 201 {
            bail!("namespace {namespace} cannot be made: {:?}", made.body);
        }
        let mut player = Self {
            endpoint,
            caller,
            watches: BTreeMap::new(),
            scope: Scope {
                namespace,
                saved: BTreeMap::new(),
            },
        };
        // Comes by itself; pods and lists are as it is there or not.
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let started = Instant::now();
        while player.look(&account).await?.is_none() {
            if started.elapsed() > PATIENCE {
                bail!("namespace {namespace} gets no service account");
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(player)
    }

    /// Reads one object beside the scenario, without leaving a trace in it.
    pub(crate) async fn look(&mut self, path: &str) -> Result<Option<Value>> {
        let path = self.scope.text(path);
        let answer = self
            .caller
            .send(&Message {
                method: "GET".to_owned(),
                path,
                ..Message::default()
            })
            .await?;
        Ok(match answer.status {
            200 => Some(serde_json::from_slice(&answer.body)?),
            _ => None,
        })
    }

    /// A value with everything put in.
    pub(crate) fn resolve(&self, value: &Value) -> Value {
        self.scope.value(value)
    }

    /// What a step sends.
    pub(crate) fn message(&self, step: &Step) -> Result<Message> {
        self.scope.message(step)
    }

    pub(crate) async fn step(&mut self, step: &Step) -> Result<Outcome> {
        if let Some(name) = &step.events {
            let through = step.through.as_deref().map(|name| self.scope.text(name));
            return self.events(name, step.count, through.as_deref()).await;
        }
        let message = self.scope.message(step)?;
        if let Some(name) = &step.watch {
            return Ok(match Watch::open(self.endpoint, &message).await? {
                Opened::Watch(watch, answer) => {
                    self.watches.insert(name.clone(), watch);
                    Outcome::Answer(answer)
                }
                Opened::Refused(answer) => Outcome::Answer(answer),
            });
        }
        let answer = self.send(step, &message).await?;
        if let Some(name) = &step.save {
            let value = serde_json::from_slice(&answer.body).unwrap_or_default();
            self.scope.saved.insert(name.clone(), value);
        }
        Ok(Outcome::Answer(answer))
    }

    /// Sends a request, again and again where a state is waited for, and where it meets what
    /// serves a definition's objects while that is made anew.
    async fn send(&mut self, step: &Step, message: &Message) -> Result<Answer> {
        let started = Instant::now();
        loop {
            let answer = self.caller.send(message).await?;
            if is_made_anew(&answer) && started.elapsed() < PATIENCE {
                tokio::time::sleep(INTERVAL).await;
                continue;
            }
            let Some(status) = step.until else {
                return Ok(answer);
            };
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let is = |(pointer, value): (&String, &Value)| body.pointer(pointer) == Some(value);
            let there = answer.status == status && step.having.iter().all(is);
            if there || started.elapsed() > PATIENCE {
                return Ok(answer);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn events(
        &mut self,
        name: &str,
        count: Option<usize>,
        through: Option<&str>,
    ) -> Result<Outcome> {
        let Some(watch) = self.watches.get_mut(name) else {
            // It was refused, which shows where it was opened.
            return Ok(Outcome::Events(Vec::new(), true));
        };
        let mut events = Vec::new();
        loop {
            let enough = count.is_some_and(|count| events.len() >= count);
            let patience = match through {
                Some(_) => MARKED,
                None if enough => SILENCE,
                None => PATIENCE,
            };
            match watch.next(patience).await {
                Next::Event(line) => {
                    let is_last = through.is_some_and(|name| is_about(&line, name));
                    events.push(line);
                    if is_last {
                        return Ok(Outcome::Events(events, false));
                    }
                }
                Next::End => return Ok(Outcome::Events(events, true)),
                Next::Silence => return Ok(Outcome::Events(events, false)),
            }
        }
    }
}

/// Whether kube-apiserver refuses a request since it met the handler of a custom resource
/// while another takes its place, which happens a moment after the definition was made or
/// changed (`crdHandler` of k8s.io/apiextensions-apiserver, whose words these are). Nothing
/// was done.
fn is_made_anew(answer: &Answer) -> bool {
    let body: Value = match answer.status {
        503 => serde_json::from_slice(&answer.body).unwrap_or_default(),
        _ => return false,
    };
    body["message"] == "apiserver is shutting down"
}

/// Whether an event is about an object of this name.
fn is_about(line: &str, name: &str) -> bool {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    let found = event.pointer("/object/metadata/name");
    found.and_then(Value::as_str) == Some(name)
}

impl Scope<'_> {
    fn message(&self, step: &Step) -> Result<Message> {
        let (method, path) = step.target().context("a step without a method")?;
        let headers = step.all_headers().into_iter();
        Ok(Message {
            method: method.to_owned(),
            path: match &step.long {
                Some(long) => self.text(&path.replace("$long", &long.text())),
                None => self.text(path),
            },
            headers: headers
                .map(|(name, value)| (name, self.text(&value)))
                .collect(),
            body: self.body(step),
            token: step.token.as_deref().map(|token| self.text(token)),
        })
    }

    fn body(&self, step: &Step) -> Bytes {
        if let Some((body, _)) = step.json_body() {
            return self.value(body).to_string().into();
        }
        if let Some(edit) = &step.edit {
            return self.edited(edit).to_string().into();
        }
        if let Some(repeat) = &step.repeat {
            let (open, close) = (&repeat.unit, &repeat.close);
            let (open, close) = (open.repeat(repeat.times), close.repeat(repeat.times));
            let Repeat {
                before,
                middle,
                after,
                ..
            } = repeat;
            return self
                .text(&format!("{before}{open}{middle}{close}{after}"))
                .into();
        }
        self.text(step.text.as_deref().unwrap_or_default()).into()
    }

    fn edited(&self, edit: &Edit) -> Value {
        let mut value = self.saved.get(&edit.of).cloned().unwrap_or_default();
        for pointer in &edit.remove {
            if let Some((parent, key)) = pointer.rsplit_once('/') {
                let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
                parent.and_then(|parent| parent.remove(&key.replace("~1", "/")));
            }
        }
        for (pointer, new) in &edit.set {
            put(&mut value, pointer, self.value(new));
        }
        value
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (self.text(key), self.value(value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// `text` with the namespace and what was saved put in.
    fn text(&self, text: &str) -> String {
        if !text.contains('$') {
            return text.to_owned();
        }
        let text = text
            .replace("${ns}", self.namespace)
            .replace("$ns", self.namespace);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(&self.saved_text(name));
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn saved_text(&self, name: &str) -> String {
        let (name, path) = name.split_once('.').unwrap_or((name, ""));
        let pointer: String = path.split('.').map(|part| format!("/{part}")).collect();
        let value = self
            .saved
            .get(name)
            .and_then(|value| value.pointer(&pointer));
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "absent".to_owned(),
        }
    }
}

/// Sets what `pointer` names, with all that has to be above it.
pub(crate) fn put(value: &mut Value, pointer: &str, new: Value) {
    let mut at = value;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let index = part.parse::<usize>().ok();
        let item = index.filter(|index| at.get(index).is_some());
        at = match item {
            Some(index) => &mut at[index],
            None => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[part]
            }
        };
    }
    *at = new;
}

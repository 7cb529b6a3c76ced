//! Answers without what two servers cannot have in common: uids, times, versions,
//! names and addresses that they chose.
//!
//! What is replaced is numbered in the order in which it shows up, so that two
//! answers stay different when one server sent the same version twice and the
//! other two versions.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::jiff::Timestamp;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::chance::{order_of_owners, sort_causes, sort_complaints, sorted_json, without_chance};
use crate::corpus;
use crate::exchange::Answer;
use crate::play::Outcome;

/// The headers that callers act upon. `date`, lengths and ids of requests are
/// left out.
const HEADERS: &[&str] = &[
    "content-type",
    "content-encoding",
    "warning",
    "retry-after",
    "www-authenticate",
    "allow",
    "cache-control",
    "location",
    "vary",
];

/// How a refusal names the prefix of a generated name.
const BAD_PREFIX: &str = "metadata.generateName: Invalid value: \"";
/// How many letters a server adds to a prefix.
const SUFFIX: usize = 5;

/// Times this near were given by the server; others by the caller.
const NEAR: i64 = 4 * 3600;

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
/// Where messages name versions.
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(in record \(|current: |too old resource version: \d+ \()(\d+)"));
/// Where they name one that the caller named, who has it from an answer or made it up.
static ASKED_VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(too old resource version: )(\d+)"));
/// Addresses and ports that a server chooses from its ranges.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.(0\.0|96\.\d+)\.\d+\b"));
static NODE_PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r":3[0-2]\d{3}/"));
/// The volume that a pod gets for its token.
static TOKEN_VOLUME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhdy])+$"));

#[expect(clippy::unwrap_used, reason = "patterns are literals")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// What one server has called things so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The namespace of the scenario, which has another one in each run.
    namespace: String,
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
    /// The states that each object was seen in.
    seen: BTreeMap<String, Vec<State>>,
    made: BTreeMap<String, String>,
    ports: BTreeMap<i64, usize>,
}

/// A state of an object, and the versions that differ in nothing but times.
#[derive(Debug)]
struct State {
    versions: Vec<String>,
    content: Value,
    times: Vec<Value>,
}

/// An object without its version and the times of its owners, in any order, and those
/// times.
fn without_times(object: &Map<String, Value>) -> (Value, Vec<Value>) {
    let mut content = Value::Object(object.clone());
    let metadata = &mut content["metadata"];
    metadata["resourceVersion"] = Value::Null;
    let mut times = Vec::new();
    if let Some(owners) = metadata["managedFields"].as_array_mut() {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            times.push(owner.remove("time").unwrap_or_default());
        }
        owners.sort_by_key(ToString::to_string);
    }
    (content, times)
}

impl Names {
    /// Nothing yet, but for the namespace of the scenario.
    pub(crate) fn of(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// What a step came to, in the form that is compared.
    pub(crate) fn normal(&mut self, outcome: &Outcome) -> Value {
        match outcome {
            Outcome::Answer(answer) => self.answer(answer),
            Outcome::Events(events, ended) => {
                let mut told = BTreeMap::new();
                let events: Vec<Value> = events
                    .iter()
                    .map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
                    .filter(|event| !is_chance(event) && !is_told(&mut told, event))
                    .map(|event| self.event(event))
                    .collect();
                json!({"events": events, "ended": ended})
            }
        }
    }

    fn answer(&mut self, answer: &Answer) -> Value {
        let mut headers = Map::new();
        for (name, value) in &answer.headers {
            if HEADERS.contains(&name.as_str())
                && let Some(values) = headers
                    .entry(name.clone())
                    .or_insert_with(|| json!([]))
                    .as_array_mut()
            {
                values.push(json!(value));
            }
        }
        let zipped = answer
            .headers
            .iter()
            .any(|(name, value)| name == "content-encoding" && value == "gzip");
        let bytes = if zipped {
            let mut bytes = Vec::new();
            match flate2::read::GzDecoder::new(&*answer.body).read_to_end(&mut bytes) {
                Ok(_) => bytes,
                Err(error) => error.to_string().into_bytes(),
            }
        } else {
            answer.body.to_vec()
        };
        let is_yaml = answer
            .headers
            .iter()
            .any(|(name, value)| name == "content-type" && value == "application/yaml");
        let body = match serde_json::from_slice::<Value>(&bytes) {
            Ok(body) if body.is_object() => self.body(body),
            _ if is_yaml => match corpus::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(body) => self.body(body),
                Err(error) => json!(error.to_string()),
            },
            _ => {
                let text = String::from_utf8_lossy(&bytes);
                json!(self.text(&text))
            }
        };
        json!({"status": answer.status, "headers": headers, "body": body})
    }

    fn event(&mut self, mut event: Value) -> Value {
        // A bookmark may be of any version.
        if event["type"] == "BOOKMARK" {
            event["object"]["metadata"]["resourceVersion"] = json!("<some version>");
        }
        let body = event["object"].take();
        event["object"] = self.body(body);
        // How many writes lie behind depends on those that only brought times.
        let version = event.pointer_mut("/object/metadata/resourceVersion");
        if let Some(Value::String(version)) = version
            && (version.ends_with(" versions back>") || version == "<same version>")
        {
            *version = "<known version>".to_owned();
        }
        event
    }

    /// The top of an answer, where lists and tables have versions of their own.
    fn body(&mut self, mut body: Value) -> Value {
        let kind = body["kind"].as_str().unwrap_or_default().to_owned();
        let is_table = kind == "Table";
        // A page that has expired tells where to go on.
        let is_list = kind.ends_with("List") || is_table || kind == "Status";
        if is_list && let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            if metadata.contains_key("resourceVersion") {
                metadata.insert("resourceVersion".to_owned(), json!("<some version>"));
            }
            if let Some(Value::String(token)) = metadata.get("continue").cloned()
                && !token.is_empty()
            {
                metadata.insert("continue".to_owned(), readable(&token));
            }
        }
        if is_table {
            hide_ages(&mut body);
        }
        match kind.as_str() {
            "APIGroupList" => self.hide_groups(&mut body["groups"], "/name"),
            "APIGroupDiscoveryList" => self.hide_groups(&mut body["items"], "/metadata/name"),
            _ => {}
        }
        self.learn(&body);
        self.value(&mut body, "");
        // What a user may do is collected from roles in any order.
        if body["kind"] == "SelfSubjectRulesReview" {
            for rules in ["resourceRules", "nonResourceRules"] {
                if let Some(rules) = body["status"][rules].as_array_mut() {
                    rules.sort_by_key(ToString::to_string);
                }
            }
        }
        match body["reason"].as_str() {
            Some("Invalid") => sort_complaints(&mut body),
            // Who owns what is found out in any order.
            Some("Conflict") => {
                sort_causes(&mut body);
            }
            _ => {}
        }
        body
    }

    /// Leaves out the groups that other scenarios define, and drop again.
    fn hide_groups(&self, groups: &mut Value, name: &str) {
        let own = format!("{}.example.com", self.namespace);
        let stays = |group: &Value| {
            let name = group.pointer(name).and_then(Value::as_str);
            name.is_some_and(|name| name == own || !name.ends_with(".example.com"))
        };
        if let Some(groups) = groups.as_array_mut() {
            groups.retain(stays);
        }
    }

    /// Finds the names that the server made up.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let text = |field: &str| fields.get(field).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name")) {
                    self.learn_name(prefix, name);
                }
                // A refused one is in the message.
                if let Some(message) = text("message")
                    && let Some((_, rest)) = message.split_once(BAD_PREFIX)
                    && let Some((prefix, _)) = rest.split_once('"')
                    && let Some(name) = value.pointer("/details/name").and_then(Value::as_str)
                {
                    self.learn_name(prefix, name);
                }
                fields.values().for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    /// Says whether an object is in the version that it was last seen in. Counted for
    /// each object by itself, so that one difference does not make all that follow
    /// it different. A version that only brings new times of owners is no other one:
    /// whether a second passes between two requests is chance.
    fn version_of(&mut self, object: &mut Map<String, Value>) {
        let text = |field: &str| object.get("metadata")?.get(field)?.as_str();
        let (Some(uid), Some(version)) = (text("uid"), text("resourceVersion")) else {
            return;
        };
        let (uid, version) = (uid.to_owned(), version.to_owned());
        numbered(&mut self.versions, version.clone());
        let (content, times) = without_times(object);
        let seen = self.seen.entry(uid).or_default();
        let known = |state: &State| state.versions.contains(&version);
        let shown = match seen.iter().rev().position(known) {
            Some(0) => "<same version>".to_owned(),
            Some(back) => format!("<{back} versions back>"),
            None => match seen.last_mut() {
                Some(last) if last.content == content && last.times != times => {
                    last.versions.push(version);
                    last.times = times;
                    "<same version>".to_owned()
                }
                _ => {
                    seen.push(State {
                        versions: vec![version],
                        content,
                        times,
                    });
                    "<new version>".to_owned()
                }
            },
        };
        object["metadata"]["resourceVersion"] = json!(shown);
    }

    fn learn_name(&mut self, prefix: &str, name: &str) {
        // A long prefix is cut off.
        let kept = name.len().saturating_sub(SUFFIX);
        if prefix
            .get(..kept)
            .is_some_and(|kept| name.starts_with(kept))
        {
            let (kept, number) = (&name[..kept], self.made.len());
            self.made
                .entry(name.to_owned())
                .or_insert_with(|| format!("{kept}<generated {number}>"));
        }
    }

    #[expect(
        clippy::collapsible_match,
        reason = "other versions are not for the arms below"
    )]
    fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => {
                self.version_of(fields);
                // Owners are told by uid also in the keys of sets of fields.
                for (key, mut value) in std::mem::take(fields) {
                    if key == "managedFields" {
                        order_of_owners(&mut value);
                    }
                    self.value(&mut value, &key);
                    let key = if UUID.is_match(&key) {
                        self.text(&key)
                    } else {
                        key
                    };
                    fields.insert(key, value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, key)),
            Value::String(text) if key == "resourceVersion" && !text.is_empty() => {
                if text.bytes().all(|byte| byte.is_ascii_digit()) {
                    let number = numbered(&mut self.versions, text.clone());
                    *text = format!("<version {number}>");
                }
            }
            Value::String(text) if key == "token" && text.len() > 40 => {
                *text = "<token>".to_owned();
            }
            Value::String(text) => *text = self.text(text),
            Value::Number(port) if matches!(key, "nodePort" | "healthCheckNodePort") => {
                if let Some(port) = port.as_i64().filter(|port| (30_000..32_768).contains(port)) {
                    *value = json!(format!("<port {}>", numbered(&mut self.ports, port)));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let text = without_chance(text);
        let text = sorted_json(&text);
        let mut text = UUID
            .replace_all(&text, |found: &Captures<'_>| {
                format!("<uid {}>", numbered(&mut self.uids, found[0].to_owned()))
            })
            .into_owned();
        text = TIME
            .replace_all(&text, |found: &Captures<'_>| near(&found[0]))
            .into_owned();
        text = VERSION
            .replace_all(&text, |found: &Captures<'_>| {
                let shown = match self.versions.get(&found[2]) {
                    Some(number) => format!("<version {number}>"),
                    None => "<some version>".to_owned(),
                };
                format!("{}{shown}", &found[1])
            })
            .into_owned();
        text = ASKED_VERSION
            .replace_all(&text, |found: &Captures<'_>| {
                let shown = match self.versions.get(&found[2]) {
                    Some(number) => format!("<version {number}>"),
                    None => found[2].to_owned(),
                };
                format!("{}{shown}", &found[1])
            })
            .into_owned();
        text = ADDRESS.replace_all(&text, "<address>").into_owned();
        text = NODE_PORT.replace_all(&text, ":<port>/").into_owned();
        text = TOKEN_VOLUME
            .replace_all(&text, "${1}<generated>")
            .into_owned();
        for (name, shown) in &self.made {
            text = text.replace(name, shown);
        }
        if !self.namespace.is_empty() {
            text = text.replace(&self.namespace, "$ns");
        }
        text
    }
}

fn numbered<K: Ord>(known: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = known.len();
    *known.entry(key).or_insert(next)
}

/// A time, unless the caller gave it.
fn near(text: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    match text.parse::<Timestamp>() {
        Ok(time) if (time.as_second() - now).abs() < NEAR => {
            let fraction = if text.contains('.') {
                " with fraction"
            } else {
                ""
            };
            format!("<time{fraction}>")
        }
        _ => text.to_owned(),
    }
}

/// A bookmark that tells of nothing but the passing of time.
fn is_chance(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event.pointer("/object/metadata/annotations").is_none()
}

/// Whether a change only brought times: it shows in the answer to the write, and whether
/// there was one is chance. `told` has the last version and content of each object.
fn is_told(told: &mut BTreeMap<String, (Value, Value)>, event: &Value) -> bool {
    let object = &event["object"];
    let (Some(fields), Some(uid)) = (object.as_object(), object["metadata"]["uid"].as_str()) else {
        return false;
    };
    let version = object["metadata"]["resourceVersion"].clone();
    let (content, _) = without_times(fields);
    let is_told = event["type"] == "MODIFIED"
        && told
            .get(uid)
            .is_some_and(|(last_version, last)| *last_version != version && *last == content);
    told.insert(uid.to_owned(), (version, content));
    is_told
}

/// A continue token, without the version, unless it stands for the latest one.
fn readable(token: &str) -> Value {
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut token) => {
            if token["rv"] != json!(-1) {
                token["rv"] = json!("<some version>");
            }
            token
        }
        Err(_) => json!("<unreadable>"),
    }
}

/// How old an object is depends on when one looks.
fn hide_ages(table: &mut Value) {
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
                *cell = json!("<age>");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn check(value: Value, expected: Value) {
        let mut names = Names::default();
        assert_eq!(names.body(value), expected);
    }

    #[test]
    fn what_servers_choose_is_numbered() {
        let (a, b) = (
            "00000000-0000-4000-8000-000000000001",
            "00000000-0000-4000-8000-000000000002",
        );
        check(
            json!({"metadata": {"uid": a, "resourceVersion": "7"}, "message": format!("{b} is not {a}")}),
            json!({"metadata": {"uid": "<uid 1>", "resourceVersion": "<new version>"}, "message": "<uid 0> is not <uid 1>"}),
        );
        check(
            json!({"metadata": {"generateName": "a-", "name": "a-xyzzy"}, "message": "a-xyzzy"}),
            json!({"metadata": {"generateName": "a-", "name": "a-<generated 0>"}, "message": "a-<generated 0>"}),
        );
        check(
            json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}}),
            json!({"kind": "PodList", "metadata": {"resourceVersion": "<some version>"}}),
        );
    }

    #[test]
    fn times_of_the_caller_stay() {
        check(
            json!({"at": "2001-01-01T00:00:00Z"}),
            json!({"at": "2001-01-01T00:00:00Z"}),
        );
        let now = Timestamp::now().to_string();
        assert!(near(&now).starts_with("<time"));
    }

    #[test]
    fn new_times_alone_are_no_new_version() {
        let mut names = Names::default();
        let mut check = |version: &str, time: &str, data: &str, expected: &str| {
            let shown = names.body(json!({
                "metadata": {
                    "uid": "u",
                    "resourceVersion": version,
                    "managedFields": [{"manager": "m", "time": time}],
                },
                "data": data,
            }));
            assert_eq!(shown["metadata"]["resourceVersion"], expected, "{version}");
        };
        check("1", "a", "x", "<new version>");
        check("1", "a", "x", "<same version>");
        check("2", "b", "x", "<same version>");
        check("1", "a", "x", "<same version>");
        // A write for nothing, and one of something.
        check("3", "b", "x", "<new version>");
        check("4", "c", "y", "<new version>");
        check("2", "b", "x", "<2 versions back>");
    }

    #[test]
    fn events_that_only_bring_times_are_left_out() {
        let event = |kind: &str, version: &str, time: &str, data: &str| {
            json!({"type": kind, "object": {
                "metadata": {
                    "uid": "u",
                    "resourceVersion": version,
                    "managedFields": [{"manager": "m", "time": time}],
                },
                "data": data,
            }})
            .to_string()
        };
        let events = [
            event("ADDED", "1", "a", "x"),
            event("MODIFIED", "2", "b", "x"),
            event("MODIFIED", "3", "b", "y"),
            // The same twice is a fault of the server.
            event("MODIFIED", "3", "b", "y"),
            event("DELETED", "4", "b", "y"),
        ];
        let shown = Names::default().normal(&Outcome::Events(events.into(), false));
        let types: Vec<_> = shown["events"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|event| (event["type"].as_str(), event["object"]["data"].as_str()))
            .collect();
        assert_eq!(
            types,
            [
                (Some("ADDED"), Some("x")),
                (Some("MODIFIED"), Some("y")),
                (Some("MODIFIED"), Some("y")),
                (Some("DELETED"), Some("y")),
            ]
        );
    }

    #[test]
    fn quoted_owners_are_in_any_order() {
        let quoted = |first: &str, second: &str| {
            let entry = |manager| json!({"manager": manager, "operation": "Update"});
            let object = json!({"metadata": {"managedFields": [entry(first), entry(second)]}});
            sorted_json(&format!("Invalid value: {}: no", json!(object.to_string())))
        };
        let known = quoted("a", "b");
        assert!(known.contains("managedFields"), "{known}");
        assert_eq!(known.matches("manager\\\"").count(), 2, "{known}");
        assert!(known.find("\\\"a\\\"") < known.find("\\\"b\\\""), "{known}");
    }

    #[test]
    fn owners_out_of_order_are_told() {
        let entry = |manager: &str, time: &str| json!({"operation": "Update", "manager": manager, "time": time});
        let (early, late) = ("2001-01-01T00:00:00Z", "2001-01-01T00:00:01Z");
        let mut ordered = json!([entry("b", early), entry("a", late)]);
        order_of_owners(&mut ordered);
        assert_eq!(ordered, json!([entry("a", late), entry("b", early)]));
        let mut wrong = json!([entry("a", late), entry("b", early)]);
        order_of_owners(&mut wrong);
        assert_eq!(wrong.as_array().map(Vec::len), Some(3));
    }
}

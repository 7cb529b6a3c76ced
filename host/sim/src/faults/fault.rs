//! Faults as people write them: `latency: delay=200ms, verb=list|watch`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use super::matching::{Asked, Matcher};
use crate::http::route::Verb;
use crate::span;

/// One thing that goes wrong, and for whom.
///
/// Read from a text such as `unavailable: resource=pods|secrets, probability=0.5`,
/// or from a map of the same fields with the name under `fault`. Shown as such a
/// text.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(super) effect: Effect,
    pub(super) matcher: Matcher,
    /// Which part of the requests is struck.
    pub(super) probability: f64,
    /// How many are.
    pub(super) count: Option<u64>,
    /// For how long.
    pub(super) lasts: Option<Duration>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Effect {
    Latency { delay: Duration, jitter: Duration },
    SlowAdmission { delay: Duration, jitter: Duration },
    TooManyRequests { retry_after: u32 },
    InternalError,
    Unavailable { retry_after: u32 },
    Conflict,
    Reset,
    TruncatedWatch { after: Duration },
    SilentWatch,
    Expired,
    ClockJump { by: i64 },
}

/// A text or a map that describes no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such name.
    #[error("there is no fault {name:?}; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// A fault that has no such field.
    #[error("fault {fault}: there is no field {field:?}; there are {fields}")]
    Field {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: String,
        /// Those that it has.
        fields: String,
    },
    /// A part of the text that is no field with its value.
    #[error("fault {fault}: {part:?} is no field; write FIELD=VALUE, and commas between fields")]
    Part {
        /// The fault.
        fault: String,
        /// The part.
        part: String,
    },
    /// A field that is given twice.
    #[error("fault {fault}: field {field} is given twice; write several values as a|b")]
    Twice {
        /// The fault.
        fault: String,
        /// The field.
        field: String,
    },
    /// A field that is needed.
    #[error("fault {fault}: field {field} is missing; write {fault}: {field}={example}")]
    Missing {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: &'static str,
        /// What it could be.
        example: &'static str,
    },
    /// A value that the field cannot have.
    #[error("fault {fault}: field {field}: {why}")]
    Value {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// Something else than a text or a map.
    #[error(
        "{0} is no fault; write a text such as \"latency: delay=200ms\" or a map with the field `fault`"
    )]
    Shape(String),
}

/// The faults, with the fields that only they have.
const FAULTS: [(&str, &[&str]); 11] = [
    ("clock-jump", &["by"]),
    ("conflict", &[]),
    ("expired", &[]),
    ("internal-error", &[]),
    ("latency", &["delay", "jitter"]),
    ("reset", &[]),
    ("silent-watch", &[]),
    ("slow-admission", &["delay", "jitter"]),
    ("too-many-requests", &["retry-after"]),
    ("truncated-watch", &["after"]),
    ("unavailable", &["retry-after"]),
];
/// The fields that all of them have but a jump of the clock, which concerns nobody
/// in particular.
const COMMON: [&str; 8] = [
    "agent",
    "count",
    "for",
    "namespace",
    "probability",
    "resource",
    "user",
    "verb",
];
const JUMP: &str = "clock-jump";
const VERBS: [Verb; 8] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
];

fn names() -> String {
    FAULTS.map(|(name, _)| name).join(", ")
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let mut fields = BTreeMap::new();
        for part in rest
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let Some((field, value)) = part.split_once('=') else {
                return Err(FaultError::Part {
                    fault: name.to_owned(),
                    part: part.to_owned(),
                });
            };
            let field = field.trim().to_owned();
            let value = value.trim().to_owned();
            if fields.insert(field.clone(), value).is_some() {
                return Err(FaultError::Twice {
                    fault: name.to_owned(),
                    field,
                });
            }
        }
        Fault::of(name, fields)
    }
}

impl Fault {
    /// Reads a fault from JSON: a text, or a map whose values are texts, numbers or
    /// lists of texts.
    ///
    /// # Errors
    ///
    /// When it describes no fault.
    pub fn from_value(value: &Value) -> Result<Self, FaultError> {
        let shape = || FaultError::Shape(value.to_string());
        let map = match value {
            Value::String(text) => return text.parse(),
            Value::Object(map) => map,
            _ => return Err(shape()),
        };
        let name = map.get("fault").and_then(Value::as_str).ok_or_else(shape)?;
        let mut fields = BTreeMap::new();
        for (field, value) in map.iter().filter(|(field, _)| *field != "fault") {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Array(items) => {
                    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                    texts.ok_or_else(shape)?.join("|")
                }
                _ => return Err(shape()),
            };
            fields.insert(field.clone(), text);
        }
        Fault::of(name, fields)
    }

    fn of(name: &str, given: BTreeMap<String, String>) -> Result<Self, FaultError> {
        let known = FAULTS.iter().find(|(known, _)| *known == name);
        let Some((fault, own)) = known else {
            return Err(FaultError::Unknown {
                name: name.to_owned(),
            });
        };
        let common: &[&str] = if *fault == JUMP { &[] } else { &COMMON };
        let fields: Vec<&str> = own.iter().chain(common).copied().collect();
        if let Some(field) = given.keys().find(|field| !fields.contains(&field.as_str())) {
            return Err(FaultError::Field {
                fault,
                field: field.clone(),
                fields: fields.join(", "),
            });
        }
        let reader = Reader { fault, given };
        let effect = reader.effect()?;
        Ok(Fault {
            effect,
            matcher: Matcher {
                verbs: reader.verbs()?,
                resources: reader.list("resource")?,
                namespaces: reader.list("namespace")?,
                users: reader.list("user")?,
                agents: reader.list("agent")?,
            },
            probability: reader.probability()?,
            count: reader.number("count")?,
            lasts: reader.span("for")?,
        })
    }

    /// By how many milliseconds the clock is to jump, if that is what it is about.
    pub(crate) fn jump(&self) -> Option<i64> {
        match self.effect {
            Effect::ClockJump { by } => Some(by),
            _ => None,
        }
    }

    /// Whether a request is one of those that can be struck.
    pub(super) fn concerns(&self, asked: &Asked<'_>) -> bool {
        let possible = match self.effect {
            Effect::SlowAdmission { .. } => asked.verb.is_some_and(Verb::is_write),
            Effect::Conflict => {
                matches!(asked.verb, Some(Verb::Update | Verb::Patch | Verb::Delete))
            }
            // Who asks for no version cannot be told that it is too old.
            Effect::Expired => {
                asked.versioned && matches!(asked.verb, Some(Verb::List | Verb::Watch))
            }
            Effect::TruncatedWatch { .. } | Effect::SilentWatch => asked.verb == Some(Verb::Watch),
            Effect::ClockJump { .. } => false,
            _ => true,
        };
        possible && self.matcher.matches(asked)
    }
}

impl Effect {
    pub(super) fn is_delay(self) -> bool {
        matches!(self, Effect::Latency { .. } | Effect::SlowAdmission { .. })
    }

    fn name(self) -> &'static str {
        match self {
            Effect::Latency { .. } => "latency",
            Effect::SlowAdmission { .. } => "slow-admission",
            Effect::TooManyRequests { .. } => "too-many-requests",
            Effect::InternalError => "internal-error",
            Effect::Unavailable { .. } => "unavailable",
            Effect::Conflict => "conflict",
            Effect::Reset => "reset",
            Effect::TruncatedWatch { .. } => "truncated-watch",
            Effect::SilentWatch => "silent-watch",
            Effect::Expired => "expired",
            Effect::ClockJump { .. } => JUMP,
        }
    }
}

/// The fields of one fault, as texts.
struct Reader {
    fault: &'static str,
    given: BTreeMap<String, String>,
}

impl Reader {
    fn effect(&self) -> Result<Effect, FaultError> {
        let seconds = || -> Result<u32, FaultError> {
            let span = self.span("retry-after")?.unwrap_or(Duration::from_secs(1));
            // The header counts whole seconds.
            let whole = span.as_secs().max(1);
            Ok(u32::try_from(whole).unwrap_or(u32::MAX))
        };
        let delay = || -> Result<(Duration, Duration), FaultError> {
            let delay = self.needed("delay", "200ms", self.span("delay")?)?;
            Ok((delay, self.span("jitter")?.unwrap_or_default()))
        };
        Ok(match self.fault {
            "latency" => {
                let (delay, jitter) = delay()?;
                Effect::Latency { delay, jitter }
            }
            "slow-admission" => {
                let (delay, jitter) = delay()?;
                Effect::SlowAdmission { delay, jitter }
            }
            "too-many-requests" => Effect::TooManyRequests {
                retry_after: seconds()?,
            },
            "unavailable" => Effect::Unavailable {
                retry_after: seconds()?,
            },
            "internal-error" => Effect::InternalError,
            "conflict" => Effect::Conflict,
            "reset" => Effect::Reset,
            "silent-watch" => Effect::SilentWatch,
            "expired" => Effect::Expired,
            "truncated-watch" => Effect::TruncatedWatch {
                after: self.span("after")?.unwrap_or_default(),
            },
            _ => Effect::ClockJump {
                by: self.needed("by", "1h", self.signed("by")?)?,
            },
        })
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.given.get(field).map(String::as_str)
    }

    fn wrong(&self, field: &'static str, why: String) -> FaultError {
        FaultError::Value {
            fault: self.fault,
            field,
            why,
        }
    }

    fn needed<T>(
        &self,
        field: &'static str,
        example: &'static str,
        value: Option<T>,
    ) -> Result<T, FaultError> {
        value.ok_or(FaultError::Missing {
            fault: self.fault,
            field,
            example,
        })
    }

    fn span(&self, field: &'static str) -> Result<Option<Duration>, FaultError> {
        let span = self.text(field).map(span::parse).transpose();
        span.map_err(|error| self.wrong(field, error.to_string()))
    }

    /// A span in milliseconds, which may be negative.
    fn signed(&self, field: &'static str) -> Result<Option<i64>, FaultError> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        let (sign, plain) = match text.strip_prefix('-') {
            Some(plain) => (-1, plain),
            None => (1, text),
        };
        let span = span::parse(plain).map_err(|error| self.wrong(field, error.to_string()))?;
        Ok(Some(
            sign * i64::try_from(span.as_millis()).unwrap_or(i64::MAX),
        ))
    }

    fn number(&self, field: &'static str) -> Result<Option<u64>, FaultError> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| *number > 0);
        let wrong = || self.wrong(field, format!("{text:?} is no number; write 1, 2, 3, …"));
        number.map(Some).ok_or_else(wrong)
    }

    fn probability(&self) -> Result<f64, FaultError> {
        let Some(text) = self.text("probability") else {
            return Ok(1.0);
        };
        let share = text
            .parse()
            .ok()
            .filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| {
            let why = format!("{text:?} is no share; write a number from 0 to 1, such as 0.3");
            self.wrong("probability", why)
        })
    }

    fn list(&self, field: &'static str) -> Result<Vec<String>, FaultError> {
        let Some(text) = self.text(field) else {
            return Ok(Vec::new());
        };
        let parts: Vec<String> = text.split('|').map(|part| part.trim().to_owned()).collect();
        if parts.iter().any(String::is_empty) {
            let why = format!("{text:?} has an empty value; write a|b, or leave the field out");
            return Err(self.wrong(field, why));
        }
        Ok(parts)
    }

    fn verbs(&self) -> Result<Vec<Verb>, FaultError> {
        let verb = |text: &String| {
            let found = VERBS.iter().find(|verb| verb.as_str() == text).copied();
            found.ok_or_else(|| {
                let all = VERBS.map(Verb::as_str).join(", ");
                self.wrong(
                    "verb",
                    format!("there is no verb {text:?}; there are {all}"),
                )
            })
        };
        self.list("verb")?.iter().map(verb).collect()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields: Vec<(&str, String)> = Vec::new();
        let second = Duration::from_secs(1);
        match self.effect {
            Effect::Latency { delay, jitter } | Effect::SlowAdmission { delay, jitter } => {
                fields.push(("delay", span::text(delay)));
                if !jitter.is_zero() {
                    fields.push(("jitter", span::text(jitter)));
                }
            }
            Effect::TooManyRequests { retry_after } | Effect::Unavailable { retry_after } => {
                fields.push(("retry-after", span::text(second * retry_after)));
            }
            Effect::TruncatedWatch { after } if !after.is_zero() => {
                fields.push(("after", span::text(after)));
            }
            Effect::ClockJump { by } => {
                let sign = if by < 0 { "-" } else { "" };
                let by = span::text(Duration::from_millis(by.unsigned_abs()));
                fields.push(("by", format!("{sign}{by}")));
            }
            _ => {}
        }
        let verbs: Vec<String> = self
            .matcher
            .verbs
            .iter()
            .map(|verb| verb.as_str().to_owned())
            .collect();
        for (field, values) in [
            ("verb", &verbs),
            ("resource", &self.matcher.resources),
            ("namespace", &self.matcher.namespaces),
            ("user", &self.matcher.users),
            ("agent", &self.matcher.agents),
        ] {
            if !values.is_empty() {
                fields.push((field, values.join("|")));
            }
        }
        if self.probability < 1.0 {
            fields.push(("probability", self.probability.to_string()));
        }
        if let Some(count) = self.count {
            fields.push(("count", count.to_string()));
        }
        if let Some(lasts) = self.lasts {
            fields.push(("for", span::text(lasts)));
        }
        f.write_str(self.effect.name())?;
        for (at, (field, value)) in fields.iter().enumerate() {
            let sign = if at == 0 { ": " } else { ", " };
            write!(f, "{sign}{field}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_are_written_as_they_are_read() {
        for text in [
            "latency: delay=200ms",
            "latency: delay=200ms, jitter=1s, verb=list|watch, resource=pods|deployments.apps",
            "slow-admission: delay=1s, namespace=alice",
            "too-many-requests: retry-after=5s, probability=0.25, count=3",
            "unavailable: retry-after=1s, user=system:serviceaccount:*, for=1m30s",
            "internal-error",
            "conflict: agent=kubectl/*",
            "reset",
            "truncated-watch: after=3s",
            "silent-watch: resource=pods",
            "expired",
            "clock-jump: by=-1h",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn texts_and_maps_say_the_same() {
        let map = json!({"fault": "latency", "delay": "1s", "verb": ["get", "list"],
            "probability": 0.5, "count": 2});
        let text = "latency: delay=1s, verb=get|list, probability=0.5, count=2";
        assert_eq!(Fault::from_value(&map), text.parse());
        assert_eq!(Fault::from_value(&json!(text)), text.parse());
    }

    #[test]
    fn what_is_no_fault_is_refused_with_its_place() {
        for (text, expected) in [
            (
                "slow",
                "there is no fault \"slow\"; there are clock-jump, conflict, expired, internal-error, latency, reset, silent-watch, slow-admission, too-many-requests, truncated-watch, unavailable",
            ),
            (
                "latency",
                "fault latency: field delay is missing; write latency: delay=200ms",
            ),
            (
                "latency: delay=5",
                "fault latency: field delay: \"5\" is no span of time; write numbers with units, such as 5s, 1m30s, 250ms or 0s",
            ),
            (
                "latency: delay",
                "fault latency: \"delay\" is no field; write FIELD=VALUE, and commas between fields",
            ),
            (
                "reset: verb=get, verb=list",
                "fault reset: field verb is given twice; write several values as a|b",
            ),
            (
                "reset: verb=read",
                "fault reset: field verb: there is no verb \"read\"; there are get, list, watch, create, update, patch, delete, deletecollection",
            ),
            (
                "reset: delay=1s",
                "fault reset: there is no field \"delay\"; there are agent, count, for, namespace, probability, resource, user, verb",
            ),
            (
                "reset: probability=2",
                "fault reset: field probability: \"2\" is no share; write a number from 0 to 1, such as 0.3",
            ),
            (
                "reset: count=0",
                "fault reset: field count: \"0\" is no number; write 1, 2, 3, …",
            ),
            (
                "reset: user=a||b",
                "fault reset: field user: \"a||b\" has an empty value; write a|b, or leave the field out",
            ),
            (
                "clock-jump: by=1h, verb=get",
                "fault clock-jump: there is no field \"verb\"; there are by",
            ),
            (
                "clock-jump",
                "fault clock-jump: field by is missing; write clock-jump: by=1h",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), expected);
        }
        for value in [
            json!(1),
            json!({"delay": "1s"}),
            json!({"fault": "reset", "verb": [1]}),
        ] {
            let error = Fault::from_value(&value).unwrap_err().to_string();
            assert!(error.ends_with("is no fault; write a text such as \"latency: delay=200ms\" or a map with the field `fault`"), "{error}");
        }
    }

    fn effect() -> impl Strategy<Value = Effect> {
        let span = || (0..10_000_000_u64).prop_map(Duration::from_millis);
        prop_oneof![
            (span(), span()).prop_map(|(delay, jitter)| Effect::Latency { delay, jitter }),
            (span(), span()).prop_map(|(delay, jitter)| Effect::SlowAdmission { delay, jitter }),
            (1..100_000_u32).prop_map(|retry_after| Effect::TooManyRequests { retry_after }),
            (1..100_000_u32).prop_map(|retry_after| Effect::Unavailable { retry_after }),
            span().prop_map(|after| Effect::TruncatedWatch { after }),
            Just(Effect::InternalError),
            Just(Effect::Conflict),
            Just(Effect::Reset),
            Just(Effect::SilentWatch),
            Just(Effect::Expired),
        ]
    }

    fn matcher() -> impl Strategy<Value = Matcher> {
        let texts = || proptest::collection::vec("[a-z][a-z:./*-]{0,8}", 0..3);
        let verbs = proptest::collection::vec(proptest::sample::select(VERBS.to_vec()), 0..3);
        (verbs, texts(), texts(), texts(), texts()).prop_map(
            |(verbs, resources, namespaces, users, agents)| Matcher {
                verbs,
                resources,
                namespaces,
                users,
                agents,
            },
        )
    }

    fn fault() -> impl Strategy<Value = Fault> {
        let count = proptest::option::of(1..1000_u64);
        let lasts = proptest::option::of((0..10_000_000_u64).prop_map(Duration::from_millis));
        (effect(), matcher(), 0.0..=1.0, count, lasts).prop_map(
            |(effect, matcher, probability, count, lasts)| Fault {
                effect,
                matcher,
                probability,
                count,
                lasts,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fault in fault()) {
            prop_assert_eq!(fault.to_string().parse(), Ok(fault));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(latency|reset|clock-jump|x)?:?[-a-z0-9=|, .]{0,40}") {
            if let Ok(fault) = text.parse::<Fault>() {
                prop_assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
    }
}

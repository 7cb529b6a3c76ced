//! Reading of faults, from texts and from JSON.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use super::{Effect, Fault, FaultError};
use crate::faults::matching::Matcher;
use crate::http::route::Verb;
use crate::span;

/// The faults, with the fields that only they have.
const FAULTS: [(&str, &[&str]); 12] = [
    ("clock-jump", &["by"]),
    ("conflict", &[]),
    ("expired", &[]),
    ("internal-error", &[]),
    ("latency", &["delay", "jitter"]),
    ("lost-answer", &["delay"]),
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
pub(super) const JUMP: &str = "clock-jump";
pub(super) const VERBS: [Verb; 8] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
];

/// The names of all faults.
pub(super) fn names() -> String {
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
            "lost-answer" => Effect::LostAnswer {
                delay: self.span("delay")?.unwrap_or_default(),
            },
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
        let wrong = || {
            self.wrong(
                field,
                format!("{text:?} is no number of times; write 1, 2, 3, …"),
            )
        };
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

//! Faults as texts, as they are read.

use std::fmt;
use std::time::Duration;

use super::{Effect, Fault};
use crate::span;

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
            Effect::LostAnswer { delay } if !delay.is_zero() => {
                fields.push(("delay", span::text(delay)));
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

//! The API server's refusals, as far as we read them.

use serde::Deserialize;

/// A `metav1.Status` that reports a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    /// HTTP status.
    pub(crate) code: u16,
    /// For programs, though some cases share one.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
    pub(crate) details: Details,
}

/// What the refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Details {
    /// Name of the object in question; empty when it is not about one.
    pub(crate) name: String,
    /// Group of the object in question.
    pub(crate) group: String,
    /// In spite of its name, the plural.
    pub(crate) kind: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after_seconds: u32,
}

/// One of several complaints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl Status {
    /// The `Status` in a body, or one made from a body that is none: proxies, and
    /// the API server for paths that it does not know, answer in plain text.
    pub(crate) fn parse(code: u16, body: &[u8]) -> Self {
        let parsed = serde_json::from_slice::<Self>(body).ok();
        let mut status = parsed
            .filter(|status| !status.message.is_empty() || !status.reason.is_empty())
            .unwrap_or_else(|| Self {
                message: String::from_utf8_lossy(body).trim().to_owned(),
                ..Self::default()
            });
        if status.code == 0 {
            status.code = code;
        }
        status
    }

    /// Whether one of its causes has this reason.
    pub(crate) fn has_cause(&self, reason: &str) -> bool {
        let mut causes = self.details.causes.iter();
        causes.any(|cause| cause.reason == reason)
    }

    /// Whether all of its causes, and there are some, concern this field.
    pub(crate) fn is_only_about(&self, field: &str) -> bool {
        let causes = &self.details.causes;
        !causes.is_empty() && causes.iter().all(|cause| cause.field == field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_body_becomes_a_status() {
        for (body, code, message, reason) in [
            ("404 page not found\n", 404, "404 page not found", ""),
            (
                r#"{"message":"m","reason":"Conflict"}"#,
                404,
                "m",
                "Conflict",
            ),
            (r#"{"message":"m","code":410}"#, 410, "m", ""),
            ("{}", 404, "{}", ""),
        ] {
            let status = Status::parse(404, body.as_bytes());
            assert_eq!(
                (status.code, &*status.message, &*status.reason),
                (code, message, reason)
            );
        }
    }
}

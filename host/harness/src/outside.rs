//! The outside as a scenario gives it: documents, and what comes of effects.

use reeve_agent::{GivenEffect, GivenSource};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Outside documents, by the names of sources.
pub(crate) type Sources = BTreeMap<String, Source>;

/// What comes of outside effects, by the names of actions.
pub(crate) type Effects = BTreeMap<String, Effect>;

/// An outside document, or why there is none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawSource")]
pub(crate) struct Source(pub(crate) GivenSource);

/// What comes of an outside effect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawEffect")]
pub(crate) struct Effect(pub(crate) GivenEffect);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawSource {
    json: Option<Value>,
    text: Option<String>,
    media_type: Option<String>,
    failing: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEffect {
    fact: Option<Value>,
    failing: Option<String>,
}

/// A value that gives nothing, or two things.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotOne(&'static str);

impl TryFrom<RawSource> for Source {
    type Error = NotOne;

    fn try_from(raw: RawSource) -> Result<Self, NotOne> {
        let body = match (raw.json, raw.text, raw.failing) {
            (Some(json), None, None) => json.to_string(),
            (None, Some(text), None) => text,
            (None, None, Some(why)) => return Ok(Self(GivenSource::Failing(why))),
            _ => {
                return Err(NotOne(
                    "a source has exactly one of `json`, `text` and `failing`",
                ));
            }
        };
        Ok(Self(GivenSource::Document {
            body: body.into(),
            media_type: raw.media_type.unwrap_or_default(),
        }))
    }
}

impl TryFrom<RawEffect> for Effect {
    type Error = NotOne;

    fn try_from(raw: RawEffect) -> Result<Self, NotOne> {
        match (raw.fact, raw.failing) {
            (fact, None) => Ok(Self(GivenEffect::Fact(
                fact.unwrap_or_default().to_string(),
            ))),
            (None, Some(why)) => Ok(Self(GivenEffect::Failing(why))),
            _ => Err(NotOne("an action has `fact` or `failing`, not both")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sources_and_actions_are_read_strictly() {
        for (value, expected) in [
            (json!({"json": {"a": 1}}), Ok(r#"{"a":1}"#)),
            (json!({"text": "x", "mediaType": "text/plain"}), Ok("x")),
            (json!({"failing": "away"}), Ok("away")),
            (json!({}), Err("exactly one")),
            (json!({"text": "x", "json": 1}), Err("exactly one")),
            (json!({"body": "x"}), Err("unknown field `body`")),
        ] {
            let found = serde_json::from_value::<Source>(value.clone());
            match (found, expected) {
                (Ok(found), Ok(text)) => assert!(
                    format!("{found:?}").contains(&text.replace('"', "\\\"")),
                    "{found:?}"
                ),
                (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
                (found, _) => panic!("{value}: {found:?}"),
            }
        }
        let effect = |value| serde_json::from_value::<Effect>(value);
        assert_eq!(
            effect(json!({})).unwrap().0,
            GivenEffect::Fact("null".into())
        );
        assert_eq!(
            effect(json!({"fact": {"a": 1}})).unwrap().0,
            GivenEffect::Fact(r#"{"a":1}"#.into())
        );
        assert!(effect(json!({"fact": 1, "failing": "x"})).is_err());
    }
}

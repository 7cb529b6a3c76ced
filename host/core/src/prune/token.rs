//! What an approval says: which objects, and no others.

use super::Candidate;
use crate::digest::Digest;
use crate::unit::UnitKey;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Stands for exactly these objects, by uid, of exactly this plugin and these
/// units. 80 bits of a digest: short enough to type, and nobody gains from
/// finding two sets with one token, since each is held by the guard anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(String);

/// Text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no approval: expected the 20 hexadecimal digits that the hold names")]
pub struct ParseTokenError(String);

const LENGTH: usize = 20;

impl Token {
    /// The token of a set. The order of its members makes no difference.
    pub(super) fn of<'a>(
        plugin: &str,
        members: impl IntoIterator<Item = (&'a UnitKey, &'a Candidate)>,
    ) -> Self {
        let mut lines: Vec<String> = members
            .into_iter()
            .map(|(unit, candidate)| {
                let object = &candidate.reference;
                let parts = [
                    unit.id(),
                    object.kind.group.clone(),
                    object.kind.kind.clone(),
                    object.namespace.clone().unwrap_or_default(),
                    object.name.clone(),
                    candidate.uid.clone(),
                ];
                let parts = parts.iter().map(String::as_bytes);
                Digest::of_parts(parts).hex()
            })
            .collect();
        lines.sort_unstable();
        lines.dedup();
        let head = ["prune", plugin].map(str::as_bytes);
        let lines = lines.iter().map(String::as_bytes);
        let digest = Digest::of_parts(head.into_iter().chain(lines));
        Self(digest.hex()[..LENGTH].to_owned())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == LENGTH && text.bytes().all(lower_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseTokenError(crate::annotations::shortened(text, 40)))
        }
    }
}

impl TryFrom<String> for Token {
    type Error = ParseTokenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_are_tokens() {
        let token = Token::of("p", []);
        assert_eq!(token.to_string().parse(), Ok(token));
        for text in [
            "",
            "yes",
            "0123456789abcdef012",
            "0123456789ABCDEF0123",
            "all",
        ] {
            let error = text.parse::<Token>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` is no approval")),
                "{error}"
            );
        }
    }
}

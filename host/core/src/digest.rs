//! SHA-256 digests, written `sha256:<hex>` as OCI does.

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

const HEX: [u8; 16] = *b"0123456789abcdef";

/// Text that is no digest.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct ParseDigestError(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_ring(&ring::digest::digest(&SHA256, bytes))
    }

    /// The digest of several parts. Each part's length is hashed too, so that
    /// moving bytes from one part to the next changes the digest.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self::from_ring(&hash.finish())
    }

    fn from_ring(digest: &ring::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        // As many as SHA-256 has.
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// The digest itself.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits alone.
    pub fn hex(&self) -> String {
        self.digits(2 * self.0.len())
    }

    /// The first ten hexadecimal digits: enough for people and for labels whose
    /// collisions are detected elsewhere.
    pub fn short(&self) -> String {
        self.digits(10)
    }

    /// The first so many hexadecimal digits.
    pub(crate) fn digits(&self, count: usize) -> String {
        self.written("", count)
    }

    /// The first so many hexadecimal digits, behind a prefix. Each object that is sent has one,
    /// so it is not formatted.
    fn written(&self, prefix: &str, count: usize) -> String {
        let mut text = Vec::with_capacity(prefix.len() + 2 * self.0.len());
        text.extend_from_slice(prefix.as_bytes());
        for byte in self.0 {
            text.push(HEX[usize::from(byte >> 4)]);
            text.push(HEX[usize::from(byte & 0xf)]);
        }
        text.truncate(prefix.len() + count);
        // It is ASCII.
        String::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(*self))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").ok_or_else(error)?;
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if hex.len() != 64 || !hex.bytes().all(lower_hex) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| error())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| error())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.written("sha256:", 2 * digest.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let digest = Digest::of(b"reeve");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.short().len(), 10);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "sha256:", "sha256:zz", "md5:00", &"a".repeat(64)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        let upper = Digest::of(b"x").to_string().to_uppercase();
        assert!(upper.parse::<Digest>().is_err());
    }

    #[test]
    fn parts_are_told_apart() {
        let one = Digest::of_parts([b"ab".as_slice(), b"c"]);
        let two = Digest::of_parts([b"a".as_slice(), b"bc"]);
        assert_ne!(one, two);
    }
}

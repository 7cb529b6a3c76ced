//! Text that must not be shown.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt;

/// Bytes of chance in a generated secret: nobody guesses 256 bits.
const GENERATED_BYTES: usize = 32;

/// Characters of a generated secret: its bytes in base64.
pub const GENERATED_LENGTH: usize = (GENERATED_BYTES * 4).div_ceil(3);

/// The system gives no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandom;

/// Bytes of chance from the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

/// Text that must not be shown: it prints as dots, whoever prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Makes a secret from 256 bits of chance: [`GENERATED_LENGTH`] characters of the
    /// URL-safe alphabet of base64, which need no quoting anywhere.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn generate() -> Result<Self, NoRandom> {
        let bytes: [u8; GENERATED_BYTES] = random()?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Whether a text may be one that [`Secret::generate`] made.
    pub fn is_generated(text: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        text.len() == GENERATED_LENGTH && text.bytes().all(fits)
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"…\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_plain_and_never_the_same() {
        let (one, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_ne!(one, other);
        assert!(Secret::is_generated(one.expose()));
        assert!(!format!("{one:?}").contains(one.expose()));
        for text in ["", "short", &"'".repeat(GENERATED_LENGTH)] {
            assert!(!Secret::is_generated(text), "{text}");
        }
    }
}

//! Keys in PEM: those that verify, and those that sign.

use super::MAX_SIGNATURE_BYTES;
use reeve_core::Digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    UnparsedPublicKey,
};
use std::fmt;

/// What stands before the point of a P-256 key in its SubjectPublicKeyInfo (RFC 5480),
/// which DER writes in one way only; the point is not compressed.
const P256_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Bytes of such a point: 4, and two coordinates.
const P256_POINT: usize = 65;
/// The same of an Ed25519 key (RFC 8410).
const ED25519_HEAD: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// Bytes of such a key.
const ED25519_KEY: usize = 32;

/// Keys in one text: more than an organisation signs with at one time.
const MAX_KEYS: usize = 32;

/// A key that verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    kind: Kind,
    /// The key itself.
    bytes: Vec<u8>,
    /// Digest of its SubjectPublicKeyInfo, by which people know it.
    fingerprint: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    P256,
    Ed25519,
}

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureKeyError {
    /// There is none in it.
    #[error(
        "no public key is in it; it must be PEM with `PUBLIC KEY` blocks, as `cosign generate-key-pair` writes cosign.pub"
    )]
    NoPublicKey,
    /// What is in it is no public key.
    #[error("it holds a `{0}`; give the public key, with `PUBLIC KEY` blocks")]
    OtherBlock(String),
    /// There are too many.
    #[error("it has more than {MAX_KEYS} keys; leave out those with which nobody signs any more")]
    TooMany,
    /// A key of another kind.
    #[error("a key in it is neither ECDSA on P-256 nor Ed25519; others are not supported")]
    OtherKind,
    /// There is no key to sign with.
    #[error(
        "no private key is in it; it must be PEM with a `PRIVATE KEY` block, as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes"
    )]
    NoPrivateKey,
    /// It is locked.
    #[error("it is encrypted; sign with the tool that made it (cosign), or give a key that is not")]
    Encrypted,
    /// It is in an older form.
    #[error(
        "it is in an older form; convert it with `openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW`"
    )]
    OldForm,
    /// It cannot be used.
    #[error("the key in it cannot be used: {0}; it must be of ECDSA on P-256 or of Ed25519")]
    Unusable(String),
}

impl VerifyingKey {
    /// All keys of a text in PEM.
    ///
    /// # Errors
    ///
    /// When there is none, or something else is in it.
    pub fn read_all(text: &str) -> Result<Vec<Self>, SignatureKeyError> {
        let blocks = pem::parse_many(text).map_err(|_| SignatureKeyError::NoPublicKey)?;
        if blocks.is_empty() {
            return Err(SignatureKeyError::NoPublicKey);
        }
        if blocks.len() > MAX_KEYS {
            return Err(SignatureKeyError::TooMany);
        }
        let mut keys = Vec::with_capacity(blocks.len());
        for block in blocks {
            if block.tag() != "PUBLIC KEY" {
                return Err(SignatureKeyError::OtherBlock(block.tag().to_owned()));
            }
            let key = Self::of(block.contents());
            keys.push(key.ok_or(SignatureKeyError::OtherKind)?);
        }
        Ok(keys)
    }

    fn of(info: &[u8]) -> Option<Self> {
        let after = |head: &[u8], length: usize| {
            let key = info.strip_prefix(head)?;
            (key.len() == length).then(|| key.to_vec())
        };
        let p256 = after(P256_HEAD, P256_POINT).filter(|point| point.first() == Some(&4));
        let (kind, bytes) = match p256 {
            Some(point) => (Kind::P256, point),
            None => (Kind::Ed25519, after(ED25519_HEAD, ED25519_KEY)?),
        };
        Some(Self {
            kind,
            bytes,
            fingerprint: Digest::of(info),
        })
    }

    /// Whether a signature is of these bytes, by this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        if signature.len() > MAX_SIGNATURE_BYTES {
            return false;
        }
        let verified = match self.kind {
            Kind::P256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.bytes)
                .verify(message, signature),
            Kind::Ed25519 => {
                UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message, signature)
            }
        };
        verified.is_ok()
    }

    /// By what people know it: the start of the digest of its DER, as `openssl pkey
    /// -pubin -outform DER | sha256sum` shows it.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.short()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.fingerprint())
    }
}

/// A key that makes signatures.
pub struct SigningKey {
    pair: Pair,
    random: SystemRandom,
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// The key of a text in PEM.
    ///
    /// # Errors
    ///
    /// When there is none that can be used. No error holds anything of the key.
    pub fn read(text: &str) -> Result<Self, SignatureKeyError> {
        let blocks = pem::parse_many(text).map_err(|_| SignatureKeyError::NoPrivateKey)?;
        let mut found = None;
        for block in &blocks {
            match block.tag() {
                "PRIVATE KEY" => found = Some(block.contents()),
                "EC PRIVATE KEY" => return Err(SignatureKeyError::OldForm),
                tag if tag.starts_with("ENCRYPTED") => return Err(SignatureKeyError::Encrypted),
                _ => {}
            }
        }
        let key = found.ok_or(SignatureKeyError::NoPrivateKey)?;
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &random);
        let pair = match p256 {
            Ok(pair) => Pair::P256(pair),
            Err(rejected) => match Ed25519KeyPair::from_pkcs8_maybe_unchecked(key) {
                Ok(pair) => Pair::Ed25519(pair),
                Err(_) => return Err(SignatureKeyError::Unusable(rejected.to_string())),
            },
        };
        Ok(Self { pair, random })
    }

    /// The signature of these bytes; none when the system gives no random numbers.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match &self.pair {
            Pair::P256(pair) => {
                let signature = pair.sign(&self.random, message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.pair {
            Pair::P256(_) => "P256 …",
            Pair::Ed25519(_) => "Ed25519 …",
        })
    }
}

#[cfg(test)]
mod tests;

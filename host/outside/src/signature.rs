//! Signatures of components, as cosign and openssl make them with a key of one's own.
//!
//! Two kinds of keys: ECDSA on P-256 with SHA-256, which `cosign generate-key-pair`
//! makes, and Ed25519. A signature is either of a component's bytes (`cosign sign-blob`,
//! `openssl dgst -sign`), or of a text that names the digest of an image's manifest
//! (`cosign sign`).

mod key;

pub use key::{SignatureKeyError, SigningKey, VerifyingKey};

use reeve_core::Digest;
use serde_json::{Value, json};

/// What cosign calls the text that it signs.
const TYPE: &str = "cosign container image signature";

/// Bytes of the largest signature that is looked at: one of P-256 has up to 72, one of
/// Ed25519 64.
pub const MAX_SIGNATURE_BYTES: usize = 512;

/// The text to sign for an image, as cosign writes it ("simple signing").
pub fn payload(reference: &str, manifest: &Digest) -> String {
    json!({
        "critical": {
            "identity": {"docker-reference": reference},
            "image": {"docker-manifest-digest": manifest.to_string()},
            "type": TYPE,
        },
        "optional": null,
    })
    .to_string()
}

/// The manifest that such a text names; none if it is another text.
pub fn signed_manifest(payload: &[u8]) -> Option<Digest> {
    let parsed: Value = serde_json::from_slice(payload).ok()?;
    let critical = parsed.get("critical")?;
    if critical.get("type")?.as_str()? != TYPE {
        return None;
    }
    let digest = critical.get("image")?.get("docker-manifest-digest")?;
    digest.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_the_manifest_that_it_was_made_for() {
        let digest = Digest::of(b"manifest");
        let text = payload("reg.example/a", &digest);
        assert_eq!(signed_manifest(text.as_bytes()), Some(digest));
        for other in [
            String::new(),
            "[]".to_owned(),
            text.replace(TYPE, "atomic container signature"),
            text.replace("sha256:", "sha512:"),
        ] {
            assert_eq!(signed_manifest(other.as_bytes()), None, "{other}");
        }
    }
}

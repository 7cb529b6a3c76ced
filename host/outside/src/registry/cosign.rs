//! Signatures as cosign keeps them beside an image: a manifest under the tag
//! `sha256-<digest>.sig`, each of whose layers is a text that names the image, with the
//! signature of that text in an annotation (cosign, "Signature Specification").

use super::manifest::{descriptor, media_type, parse};
use super::{Registry, RegistryError, Wanted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reeve_core::Digest;
use serde_json::json;

/// Signatures of one image that are looked at, the newest first: many keys may sign, and
/// a stranger who may push must not keep us busy.
pub const SIGNATURE_LIMIT: usize = 16;

/// Bytes of a signed text. cosign's have some three hundred.
const PAYLOAD_BYTES: u64 = 16 << 10;
/// Bytes of a signature in base64.
const SIGNATURE_BYTES: usize = 1024;

const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The configuration that cosign writes.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A text that may name an image, and what may be its signature. Nothing of it has been
/// verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedImage {
    /// The text.
    pub payload: Bytes,
    /// The signature.
    pub signature: Bytes,
}

impl Registry {
    /// What claims to sign a manifest, at most [`SIGNATURE_LIMIT`]; nothing if nobody
    /// signed it.
    ///
    /// # Errors
    ///
    /// When the registry cannot be asked, or what is there is no list of signatures. A
    /// single entry that is no signature is passed over.
    pub async fn signatures(&self, of: &Digest) -> Result<Vec<SignedImage>, RegistryError> {
        let manifest = match self.manifest(&Wanted::Tag(tag(of))).await {
            Ok(manifest) => manifest,
            Err(RegistryError::Absent { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let manifest = parse(&manifest.bytes).map_err(|problem| RegistryError::Manifest {
            image: format!("{} (its signatures)", self.name),
            problem,
        })?;
        let layers = manifest.get("layers").and_then(|layers| layers.as_array());
        let layers = layers.into_iter().flatten().rev();
        let entries = layers.filter_map(|layer| {
            let signature = layer.get("annotations")?.get(SIGNATURE)?.as_str()?;
            let payload = descriptor(layer).ok()?;
            let fits = media_type(Some(layer)) == PAYLOAD
                && signature.len() <= SIGNATURE_BYTES
                && payload.size <= PAYLOAD_BYTES;
            let signature = STANDARD.decode(signature.trim()).ok()?;
            fits.then_some((payload, signature))
        });
        let mut found = Vec::new();
        for (payload, signature) in entries.take(SIGNATURE_LIMIT) {
            match self.blob(payload.digest, payload.size).await {
                Ok(payload) => found.push(SignedImage {
                    payload,
                    signature: signature.into(),
                }),
                Err(error) if error.is_unreachable() => return Err(error),
                // It is not there, or not what it says that it is.
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Puts a signature beside an image, in the place of what is there.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached or refuses it.
    pub async fn push_signature(
        &self,
        of: &Digest,
        signed: &SignedImage,
    ) -> Result<Digest, RegistryError> {
        let annotations = json!({SIGNATURE: STANDARD.encode(&signed.signature)});
        let layer = (signed.payload.clone(), PAYLOAD, Some(annotations));
        let digest = Digest::of(&signed.payload).to_string();
        let config = json!({
            "architecture": "", "os": "", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        });
        self.push_manifest(&tag(of), &config, CONFIG, &[layer])
            .await
    }
}

/// The tag under which signatures of a manifest are.
fn tag(of: &Digest) -> String {
    format!("sha256-{}.sig", of.hex())
}

//! What comes with a component and may prove whose it is.

use super::{DeliveryError, SIGNATURE, binary, name_of, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_core::Digest;
use reeve_outside::registry;
use reeve_outside::signature::{MAX_SIGNATURE_BYTES, VerifyingKey, signed_manifest};
use serde_json::{Value, json};

/// What may prove whose a component is. It is kept with the component, so that it can
/// be verified again, by another policy and without the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A signature of the component's bytes.
    Component(Bytes),
    /// A signature of a text that names the manifest of an artifact.
    Manifest {
        /// The manifest, which names the component.
        manifest: Bytes,
        /// The text.
        payload: Bytes,
        /// Its signature.
        signature: Bytes,
    },
}

impl Proof {
    /// Whether it is about this component at all, whoever signed it.
    pub(crate) fn is_about(&self, component: Digest) -> bool {
        match self {
            // Only a key tells.
            Self::Component(_) => true,
            Self::Manifest {
                manifest, payload, ..
            } => {
                let named = registry::component(manifest, u64::MAX);
                signed_manifest(payload) == Some(Digest::of(manifest))
                    && named.is_ok_and(|named| named.digest == component)
            }
        }
    }

    /// Whether it proves that whoever has a key signed this component.
    pub(crate) fn proves(&self, component: &[u8], digest: Digest, key: &VerifyingKey) -> bool {
        let (message, signature) = match self {
            Self::Component(signature) => (component, signature),
            Self::Manifest {
                payload, signature, ..
            } => (&payload[..], signature),
        };
        self.is_about(digest) && key.verifies(message, signature)
    }

    /// All of them on one line, for the cache.
    pub(crate) fn write_all(proofs: &[Self]) -> String {
        let text = |bytes: &Bytes| STANDARD.encode(bytes);
        let write = |proof: &Self| match proof {
            Self::Component(signature) => json!({"signature": text(signature)}),
            Self::Manifest {
                manifest,
                payload,
                signature,
            } => json!({
                "manifest": text(manifest), "payload": text(payload),
                "signature": text(signature),
            }),
        };
        proofs.iter().map(write).collect::<Value>().to_string()
    }

    /// The reverse. What cannot be read proves nothing.
    pub(crate) fn read_all(line: &[u8]) -> Vec<Self> {
        let read = |proof: &Value| {
            let bytes = |field: &str| {
                let text = proof.get(field)?.as_str()?;
                STANDARD.decode(text).ok().map(Bytes::from)
            };
            let signature = bytes("signature")?;
            Some(match bytes("manifest").zip(bytes("payload")) {
                None => Self::Component(signature),
                Some((manifest, payload)) => Self::Manifest {
                    manifest,
                    payload,
                    signature,
                },
            })
        };
        let parsed: Value = serde_json::from_slice(line).unwrap_or_default();
        let proofs = parsed.as_array().into_iter().flatten();
        proofs.filter_map(read).collect()
    }
}

/// The signature that a ConfigMap has of its component. cosign writes base64, which
/// kubectl puts among the texts; openssl writes bytes.
pub(super) fn of_config_map(config_map: &ConfigMap) -> Result<Vec<Proof>, DeliveryError> {
    let malformed = |problem| DeliveryError::SignatureMalformed {
        config_map: name_of(config_map),
        key: SIGNATURE,
        problem,
    };
    let signature = match (text(config_map, SIGNATURE), binary(config_map, SIGNATURE)) {
        (None, None) => return Ok(Vec::new()),
        (_, Some(bytes)) => bytes.to_vec(),
        (Some(text), None) => {
            let text = text.trim();
            if text.len() > MAX_SIGNATURE_BYTES * 2 {
                return Err(malformed("it is too long"));
            }
            let decoded = STANDARD.decode(text);
            decoded.map_err(|_| malformed("it is no base64"))?
        }
    };
    if signature.len() > MAX_SIGNATURE_BYTES {
        return Err(malformed("it is too long"));
    }
    Ok(vec![Proof::Component(signature.into())])
}

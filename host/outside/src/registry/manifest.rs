//! What an artifact that holds a plugin looks like.
//!
//! Two layouts are taken, both with exactly one layer, which is the component as it is:
//! the one that the CNCF describes for WebAssembly ("Wasm OCI Artifact layout"), which
//! is what we write, and one of an artifact type of ours, which `oras push` writes
//! without a configuration.

use reeve_core::Digest;
use serde_json::Value;
use std::fmt;

/// Media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of the configuration of a WebAssembly artifact.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of a component.
pub(super) const WASM: &str = "application/wasm";
/// The artifact type that is ours.
pub const OURS: &str = "application/vnd.reeve.plugin.v1";

/// What is asked for. An index is asked for, too, since it is told apart from what is
/// not there by that.
pub(super) const ACCEPTED: &[&str] = &[
    MANIFEST,
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Which manifest of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The one that a tag names now.
    Tag(String),
    /// The one of this digest.
    Digest(Digest),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

/// The layer that is the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// Why what a manifest describes is no plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("its manifest cannot be read: {0}")]
    Malformed(String),
    /// It stands for several.
    #[error("it is an index of several manifests; name one of them, or push the component itself")]
    Index,
    /// It is something else.
    #[error(
        "it holds no plugin: the configuration of its manifest is `{found}`, and that of a component is `{WASM_CONFIG}` (or its artifact type `{OURS}`); `reeve plugin push` writes one"
    )]
    OtherType {
        /// Media type of its configuration.
        found: String,
    },
    /// It has not one layer.
    #[error(
        "it has {count} layers, and a plugin has one, the component; `reeve plugin push` writes it"
    )]
    Layers {
        /// How many it has.
        count: usize,
    },
    /// Its layer is something else.
    #[error(
        "its layer is `{found}`, and that of a plugin is `{WASM}`; `reeve plugin push` writes it"
    )]
    LayerType {
        /// Media type of the layer.
        found: String,
    },
    /// Its layer is too large.
    #[error(
        "its component has {size} bytes, more than the {limit} that are taken; build it smaller"
    )]
    TooLarge {
        /// What the manifest says.
        size: u64,
        /// How many may be.
        limit: u64,
    },
    /// Its layer is empty.
    #[error("its component is empty; push it again")]
    Empty,
}

/// The component that a manifest describes, of no more than `limit` bytes.
///
/// # Errors
///
/// When it describes something else.
pub fn component(manifest: &[u8], limit: u64) -> Result<Component, ManifestError> {
    let manifest = parse(manifest)?;
    let config = media_type(manifest.get("config"));
    let ours = manifest.get("artifactType").and_then(Value::as_str) == Some(OURS);
    if config != WASM_CONFIG && !ours {
        return Err(ManifestError::OtherType {
            found: shown(config),
        });
    }
    let layers = manifest.get("layers").and_then(Value::as_array);
    let layers = layers.map_or(&[][..], Vec::as_slice);
    let [layer] = layers else {
        return Err(ManifestError::Layers {
            count: layers.len(),
        });
    };
    let found = media_type(Some(layer));
    if found != WASM {
        return Err(ManifestError::LayerType {
            found: shown(found),
        });
    }
    let component = descriptor(layer)?;
    match component.size {
        0 => Err(ManifestError::Empty),
        size if size > limit => Err(ManifestError::TooLarge { size, limit }),
        _ => Ok(component),
    }
}

/// A manifest of one artifact.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ManifestError> {
    let malformed = |problem: &str| ManifestError::Malformed(problem.to_owned());
    let parsed: Value = serde_json::from_slice(bytes).map_err(|_| malformed("it is no JSON"))?;
    if !parsed.is_object() {
        return Err(malformed("it is no JSON object"));
    }
    if parsed.get("manifests").is_some() {
        return Err(ManifestError::Index);
    }
    Ok(parsed)
}

/// What a descriptor says of a blob.
pub(super) fn descriptor(descriptor: &Value) -> Result<Component, ManifestError> {
    let digest = descriptor.get("digest").and_then(Value::as_str);
    let digest = digest.and_then(|digest| digest.parse().ok());
    let size = descriptor.get("size").and_then(Value::as_u64);
    let described = digest.zip(size);
    let (digest, size) = described.ok_or_else(|| {
        ManifestError::Malformed("a layer has no sha256 digest or no size".to_owned())
    })?;
    Ok(Component { digest, size })
}

pub(super) fn media_type(descriptor: Option<&Value>) -> &str {
    let media_type = descriptor.and_then(|one| one.get("mediaType"));
    media_type.and_then(Value::as_str).unwrap_or_default()
}

/// Text of a stranger, for people.
fn shown(text: &str) -> String {
    const ENOUGH: usize = 100;
    let plain = text.chars().filter(|c| c.is_ascii_graphic());
    plain.take(ENOUGH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(size: u64) -> Value {
        json!({"mediaType": WASM, "digest": Digest::of(b"x").to_string(), "size": size})
    }

    fn manifest(config: &str, layers: &[Value]) -> Value {
        json!({"schemaVersion": 2, "config": {"mediaType": config}, "layers": layers})
    }

    fn read(manifest: &Value) -> Result<Component, String> {
        component(manifest.to_string().as_bytes(), 10).map_err(|error| error.to_string())
    }

    #[test]
    fn both_layouts_are_read() {
        let expected = Component {
            digest: Digest::of(b"x"),
            size: 10,
        };
        assert_eq!(read(&manifest(WASM_CONFIG, &[layer(10)])), Ok(expected));
        let mut ours = manifest("application/vnd.oci.empty.v1+json", &[layer(10)]);
        assert!(read(&ours).is_err());
        ours["artifactType"] = json!(OURS);
        assert_eq!(read(&ours), Ok(expected));
    }

    #[test]
    fn what_is_no_plugin_says_why() {
        let image = "application/vnd.oci.image.config.v1+json";
        let mut gzip = layer(3);
        gzip["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar+gzip");
        let mut other_digest = layer(3);
        other_digest["digest"] = json!("sha512:00");
        let mut negative = layer(3);
        negative["size"] = json!(-1);
        for (manifest, says) in [
            (json!([1]), "it is no JSON object"),
            (json!({"manifests": []}), "it is an index"),
            (
                manifest(image, &[layer(3)]),
                "configuration of its manifest is `application/vnd.oci.image.config.v1+json`",
            ),
            (manifest("", &[layer(3)]), "is ``"),
            (manifest(WASM_CONFIG, &[]), "it has 0 layers"),
            (
                manifest(WASM_CONFIG, &[layer(3), layer(3)]),
                "it has 2 layers",
            ),
            (
                manifest(WASM_CONFIG, &[gzip]),
                "its layer is `application/vnd.oci.image.layer",
            ),
            (
                manifest(WASM_CONFIG, &[other_digest]),
                "no sha256 digest or no size",
            ),
            (
                manifest(WASM_CONFIG, &[negative]),
                "no sha256 digest or no size",
            ),
            (
                manifest(WASM_CONFIG, &[layer(11)]),
                "has 11 bytes, more than the 10",
            ),
            (manifest(WASM_CONFIG, &[layer(0)]), "its component is empty"),
        ] {
            let error = read(&manifest).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
        let error = component(b"<html>", 10).unwrap_err();
        assert_eq!(error, ManifestError::Malformed("it is no JSON".into()));
    }
}

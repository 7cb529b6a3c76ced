//! From a ConfigMap to a component and its configuration.

use bytes::Bytes;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_api::Reason;
use reeve_core::Digest;
use std::collections::BTreeMap;
use std::io::Read;

/// Key of a plain component.
const PLAIN: &str = "plugin.wasm";
/// Key of a component compressed with zstd.
const ZSTD: &str = "plugin.wasm.zst";
/// Key of a component compressed with gzip.
const GZIP: &str = "plugin.wasm.gz";
/// Key of the configuration.
const CONFIG: &str = "config.yaml";

/// Size of a component after decompression: 32 MiB. A Rust component has well
/// under one, one with a JavaScript engine inside about ten; what is larger is a
/// mistake or an attack.
pub const MAX_COMPONENT_BYTES: usize = 32 << 20;

/// What a ConfigMap delivers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Package {
    /// The component, unpacked.
    pub(crate) component: Bytes,
    /// Its digest.
    pub(crate) digest: Digest,
    /// The configuration as JSON text; the empty object when there is none.
    pub(crate) config: Bytes,
}

/// Why a ConfigMap delivers nothing. Each names the key and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// None of the keys is there.
    #[error(
        "ConfigMap {config_map} has no component: put it under binaryData[\"{PLAIN}\"], [\"{ZSTD}\"] or [\"{GZIP}\"], for example with `kubectl create configmap {config_map} --from-file={PLAIN}`"
    )]
    Absent {
        /// Name of the ConfigMap.
        config_map: String,
    },
    /// The component stands where only text can.
    #[error(
        "ConfigMap {config_map}: {key} is in `data`, which holds text; a component is binary and belongs in `binaryData`, where `kubectl create configmap --from-file={key}` puts it by itself"
    )]
    Text {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
    },
    /// More than one of the keys is there.
    #[error("ConfigMap {config_map} has {first} and {second}: keep one of the two")]
    Ambiguous {
        /// Name of the ConfigMap.
        config_map: String,
        /// One key.
        first: &'static str,
        /// Another key.
        second: &'static str,
    },
    /// The component is empty.
    #[error("ConfigMap {config_map}: {key} is empty")]
    Empty {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
    },
    /// The compressed stream is broken.
    #[error(
        "ConfigMap {config_map}: {key} does not decompress: {problem}; compress the component again"
    )]
    Corrupt {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
        /// What the decompressor says.
        problem: String,
    },
    /// The component is too large.
    #[error(
        "ConfigMap {config_map}: {key} holds more than {MAX_COMPONENT_BYTES} bytes after decompression; build it smaller"
    )]
    TooLarge {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
    },
    /// The configuration is no YAML.
    #[error("ConfigMap {config_map}: data[\"{CONFIG}\"] is no YAML: {problem}")]
    ConfigSyntax {
        /// Name of the ConfigMap.
        config_map: String,
        /// What the parser says, with line and column.
        problem: String,
    },
}

impl DeliveryError {
    /// The reason that stands in the condition.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Absent { .. } | Self::Empty { .. } => Reason::ComponentAbsent,
            Self::Text { .. } => Reason::NotAComponent,
            Self::Ambiguous { .. } => Reason::ComponentAmbiguous,
            Self::Corrupt { .. } => Reason::DecompressionFailed,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::ConfigSyntax { .. } => Reason::ConfigInvalid,
        }
    }
}

/// Unpacks what a ConfigMap delivers.
///
/// The component stands in `binaryData`, where kubectl puts it: `data` cannot hold
/// wasm.
///
/// # Errors
///
/// When there is no component, more than one, a broken one, one that is too large
/// once unpacked, or a configuration that is no YAML.
pub(crate) fn unpack(config_map: &ConfigMap) -> Result<Package, DeliveryError> {
    let name = || config_map.metadata.name.clone().unwrap_or_default();
    let binary = |key: &str| {
        config_map
            .binary_data
            .as_ref()
            .and_then(|data| data.get(key))
    };
    let mut found = [PLAIN, ZSTD, GZIP]
        .into_iter()
        .filter_map(|key| binary(key).map(|bytes| (key, bytes.0.as_slice())));
    let Some((key, bytes)) = found.next() else {
        let text = config_map.data.as_ref();
        let misplaced = [PLAIN, ZSTD, GZIP]
            .into_iter()
            .find(|key| text.is_some_and(|data| data.contains_key(*key)));
        if let Some(key) = misplaced {
            return Err(DeliveryError::Text {
                config_map: name(),
                key,
            });
        }
        return Err(DeliveryError::Absent { config_map: name() });
    };
    if let Some((second, _)) = found.next() {
        return Err(DeliveryError::Ambiguous {
            config_map: name(),
            first: key,
            second,
        });
    }
    let component = match key {
        ZSTD => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
            decoder.and_then(read_bounded)
        }
        GZIP => read_bounded(flate2::bufread::MultiGzDecoder::new(bytes)),
        _ => read_bounded(bytes),
    }
    .map_err(|error| DeliveryError::Corrupt {
        config_map: name(),
        key,
        problem: error.to_string(),
    })?;
    if component.len() > MAX_COMPONENT_BYTES {
        return Err(DeliveryError::TooLarge {
            config_map: name(),
            key,
        });
    }
    if component.is_empty() {
        return Err(DeliveryError::Empty {
            config_map: name(),
            key,
        });
    }
    let config = config_map.data.as_ref().and_then(|data| data.get(CONFIG));
    let config = match config {
        Some(text) if !text.trim().is_empty() => {
            parse_config(text).map_err(|problem| DeliveryError::ConfigSyntax {
                config_map: name(),
                problem,
            })?
        }
        _ => Bytes::from_static(b"{}"),
    };
    Ok(Package {
        digest: Digest::of(&component),
        component: component.into(),
        config,
    })
}

/// The ConfigMap that would deliver a component from a file, in whatever form it is
/// packed. Without a configuration of its own it has that of `data`, which an
/// installed ConfigMap of the name holds.
pub(crate) fn as_config_map(
    name: &str,
    component: Vec<u8>,
    config: Option<String>,
    data: Option<BTreeMap<String, String>>,
) -> ConfigMap {
    let key = match component.as_slice() {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ZSTD,
        [0x1f, 0x8b, ..] => GZIP,
        _ => PLAIN,
    };
    let mut data = data.unwrap_or_default();
    if let Some(config) = config {
        data.insert(CONFIG.to_owned(), config);
    }
    ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some(name.to_owned()),
            ..kube::core::ObjectMeta::default()
        },
        binary_data: Some([(key.to_owned(), ByteString(component))].into()),
        data: Some(data),
        immutable: None,
    }
}

/// Reads one byte more than is allowed, so that a bomb costs no more than that.
fn read_bounded(reader: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_COMPONENT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse_config(text: &str) -> Result<Bytes, String> {
    // `y` and `on` are words; only `true` and `false` are booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: serde_json::Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            // A condition is one line.
            let plain = serde_saphyr::render_options! { snippets: serde_saphyr::SnippetMode::Off };
            error.render_with_options(plain)
        })?;
    // Comments alone are no configuration.
    let value = match value {
        serde_json::Value::Null => serde_json::json!({}),
        value => value,
    };
    serde_json::to_vec(&value)
        .map(Bytes::from)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const COMPONENT: &[u8] = b"\0asm component";

    fn config_map(binary: &[(&str, Vec<u8>)], config: Option<&str>) -> ConfigMap {
        ConfigMap {
            metadata: kube::core::ObjectMeta {
                name: Some("quotas".into()),
                ..Default::default()
            },
            binary_data: Some(
                binary
                    .iter()
                    .map(|(key, bytes)| ((*key).to_owned(), ByteString(bytes.clone())))
                    .collect(),
            ),
            data: config.map(|text| [(CONFIG.to_owned(), text.to_owned())].into()),
            immutable: None,
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(bytes, 3).unwrap()
    }

    #[test]
    fn every_packing_delivers_the_same() {
        for (key, bytes) in [
            (PLAIN, COMPONENT.to_vec()),
            (ZSTD, zstd(COMPONENT)),
            (GZIP, gzip(COMPONENT)),
        ] {
            let package = unpack(&config_map(&[(key, bytes)], None)).unwrap();
            assert_eq!(&package.component[..], COMPONENT, "{key}");
            assert_eq!(package.digest, Digest::of(COMPONENT));
            assert_eq!(&package.config[..], b"{}");
        }
        for bytes in [COMPONENT.to_vec(), zstd(COMPONENT), gzip(COMPONENT)] {
            let installed = || Some([(CONFIG.to_owned(), "a: 1".to_owned())].into());
            for (config, data, json) in [
                (None, None, "{}"),
                (None, installed(), r#"{"a":1}"#),
                (Some("b: 2".to_owned()), installed(), r#"{"b":2}"#),
            ] {
                let map = as_config_map("quotas", bytes.clone(), config, data);
                let package = unpack(&map).unwrap();
                assert_eq!(&package.component[..], COMPONENT);
                assert_eq!(&package.config[..], json.as_bytes());
            }
        }
    }

    #[test]
    fn a_component_among_the_texts_is_pointed_at() {
        let mut map = config_map(&[], None);
        map.data = Some([(PLAIN.to_owned(), "text".to_owned())].into());
        let error = unpack(&map).unwrap_err();
        assert_eq!(error.reason(), Reason::NotAComponent);
        assert!(
            error.to_string().contains("belongs in `binaryData`"),
            "{error}"
        );
    }

    #[test]
    fn configuration_becomes_json() {
        for (text, json) in [
            ("a: 1\nb: [x, y]\n", r#"{"a":1,"b":["x","y"]}"#),
            ("# nothing\n", "{}"),
            ("", "{}"),
        ] {
            let map = config_map(&[(PLAIN, COMPONENT.to_vec())], Some(text));
            assert_eq!(&unpack(&map).unwrap().config[..], json.as_bytes(), "{text}");
        }
    }

    #[test]
    fn each_error_names_the_key() {
        let bomb = vec![0; MAX_COMPONENT_BYTES + 1];
        let mut truncated = zstd(COMPONENT);
        truncated.truncate(truncated.len() - 3);
        let plain = || (PLAIN, COMPONENT.to_vec());
        for (map, reason, expected) in [
            (
                config_map(&[], None),
                Reason::ComponentAbsent,
                "ConfigMap quotas has no component",
            ),
            (
                config_map(&[plain(), (GZIP, gzip(COMPONENT))], None),
                Reason::ComponentAmbiguous,
                "ConfigMap quotas has plugin.wasm and plugin.wasm.gz",
            ),
            (
                config_map(&[(PLAIN, vec![])], None),
                Reason::ComponentAbsent,
                "ConfigMap quotas: plugin.wasm is empty",
            ),
            (
                config_map(&[(ZSTD, b"rubbish".to_vec())], None),
                Reason::DecompressionFailed,
                "ConfigMap quotas: plugin.wasm.zst does not decompress",
            ),
            (
                config_map(&[(ZSTD, truncated)], None),
                Reason::DecompressionFailed,
                "ConfigMap quotas: plugin.wasm.zst does not decompress",
            ),
            (
                config_map(&[(GZIP, COMPONENT.to_vec())], None),
                Reason::DecompressionFailed,
                "ConfigMap quotas: plugin.wasm.gz does not decompress",
            ),
            (
                config_map(&[(ZSTD, zstd(&bomb))], None),
                Reason::TooLarge,
                "ConfigMap quotas: plugin.wasm.zst holds more than 33554432 bytes",
            ),
            (
                config_map(&[(GZIP, gzip(&bomb))], None),
                Reason::TooLarge,
                "ConfigMap quotas: plugin.wasm.gz holds more than 33554432 bytes",
            ),
            (
                config_map(&[plain()], Some("a: [")),
                Reason::ConfigInvalid,
                "ConfigMap quotas: data[\"config.yaml\"] is no YAML",
            ),
        ] {
            let error = unpack(&map).unwrap_err();
            assert_eq!(error.reason(), reason);
            let text = error.to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }
}

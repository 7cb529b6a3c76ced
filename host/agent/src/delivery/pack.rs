//! From a component and its configuration to ConfigMaps.

use super::parts::{GENERATION, LABEL_BYTES, PART, PART_OF_LABEL, PARTS, part_name};
use super::{CONFIG, MAX_COMPONENT_BYTES, ZSTD};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use reeve_api::PLUGIN_CONFIG_MAP_LABEL;
use reeve_core::Digest;
use std::collections::BTreeMap;

/// Bytes of a part that client-side `kubectl apply` takes: it keeps a copy of the
/// object, in which they are base64, in an annotation, and the annotations of an
/// object may have 256 KiB together (`TotalAnnotationSizeLimitB` of
/// k8s.io/apimachinery). 180 KiB are 240 KiB of base64, which leaves 16 KiB for
/// everything else.
pub const CLIENT_SIDE_BYTES: usize = 180 << 10;

/// Bytes of a part that only server-side apply takes: data and binaryData of a
/// ConfigMap may have 1 MiB together (`MaxSecretSize` of k8s.io/kubernetes), less
/// what the keys and a configuration of usual size need.
pub const SERVER_SIDE_BYTES: usize = 960 << 10;

/// Compression of components. The highest levels gain two or three percent on wasm
/// and take minutes for the largest.
pub const ZSTD_LEVEL: i32 = 19;

/// How a component is packed.
#[derive(Clone, Debug)]
pub struct PackOptions<'a> {
    /// Name of the plugin.
    pub name: &'a str,
    /// Namespace that the ConfigMaps name; none leaves it to whoever applies them.
    pub namespace: Option<&'a str>,
    /// The configuration, as YAML.
    pub config: Option<&'a str>,
    /// How many bytes one ConfigMap holds: [`CLIENT_SIDE_BYTES`] or
    /// [`SERVER_SIDE_BYTES`].
    pub part_bytes: usize,
}

impl<'a> PackOptions<'a> {
    /// For client-side apply, without a configuration.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            namespace: None,
            config: None,
            part_bytes: CLIENT_SIDE_BYTES,
        }
    }
}

/// Why a component cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is larger than the agent takes.
    #[error(
        "the component has {size} bytes, more than the {MAX_COMPONENT_BYTES} that are taken; build it smaller"
    )]
    TooLarge {
        /// Its size.
        size: usize,
    },
    /// The configuration does not fit into a ConfigMap.
    #[error(
        "the configuration has {size} bytes; {limit} fit into a ConfigMap for this way of applying it"
    )]
    ConfigTooLarge {
        /// Its size.
        size: usize,
        /// How many fit.
        limit: usize,
    },
    /// It needs parts, which name the plugin in a label.
    #[error(
        "the component is too large for one ConfigMap, and its parts name the plugin in a label, which holds {LABEL_BYTES} bytes; `{name}` has {}: choose a shorter name with --name", name.len()
    )]
    NameTooLong {
        /// Name of the plugin.
        name: String,
    },
    /// The compressor failed.
    #[error("the component cannot be compressed")]
    Compress(#[source] std::io::Error),
}

/// The ConfigMaps that deliver a component: one, or the parts and then the
/// plugin's own.
///
/// Parts are immutable and named by their generation: a new version adds its own,
/// and takes effect as a whole with the plugin's ConfigMap, which comes last.
///
/// # Errors
///
/// When the component or the configuration is too large.
pub fn pack(component: &[u8], options: &PackOptions<'_>) -> Result<Vec<ConfigMap>, PackError> {
    if component.len() > MAX_COMPONENT_BYTES {
        return Err(PackError::TooLarge {
            size: component.len(),
        });
    }
    // As a whole, whose length is known: what a stream would set aside is for lengths that
    // few components have.
    let packed = zstd::bulk::compress(component, ZSTD_LEVEL).map_err(PackError::Compress)?;
    // What it is in the JSON of which kubectl keeps a copy, quotes and escapes
    // included, in terms of base64 beside it.
    let config_bytes = options.config.map_or(0, |config| {
        serde_json::Value::from(config).to_string().len()
    });
    let config_weight = config_bytes.div_ceil(4) * 3;
    if config_weight > options.part_bytes {
        return Err(PackError::ConfigTooLarge {
            size: config_bytes,
            limit: options.part_bytes / 3 * 4,
        });
    }
    let mut data = BTreeMap::new();
    if let Some(config) = options.config {
        data.insert(CONFIG.to_owned(), config.to_owned());
    }
    let label = (PLUGIN_CONFIG_MAP_LABEL, "true");
    if packed.len() + config_weight <= options.part_bytes {
        let mut map = config_map(options, options.name.to_owned(), label, data);
        map.binary_data = Some([(ZSTD.to_owned(), ByteString(packed))].into());
        return Ok(vec![map]);
    }
    if options.name.len() > LABEL_BYTES {
        return Err(PackError::NameTooLong {
            name: options.name.to_owned(),
        });
    }
    let generation = Digest::of(&packed);
    let mut maps = Vec::new();
    for (index, bytes) in packed.chunks(options.part_bytes).enumerate() {
        let number = index + 1;
        let name = part_name(options.name, generation, number);
        let data = [
            (GENERATION.to_owned(), generation.to_string()),
            (PART.to_owned(), number.to_string()),
        ];
        let label = (PART_OF_LABEL, options.name);
        let mut map = config_map(options, name, label, data.into());
        map.binary_data = Some([(ZSTD.to_owned(), ByteString(bytes.to_vec()))].into());
        map.immutable = Some(true);
        maps.push(map);
    }
    data.insert(PARTS.to_owned(), maps.len().to_string());
    data.insert(GENERATION.to_owned(), generation.to_string());
    maps.push(config_map(options, options.name.to_owned(), label, data));
    Ok(maps)
}

fn config_map(
    options: &PackOptions<'_>,
    name: String,
    (key, value): (&str, &str),
    data: BTreeMap<String, String>,
) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: options.namespace.map(str::to_owned),
            labels: Some([(key.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: (!data.is_empty()).then_some(data),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::unpack;
    use super::*;

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        (0..length.div_ceil(32) as u64)
            .flat_map(|n| Digest::of(&n.to_le_bytes()).bytes().to_vec())
            .take(length)
            .collect()
    }

    #[test]
    fn what_is_packed_unpacks_and_fits() {
        let config = format!("text: x{}\n", "\"ü\"".repeat(2000));
        for (length, config, part_bytes, maps) in [
            (0, None, CLIENT_SIDE_BYTES, 1),
            (1000, Some("pods: 7\n"), CLIENT_SIDE_BYTES, 1),
            (CLIENT_SIDE_BYTES - 100, None, CLIENT_SIDE_BYTES, 1),
            (
                CLIENT_SIDE_BYTES - 100,
                Some(&*config),
                CLIENT_SIDE_BYTES,
                2,
            ),
            (1 << 20, Some(&*config), CLIENT_SIDE_BYTES, 7),
            (1 << 20, Some(&*config), SERVER_SIDE_BYTES, 3),
        ] {
            let component = noise(length);
            let options = PackOptions {
                config,
                part_bytes,
                namespace: Some("reeve-system"),
                ..PackOptions::new("quotas")
            };
            let packed = pack(&component, &options).unwrap();
            assert_eq!(packed.len(), maps, "{length}");
            for map in &packed {
                let copy = serde_json::to_string(map).unwrap().len();
                let limit = match part_bytes {
                    CLIENT_SIDE_BYTES => 256 << 10,
                    // The bytes themselves count, not their base64.
                    _ => (1 << 20) / 3 * 4,
                };
                assert!(copy + 1024 < limit, "{length}: {copy}");
            }
            let unpacked = unpack("quotas", &packed);
            if length == 0 {
                assert!(unpacked.unwrap_err().to_string().contains("is empty"));
                continue;
            }
            let unpacked = unpacked.unwrap();
            assert_eq!(unpacked.component, component);
            let text = std::str::from_utf8(&unpacked.config).unwrap();
            assert_eq!(text == "{}", config.is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_too_large_says_so() {
        let large = vec![0; MAX_COMPONENT_BYTES + 1];
        let error = pack(&large, &PackOptions::new("a")).unwrap_err();
        assert!(matches!(error, PackError::TooLarge { .. }), "{error}");
        let config = "x".repeat(300 << 10);
        let options = PackOptions {
            config: Some(&config),
            ..PackOptions::new("a")
        };
        let error = pack(b"small", &options).unwrap_err();
        let expected = "the configuration has 307202 bytes; 245760 fit";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

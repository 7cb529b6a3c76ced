//! From ConfigMaps to a component and its configuration, and back.

mod error;
mod pack;
mod parts;
mod proof;

pub use error::DeliveryError;
pub use pack::{CLIENT_SIDE_BYTES, PackError, PackOptions, SERVER_SIDE_BYTES, ZSTD_LEVEL, pack};
pub use parts::{LABEL_BYTES, PART_OF_LABEL};
pub use proof::Proof;

use crate::findings::{Findings, Unpacked};
use bytes::Bytes;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
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
/// Key of the name of another plugin whose component is run.
const COMPONENT: &str = "component";
/// Key of a signature of the component, as it is unpacked.
const SIGNATURE: &str = "plugin.wasm.sig";

/// Size of a component after decompression: 32 MiB. A Rust component has well
/// under one, one with a JavaScript engine inside about ten; what is larger is a
/// mistake or an attack.
pub const MAX_COMPONENT_BYTES: usize = 32 << 20;

/// What ConfigMaps deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The component, unpacked.
    pub component: Bytes,
    /// Its digest.
    pub digest: Digest,
    /// The configuration as JSON text; the empty object when there is none.
    pub config: Bytes,
    /// What came with it that may prove whose it is. Nothing of it has been verified.
    pub proofs: Vec<Proof>,
    /// Where the component was found, as messages name it: a key of a ConfigMap, an image.
    pub place: String,
}

/// Unpacks what the ConfigMap `name` delivers, with the help of others: the parts
/// of its component, or the plugin whose component it runs. ConfigMaps that have
/// nothing to do with it are passed over.
///
/// The component stands in `binaryData`, where kubectl puts it: `data` cannot hold
/// wasm.
///
/// # Errors
///
/// When there is no component, more than one, a broken or incomplete one, one that
/// is too large once unpacked, or a configuration that is no YAML.
pub fn unpack(name: &str, maps: &[ConfigMap]) -> Result<Package, DeliveryError> {
    unpack_as(name, maps, &Unpacking::default())
}

/// How components are unpacked.
#[derive(Clone, Debug)]
pub(crate) struct Unpacking {
    /// What was found out before, and is added to.
    pub(crate) findings: Option<Findings>,
    /// Bytes of a component, where its plugin may have less than any other.
    pub(crate) most: usize,
}

impl Default for Unpacking {
    fn default() -> Self {
        Self {
            findings: None,
            most: MAX_COMPONENT_BYTES,
        }
    }
}

/// As [`unpack`], in this way.
pub(crate) fn unpack_as(
    name: &str,
    maps: &[ConfigMap],
    how: &Unpacking,
) -> Result<Package, DeliveryError> {
    let find = |name: &str| {
        maps.iter()
            .find(|map| map.metadata.name.as_deref() == Some(name))
    };
    let own = find(name).ok_or_else(|| DeliveryError::NoConfigMap {
        config_map: name.to_owned(),
    })?;
    let ((unpacked, key), from) = match component_of(own) {
        None => (unpack_component(own, maps, how)?, own),
        Some(other) => {
            let unusable = |problem| DeliveryError::OtherUnusable {
                config_map: name.to_owned(),
                other: other.to_owned(),
                problem,
            };
            if has_component(own) {
                return Err(unusable(
                    "and has a component of its own: keep one of the two",
                ));
            }
            let Some(found) = find(other) else {
                return Err(unusable(
                    "which is no plugin: name the ConfigMap of one, in the same namespace",
                ));
            };
            if component_of(found).is_some() {
                return Err(unusable(
                    "which has no component of its own: name the ConfigMap that has it",
                ));
            }
            (unpack_component(found, maps, how)?, found)
        }
    };
    let config = config_of(own)?;
    Ok(Package {
        digest: unpacked.digest,
        component: unpacked.component,
        config,
        proofs: proof::of_config_map(from)?,
        place: match key {
            parts::PARTS => format!("ConfigMap {}: the joined parts", name_of(from)),
            key => format!("ConfigMap {}: binaryData[\"{key}\"]", name_of(from)),
        },
    })
}

/// The configuration that the ConfigMap `name` delivers for a component that comes from
/// elsewhere; the empty object when there is no such ConfigMap.
///
/// # Errors
///
/// When it has a component besides, or a configuration that is no YAML.
pub fn unpack_config(name: &str, maps: &[ConfigMap]) -> Result<Bytes, DeliveryError> {
    let mut maps = maps.iter();
    let own = maps.find(|map| map.metadata.name.as_deref() == Some(name));
    let Some(own) = own else {
        return Ok(Bytes::from_static(b"{}"));
    };
    if has_component(own) || component_of(own).is_some() {
        return Err(DeliveryError::Twice {
            config_map: name.to_owned(),
        });
    }
    config_of(own)
}

/// The configuration that a ConfigMap holds, as JSON text; the empty object when it holds
/// none.
///
/// # Errors
///
/// When it is no YAML, or stands under a name that its writer took for the right one.
pub fn config_of(config_map: &ConfigMap) -> Result<Bytes, DeliveryError> {
    let name = || name_of(config_map);
    if let Some(key) = misnamed_config(config_map) {
        return Err(DeliveryError::ConfigMisnamed {
            config_map: name(),
            key,
        });
    }
    let syntax = |problem| DeliveryError::ConfigSyntax {
        config_map: name(),
        problem,
    };
    // kubectl puts a file that is not UTF-8 among the binary data.
    let text = match binary(config_map, CONFIG) {
        Some(bytes) => std::str::from_utf8(bytes)
            .map(Some)
            .map_err(|error| syntax(format!("it is not UTF-8: {error}")))?,
        None => text(config_map, CONFIG),
    };
    match text {
        Some(text) if !text.trim().is_empty() => parse_config(text).map_err(syntax),
        _ => Ok(Bytes::from_static(b"{}")),
    }
}

/// A key that its writer took for that of the configuration.
fn misnamed_config(config_map: &ConfigMap) -> Option<String> {
    let text = config_map.data.iter().flat_map(BTreeMap::keys);
    let binary = config_map.binary_data.iter().flat_map(BTreeMap::keys);
    let mut keys = text.chain(binary);
    // Beside the right one, another may be there for somebody else.
    let has_config = keys.clone().any(|key| key == CONFIG);
    let found = keys.find(|key| {
        let lower = key.to_ascii_lowercase();
        let is_like_it = ["config.yaml", "config.yml", "config.json"].contains(&&*lower);
        let is_settings = [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| lower.ends_with(end));
        *key != CONFIG && (is_like_it || is_settings && !has_config)
    });
    found.cloned()
}

/// The other plugin whose component this one runs, if it does.
pub fn component_of(config_map: &ConfigMap) -> Option<&str> {
    let other = text(config_map, COMPONENT)?.trim();
    (!other.is_empty()).then_some(other)
}

fn has_component(config_map: &ConfigMap) -> bool {
    parts::is_split(config_map)
        || [PLAIN, ZSTD, GZIP]
            .iter()
            .any(|key| binary(config_map, key).is_some())
}

/// The component, and the key that says where it is.
fn unpack_component(
    config_map: &ConfigMap,
    maps: &[ConfigMap],
    how: &Unpacking,
) -> Result<(Unpacked, &'static str), DeliveryError> {
    let name = || name_of(config_map);
    let mut found = [PLAIN, ZSTD, GZIP]
        .into_iter()
        .filter_map(|key| binary(config_map, key).map(|bytes| (key, bytes)));
    let first = found.next();
    if parts::is_split(config_map) {
        if let Some((second, _)) = first {
            return Err(DeliveryError::Ambiguous {
                config_map: name(),
                first: parts::PARTS,
                second,
            });
        }
        let (key, joined) = parts::join(config_map, maps)?;
        return Ok((opened(&name(), key, &joined, how)?, parts::PARTS));
    }
    let Some((key, bytes)) = first else {
        let misplaced = [PLAIN, ZSTD, GZIP]
            .into_iter()
            .find(|key| text(config_map, key).is_some());
        if let Some(key) = misplaced {
            return Err(DeliveryError::Text {
                config_map: name(),
                key,
            });
        }
        return Err(absent(config_map));
    };
    if let Some((second, _)) = found.next() {
        return Err(DeliveryError::Ambiguous {
            config_map: name(),
            first: key,
            second,
        });
    }
    Ok((opened(&name(), key, bytes, how)?, key))
}

/// There is no component, and what there is instead.
fn absent(config_map: &ConfigMap) -> DeliveryError {
    let binary = config_map.binary_data.iter().flat_map(BTreeMap::keys);
    let text = config_map.data.iter().flat_map(BTreeMap::keys);
    let read = [CONFIG, SIGNATURE, parts::PART, parts::GENERATION];
    // It names nothing: it is blank.
    let text = text.filter(|key| *key != COMPONENT);
    let unread = binary
        .chain(text)
        .filter(|key| !read.contains(&key.as_str()));
    DeliveryError::Absent {
        config_map: name_of(config_map),
        found: unread.cloned().collect(),
    }
}

/// What is in a packed component.
fn opened(
    name: &str,
    key: &'static str,
    bytes: &[u8],
    how: &Unpacking,
) -> Result<Unpacked, DeliveryError> {
    let findings = how.findings.as_ref();
    if let Some(found) = findings.and_then(|findings| findings.unpacked(key, bytes)) {
        bounded(found.component.len(), name, key, how.most)?;
        return Ok(found);
    }
    let component = decompress(name, key, bytes, how.most)?;
    let unpacked = Unpacked {
        digest: Digest::of(&component),
        component: component.into(),
    };
    if let Some(findings) = findings {
        findings.keep_unpacked(key, bytes, &unpacked);
    }
    Ok(unpacked)
}

fn decompress(
    name: &str,
    key: &'static str,
    bytes: &[u8],
    most: usize,
) -> Result<Vec<u8>, DeliveryError> {
    let component = match key {
        ZSTD => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
            decoder.and_then(|decoder| read_bounded(decoder, most))
        }
        GZIP => read_bounded(flate2::bufread::MultiGzDecoder::new(bytes), most),
        _ => read_bounded(bytes, most),
    }
    .map_err(|error| DeliveryError::Corrupt {
        config_map: name.to_owned(),
        key,
        problem: match bytes.starts_with(b"\0asm") {
            true => format!("it is not compressed, and belongs under {PLAIN}"),
            false => error.to_string(),
        },
    })?;
    bounded(component.len(), name, key, most)?;
    if component.is_empty() {
        return Err(DeliveryError::Empty {
            config_map: name.to_owned(),
            key,
        });
    }
    Ok(component)
}

fn bounded(size: usize, name: &str, key: &'static str, most: usize) -> Result<(), DeliveryError> {
    if size > most {
        return Err(DeliveryError::TooLarge {
            config_map: name.to_owned(),
            key,
            most,
        });
    }
    Ok(())
}

fn name_of(config_map: &ConfigMap) -> String {
    config_map.metadata.name.clone().unwrap_or_default()
}

fn text<'a>(config_map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    let data = config_map.data.as_ref()?;
    data.get(key).map(String::as_str)
}

fn binary<'a>(config_map: &'a ConfigMap, key: &str) -> Option<&'a [u8]> {
    let data = config_map.binary_data.as_ref()?;
    data.get(key).map(|bytes| bytes.0.as_slice())
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
    // Where the installed one comes from.
    for key in [COMPONENT, parts::PARTS, parts::GENERATION] {
        data.remove(key);
    }
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
fn read_bounded(reader: impl Read, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Configuration as people write it, YAML, as the JSON that plugins are given.
///
/// # Errors
///
/// What the parser says, with line and column, on one line.
pub fn parse_config(text: &str) -> Result<Bytes, String> {
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
    use reeve_api::Reason;
    use std::io::Write;

    const COMPONENT_BYTES: &[u8] = b"\0asm component";

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

    fn one(config_map: &ConfigMap) -> Result<Package, DeliveryError> {
        unpack("quotas", std::slice::from_ref(config_map))
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
            (PLAIN, COMPONENT_BYTES.to_vec()),
            (ZSTD, zstd(COMPONENT_BYTES)),
            (GZIP, gzip(COMPONENT_BYTES)),
        ] {
            let package = one(&config_map(&[(key, bytes)], None)).unwrap();
            assert_eq!(&package.component[..], COMPONENT_BYTES, "{key}");
            assert_eq!(package.digest, Digest::of(COMPONENT_BYTES));
            assert_eq!(&package.config[..], b"{}");
        }
        for bytes in [
            COMPONENT_BYTES.to_vec(),
            zstd(COMPONENT_BYTES),
            gzip(COMPONENT_BYTES),
        ] {
            let installed = || Some([(CONFIG.to_owned(), "a: 1".to_owned())].into());
            for (config, data, json) in [
                (None, None, "{}"),
                (None, installed(), r#"{"a":1}"#),
                (Some("b: 2".to_owned()), installed(), r#"{"b":2}"#),
            ] {
                let map = as_config_map("quotas", bytes.clone(), config, data);
                let package = one(&map).unwrap();
                assert_eq!(&package.component[..], COMPONENT_BYTES);
                assert_eq!(&package.config[..], json.as_bytes());
            }
        }
    }

    #[test]
    fn a_component_among_the_texts_is_pointed_at() {
        let mut map = config_map(&[], None);
        map.data = Some([(PLAIN.to_owned(), "text".to_owned())].into());
        let error = one(&map).unwrap_err();
        assert_eq!(error.reason(), Reason::NotAComponent);
        assert!(
            error.to_string().contains("so it is text or empty"),
            "{error}"
        );
    }

    #[test]
    fn a_second_instance_has_its_own_configuration() {
        let base = config_map(&[(PLAIN, COMPONENT_BYTES.to_vec())], Some("a: 1"));
        let instance = |other: &str, binary: &[(&str, Vec<u8>)]| {
            let mut map = config_map(binary, Some("a: 2"));
            map.metadata.name = Some("second".into());
            let data = map.data.as_mut().unwrap();
            data.insert(COMPONENT.into(), other.into());
            map
        };
        let package = unpack("second", &[base.clone(), instance("quotas", &[])]).unwrap();
        assert_eq!(&package.component[..], COMPONENT_BYTES);
        assert_eq!(&package.config[..], br#"{"a":2}"#);
        for (map, expected) in [
            (instance("other", &[]), "names other, which is no plugin"),
            (
                instance("second", &[]),
                "names second, which has no component of its own",
            ),
            (
                instance("quotas", &[(PLAIN, COMPONENT_BYTES.to_vec())]),
                "names quotas, and has a component of its own",
            ),
        ] {
            let error = unpack("second", &[base.clone(), map]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.reason(), Reason::ComponentAbsent);
        }
    }

    #[test]
    fn configuration_becomes_json() {
        for (text, json) in [
            ("a: 1\nb: [x, y]\n", r#"{"a":1,"b":["x","y"]}"#),
            ("# nothing\n", "{}"),
            ("", "{}"),
        ] {
            let map = config_map(&[(PLAIN, COMPONENT_BYTES.to_vec())], Some(text));
            assert_eq!(&one(&map).unwrap().config[..], json.as_bytes(), "{text}");
        }
    }

    #[test]
    fn each_error_names_the_key() {
        let bomb = vec![0; MAX_COMPONENT_BYTES + 1];
        let mut truncated = zstd(COMPONENT_BYTES);
        truncated.truncate(truncated.len() - 3);
        let plain = || (PLAIN, COMPONENT_BYTES.to_vec());
        for (map, reason, expected) in [
            (
                config_map(&[], None),
                Reason::ComponentAbsent,
                "ConfigMap quotas has no component",
            ),
            (
                config_map(&[plain(), (CONFIG, b"a: \xff".to_vec())], None),
                Reason::ConfigInvalid,
                "ConfigMap quotas: data[\"config.yaml\"] is no YAML: it is not UTF-8",
            ),
            (
                config_map(&[plain(), ("config.yml", b"a: 1".to_vec())], None),
                Reason::ConfigInvalid,
                "ConfigMap quotas: nobody reads the key \"config.yml\"",
            ),
            (
                config_map(&[plain(), (GZIP, gzip(COMPONENT_BYTES))], None),
                Reason::ComponentAmbiguous,
                "ConfigMap quotas has plugin.wasm and plugin.wasm.gz",
            ),
            (
                config_map(&[(PLAIN, vec![])], None),
                Reason::ComponentAbsent,
                "ConfigMap quotas: plugin.wasm is empty; put the built component there",
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
                config_map(&[(GZIP, COMPONENT_BYTES.to_vec())], None),
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
            let error = one(&map).unwrap_err();
            assert_eq!(error.reason(), reason);
            let text = error.to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }
}

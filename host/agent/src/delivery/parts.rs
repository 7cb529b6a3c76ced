//! Components that are larger than one ConfigMap may be.
//!
//! The plugin's ConfigMap then holds `data["parts"]`, how many there are, and
//! `data["generation"]`, the digest of all of them together. Each part is a
//! ConfigMap of its own with the label [`PART_OF_LABEL`], with `data["part"]`, its
//! number from 1, and the same generation; its name begins with the plugin's and `-`. Parts of several generations may exist
//! side by side: only a complete one whose digest is right is used, so that a
//! version that is half written is no version.

use super::{
    DeliveryError, GZIP, MAX_COMPONENT_BYTES, PLAIN, ZSTD, absent, binary, bounded, name_of, text,
};
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_core::Digest;
use std::collections::BTreeMap;

/// Label of a ConfigMap that holds a part of a component: the name of the plugin's
/// ConfigMap.
pub const PART_OF_LABEL: &str = "reeve.dev/plugin-part-of";

/// Bytes that the value of a label may have (`LabelValueMaxLength` of
/// k8s.io/apimachinery): a plugin in parts has no longer name.
pub const LABEL_BYTES: usize = 63;

/// Key of the number of parts.
pub(super) const PARTS: &str = "parts";
/// Key of the digest of all parts together, as they are packed.
pub(super) const GENERATION: &str = "generation";
/// Key of a part's own number.
pub(super) const PART: &str = "part";

/// More than the largest component needs in the smallest useful parts.
const MAX_PARTS: usize = 1000;

/// Whether a plugin's ConfigMap delivers its component in parts.
pub(super) fn is_split(config_map: &ConfigMap) -> bool {
    text(config_map, PARTS).is_some()
}

/// Joins the parts of a component, still packed, with the key that says how.
pub(super) fn join(
    config_map: &ConfigMap,
    maps: &[ConfigMap],
) -> Result<(&'static str, Vec<u8>), DeliveryError> {
    let name = name_of(config_map);
    let malformed = |key: &'static str, expected: &'static str| DeliveryError::PartsMalformed {
        config_map: name.clone(),
        key,
        value: text(config_map, key).unwrap_or_default().to_owned(),
        expected,
    };
    let count = text(config_map, PARTS)
        .and_then(|text| text.trim().parse().ok())
        .filter(|count| (1..=MAX_PARTS).contains(count))
        .ok_or_else(|| malformed(PARTS, "a number of parts from 1 to 1000"))?;
    let generation: Digest = text(config_map, GENERATION)
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| {
            malformed(
                GENERATION,
                "the digest of all parts, `sha256:` and 64 digits",
            )
        })?;
    let belongs = |map: &&ConfigMap| {
        let labels = map.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(PART_OF_LABEL)) == Some(&name)
    };
    let mut found: Vec<Option<(&'static str, &ConfigMap, &[u8])>> = vec![None; count];
    let mut others: Vec<String> = Vec::new();
    // Why a ConfigMap that says it is a part can be none. Whoever may change one that is called
    // like a part must not be able to stop the plugin by that: it counts where parts are missing.
    let mut broken: Option<DeliveryError> = None;
    let mut twice: BTreeMap<usize, DeliveryError> = BTreeMap::new();
    let prefix = format!("{name}-");
    for part in maps.iter().filter(belongs) {
        // Nor who may change a ConfigMap of another name.
        if !name_of(part).starts_with(&prefix) {
            others.push(format!(
                "ConfigMap {} is none: the name of a part begins with `{prefix}`",
                name_of(part)
            ));
            continue;
        }
        let of = text(part, GENERATION).map(str::trim).unwrap_or_default();
        if of != generation.to_string() {
            others.push(format!(
                "ConfigMap {} is of generation {}",
                name_of(part),
                short(of)
            ));
            continue;
        }
        let number = text(part, PART).and_then(|text| text.trim().parse::<usize>().ok());
        let number = number.filter(|number| (1..=count).contains(number));
        let Some(number) = number else {
            broken.get_or_insert_with(|| DeliveryError::PartsMalformed {
                config_map: name_of(part),
                key: PART,
                value: text(part, PART).unwrap_or_default().to_owned(),
                expected: "the number of the part, from 1 to the number of parts",
            });
            continue;
        };
        let component = [PLAIN, ZSTD, GZIP]
            .into_iter()
            .find_map(|key| binary(part, key).map(|bytes| (key, bytes)));
        let Some((key, bytes)) = component else {
            broken.get_or_insert_with(|| absent(part));
            continue;
        };
        let place = &mut found[number - 1];
        let Some((_, twin, _)) = *place else {
            *place = Some((key, part, bytes));
            continue;
        };
        let doubled = DeliveryError::PartTwice {
            config_map: name.clone(),
            part: number,
            first: name_of(twin),
            second: name_of(part),
        };
        broken.get_or_insert_with(|| doubled.clone());
        twice.entry(number).or_insert(doubled);
        // The one that is called as `pack` calls it is the part.
        if name_of(part) == part_name(&name, generation, number) {
            *place = Some((key, part, bytes));
        }
    }
    for (number, doubled) in twice {
        let part = found[number - 1].map(|(_, part, _)| name_of(part));
        if part != Some(part_name(&name, generation, number)) {
            return Err(doubled);
        }
    }
    let missing: Vec<String> = found
        .iter()
        .enumerate()
        .filter(|(_, part)| part.is_none())
        .map(|(index, _)| (index + 1).to_string())
        .collect();
    if !missing.is_empty() {
        return Err(broken.unwrap_or(DeliveryError::PartsMissing {
            config_map: name,
            missing: missing.join(", "),
            count,
            generation: short(&generation.to_string()),
            others: if others.is_empty() {
                String::new()
            } else {
                format!(" ({})", others.join("; "))
            },
        }));
    }
    let parts: Vec<_> = found.into_iter().flatten().collect();
    let key = parts.first().map_or(PLAIN, |(key, _, _)| *key);
    if let Some((second, _, _)) = parts.iter().find(|(other, _, _)| *other != key) {
        return Err(DeliveryError::Ambiguous {
            config_map: name,
            first: key,
            second,
        });
    }
    let size: usize = parts.iter().map(|(_, _, bytes)| bytes.len()).sum();
    bounded(size, &name, key, MAX_COMPONENT_BYTES)?;
    let mut joined = Vec::with_capacity(size);
    for (_, _, bytes) in parts {
        joined.extend_from_slice(bytes);
    }
    let digest = Digest::of(&joined);
    if digest != generation {
        return Err(DeliveryError::PartsDiffer {
            config_map: name,
            found: digest,
            generation,
        });
    }
    Ok((key, joined))
}

/// What [`pack`](super::pack) calls a part, by its number from 1.
pub(super) fn part_name(plugin: &str, generation: Digest, number: usize) -> String {
    format!("{plugin}-{}-{number}", generation.short())
}

/// The first digits of a digest, for people.
fn short(digest: &str) -> String {
    let digits = digest.strip_prefix("sha256:").unwrap_or(digest);
    if digits.is_empty() {
        return "none".to_owned();
    }
    digits.chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{PackOptions, pack, unpack};
    use super::*;
    use reeve_api::Reason;

    /// Three parts, and then the plugin's own ConfigMap.
    fn packed() -> Vec<ConfigMap> {
        // Bytes that do not compress, made without a random number.
        let component: Vec<u8> = (0..10_u32)
            .flat_map(|n| Digest::of(&n.to_le_bytes()).bytes().to_vec())
            .collect();
        let options = PackOptions {
            part_bytes: 120,
            ..PackOptions::new("quotas")
        };
        let maps = pack(&component, &options).unwrap();
        assert_eq!(maps.len(), 4);
        assert_eq!(unpack("quotas", &maps).unwrap().component, component);
        maps
    }

    fn data(map: &mut ConfigMap) -> &mut std::collections::BTreeMap<String, String> {
        map.data.as_mut().unwrap()
    }

    /// Parts that are too many bytes together are not even joined: that their digest is
    /// another is not found out.
    #[test]
    fn what_is_too_large_is_so_before_it_is_unpacked() {
        let mut maps = packed();
        let more = MAX_COMPONENT_BYTES / 3;
        for (part, fits) in [(0, true), (1, true), (2, false)] {
            let binary = maps[part].binary_data.as_mut().unwrap();
            binary.get_mut(ZSTD).unwrap().0.resize(more + 1, 0);
            let error = unpack("quotas", &maps).unwrap_err();
            let expected = match fits {
                true => Reason::DecompressionFailed,
                false => Reason::TooLarge,
            };
            assert_eq!(error.reason(), expected, "{error}");
        }
    }

    #[test]
    fn a_version_that_is_half_written_is_no_version() {
        let other = Digest::of(b"other").to_string();
        type Spoil<'a> = &'a dyn Fn(&mut Vec<ConfigMap>);
        let cases: [(Spoil<'_>, Reason, &str); 8] = [
            (
                &|maps| drop(maps.remove(1)),
                Reason::PartsMissing,
                "ConfigMap quotas: part 2 of 3 of generation ",
            ),
            (
                &|maps| drop(data(&mut maps[1]).insert(GENERATION.into(), other.clone())),
                Reason::PartsMissing,
                "is of generation d9298a10d1",
            ),
            (
                &|maps| drop(data(&mut maps[3]).insert(GENERATION.into(), other.clone())),
                Reason::PartsMissing,
                "part 1, 2, 3 of 3 of generation d9298a10d1 is missing",
            ),
            (
                &|maps| drop(data(&mut maps[3]).insert(PARTS.into(), "many".into())),
                Reason::PartsMalformed,
                "ConfigMap quotas: data[\"parts\"]: `many` is not a number",
            ),
            (
                &|maps| drop(data(&mut maps[0]).insert(PART.into(), "4".into())),
                Reason::PartsMalformed,
                "data[\"part\"]: `4` is not the number",
            ),
            (
                &|maps| drop(data(&mut maps[0]).insert(PART.into(), "2".into())),
                Reason::ComponentAmbiguous,
                "part 2 is in ConfigMap quotas-",
            ),
            (
                &|maps| {
                    let bytes = maps[0].binary_data.as_mut().unwrap();
                    bytes.get_mut(ZSTD).unwrap().0[7] ^= 1;
                },
                Reason::DecompressionFailed,
                "the joined parts have digest sha256:",
            ),
            (
                &|maps| {
                    let bytes = maps[0].binary_data.as_mut().unwrap().remove(ZSTD).unwrap();
                    maps[0]
                        .binary_data
                        .as_mut()
                        .unwrap()
                        .insert(GZIP.into(), bytes);
                },
                Reason::ComponentAmbiguous,
                "ConfigMap quotas has plugin.wasm.gz and plugin.wasm.zst",
            ),
        ];
        for (spoil, reason, expected) in cases {
            let mut maps = packed();
            spoil(&mut maps);
            let error = unpack("quotas", &maps).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected), "{expected}: {text}");
            assert_eq!(error.reason(), reason, "{text}");
        }
    }

    /// Of another plugin, whose name begins alike.
    #[test]
    fn who_may_change_one_that_is_called_like_a_part_does_no_harm() {
        for part in ["1", "x", "77", ""] {
            for first in [true, false] {
                let mut maps = packed();
                let mut foreign = maps[0].clone();
                foreign.metadata.name = Some("quotas-extra".into());
                data(&mut foreign).insert(PART.into(), part.into());
                let bytes = foreign.binary_data.as_mut().unwrap();
                bytes.get_mut(ZSTD).unwrap().0[7] ^= 1;
                let mut second = foreign.clone();
                second.metadata.name = Some("quotas-more".into());
                match first {
                    true => maps.splice(0..0, [foreign, second]).for_each(drop),
                    false => maps.extend([foreign, second]),
                }
                assert!(unpack("quotas", &maps).is_ok(), "{part}");
            }
        }
        let mut maps = packed();
        let mut empty = maps[0].clone();
        empty.metadata.name = Some("quotas-extra".into());
        empty.binary_data = None;
        maps.insert(0, empty);
        assert!(unpack("quotas", &maps).is_ok());
    }

    #[test]
    fn parts_of_others_and_of_the_past_do_no_harm() {
        let mut maps = packed();
        for (label, generation) in [("other", None), ("quotas", Some("sha256:past"))] {
            let mut stray = maps[0].clone();
            stray.metadata.name = Some(format!("quotas-stray-{label}"));
            let labels = stray.metadata.labels.as_mut().unwrap();
            labels.insert(PART_OF_LABEL.into(), label.into());
            if let Some(generation) = generation {
                data(&mut stray).insert(GENERATION.into(), generation.into());
            }
            maps.push(stray);
        }
        assert!(unpack("quotas", &maps).is_ok());
    }

    /// Of whoever may change a ConfigMap of another name.
    #[test]
    fn what_is_not_called_like_a_part_is_none() {
        let mut maps = packed();
        let mut foreign = maps[0].clone();
        foreign.metadata.name = Some("team".into());
        data(&mut foreign).insert(PART.into(), "nonsense".into());
        maps.push(foreign.clone());
        assert!(unpack("quotas", &maps).is_ok());
        data(&mut foreign).insert(PART.into(), "1".into());
        maps.pop();
        maps.push(foreign);
        assert!(unpack("quotas", &maps).is_ok());
        maps.remove(0);
        let error = unpack("quotas", &maps).unwrap_err().to_string();
        for part in ["team is none", "begins with `quotas-`"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

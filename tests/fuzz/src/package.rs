//! What ConfigMaps deliver, which whoever may write them decides.

use k8s_openapi::api::core::v1::ConfigMap;
use reeve_agent::delivery::{MAX_COMPONENT_BYTES, PackOptions, pack, unpack};
use reeve_core::Digest;
use serde_json::Value;
use std::collections::BTreeSet;

/// The plugin that is delivered.
const NAME: &str = "p";

/// The input is a list of ConfigMaps as JSON, of which that named `p` delivers a plugin;
/// anything else is taken for a component.
///
/// What is unpacked is no larger than may be and has its own digest, and its configuration
/// is JSON. What is refused is so in words. A component that is packed is unpacked as it
/// was, in one ConfigMap as in many, and is not without one of these.
pub fn package(input: &[u8]) {
    let Ok(maps) = serde_json::from_slice::<Vec<ConfigMap>>(input) else {
        return round_trip(input);
    };
    match unpack(NAME, &maps) {
        Ok(package) => {
            assert!(package.component.len() <= MAX_COMPONENT_BYTES);
            assert_eq!(package.digest, Digest::of(&package.component));
            let config = serde_json::from_slice::<Value>(&package.config);
            assert!(config.is_ok(), "{config:?}");
            let mut reversed = maps;
            reversed.reverse();
            let names: BTreeSet<_> = reversed.iter().map(|map| &map.metadata.name).collect();
            if names.len() == reversed.len() {
                let again = unpack(NAME, &reversed);
                assert_eq!(again.ok(), Some(package), "the order decides");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn round_trip(component: &[u8]) {
    if component.is_empty() {
        return;
    }
    for part_bytes in [7, 1 << 10, PackOptions::new(NAME).part_bytes] {
        // As many parts as there may be.
        if component.len() / part_bytes > 500 {
            continue;
        }
        let options = PackOptions {
            part_bytes,
            ..PackOptions::new(NAME)
        };
        let mut maps = pack(component, &options).expect("what is not too large can be packed");
        let package = unpack(NAME, &maps).expect("what is packed can be unpacked");
        assert_eq!(package.component, component);
        if maps.len() > 1 {
            maps.remove(0);
            assert!(unpack(NAME, &maps).is_err(), "a part is missing");
        }
    }
}

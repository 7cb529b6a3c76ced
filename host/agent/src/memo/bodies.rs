//! Bodies of objects as they are remembered: as text, and packed where that is long.
//!
//! As values they would take several times as much. What a plugin makes of one primary repeats
//! itself, and its names are in each object: a dozen NetworkPolicies pack to a fifth.

use parking_lot::Mutex;
use reeve_core::desired::DesiredObject;
use serde_json::Value;
use zstd::bulk::{Compressor, Decompressor};

/// Texts below this are kept as they are: packing them would save little.
const LONG: usize = 1024;

/// The quickest of zstd's ordinary levels. What is remembered is packed on the way of a write.
const LEVEL: i32 = 1;

/// Packs and unpacks. What zstd needs for that, some hundred kilobytes, is made once, with the
/// first text that is long.
#[derive(Default)]
pub(super) struct Packer {
    compressor: Mutex<Option<Compressor<'static>>>,
    decompressor: Mutex<Option<Decompressor<'static>>>,
}

/// The bodies of an answer, in their order.
pub(super) enum Bodies {
    /// JSON, one body after the other.
    Text(Box<[u8]>),
    /// The same, packed.
    Packed {
        packed: Box<[u8]>,
        /// Bytes of the text.
        length: usize,
    },
}

impl Bodies {
    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Packed { packed, .. } => packed.len(),
        }
    }
}

impl Packer {
    pub(super) fn pack(&self, objects: &[DesiredObject]) -> Bodies {
        let written = |object: &DesiredObject| object.text.as_ref().map_or(0, Vec::len);
        let mut text = Vec::with_capacity(objects.iter().map(written).sum());
        for object in objects {
            // Not as one list, which would be deeper than what was read, and too deep then.
            if let Some(written) = &object.text {
                text.extend_from_slice(written);
            } else if serde_json::to_writer(&mut text, &object.body).is_err() {
                // Serialising values cannot fail.
                text.clear();
                break;
            }
        }
        match self.packed(&text) {
            Some(packed) => Bodies::Packed {
                packed,
                length: text.len(),
            },
            None => Bodies::Text(text.into_boxed_slice()),
        }
    }

    /// None where it is better kept as it is.
    fn packed(&self, text: &[u8]) -> Option<Box<[u8]>> {
        if text.len() < LONG {
            return None;
        }
        let mut kept = self.compressor.lock();
        if kept.is_none() {
            *kept = Compressor::new(LEVEL).ok();
        }
        let packed = kept.as_mut()?.compress(text).ok()?;
        (packed.len() < text.len()).then(|| packed.into_boxed_slice())
    }

    /// The bodies as they were packed. None where that cannot be told.
    pub(super) fn unpack(&self, bodies: &Bodies) -> Option<Vec<Value>> {
        match bodies {
            Bodies::Text(text) => read(text),
            Bodies::Packed { packed, length } => {
                let mut kept = self.decompressor.lock();
                if kept.is_none() {
                    *kept = Decompressor::new().ok();
                }
                let text = kept.as_mut()?.decompress(packed, *length).ok()?;
                drop(kept);
                read(&text)
            }
        }
    }
}

fn read(text: &[u8]) -> Option<Vec<Value>> {
    let bodies = serde_json::Deserializer::from_slice(text).into_iter();
    bodies.collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};
    use serde_json::json;

    fn object(body: &Value, text: Option<String>) -> DesiredObject {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        DesiredObject {
            reference: ObjectReference::new(kind, None, "a"),
            body: body.clone(),
            text: text.map(String::into_bytes),
        }
    }

    #[test]
    fn bodies_come_back_as_they_were() {
        let packer = Packer::default();
        // As deep as what is read may be.
        let mut deep = json!({});
        for _ in 0..126 {
            deep = json!({"a": deep});
        }
        let numbers: Vec<u64> = (0..500).map(|n| n * n).collect();
        for bodies in [
            vec![],
            vec![serde_json::from_str(&deep.to_string()).unwrap(), json!({})],
            vec![json!({"a": "é\n", "n": 1.5e300, "z": null})],
            vec![json!({"a": "same ".repeat(1000)}), json!({"n": numbers})],
        ] {
            let length: usize = bodies.iter().map(|body| body.to_string().len()).sum();
            let objects: Vec<_> = bodies.iter().map(|body| object(body, None)).collect();
            let packed = packer.pack(&objects);
            let is_packed = matches!(packed, Bodies::Packed { .. });
            assert_eq!(is_packed, length >= LONG);
            assert!(packed.bytes() <= length);
            assert_eq!(packer.unpack(&packed).as_ref(), Some(&bodies));
            // As somebody else may have written them.
            let wide = |body| Some(format!("\n {body:#}"));
            let objects = bodies.iter().map(|body| object(body, wide(body)));
            let packed = packer.pack(&objects.collect::<Vec<_>>());
            assert_eq!(packer.unpack(&packed), Some(bodies));
        }
    }
}

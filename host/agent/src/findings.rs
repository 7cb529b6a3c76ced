//! What is found out once for all agents of a process.

use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::Digest;
use std::collections::VecDeque;
use std::sync::Arc;

/// How much of each sort is kept: a suite of scenarios has a few components, with a few
/// configurations each.
const KEPT: usize = 16;

/// Bytes of the largest component that is kept, unpacked. Larger ones take so long
/// otherwise that to unpack them does not count.
const LARGEST: usize = 4 << 20;

/// What several agents of one process need not find out each for itself, since it follows
/// from the bytes that they are given: what is in a packed component, and that a
/// configuration fits a schema. Scenarios start an agent each.
///
/// What was packed is held with what was in it, so that this is for processes that have
/// the memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    unpacked: VecDeque<(Packed, Unpacked)>,
    fitting: VecDeque<Configured>,
}

/// A component as it was delivered, and under which key, which says how it is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packed {
    key: &'static str,
    bytes: Bytes,
}

/// A component, unpacked, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) component: Bytes,
    pub(crate) digest: Digest,
}

/// A configuration, and the schema that it was held against.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Configured {
    schema: Vec<u8>,
    config: Bytes,
}

impl Findings {
    /// What was in a component that was packed like this.
    pub(crate) fn unpacked(&self, key: &str, bytes: &[u8]) -> Option<Unpacked> {
        let mut inner = self.0.lock();
        let is_it = |(packed, _): &(Packed, Unpacked)| {
            // Most often it is another one by its length.
            packed.key == key && packed.bytes == bytes
        };
        let at = inner.unpacked.iter().position(is_it)?;
        // What is asked for again and again stays.
        let found = inner.unpacked.remove(at)?;
        let unpacked = found.1.clone();
        inner.unpacked.push_front(found);
        Some(unpacked)
    }

    /// Keeps what was in a component.
    pub(crate) fn keep_unpacked(&self, key: &'static str, bytes: &[u8], unpacked: &Unpacked) {
        if unpacked.component.len() > LARGEST {
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        let packed = Packed { key, bytes };
        keep(&mut self.0.lock().unpacked, (packed, unpacked.clone()));
    }

    /// Whether a configuration was found to fit a schema.
    pub(crate) fn fits(&self, schema: &[u8], config: &[u8]) -> bool {
        let inner = self.0.lock();
        let mut all = inner.fitting.iter();
        all.any(|one| one.schema == schema && one.config == config)
    }

    /// Keeps that it does.
    pub(crate) fn keep_fitting(&self, schema: Vec<u8>, config: Bytes) {
        keep(&mut self.0.lock().fitting, Configured { schema, config });
    }
}

/// Adds an entry, in the place of that which was asked for longest ago where there are enough.
fn keep<T: PartialEq>(all: &mut VecDeque<T>, one: T) {
    // Two may have found it out at the same time.
    if !all.contains(&one) {
        all.truncate(KEPT - 1);
        all.push_front(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_kept_as_is_said() {
        let findings = Findings::default();
        let unpacked = |number: u8| Unpacked {
            component: vec![number].into(),
            digest: Digest::of(&[number]),
        };
        for number in 0..=KEPT as u8 {
            findings.keep_unpacked("a", &[number], &unpacked(number));
            findings.keep_unpacked("a", &[number], &unpacked(number));
            findings.keep_fitting(vec![number], Bytes::from_static(b"{}"));
        }
        assert_eq!(findings.unpacked("a", &[0]), None);
        assert_eq!(findings.unpacked("b", &[1]), None);
        assert!(!findings.fits(&[0], b"{}") && !findings.fits(&[1], b"[]"));
        for number in 1..=KEPT as u8 {
            assert_eq!(findings.unpacked("a", &[number]), Some(unpacked(number)));
            assert!(findings.fits(&[number], b"{}"));
        }
    }
}

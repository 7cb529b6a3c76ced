//! The source of UIDs, name suffixes and tokens.
//!
//! Seeded, so that a scenario gives the same objects each time. Without a seed
//! it starts from the cryptographic source, so that tokens cannot be guessed
//! from outside; who can read UIDs inside the cluster could follow the sequence,
//! which is why tokens also hash a secret of their own.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::crypto::ring;

/// A stream of numbers.
#[derive(Debug)]
pub(crate) struct Random {
    state: Mutex<u64>,
    secret: [u8; 32],
}

impl Random {
    /// Numbers that follow from `seed`, or from chance.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let mut bytes = [0; 40];
        match seed {
            Some(seed) => {
                let digest = Sha256::digest(seed.to_le_bytes());
                for (slot, byte) in bytes
                    .iter_mut()
                    .zip(seed.to_le_bytes().iter().chain(&digest))
                {
                    *slot = *byte;
                }
            }
            // A failure leaves zeros, and a server without entropy runs on.
            None => drop(ring::default_provider().secure_random.fill(&mut bytes)),
        }
        let mut state = [0; 8];
        let mut secret = [0; 32];
        state.copy_from_slice(&bytes[..8]);
        secret.copy_from_slice(&bytes[8..]);
        Random {
            state: Mutex::new(u64::from_le_bytes(state)),
            secret,
        }
    }

    /// A source that goes on as this one does.
    pub(crate) fn fork(&self) -> Self {
        Random {
            state: Mutex::new(*self.state.lock()),
            secret: self.secret,
        }
    }

    /// The next number (splitmix64).
    fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A UID: a random UUID.
    pub(crate) fn uid(&self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// A number from 0 up to, but not including, 1.
    pub(crate) fn share(&self) -> f64 {
        // As many bits as the number has digits for.
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// One of `letters`, which must not be empty.
    pub(crate) fn pick(&self, letters: &[u8]) -> u8 {
        let count = u64::try_from(letters.len()).unwrap_or(1).max(1);
        let at = usize::try_from(self.next() % count).unwrap_or(0);
        letters.get(at).copied().unwrap_or(b'x')
    }

    /// A bearer token.
    pub(crate) fn token(&self) -> String {
        let digest = Sha256::new()
            .chain_update(self.secret)
            .chain_update(self.next().to_le_bytes())
            .finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_sequence() {
        let (a, b) = (Random::new(Some(7)), Random::new(Some(7)));
        assert_eq!(a.uid(), b.uid());
        assert_eq!(a.token(), b.token());
        assert_ne!(a.uid(), a.uid());
        assert_ne!(Random::new(None).uid(), Random::new(None).uid());
    }

    #[test]
    fn uids_are_random_uuids() {
        let uid = Random::new(Some(1)).uid();
        let groups: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]));
    }
}

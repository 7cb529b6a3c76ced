//! Ways to use up memory.

use std::hint::black_box;

/// Allocates in small steps until the host ends it.
pub(crate) fn hoard() -> ! {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(black_box(vec![1; 256 << 10]));
    }
}

/// Allocates at once. Returns how much there is of it.
pub(crate) fn grab(bytes: usize) -> u64 {
    black_box(vec![0u8; bytes]).len() as u64
}

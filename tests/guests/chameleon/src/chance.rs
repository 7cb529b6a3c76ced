//! What would differ between calls or machines, were there anything left of it.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the calls of which this instance knows.
pub(crate) fn count() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The bits of what is no number, as operations give it of which the specification leaves
/// sign and payload open.
pub(crate) fn nan_bits() -> Vec<String> {
    let zero = black_box(0.0_f64);
    let infinite = black_box(f64::INFINITY);
    let (wide, narrow) = (
        black_box(f64::from_bits(0xfff8_0000_0000_1234)),
        black_box(f32::from_bits(0xffc0_1234)),
    );
    let wide = [
        zero / zero,
        infinite - infinite,
        infinite * zero,
        black_box(-1.0_f64).sqrt(),
        wide + 1.0,
        wide.sqrt(),
        wide.floor(),
        f64::from(narrow),
    ];
    let narrow = [narrow * 2.0, wide[0] as f32, narrow - narrow];
    let wide = wide.map(|number| format!("{:016x}", number.to_bits()));
    let narrow = narrow.map(|number| format!("{:08x}", number.to_bits()));
    wide.into_iter().chain(narrow).collect()
}

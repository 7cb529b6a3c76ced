//! Calls that do not come back, or not soon.

use std::hint::black_box;

pub(crate) fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    std::process::abort();
}

#[expect(clippy::panic, reason = "that is what it is for")]
pub(crate) fn panic(text: &str) -> ! {
    panic!("{text}");
}

pub(crate) fn endless_loop() -> ! {
    let mut round = 0u64;
    loop {
        round = black_box(round.wrapping_add(1));
    }
}

pub(crate) fn spin(rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum, round| black_box(sum ^ round))
}

#[expect(unconditional_recursion, reason = "that is what it is for")]
pub(crate) fn recurse(depth: u64) -> u64 {
    // Using the result keeps it from becoming a loop.
    black_box(recurse(black_box(depth + 1))) + 1
}

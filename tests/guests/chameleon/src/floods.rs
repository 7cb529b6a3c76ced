//! Too much of what is allowed.

use crate::contract::{cluster, log};
use crate::reads;

pub(crate) fn log(lines: usize) {
    for line in 0..lines {
        log::write(log::Level::Info, &format!("{line:0>100}"));
    }
}

pub(crate) fn calls(calls: u64) -> u64 {
    for _ in 0..calls {
        log::write(log::Level::Debug, "");
    }
    calls
}

/// Returns only if there is nothing to list.
pub(crate) fn reads(kind: &str) -> u64 {
    let query = reads::query(kind, None, String::new());
    let mut calls = 0;
    while cluster::list(&query).is_ok_and(|found| !found.is_empty()) {
        calls += 1;
    }
    calls
}

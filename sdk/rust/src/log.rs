//! Words for the operator's log.
//!
//! ```
//! use reeve_sdk::prelude::*;
//!
//! let profile = "alice";
//! log::info!("{profile} asks for more than usual");
//! ```
//!
//! Lines are bounded in number and size by the host's limit for logs. In native
//! tests they go to stderr, which the test runner shows for failed tests.

pub use crate::{__debug as debug, __error as error, __info as info, __warn as warn};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author.
    Debug,
    /// Ordinary.
    Info,
    /// Unusual.
    Warn,
    /// Broken.
    Error,
}

/// Writes one line. The macros of this module format it first.
pub fn write(level: Level, message: &str) {
    crate::backend::log(level, message);
}

/// Logs a line for the author; takes what `format!` takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __debug {
    ($($message:tt)+) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($message)+)) };
}

/// Logs an ordinary line; takes what `format!` takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __info {
    ($($message:tt)+) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($message)+)) };
}

/// Logs something unusual; takes what `format!` takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __warn {
    ($($message:tt)+) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($message)+)) };
}

/// Logs that something is broken; takes what `format!` takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __error {
    ($($message:tt)+) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($message)+)) };
}

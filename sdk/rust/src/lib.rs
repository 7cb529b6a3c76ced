//! Write Reeve plugins in Rust.

mod cluster;
mod failure;
mod json;
mod kind;
pub mod log;
mod manifest;
mod outcome;
mod plugin;
mod quantity;
pub mod schema;

#[cfg(target_arch = "wasm32")]
#[path = "guest.rs"]
mod backend;
#[cfg(not(target_arch = "wasm32"))]
#[path = "testing.rs"]
mod backend;

pub use cluster::{Context, Query, ReadError};
pub use failure::{Failure, OrFail};
pub use json::JsonError;
pub use kind::{Kind, Metadata, ObjectReference, Strings};
pub use manifest::{ConfigError, IntoManifest, Manifest, ReadRule, Scope};
pub use outcome::{Absence, Condition, Event, Outcome};
pub use quantity::{NotAQuantity, Quantity};
pub use reeve_sdk_macros::{config, input, output};
pub use plugin::{Plugin, PluginMetadata};

/// What a plugin usually needs.
pub mod prelude {
    pub use crate::log;
    pub use crate::{
        Absence, Condition, ConfigError, Context, Event, Failure, Kind, Manifest, Metadata,
        ObjectReference, OrFail, Outcome, Quantity, Query, ReadError, ReadRule, Scope,
    };
    pub use crate::{config, input, output};
    pub use serde_json::json;
}

#[doc(hidden)]
pub mod __private {
    #[cfg(target_arch = "wasm32")]
    pub use crate::backend::bindings;
    pub use serde;

    pub use crate::plugin::{describe, metadata, reconcile};
}

/// Makes a crate a plugin.
#[macro_export]
macro_rules! plugin {
    ($manifest:path, $reconcile:path $(,)?) => {
        /// The plugin of this crate.
        pub struct ReevePlugin;

        impl $crate::Plugin for ReevePlugin {
            fn metadata() -> $crate::PluginMetadata {
                $crate::__private::metadata(
                    $manifest,
                    ::std::env!("CARGO_PKG_NAME"),
                    ::std::env!("CARGO_PKG_VERSION"),
                )
            }

            fn describe(config: &[u8]) -> ::std::result::Result<$crate::Manifest, $crate::ConfigError> {
                $crate::__private::describe($manifest, config)
            }

            fn reconcile(
                primary: &[u8],
                config: &[u8],
                cx: &$crate::Context,
            ) -> ::std::result::Result<$crate::Outcome, $crate::Failure> {
                $crate::__private::reconcile($reconcile, primary, config, cx)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::__private::bindings::export!(ReevePlugin with_types_in $crate::__private::bindings);
    };
}

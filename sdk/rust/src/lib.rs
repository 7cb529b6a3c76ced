//! Write Reeve plugins in Rust.
//!
//! A plugin is a plain function from an object of the cluster, its primary, to
//! the objects that should exist for it. The host does everything else: it
//! watches, calls the function when something that the function read has changed,
//! applies what it returns, and deletes what it no longer returns.
//!
//! ```
//! use reeve_sdk::prelude::*;
//!
//! #[input]
//! struct Profile {
//!     metadata: Metadata,
//! }
//!
//! /// What every profile gets.
//! #[config]
//! #[derive(Default)]
//! struct Config {
//!     /// The text of the greeting.
//!     text: String,
//! }
//!
//! fn manifest(_: &Config) -> Manifest {
//!     Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
//!         .projection(["/metadata/name"])
//!         .writes(Kind::new("v1", "ConfigMap"), Scope::NamespaceNamedLikePrimary)
//! }
//!
//! fn reconcile(profile: Profile, config: &Config, _: &Context) -> Result<Outcome, Failure> {
//!     Ok(Outcome::of([json!({
//!         "apiVersion": "v1",
//!         "kind": "ConfigMap",
//!         "metadata": {"name": "greeting", "namespace": profile.metadata.name},
//!         "data": {"text": config.text},
//!     })]))
//! }
//!
//! reeve_sdk::plugin!(manifest, reconcile);
//! # use reeve_sdk::Plugin;
//! # let profile = br#"{"metadata": {"name": "alice"}}"#;
//! # let outcome = ReevePlugin::reconcile(profile, br#"{"text": "hi"}"#, &Context::test()).unwrap();
//! # assert_eq!(outcome.objects_json()[0]["data"]["text"], "hi");
//! ```
//!
//! The crate is a `cdylib` that depends on `reeve-sdk`, and nothing else is
//! needed: `crate-type = ["cdylib", "rlib"]` under `[lib]`, built for
//! `wasm32-unknown-unknown` and wrapped into a component. Name and version of the
//! component are those of the package.
//!
//! # Types
//!
//! [`input`] is for what a plugin reads, [`output`] for what it returns and
//! [`config`] for its configuration. They are derives of serde with the settings
//! that Kubernetes wants; types that implement serde's traits in other ways, such
//! as those of `k8s-openapi`, do as well. Declare the fields that are used, and no
//! others. Small components come from types: `json!` and `serde_json::Value` add
//! about 10 KB, numbers with a fraction twice as much again. What has any form is read as
//! [`Json`], or piece by piece as [`Fields`] and [`RawJson`].
//!
//! With the feature `k8s-openapi` kinds are named by their types too:
//!
//! ```
//! # #[cfg(feature = "k8s-openapi")] {
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use reeve_sdk::prelude::*;
//! # #[config] #[derive(Default)] struct Config {}
//!
//! fn manifest(_: &Config) -> Manifest {
//!     Manifest::controller(Kind::of::<Namespace>())
//!         .writes(Kind::of::<ConfigMap>(), Scope::NamespaceNamedLikePrimary)
//! }
//!
//! fn reconcile(primary: Namespace, _: &Config, _: &Context) -> Result<Outcome, Failure> {
//!     let mut greeting = ConfigMap::default();
//!     greeting.metadata.name = Some("greeting".to_owned());
//!     greeting.metadata.namespace = primary.metadata.name;
//!     Ok(Outcome::of([greeting]))
//! }
//!
//! reeve_sdk::plugin!(manifest, reconcile);
//! # use reeve_sdk::Plugin;
//! # let primary = br#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "alice"}}"#;
//! # let outcome = ReevePlugin::reconcile(primary, b"{}", &Context::test()).unwrap();
//! # let greeting = json!({
//! #     "apiVersion": "v1", "kind": "ConfigMap",
//! #     "metadata": {"name": "greeting", "namespace": "alice"},
//! # });
//! # assert_eq!(outcome.objects_json(), [greeting]);
//! # }
//! ```
//!
//! # Failures and panics
//!
//! [`Failure`] says whether running again can help. `?` turns errors of reading
//! the cluster into the failure that suits them, and [`OrFail`] all others. An
//! answer with a warning is often better than none: see [`Outcome::condition`] and
//! [`Outcome::event`], or [`Problems`] for both. A panic fails only the one call; its message and place
//! reach the operator.
//!
//! # Tests
//!
//! Natively, everything compiles to an ordinary library. [`Context::test`] makes
//! a cluster in memory, so a unit test calls `reconcile` and looks at the
//! [`Outcome`]; through [`Plugin`] it can run the whole plugin on JSON.
//!
//! # Memory
//!
//! Guests have dlmalloc for their allocator, the standard library's own in a later release:
//! it uses the memory that a guest is given at its start, where the older one has it grown in
//! each call. A plugin that brings another turns the feature `allocator` off, and so do all
//! plugins of its workspace, which are compiled together. Nobody else may allocate beside it:
//! do not use `std::alloc::System`.
//!
//! # Purity
//!
//! The same request and the same answers of the [`Context`] must give the same
//! outcome; the host relies on it to skip work. There is no other input in a
//! component: `SystemTime::now` panics there, and there is no environment, file,
//! socket or thread. Nothing is remembered from one call to the next.

/// An instance lives for one call, so that memory which has to grow grows in each.
#[cfg(all(target_arch = "wasm32", feature = "allocator"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The plugin in the README, so that it is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

// The attributes name the crate by its name, also in its own tests.
#[cfg(test)]
extern crate self as reeve_sdk;

mod action;
mod boolean;
mod cluster;
mod failure;
mod json;
mod kind;
pub mod log;
mod manifest;
pub mod names;
mod object;
mod outcome;
mod outside;
pub mod patch;
mod plugin;
pub mod pointer;
mod problems;
mod quantity;
pub mod schema;
mod selector;
mod source;
mod words;
#[cfg(feature = "yaml")]
pub mod yaml;

#[cfg(target_arch = "wasm32")]
mod guest;
#[cfg(not(target_arch = "wasm32"))]
mod testing;

#[cfg(target_arch = "wasm32")]
use guest as backend;
#[cfg(not(target_arch = "wasm32"))]
use testing as backend;

pub use action::{Action, ActionRule, Actuation, Completion, GeneratedSecret, SecretPart, Verb};
pub use boolean::{NotABoolean, parse_bool};
pub use cluster::{Context, Query, ReadError};
pub use failure::{Failure, OrFail};
pub use json::{Fields, Json, JsonError, RawJson, parse as parse_json};
pub use kind::{Kind, Metadata, ObjectReference, Strings};
pub use manifest::{ConfigError, IntoManifest, Manifest, ReadRule, Scope};
pub use object::{Object, ObjectMeta, OwnerReference};
pub use outcome::{Absence, Condition, Event, Outcome};
pub use outside::{HttpError, Outside, Request, Response, Rows, Sql, SqlError, SqlValue};
pub use plugin::{Actuates, Plugin, PluginMetadata};
pub use problems::{BadLabel, Problems};
pub use quantity::{NotAQuantity, Quantity};
/// Any JSON, as [`json!`](serde_json::json) makes it.
pub use serde_json::Value;
pub use source::{Document, SourceRule};

/// Makes a type the configuration of a plugin, or a part of it.
///
/// The type can be read strictly, and its JSON Schema is known: an unknown
/// property is an error, so that a slip of the pen is found and not ignored. The
/// host checks configuration against the schema before the plugin sees it. The
/// doc comments become the descriptions in the schema.
///
/// - A struct has named fields, each a property in camelCase and none required:
///   what is absent is as in its `Default`, which the struct must implement.
/// - An enum has variants without fields, written as their names, or in lower case
///   with `#[config(lowercase)]`.
/// - Fields are `bool`, integers, `f64`, `String`, [`Quantity`], types with this
///   attribute, [`Json`] where any JSON will do, and `Option`, `Vec` and
///   `BTreeMap<String, _>` of these.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// /// How many of each.
/// #[config]
/// #[derive(Default)]
/// struct Config {
///     /// Largest number of pods.
///     max_pods: Option<u32>,
///     mode: Mode,
/// }
///
/// #[config]
/// #[derive(Default)]
/// enum Mode {
///     #[default]
///     Lenient,
///     Strict,
/// }
/// ```
pub use reeve_sdk_macros::config;

/// Makes a type readable from objects of the cluster: serde's `Deserialize` with
/// fields in camelCase. Fields of the object that the type lacks are skipped.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// #[input]
/// struct RoleBinding {
///     metadata: Metadata,
///     role_ref: RoleRef,
/// }
///
/// #[input]
/// struct RoleRef {
///     name: String,
/// }
/// ```
pub use reeve_sdk_macros::input;

/// Makes a type writable as an object of the cluster: serde's `Serialize` with
/// fields in camelCase. A field that is `None` is left out, so that the plugin
/// does not decide it.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// #[output]
/// struct Subject {
///     kind: &'static str,
///     api_group: Option<&'static str>,
/// }
///
/// let subject = Subject { kind: "User", api_group: None };
/// assert_eq!(Outcome::of([subject]).objects_json(), [json!({"kind": "User"})]);
/// ```
pub use reeve_sdk_macros::output;

/// What a plugin usually needs.
pub mod prelude {
    pub use crate::log;
    pub use crate::{
        Absence, Action, ActionRule, Actuation, Completion, Condition, ConfigError, Context,
        Document, Event, Failure, Fields, GeneratedSecret, HttpError, Json, Kind, Manifest,
        Metadata, Object, ObjectMeta, ObjectReference, OrFail, Outcome, Outside, OwnerReference,
        Problems, Quantity, Query, RawJson, ReadError, ReadRule, Request, Response, Rows, Scope,
        SecretPart, SourceRule, Sql, SqlError, SqlValue, Value, Verb, config, input, output,
    };
    pub use serde_json::json;
}

/// What the macros expand to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use serde;

    #[cfg(target_arch = "wasm32")]
    pub use crate::guest::actions::bindings as action_bindings;
    #[cfg(target_arch = "wasm32")]
    pub use crate::guest::bindings;
    pub use crate::plugin::{actuate, describe, metadata, reconcile};
    pub use crate::words::Words;
}

/// Makes a crate a plugin, from two functions:
///
/// ```
/// # use reeve_sdk::prelude::*;
/// # #[input] struct Primary { metadata: Metadata }
/// # #[config] #[derive(Default)] struct Config {}
/// fn manifest(config: &Config) -> Manifest
/// # { Manifest::controller(Kind::new("v1", "Namespace")) }
/// fn reconcile(primary: Primary, config: &Config, cx: &Context) -> Result<Outcome, Failure>
/// # { Ok(Outcome::new()) }
/// reeve_sdk::plugin!(manifest, reconcile);
/// ```
///
/// `manifest` says what the plugin is and may touch. It may also return
/// `Result<Manifest, ConfigError>`, to refuse configuration that fits its schema
/// but makes no sense. `reconcile` says what should exist for one primary.
///
/// A plugin with outside effects has a third function, which makes them:
///
/// ```
/// # use reeve_sdk::prelude::*;
/// # #[input] struct Primary { metadata: Metadata }
/// # #[config] #[derive(Default)] struct Config {}
/// # fn manifest(config: &Config) -> Manifest
/// # { Manifest::controller(Kind::new("v1", "Namespace")) }
/// # fn reconcile(primary: Primary, config: &Config, cx: &Context) -> Result<Outcome, Failure>
/// # { Ok(Outcome::new()) }
/// fn actuate(call: &Actuation, config: &Config, outside: &Outside) -> Result<Completion, Failure>
/// # { Ok(Completion::done()) }
/// reeve_sdk::plugin!(manifest, reconcile, actuate);
/// ```
///
/// The macro defines `ReevePlugin`, which implements [`Plugin`] for tests, and in
/// a component the exports of the contract.
#[macro_export]
macro_rules! plugin {
    ($manifest:path, $reconcile:path, $actuate:path $(,)?) => {
        $crate::plugin!($manifest, $reconcile);

        impl $crate::Actuates for ReevePlugin {
            fn actuate(
                call: &$crate::Actuation,
                config: &[u8],
                outside: &$crate::Outside,
            ) -> ::std::result::Result<$crate::Completion, $crate::Failure> {
                $crate::__private::actuate($actuate, call, config, outside)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::__private::action_bindings::export_actions!(
            ReevePlugin with_types_in $crate::__private::action_bindings
        );
    };
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

            fn describe(
                config: &[u8],
            ) -> ::std::result::Result<$crate::Manifest, $crate::ConfigError> {
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

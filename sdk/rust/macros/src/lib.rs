//! The attributes of `reeve-sdk`, which documents and re-exports them.
//!
//! They stand for the derives of `serde` with the settings that objects of
//! Kubernetes want, and spare a plugin the dependency on it. For `#[config]` they
//! buy more: the JSON Schema is made by the compiler from the same names that are
//! read, so the two agree, and a component carries a table instead of a
//! schema generator, which would be two thirds of a small plugin.

mod config;
mod names;
mod serde;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// See `reeve_sdk::config`.
#[proc_macro_attribute]
pub fn config(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    config::Case::parse(arguments.into())
        .and_then(|case| config::expand(&item, case))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// See `reeve_sdk::input`.
#[proc_macro_attribute]
pub fn input(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, serde::input)
}

/// See `reeve_sdk::output`.
#[proc_macro_attribute]
pub fn output(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, serde::output)
}

fn expand(
    arguments: TokenStream,
    item: TokenStream,
    with: fn(DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    if !arguments.is_empty() {
        let message = "this attribute takes no arguments";
        return syn::Error::new_spanned(proc_macro2::TokenStream::from(arguments), message)
            .into_compile_error()
            .into();
    }
    with(item)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

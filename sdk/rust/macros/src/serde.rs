//! `#[input]` and `#[output]`: serde's derives with the settings for Kubernetes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Type, parse_quote};

pub(crate) fn input(mut item: DeriveInput) -> syn::Result<TokenStream> {
    rename_fields(&mut item);
    Ok(quote! {
        #[derive(::reeve_sdk::__private::serde::Deserialize)]
        #[serde(crate = "::reeve_sdk::__private::serde")]
        #item
    })
}

pub(crate) fn output(mut item: DeriveInput) -> syn::Result<TokenStream> {
    rename_fields(&mut item);
    for field in fields(&mut item) {
        if is_option(&field.ty) {
            // A null would claim the field; what is not said stays undecided.
            let none = "::core::option::Option::is_none";
            field
                .attrs
                .push(parse_quote!(#[serde(skip_serializing_if = #none)]));
        }
    }
    Ok(quote! {
        #[derive(::reeve_sdk::__private::serde::Serialize)]
        #[serde(crate = "::reeve_sdk::__private::serde")]
        #item
    })
}

/// Fields in camelCase, variants as written: both are what Kubernetes does.
fn rename_fields(item: &mut DeriveInput) {
    let attribute = match &item.data {
        Data::Enum(_) => parse_quote!(#[serde(rename_all_fields = "camelCase")]),
        _ => parse_quote!(#[serde(rename_all = "camelCase")]),
    };
    item.attrs.push(attribute);
}

fn fields(item: &mut DeriveInput) -> Vec<&mut Field> {
    match &mut item.data {
        Data::Struct(data) => data.fields.iter_mut().collect(),
        Data::Enum(data) => data
            .variants
            .iter_mut()
            .flat_map(|variant| variant.fields.iter_mut())
            .collect(),
        Data::Union(_) => Vec::new(),
    }
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

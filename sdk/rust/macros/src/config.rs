//! `#[config]`: a strict `Deserialize` and the JSON Schema that says the same.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Token, Variant, parse_quote};

use crate::names::{camel_case, description};

/// How the variants of an enum are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// As in the source.
    AsNamed,
    /// In lower case.
    Lower,
}

impl Case {
    /// The argument of the attribute.
    pub(crate) fn parse(arguments: TokenStream) -> syn::Result<Self> {
        if arguments.is_empty() {
            return Ok(Self::AsNamed);
        }
        match syn::parse2::<Ident>(arguments.clone()) {
            Ok(word) if word == "lowercase" => Ok(Self::Lower),
            _ => Err(error(
                arguments,
                "the only argument is `lowercase`, for the variants of an enum",
            )),
        }
    }
}

pub(crate) fn expand(item: DeriveInput, case: Case) -> syn::Result<TokenStream> {
    if !item.generics.params.is_empty() {
        return Err(error(
            &item.generics,
            "a configuration has no type parameters",
        ));
    }
    refuse_serde(&item.attrs)?;
    let about = description(&item.attrs);
    match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) if case == Case::Lower => Err(error(
                &item.ident,
                "`lowercase` is for the variants of an enum; fields are in camelCase",
            )),
            Fields::Named(_) => structure(item, &about),
            fields => Err(error(fields, "a configuration has named fields")),
        },
        Data::Enum(data) => {
            let choices = choices(&data.variants, case)?;
            Ok(choice(&item, case, &about, &choices))
        }
        Data::Union(data) => Err(error(
            data.union_token,
            "a configuration is a struct or an enum",
        )),
    }
}

fn structure(mut item: DeriveInput, about: &str) -> syn::Result<TokenStream> {
    let ident = item.ident.clone();
    let mut properties = Vec::new();
    if let Data::Struct(data) = &mut item.data {
        for field in &mut data.fields {
            refuse_serde(&field.attrs)?;
            let Some(name) = field.ident.as_ref().map(camel_case) else {
                continue;
            };
            let about = description(&field.attrs);
            let ty = &field.ty;
            properties.push(quote! {
                ::reeve_sdk::schema::Property {
                    name: #name,
                    description: #about,
                    schema: <#ty as ::reeve_sdk::schema::ConfigSchema>::SCHEMA,
                }
            });
            // Told to serde in so many words: then both say the same name.
            field.attrs.push(parse_quote!(#[serde(rename = #name)]));
        }
    }
    Ok(quote! {
        #[derive(::reeve_sdk::__private::serde::Deserialize)]
        #[serde(crate = "::reeve_sdk::__private::serde", default, deny_unknown_fields)]
        #item

        impl ::reeve_sdk::schema::ConfigSchema for #ident {
            const SCHEMA: &'static ::reeve_sdk::schema::Schema =
                &::reeve_sdk::schema::Schema::Object {
                    description: #about,
                    properties: &[#(#properties),*],
                };
        }
    })
}

fn choice(item: &DeriveInput, case: Case, about: &str, names: &[String]) -> TokenStream {
    let ident = &item.ident;
    // Told to serde in so many words: then both say the same names.
    let rename = match case {
        Case::AsNamed => quote!(),
        Case::Lower => quote!(#[serde(rename_all = "lowercase")]),
    };
    quote! {
        #[derive(::reeve_sdk::__private::serde::Deserialize)]
        #[serde(crate = "::reeve_sdk::__private::serde")]
        #rename
        #item

        impl ::reeve_sdk::schema::ConfigSchema for #ident {
            const SCHEMA: &'static ::reeve_sdk::schema::Schema =
                &::reeve_sdk::schema::Schema::OneOf {
                    description: #about,
                    values: &[#(#names),*],
                };
        }
    }
}

fn choices(variants: &Punctuated<Variant, Token![,]>, case: Case) -> syn::Result<Vec<String>> {
    variants
        .iter()
        .map(|variant| {
            refuse_serde(&variant.attrs)?;
            match variant.fields {
                Fields::Unit if case == Case::Lower => {
                    Ok(variant.ident.to_string().to_ascii_lowercase())
                }
                Fields::Unit => Ok(variant.ident.to_string()),
                _ => Err(error(
                    variant,
                    "a choice in a configuration has no fields: it is written as its name",
                )),
            }
        })
        .collect()
}

/// A name or form that serde alone is told would not be in the schema.
fn refuse_serde(attributes: &[Attribute]) -> syn::Result<()> {
    match attributes.iter().find(|a| a.path().is_ident("serde")) {
        Some(attribute) => Err(error(
            attribute,
            "`#[config]` decides how serde reads this, so that the schema says the same",
        )),
        None => Ok(()),
    }
}

fn error(at: impl quote::ToTokens, message: &str) -> syn::Error {
    syn::Error::new_spanned(at, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(item: DeriveInput, message: &str) {
        assert_eq!(
            expand(item, Case::AsNamed).unwrap_err().to_string(),
            message
        );
    }

    #[test]
    fn forms_that_a_schema_cannot_say_are_refused() {
        check(
            parse_quote!(
                struct X<T> {
                    t: T,
                }
            ),
            "a configuration has no type parameters",
        );
        check(
            parse_quote!(
                struct X(u8);
            ),
            "a configuration has named fields",
        );
        check(
            parse_quote!(
                enum X {
                    A,
                    B(u8),
                }
            ),
            "a choice in a configuration has no fields: it is written as its name",
        );
        let strict = "`#[config]` decides how serde reads this, so that the schema says the same";
        check(
            parse_quote!(
                #[serde(default)]
                struct X {
                    a: u8,
                }
            ),
            strict,
        );
        check(
            parse_quote!(
                struct X {
                    #[serde(rename = "b")]
                    a: u8,
                }
            ),
            strict,
        );
        check(
            parse_quote!(
                enum X {
                    #[serde(rename = "b")]
                    A,
                }
            ),
            strict,
        );
    }

    #[test]
    fn the_one_argument_is_for_enums() {
        assert_eq!(Case::parse(quote!()).unwrap(), Case::AsNamed);
        assert_eq!(Case::parse(quote!(lowercase)).unwrap(), Case::Lower);
        assert_eq!(
            Case::parse(quote!(uppercase)).unwrap_err().to_string(),
            "the only argument is `lowercase`, for the variants of an enum"
        );
        let structure = parse_quote!(
            struct X {
                a: u8,
            }
        );
        assert_eq!(
            expand(structure, Case::Lower).unwrap_err().to_string(),
            "`lowercase` is for the variants of an enum; fields are in camelCase"
        );
    }
}

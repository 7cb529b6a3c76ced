//! `#[config]`: a strict and small `Deserialize` and the JSON Schema that says the same.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, FieldsNamed, Ident, Token, Variant};

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

pub(crate) fn expand(item: &DeriveInput, case: Case) -> syn::Result<TokenStream> {
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
            Fields::Named(fields) => structure(item, fields, &about),
            fields => Err(error(fields, "a configuration has named fields")),
        },
        Data::Enum(data) => {
            let names = choices(&data.variants, case)?;
            let variants: Vec<&Ident> = data.variants.iter().map(|one| &one.ident).collect();
            match variants.split_last() {
                Some((last, rest)) => Ok(choice(item, (rest, last), &about, &names)),
                None => Err(error(&item.ident, "a choice has at least one variant")),
            }
        }
        Data::Union(data) => Err(error(
            data.union_token,
            "a configuration is a struct or an enum",
        )),
    }
}

fn structure(item: &DeriveInput, fields: &FieldsNamed, about: &str) -> syn::Result<TokenStream> {
    let ident = &item.ident;
    let (mut properties, mut names, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for field in &fields.named {
        refuse_serde(&field.attrs)?;
        let Some(member) = &field.ident else {
            continue;
        };
        let name = camel_case(member);
        let about = description(&field.attrs);
        let ty = &field.ty;
        let index = names.len();
        properties.push(quote! {
            ::reeve_sdk::schema::Property {
                name: #name,
                description: #about,
                schema: <#ty as ::reeve_sdk::schema::ConfigSchema>::SCHEMA,
            }
        });
        reads.push(quote!(#index => value.#member = map.next_value()?,));
        names.push(name);
    }
    let mutable = (!names.is_empty()).then(|| quote!(mut));
    // Serde's own derive makes ten times the code of this: an option for each field,
    // which is dropped in each of the ways in which reading another one may fail.
    Ok(quote! {
        #item

        #[automatically_derived]
        impl<'de> ::reeve_sdk::__private::serde::Deserialize<'de> for #ident {
            fn deserialize<D: ::reeve_sdk::__private::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                struct Properties;

                impl<'de> ::reeve_sdk::__private::serde::de::Visitor<'de> for Properties {
                    type Value = #ident;

                    fn expecting(
                        &self,
                        f: &mut ::core::fmt::Formatter<'_>,
                    ) -> ::core::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: ::reeve_sdk::__private::serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> ::core::result::Result<#ident, A::Error> {
                        let #mutable value = <#ident as ::core::default::Default>::default();
                        let words = ::reeve_sdk::__private::Words::properties(&[#(#names),*]);
                        while let ::core::option::Option::Some(index) = map.next_key_seed(words)? {
                            match index {
                                #(#reads)*
                                // There are no further words.
                                _ => {}
                            }
                        }
                        ::core::result::Result::Ok(value)
                    }
                }

                deserializer.deserialize_map(Properties)
            }
        }

        impl ::reeve_sdk::schema::ConfigSchema for #ident {
            const SCHEMA: &'static ::reeve_sdk::schema::Schema =
                &::reeve_sdk::schema::Schema::Object {
                    description: #about,
                    properties: &[#(#properties),*],
                };
        }
    })
}

/// `last` stands for the index of the last word, and for those that no word has.
fn choice(
    item: &DeriveInput,
    (rest, last): (&[&Ident], &Ident),
    about: &str,
    names: &[String],
) -> TokenStream {
    let ident = &item.ident;
    let indices = 0..rest.len();
    quote! {
        #item

        #[automatically_derived]
        impl<'de> ::reeve_sdk::__private::serde::Deserialize<'de> for #ident {
            fn deserialize<D: ::reeve_sdk::__private::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let words = ::reeve_sdk::__private::Words::choices(&[#(#names),*]);
                let index =
                    ::reeve_sdk::__private::serde::de::DeserializeSeed::deserialize(words, deserializer)?;
                ::core::result::Result::Ok(match index {
                    #(#indices => #ident::#rest,)*
                    _ => #ident::#last,
                })
            }
        }

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
    use syn::parse_quote;

    fn check(item: &DeriveInput, message: &str) {
        assert_eq!(
            expand(item, Case::AsNamed).unwrap_err().to_string(),
            message
        );
    }

    #[test]
    fn forms_that_a_schema_cannot_say_are_refused() {
        check(
            &parse_quote!(
                struct X<T> {
                    t: T,
                }
            ),
            "a configuration has no type parameters",
        );
        check(
            &parse_quote!(
                struct X(u8);
            ),
            "a configuration has named fields",
        );
        check(
            &parse_quote!(
                enum X {
                    A,
                    B(u8),
                }
            ),
            "a choice in a configuration has no fields: it is written as its name",
        );
        check(
            &parse_quote!(
                enum X {}
            ),
            "a choice has at least one variant",
        );
        let strict = "`#[config]` decides how serde reads this, so that the schema says the same";
        check(
            &parse_quote!(
                #[serde(default)]
                struct X {
                    a: u8,
                }
            ),
            strict,
        );
        check(
            &parse_quote!(
                struct X {
                    #[serde(rename = "b")]
                    a: u8,
                }
            ),
            strict,
        );
        check(
            &parse_quote!(
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
        let structure: DeriveInput = parse_quote!(
            struct X {
                a: u8,
            }
        );
        assert_eq!(
            expand(&structure, Case::Lower).unwrap_err().to_string(),
            "`lowercase` is for the variants of an enum; fields are in camelCase"
        );
    }
}

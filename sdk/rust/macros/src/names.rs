//! Names as they stand in JSON, and the words of doc comments.

use syn::{Attribute, Expr, ExprLit, Ident, Lit, Meta};

/// The name of a field in JSON: `label_prefix` is `labelPrefix`.
pub(crate) fn camel_case(field: &Ident) -> String {
    let field = field.to_string();
    let field = field.strip_prefix("r#").unwrap_or(&field);
    let mut name = String::with_capacity(field.len());
    for part in field.split('_').filter(|part| !part.is_empty()) {
        let mut chars = part.chars();
        match chars.next() {
            Some(first) if !name.is_empty() => name.push(first.to_ascii_uppercase()),
            Some(first) => name.push(first),
            None => {}
        }
        name.push_str(chars.as_str());
    }
    name
}

/// The doc comment as one line for each paragraph.
pub(crate) fn description(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        let Some(line) = doc_line(attribute) else {
            continue;
        };
        match line.trim() {
            "" if !text.is_empty() => text.push('\n'),
            "" => {}
            line => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(' ');
                }
                text.push_str(line);
            }
        }
    }
    text.trim_end().to_owned()
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn fields_become_camel_case() {
        for (field, name) in [
            ("hard", "hard"),
            ("label_prefix", "labelPrefix"),
            ("a_b_c", "aBC"),
            ("ipv4_cidr", "ipv4Cidr"),
            ("_hidden", "hidden"),
        ] {
            assert_eq!(camel_case(&syn::parse_str(field).unwrap()), name);
        }
        assert_eq!(camel_case(&parse_quote!(r#type)), "type");
    }

    #[test]
    fn paragraphs_of_doc_comments_stand_on_lines() {
        let item: syn::DeriveInput = parse_quote! {
            /// One
            /// sentence.
            ///
            /// Another.
            #[derive(Debug)]
            struct X;
        };
        assert_eq!(description(&item.attrs), "One sentence.\nAnother.");
        assert_eq!(description(&[]), "");
    }
}

//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

/// A conjunction of terms on fields that a kind declares as selectable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    label: String,
    equal: bool,
    value: String,
}

/// Why a text is no field selector, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term without operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A separator inside a value.
    #[error("invalid field selector: unescaped character in value: {0}")]
    Unescaped(u32),
    /// A field that the kind does not select by.
    #[error("{0}")]
    Unsupported(String),
}

/// A field that a kind can be selected by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLabel {
    /// The name in a selector.
    pub label: &'static str,
    /// Where its value is, as a JSON pointer; the first of several that is set.
    pub pointers: &'static [&'static str],
    /// The value of an object that does not set it.
    pub absent: &'static str,
}

impl FieldLabel {
    /// A text at `pointers`.
    pub const fn text(label: &'static str, pointers: &'static [&'static str]) -> Self {
        FieldLabel {
            label,
            pointers,
            absent: "",
        }
    }

    /// A boolean at `pointers`.
    pub const fn flag(label: &'static str, pointers: &'static [&'static str]) -> Self {
        FieldLabel {
            label,
            pointers,
            absent: "false",
        }
    }

    /// A number at `pointers`.
    pub const fn number(label: &'static str, pointers: &'static [&'static str]) -> Self {
        FieldLabel {
            label,
            pointers,
            absent: "0",
        }
    }
}

/// What the server says about a field that it does not select by: its kinds do
/// not agree on the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// Kinds without fields of their own.
    OnlyMetadata,
    /// Kinds with fields of their own, and custom resources with some.
    NotSupported,
    /// Jobs.
    NotSupportedFor(&'static str),
}

/// The fields that a kind can be selected by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLabels {
    /// Fields besides `metadata.name` and `metadata.namespace`.
    pub own: Cow<'static, [FieldLabel]>,
    /// Fields of a custom resource: the label, and the path in the object.
    pub custom: Vec<(String, Vec<String>)>,
    /// Whether objects can be selected by namespace.
    pub by_namespace: bool,
    /// The refusal.
    pub unsupported: Unsupported,
}

impl FieldLabels {
    /// Only name and namespace.
    pub const METADATA: FieldLabels = FieldLabels {
        own: Cow::Borrowed(&[]),
        custom: Vec::new(),
        by_namespace: true,
        unsupported: Unsupported::OnlyMetadata,
    };

    /// The fields of a built-in kind.
    pub const fn of(own: &'static [FieldLabel]) -> Self {
        FieldLabels {
            own: Cow::Borrowed(own),
            custom: Vec::new(),
            by_namespace: true,
            unsupported: Unsupported::NotSupported,
        }
    }

    /// The same fields, with another refusal.
    #[must_use]
    pub const fn refusing(mut self, unsupported: Unsupported) -> Self {
        self.unsupported = unsupported;
        self
    }

    /// The same fields, for a kind that is not in namespaces.
    #[must_use]
    pub const fn without_namespace(mut self) -> Self {
        self.by_namespace = false;
        self
    }

    /// The fields of a custom resource with these `selectableFields` paths
    /// (`.spec.color`).
    pub fn custom<'a>(paths: impl IntoIterator<Item = &'a str>, namespaced: bool) -> Self {
        let custom: Vec<_> = paths
            .into_iter()
            .map(|path| {
                let label = path.trim_start_matches('.').to_owned();
                let steps = label.split('.').map(str::to_owned).collect();
                (label, steps)
            })
            .collect();
        FieldLabels {
            own: Cow::Borrowed(&[]),
            custom,
            by_namespace: namespaced,
            unsupported: Unsupported::NotSupported,
        }
    }

    fn supports(&self, label: &str) -> bool {
        match label {
            "metadata.name" => true,
            "metadata.namespace" => self.by_namespace,
            _ => {
                self.own.iter().any(|own| own.label == label)
                    || self.custom.iter().any(|(custom, _)| custom == label)
            }
        }
    }

    /// The value of a supported field in an object.
    fn value<'a>(&self, label: &str, object: &'a Value) -> Cow<'a, str> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        match label {
            "metadata.name" => return text("/metadata/name").unwrap_or_default().into(),
            "metadata.namespace" => return text("/metadata/namespace").unwrap_or_default().into(),
            _ => {}
        }
        if let Some(own) = self.own.iter().find(|own| own.label == label) {
            return own
                .pointers
                .iter()
                .filter_map(|pointer| object.pointer(pointer).and_then(scalar))
                .find(|value| !value.is_empty())
                .unwrap_or(Cow::Borrowed(own.absent));
        }
        self.custom
            .iter()
            .find(|(custom, _)| custom == label)
            .and_then(|(_, path)| path.iter().try_fold(object, |at, step| at.get(step)))
            .and_then(scalar)
            .unwrap_or_default()
    }

    fn refusal(&self, label: &str) -> FieldSelectorError {
        FieldSelectorError::Unsupported(match self.unsupported {
            Unsupported::OnlyMetadata => format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                crate::field::quoted(label)
            ),
            Unsupported::NotSupported => format!("field label not supported: {label}"),
            Unsupported::NotSupportedFor(kind) => format!(
                "field label {} not supported for {kind}",
                crate::field::quoted(label)
            ),
        })
    }
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

impl FieldSelector {
    /// Parses the text of a `fieldSelector` parameter for a kind with these
    /// fields; the empty text selects everything.
    ///
    /// # Errors
    ///
    /// With the text that the server answers.
    pub fn parse(text: &str, labels: &FieldLabels) -> Result<Self, FieldSelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((label, equal, value)) = split_term(part) else {
                return Err(FieldSelectorError::Term {
                    selector: text.to_owned(),
                    term: part.to_owned(),
                });
            };
            terms.push(Term {
                label: label.to_owned(),
                equal,
                value: unescape(value)?,
            });
        }
        for term in &mut terms {
            // An old name that v1 clients still send.
            if term.label == "spec.host" && labels.supports("spec.nodeName") {
                "spec.nodeName".clone_into(&mut term.label);
            }
            if !labels.supports(&term.label) {
                return Err(labels.refusal(&term.label));
            }
        }
        Ok(FieldSelector { terms })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The one name that is selected, if the selector asks for one.
    pub fn name(&self) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.label == "metadata.name")
            .map(|term| term.value.as_str())
    }

    /// The one namespace that is selected, if the selector asks for one.
    pub fn namespace(&self) -> Option<&str> {
        let mut terms = self.terms.iter();
        let found = terms.find(|term| term.equal && term.label == "metadata.namespace");
        found.map(|term| term.value.as_str())
    }

    /// The one name that a selector asks for, whatever else it asks for. Rights to
    /// one object by its name are rights to list and to watch it in this way.
    pub fn name_in(text: &str) -> Option<String> {
        split_terms(text)
            .into_iter()
            .filter_map(split_term)
            .find(|(label, equal, _)| *equal && *label == "metadata.name")
            .and_then(|(_, _, value)| unescape(value).ok())
            .filter(|name| !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '%']))
    }

    /// Whether the object, of the kind that the selector was parsed for, is
    /// selected.
    pub fn matches(&self, object: &Value, labels: &FieldLabels) -> bool {
        self.terms
            .iter()
            .all(|term| (labels.value(&term.label, object) == term.value) == term.equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            let value = term
                .value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.label)?;
        }
        Ok(())
    }
}

/// Splits at the commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(move |c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
    .collect()
}

/// The field, whether it is to be equal, and the value, still escaped.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term
        .char_indices()
        .find(|(index, c)| *c == '=' || (*c == '!' && term[index + 1..].starts_with('=')))?
        .0;
    let (label, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((label, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((label, true, value))
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(FieldSelectorError::Escape(format!("\\{c}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c as u32)),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: FieldLabels = FieldLabels::of(&[
        FieldLabel::text("spec.nodeName", &["/spec/nodeName"]),
        FieldLabel::text("status.phase", &["/status/phase"]),
        FieldLabel::flag("spec.hostNetwork", &["/spec/hostNetwork"]),
    ]);

    #[test]
    fn matching() {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {"nodeName": "x,y=z"},
            "status": {"phase": "Running"},
        });
        let check = |text: &str, matches: bool| {
            let selector = FieldSelector::parse(text, &POD).unwrap();
            assert_eq!(selector.matches(&pod, &POD), matches, "{text:?}");
            let printed = selector.to_string();
            assert_eq!(
                FieldSelector::parse(&printed, &POD),
                Ok(selector),
                "{printed}"
            );
        };
        check("", true);
        check("metadata.name=a", true);
        check("metadata.name==a,metadata.namespace=n", true);
        check("metadata.name!=a", false);
        check("metadata.name=b", false);
        check("status.phase=Running,", true);
        check("status.phase!=Running", false);
        check("spec.hostNetwork=false", true);
        check("spec.hostNetwork=true", false);
        check(r"spec.nodeName=x\,y\=z", true);
        check(r"spec.host=x\,y\=z", true);
        check("spec.nodeName=", false);
    }

    #[test]
    fn custom_fields() {
        let labels = FieldLabels::custom([".spec.color", ".spec.deep.size"], true);
        let object = json!({"spec": {"color": "blue", "deep": {"size": 3}}});
        let check = |text: &str, matches: bool| {
            let selector = FieldSelector::parse(text, &labels).unwrap();
            assert_eq!(selector.matches(&object, &labels), matches, "{text:?}");
        };
        check("spec.color=blue", true);
        check("spec.color!=blue", false);
        check("spec.deep.size=3", true);
    }

    #[test]
    fn error_texts() {
        let check = |text: &str, labels: &FieldLabels, error: &str| {
            let found = FieldSelector::parse(text, labels).unwrap_err().to_string();
            assert_eq!(found, error, "{text:?}");
        };
        let plain = FieldLabels::METADATA;
        check("a", &plain, "invalid selector: 'a'; can't understand 'a'");
        check(
            "metadata.name",
            &plain,
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        );
        check(
            "a=b",
            &plain,
            "\"a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        );
        check("a=b", &POD, "field label not supported: a");
        check(
            r"metadata.name=a\x",
            &plain,
            r"invalid field selector: invalid escape sequence: \x",
        );
        check(
            "metadata.name=a=b",
            &plain,
            "invalid field selector: unescaped character in value: 61",
        );
    }

    #[test]
    fn a_single_name_is_known() {
        let name = |text| {
            FieldSelector::parse(text, &FieldLabels::METADATA)
                .unwrap()
                .name()
                .map(str::to_owned)
        };
        assert_eq!(name("metadata.name=a").as_deref(), Some("a"));
        assert_eq!(name("metadata.name!=a"), None);
    }
}

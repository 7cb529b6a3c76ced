//! Query parameters, and the options that requests are made with.

use std::borrow::Cow;

use crate::field::{Errors, FieldError, Path};
use crate::status::{About, ApiError};

/// The decoded parameters of one request, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Query {
    /// Keys and values, one behind the other.
    text: String,
    /// Where each key and each value in it ends.
    ends: Vec<(usize, usize)>,
}

impl Query {
    /// Parses the part after the question mark. Nothing is refused: a broken
    /// escape stands for itself.
    pub(crate) fn parse(text: &str) -> Self {
        let mut query = Query {
            text: String::with_capacity(text.len()),
            ends: Vec::new(),
        };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.text.push_str(&decode(key, true));
            let middle = query.text.len();
            query.text.push_str(&decode(value, true));
            query.ends.push((middle, query.text.len()));
        }
        query
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |(middle, end)| {
            let part = |from, to| self.text.get(from..to).unwrap_or_default();
            let pair = (part(start, *middle), part(*middle, *end));
            start = *end;
            pair
        })
    }

    /// The first value of `key`; an empty one counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.pairs().find(|(k, _)| *k == key)?;
        (!value.is_empty()).then_some(value)
    }

    /// Whether nothing is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether `key` is given at all, with or without a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs().any(|(k, _)| k == key)
    }

    /// All values of `key`.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.pairs().filter(move |(k, _)| *k == key);
        pairs.map(|(_, value)| value)
    }

    /// Whether `key` is given and means yes. As in the real server, only `0` and
    /// `false` mean no.
    pub(crate) fn flag(&self, key: &str) -> bool {
        let pair = self.pairs().find(|(k, _)| *k == key);
        pair.is_some_and(|(_, value)| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// The number of `key`, which an empty text is not.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some((_, text)) = self.pairs().find(|(k, _)| *k == key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        })
    }

    /// Whether the write is only to be tried.
    pub(crate) fn dry_run(&self) -> bool {
        self.all("dryRun").any(|value| value == "All")
    }

    /// Checks the parameters of a write, which are called `kind` in a refusal;
    /// `errors` are those that only some writes can have.
    pub(crate) fn check_write(&self, kind: &str, mut errors: Errors) -> Result<(), ApiError> {
        check_manager(self.get("fieldManager").unwrap_or_default(), &mut errors);
        let asked: Vec<&str> = self.all("dryRun").collect();
        check_dry_run(&asked, &mut errors);
        if let Some(asked) = self.get("fieldValidation")
            && !FIELD_VALIDATION.contains(&asked)
        {
            errors.push(FieldError::not_supported(
                &Path::new("fieldValidation"),
                &asked.into(),
                &FIELD_VALIDATION,
            ));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(invalid_options(kind, &errors))
        }
    }
}

/// What can be asked of unknown fields; nothing means a warning.
const FIELD_VALIDATION: [&str; 4] = ["", "Ignore", "Strict", "Warn"];

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

fn check_manager(manager: &str, errors: &mut Errors) {
    let path = Path::new("fieldManager");
    if manager.len() > MANAGER_MAX {
        errors.push(FieldError::too_long(&path, MANAGER_MAX));
    }
    if let Some((at, wrong)) = manager.char_indices().find(|(_, c)| !is_printable(*c)) {
        let why = format!(
            "invalid character U+{:04X} (at position {at})",
            wrong as u32
        );
        errors.push(FieldError::invalid_str(&path, manager, why));
    }
}

/// Whether Go takes a character for one that can be seen.
fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

/// Says what is wrong with the stages that a write is only to be tried in.
pub(crate) fn check_dry_run(asked: &[&str], errors: &mut Errors) {
    if asked.iter().any(|stage| *stage != "All") {
        errors.push(FieldError::not_supported(
            &Path::new("dryRun"),
            &serde_json::json!(asked),
            &["All"],
        ));
    }
}

/// 422 about the options of a request.
pub(crate) fn invalid_options(kind: &str, errors: &Errors) -> ApiError {
    let about = About {
        group: "meta.k8s.io",
        resource: kind,
        name: "",
    };
    ApiError::invalid(about, errors)
}

/// Percent-decodes `text`, with `+` for a space where `plus` says so.
pub(crate) fn decode(text: &str, plus: bool) -> Cow<'_, str> {
    let escapes = text.contains('%') || (plus && text.contains('+'));
    if !escapes {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'+' if plus => bytes.push(b' '),
            b'%' => match escaped(tail) {
                Some(byte) => {
                    bytes.push(byte);
                    rest = tail.get(2..).unwrap_or_default();
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn escaped(tail: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query =
            Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&empty=&x=%zz&dryRun=All");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.get("x"), Some("%zz"));
        assert!(query.flag("watch"));
        assert!(!query.flag("follow"));
        assert!(query.dry_run());
    }

    #[test]
    fn numbers_and_flags_are_read_as_the_server_reads_them() {
        let query = Query::parse("limit=abc&watch=false&force");
        let error = query.number("limit").unwrap_err();
        assert_eq!(
            error.to_string(),
            "strconv.ParseInt: parsing \"abc\": invalid syntax"
        );
        assert!(!query.flag("watch"));
        assert!(query.flag("force"));
    }

    #[test]
    fn options_of_writes_are_checked() {
        let check = |query: &str, expected: &str| {
            let refused = Query::parse(query).check_write("CreateOptions", Errors::new());
            let shown = refused
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert_eq!(shown.trim_start_matches(PREFIX), expected, "{query}");
        };
        const PREFIX: &str = "CreateOptions.meta.k8s.io \"\" is invalid: ";
        check("dryRun=All&fieldManager=me&fieldValidation=Strict", "");
        check(
            "dryRun=All&dryRun=Some",
            "dryRun: Unsupported value: [\"All\",\"Some\"]: supported values: \"All\"",
        );
        check(
            "fieldManager=a%0Ab",
            "fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
        );
        check(
            "fieldValidation=Sometimes",
            "fieldValidation: Unsupported value: \"Sometimes\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        );
    }
}

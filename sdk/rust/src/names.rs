//! What the API server admits as names, labels and their values.
//!
//! Objects of a plugin that break these rules are refused by the server, one at a
//! time and late. What comes from people, such as a name in the configuration or
//! on an object that somebody else made, is better checked here and told by name.

/// Why a text is no such name: what is wrong, and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// There is nothing.
    #[error("empty")]
    Empty,
    /// It is too long.
    #[error("longer than the {0} characters that Kubernetes allows here")]
    TooLong(usize),
    /// It has a character that it may not have, or where it may not have it.
    #[error("expected {0}")]
    Malformed(&'static str),
}

/// Names of namespaces, and of objects that become part of a host name: lower-case
/// letters, digits and `-`, 63 characters at most (RFC 1123).
///
/// # Errors
///
/// When the text is no such name.
pub fn check_dns_label(text: &str) -> Result<(), BadName> {
    check_length(text, 63)?;
    check(
        is_dns_label(text),
        "lower-case letters, digits and `-`, the first and last no `-`",
    )
}

/// Names of most objects: labels of [`check_dns_label`] with dots between them,
/// 253 characters at most.
///
/// # Errors
///
/// When the text is no such name.
pub fn check_dns_subdomain(text: &str) -> Result<(), BadName> {
    check_length(text, 253)?;
    check(
        text.split('.').all(is_dns_label),
        "lower-case letters, digits, `-` and `.`, each part with a letter or digit at both ends",
    )
}

/// Keys of labels and annotations, such as `app` or `example.com/team`.
///
/// # Errors
///
/// When the text is no such key.
pub fn check_label_key(text: &str) -> Result<(), BadName> {
    let name = match text.split_once('/') {
        Some((prefix, name)) => {
            check_dns_subdomain(prefix)?;
            name
        }
        None => text,
    };
    check_length(name, 63)?;
    check(
        is_qualified(name),
        "letters, digits, `-`, `_` and `.` with a letter or digit at both ends, \
         and before it, if anything, a domain and a slash",
    )
}

/// Values of labels: at most 63 characters, and possibly none.
///
/// # Errors
///
/// When the text is no such value.
pub fn check_label_value(text: &str) -> Result<(), BadName> {
    if text.is_empty() {
        return Ok(());
    }
    check_length(text, 63)?;
    check(
        is_qualified(text),
        "letters, digits, `-`, `_` and `.` with a letter or digit at both ends",
    )
}

fn check(holds: bool, expected: &'static str) -> Result<(), BadName> {
    if holds {
        Ok(())
    } else {
        Err(BadName::Malformed(expected))
    }
}

fn check_length(text: &str, limit: usize) -> Result<(), BadName> {
    match text.len() {
        0 => Err(BadName::Empty),
        length if length > limit => Err(BadName::TooLong(limit)),
        _ => Ok(()),
    }
}

/// Whether this is a part of a domain name, of whatever length: those of a name of
/// an object may be longer than 63 characters.
fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.bytes().all(inner) && has_ends(text)
}

fn is_qualified(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().all(inner) && has_ends(text)
}

/// Whether there is a letter or digit at both ends.
fn has_ends(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(check: fn(&str) -> Result<(), BadName>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
        for text in bad {
            assert!(check(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn dns_labels() {
        let (fits, long) = ("a".repeat(63), "a".repeat(64));
        check(
            check_dns_label,
            &["a", "0", "a-b", "a--b", &fits],
            &["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", &long],
        );
    }

    #[test]
    fn dns_subdomains() {
        let (fits, long) = ("a".repeat(253), "a".repeat(254));
        check(
            check_dns_subdomain,
            &["a", "a.b", "a-b.c", &fits],
            &["", ".a", "a.", "a..b", "a.-b", "a/b", "A.b", &long],
        );
    }

    #[test]
    fn label_keys() {
        let (fits, long) = ("a".repeat(63), "a".repeat(64));
        check(
            check_label_key,
            &["app", "A_b.c", "example.com/App", "a/b", &fits],
            &["", "/a", "a/", "a/b/c", "A.com/b", "-a", "a b", &long],
        );
    }

    #[test]
    fn label_values() {
        let (fits, long) = ("a".repeat(63), "a".repeat(64));
        check(
            check_label_value,
            &["", "a", "A_b.c-d", &fits],
            &["-a", "a.", "a/b", "a b", "a=b", &long],
        );
    }

    #[test]
    fn errors_say_what_would_be_right() {
        for (error, text) in [
            (check_dns_label(""), "empty"),
            (
                check_dns_label(&"a".repeat(64)),
                "longer than the 63 characters that Kubernetes allows here",
            ),
            (
                check_dns_label("a b"),
                "expected lower-case letters, digits and `-`, the first and last no `-`",
            ),
        ] {
            assert_eq!(error.unwrap_err().to_string(), text);
        }
    }
}

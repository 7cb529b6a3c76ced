//! Validators of names: each answers with the server's complaints about a text,
//! none when it is well-formed.
//!
//! They are hand-written scanners rather than regular expressions because they
//! run on every label of every write.

/// A validator of one text.
pub type Validator = fn(&str) -> Vec<String>;

const LABEL_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

/// The longest label of a DNS name, and the longest label value.
pub const LABEL_MAX: usize = 63;
/// The longest DNS name.
pub const SUBDOMAIN_MAX: usize = 253;

/// `my-name`: the name of a Namespace, of a list item.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "characters"));
    }
    if !is_label(text, false) {
        if is_subdomain(text) {
            wrong.push("must not contain dots".to_owned());
        } else {
            wrong.push(pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                LABEL_1123,
                &["my-name", "123-abc"],
            ));
        }
    }
    wrong
}

/// `example.com`: the name of most objects.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, unit));
    }
    if !is_subdomain(text) {
        wrong.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_1123,
            &["example.com"],
        ));
    }
    wrong
}

/// `my-name`, starting with a letter: the name of a Service.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "characters"));
    }
    if !is_label(text, true) {
        wrong.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// `*.example.com`: the host of a wildcard ingress rule.
pub fn wildcard_dns1123_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(pattern(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character",
            &format!("\\*\\.{SUBDOMAIN_1123}"),
            &["*.example.com"],
        ));
    }
    wrong
}

/// `example.com/MyName` or `MyName`: the key of a label or annotation, the name
/// of a finalizer or condition.
pub fn qualified_name(text: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                        and end with an alphanumeric character";
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let mut parts = text.split('/');
    let (prefix, name) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => (None, name),
        (Some(prefix), Some(name), None) => (Some(prefix), name),
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                pattern(RULE, LABEL_KEY, &EXAMPLES)
            )];
        }
    };
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => wrong.extend(
            subdomain(prefix, "bytes")
                .into_iter()
                .map(|m| format!("prefix part {m}")),
        ),
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part {}", too_long(LABEL_MAX, "bytes")));
    }
    if !is_label_key(name) {
        wrong.push(format!("name part {}", pattern(RULE, LABEL_KEY, &EXAMPLES)));
    }
    wrong
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX, "bytes"));
    }
    if !text.is_empty() && !is_label_key(text) {
        wrong.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// Anything that can stand in a URL's path: the name of a Role or binding.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// What a generated path segment may start with.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|illegal| text.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// The key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(allowed) {
        wrong.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => wrong.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of a port: an IANA service name.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push(too_long(15, "characters"));
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if text.is_empty() || !text.bytes().all(allowed) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The name of an environment variable.
pub fn env_var(text: &str) -> Vec<String> {
    let printable = |c: char| c.is_ascii() && !c.is_ascii_control() && c != '=';
    let mut wrong = Vec::new();
    if text.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !text.chars().all(printable) {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// A port number; the complaint for one outside 1 to 65535.
pub fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) {
        return Vec::new();
    }
    vec![in_range(1, 65535)]
}

/// The complaint of a number outside `low` to `high`.
pub fn in_range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// What a validator says of a `generateName`, whose end is still to come: a
/// dash at the end, and whatever stands before it, is taken as a letter.
pub fn prefix_of(validator: Validator, text: &str) -> Vec<String> {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut chars = rest.chars();
            chars.next_back();
            validator(&format!("{}a", chars.as_str()))
        }
        _ => validator(text),
    }
}

fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

/// The server's sentence about a pattern that did not match.
pub fn pattern(rule: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{regex}')");
    }
    format!(
        "{rule} (e.g. {}regex used for validation is '{regex}')",
        examples.join(" or ")
    )
}

fn is_label(text: &str, letter_first: bool) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let first_fits = if letter_first {
        first.is_ascii_lowercase()
    } else {
        alphanumeric(first)
    };
    first_fits && alphanumeric(last) && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| is_label(label, false))
}

fn is_label_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Whether a finalizer says whose it is, or is one of Kubernetes' own.
pub fn is_known_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "foregroundDeletion" | "kubernetes" | "orphan")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(validator: Validator, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(validator(text), Vec::<String>::new(), "{text:?}");
        }
        for text in bad {
            assert_ne!(validator(text), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn accepts_and_rejects() {
        let long = "a".repeat(64);
        let longer = "a".repeat(254);
        check(
            dns1123_label,
            &["a", "a-1", "0", "a--b"],
            &["", "A", "-a", "a-", "a.b", "a_b", &long],
        );
        check(
            dns1123_subdomain,
            &["a", "a.b", "1.2-3", &long],
            &["", "a..b", ".a", "a.", "A.b", "a_b", &longer],
        );
        check(dns1035_label, &["a", "a-1"], &["1a", "a.b", "", &long]);
        check(
            qualified_name,
            &["a", "A_b.c", "x.io/A"],
            &["", "/a", "x/", "a/b/c", "-a", "X.io/a", "a b", &long],
        );
        check(label_value, &["", "a", "A.b_c"], &["-a", "a b", &long]);
        check(path_segment, &["a:b", "A b", ""], &[".", "..", "a/b", "a%"]);
        check(
            config_key,
            &["a", ".a", "A-b_c.d"],
            &["", ".", "..", "..a", "a/b", &longer],
        );
        check(
            port_name,
            &["http", "a-1"],
            &["", "1", "-a", "a--b", "HTTP"],
        );
        check(wildcard_dns1123_subdomain, &["*.a.b"], &["a", "*", "*.*.a"]);
        check(env_var, &["A", "a.b-c", "1 x"], &["", "a=b", "é"]);
    }

    #[test]
    fn words() {
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns1123_label(&"a".repeat(64)),
            ["must be no more than 63 characters"]
        );
        assert_eq!(
            dns1123_subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
              '-' or '.', and must start and end with an alphanumeric character (e.g. \
              'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(
            qualified_name("_x"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start \
              and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
              '123-abc', regex used for validation is \
              '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
    }

    #[test]
    fn generated_names_may_end_in_a_dash() {
        assert!(prefix_of(dns1123_label, "a-").is_empty());
        assert!(prefix_of(dns1123_label, "a--").is_empty());
        assert!(!prefix_of(dns1123_label, "Ab-").is_empty());
        assert!(!prefix_of(dns1123_label, "-").is_empty());
    }
}

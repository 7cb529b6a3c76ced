//! Label selectors in Kubernetes' text form.

use serde_json::Value;

/// One requirement of a selector; all of them must hold.
#[derive(Debug, PartialEq)]
pub(crate) struct Term {
    key: String,
    /// Whether the requirement is turned round.
    negated: bool,
    /// The values that count; none when the label only has to be there.
    values: Option<Vec<String>>,
}

impl Term {
    /// Whether it holds for the labels, or annotations, of an object.
    pub(crate) fn matches(&self, labels: Option<&Value>) -> bool {
        let value = labels
            .and_then(|labels| labels.get(&self.key))
            .and_then(Value::as_str);
        let holds = match (&self.values, value) {
            (None, value) => value.is_some(),
            (Some(_), None) => false,
            (Some(values), Some(value)) => values.iter().any(|known| known == value),
        };
        holds != self.negated
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Term {
    /// Whether the other holds of an object wherever this one does, as the host tells it.
    fn implies(&self, other: &Self) -> bool {
        let all = |these: &[String], known: bool, those: &[String]| {
            these.iter().all(|value| those.contains(value) == known)
        };
        let told = match (self.negated, &self.values, other.negated, &other.values) {
            (false, Some(few), false, Some(many)) | (true, Some(many), true, Some(few)) => {
                all(few, true, many)
            }
            (false, Some(these), true, Some(those)) => all(these, false, those),
            (false, _, false, None) | (true, None, true, _) => true,
            (true, _, false, _) | (true, Some(_), true, None) | (false, _, true, None) => false,
            (false, None, _, Some(_)) => false,
        };
        self.key == other.key && told
    }
}

/// Reads the selector of a list of objects, whose values have to be such as labels have.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn parse_of_labels(selector: &str) -> Result<Vec<Term>, String> {
    let terms = parse(selector)?;
    for value in terms.iter().flat_map(|term| term.values.iter().flatten()) {
        crate::names::check_label_value(value)
            .map_err(|error| format!("selector `{selector}`: value `{value}`: {error}"))?;
    }
    Ok(terms)
}

/// Whether a selector is narrower than another, or the same: each requirement of the other
/// follows from one of its own.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn is_within(selector: &[Term], other: &[Term]) -> bool {
    let follows = |wanted: &Term| selector.iter().any(|said| said.implies(wanted));
    other.iter().all(follows)
}

/// The requirements of a selector such as `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
pub(crate) fn parse(selector: &str) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    let mut rest = selector.trim();
    while !rest.is_empty() {
        // A comma within parentheses is between values.
        let mut within = false;
        let end = rest.find(|c| {
            within = (within || c == '(') && c != ')';
            c == ',' && !within
        });
        let (term, next) = match end {
            Some(end) => (&rest[..end], rest[end + 1..].trim_start()),
            None => (rest, ""),
        };
        if end.is_some() && next.is_empty() {
            return Err(format!("selector `{selector}` ends with a comma"));
        }
        terms.push(
            parse_term(term.trim())
                .ok_or_else(|| format!("selector `{selector}`: cannot read `{}`", term.trim()))?,
        );
        rest = next;
    }
    Ok(terms)
}

fn parse_term(term: &str) -> Option<Term> {
    let new = |key: &str, negated, values| {
        let key = key.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        (!key.is_empty() && key.chars().all(plain)).then(|| Term {
            key: key.to_owned(),
            negated,
            values,
        })
    };
    let one = |value: &str| Some(vec![value.trim().to_owned()]);
    if let Some(key) = term.strip_prefix('!') {
        return new(key, true, None);
    }
    if let Some((key, value)) = term.split_once("!=") {
        return new(key, true, one(value));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return new(key, false, one(value));
    }
    let Some(listed) = term.strip_suffix(')') else {
        return new(term, false, None);
    };
    let (head, values) = listed.split_once('(')?;
    let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
    let values = values
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    match word {
        "in" => new(key, false, Some(values)),
        "notin" => new(key, true, Some(values)),
        _ => None,
    }
}

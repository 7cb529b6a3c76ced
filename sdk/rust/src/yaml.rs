//! YAML, as manifests are published in it: with the feature `yaml`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use granit_parser::{Event, Options, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// Reads the documents of a stream, without empty ones.
///
/// As for kubectl, which reads YAML 1.1, `yes` and `on` are true, and a number with a zero in
/// front is octal. Names of fields are text, whatever they look like.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let text = "kind: Namespace\n---\nkind: Secret\nmode: 0400\n";
/// let expected = [json!({"kind": "Namespace"}), json!({"kind": "Secret", "mode": 256})];
/// assert_eq!(reeve_sdk::yaml::documents(text).unwrap(), expected);
/// ```
///
/// # Errors
///
/// What is wrong, with its line. Beside what is no YAML that is a name that stands twice in
/// an object; and anchors, aliases and merge keys, which published manifests do not have, and
/// with which a short text can stand for a long one.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut documents = Documents::default();
    // Between a field and its value there may be as many as somebody has written.
    let mut options = Options::default();
    options.set_emit_comments(false);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let taken = documents.take(event);
        taken.map_err(|problem| format!("line {}: {problem}", span.start.line()))?;
    }
    documents.whole.retain(|document| !document.is_null());
    Ok(documents.whole)
}

#[derive(Default)]
struct Documents {
    whole: Vec<Value>,
    /// What has begun and not ended, the innermost last.
    open: Vec<Open>,
}

enum Open {
    List(Vec<Value>),
    /// With the name whose value comes next.
    Object(Map<String, Value>, Option<String>),
}

impl Documents {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse(anchor)?;
                let is_plain = is_plain(style, tag.as_ref())?;
                if let Some(Open::Object(fields, name @ None)) = self.open.last_mut() {
                    *name = Some(named(fields, text)?);
                    return Ok(());
                }
                let value = match is_plain {
                    true => plain(&text),
                    false => Value::String(text.into_owned()),
                };
                self.add(value)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse(anchor)?;
                self.begin(Open::List(Vec::new()), tag.as_ref(), "seq")
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse(anchor)?;
                self.begin(Open::Object(Map::new(), None), tag.as_ref(), "map")
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let ended = match self.open.pop() {
                    Some(Open::List(items)) => Value::Array(items),
                    Some(Open::Object(fields, _)) => Value::Object(fields),
                    None => return Ok(()),
                };
                self.add(ended)
            }
            Event::Alias(_) => refuse(1),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, tag: Option<&Cow<'_, Tag>>, usual: &str) -> Result<(), String> {
        if let Some(Open::Object(_, None)) = self.open.last() {
            return Err("expected a text as the name of a field".to_owned());
        }
        if let Some(tag) = tag.filter(|tag| core(tag) != Some(usual)) {
            return Err(unknown(tag));
        }
        self.open.push(open);
        Ok(())
    }

    /// Adds a value to what is open, or as a document.
    fn add(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.whole.push(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(fields, name)) => {
                let name = name.take().ok_or("expected the name of a field")?;
                fields.insert(name, value);
            }
        }
        Ok(())
    }
}

fn refuse(anchor: usize) -> Result<(), String> {
    match anchor {
        0 => Ok(()),
        _ => Err("anchors and aliases are not read; write out what they stand for".to_owned()),
    }
}

/// The name of a field, which is text whatever it looks like.
fn named(fields: &Map<String, Value>, text: Cow<'_, str>) -> Result<String, String> {
    if text == "<<" {
        return Err("merge keys are not read; write out what is merged".to_owned());
    }
    if fields.contains_key(&*text) {
        return Err(format!("{text:?} stands twice in one object"));
    }
    Ok(text.into_owned())
}

/// Whether a scalar may be something else than text.
fn is_plain(style: ScalarStyle, tag: Option<&Cow<'_, Tag>>) -> Result<bool, String> {
    match tag {
        None => Ok(style == ScalarStyle::Plain),
        Some(tag) if core(tag) == Some("str") => Ok(false),
        Some(tag) => Err(unknown(tag)),
    }
}

fn core(tag: &Tag) -> Option<&str> {
    (tag.handle() == "tag:yaml.org,2002:").then_some(tag.suffix())
}

fn unknown(tag: &Tag) -> String {
    format!("tag {}{} is not known", tag.handle(), tag.suffix())
}

/// What stands there without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            Value::Bool(false)
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let based = [("0x", 16), ("0o", 8), ("0b", 2), ("0", 8)];
    let based = based.iter().find_map(|(prefix, base)| {
        let digits = digits.strip_prefix(prefix)?;
        let digits = digits
            .starts_with(|c: char| c.is_ascii_hexdigit())
            .then_some(digits)?;
        u64::from_str_radix(digits, *base).ok()
    });
    if let Some(size) = based.filter(|_| digits != "0") {
        let size = i64::try_from(size).ok()?;
        return Some(Number::from(if text.starts_with('-') {
            -size
        } else {
            size
        }));
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        let signed = text.parse().map(|size: i64| Number::from(size));
        let whole = signed.or_else(|_| text.parse().map(|size: u64| Number::from(size)));
        if let Ok(whole) = whole {
            return Some(whole);
        }
    }
    let fits = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    let some = digits.bytes().any(|byte| byte.is_ascii_digit());
    if !some || !digits.bytes().all(fits) {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

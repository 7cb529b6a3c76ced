//! YAML as Kubernetes reads it, which is YAML 1.1: `yes`, `on` and `y` are
//! booleans, `0644` and `0x1a` integers, `<<` merges. What comes out is JSON.
//!
//! The rules of plain scalars are those of `go.yaml.in/yaml/v2`, of conversion to
//! JSON those of `sigs.k8s.io/yaml`.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use indexmap::IndexMap;
use serde_json::{Map, Number, Value};

use crate::depth::READABLE;
use crate::field::quoted;

/// How many values may come out of aliases: a document of a kilobyte could
/// otherwise stand for gigabytes. The real server refuses at about this many.
const ALIASED: usize = 400_000;

/// Why a text is no YAML, or none that is JSON too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum YamlError {
    /// It breaks the rules of YAML.
    #[error("yaml: {0}")]
    Syntax(String),
    /// A tag that says another type than the value is of.
    #[error("yaml: cannot decode {value:?} as a !!{tag}")]
    Tag {
        /// The value.
        value: String,
        /// What it is tagged as.
        tag: String,
    },
    /// A map or list as a key, or none.
    #[error("unsupported map key: {0}")]
    Key(String),
    /// A number that JSON has not.
    #[error("json: unsupported value: {0}")]
    Number(String),
    /// `<<` of something else than maps.
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// Aliases of aliases of aliases.
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    /// More lists and maps inside of one another than are read.
    #[error("yaml: exceeded max depth of {READABLE} levels")]
    Depth,
}

/// The first document of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parsed {
    /// What it says; null when there is none.
    pub(super) value: Value,
    /// Keys that came twice in a map, in the words of the real server's parser.
    pub(super) repeated: Vec<String>,
}

/// Reads the first document of a text.
pub(super) fn parse(text: &str) -> Result<Parsed, YamlError> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        aliased: 0,
        line: 0,
        repeated: Vec::new(),
    };
    loop {
        match reader.next()? {
            Event::DocumentStart(..) => {
                let first = reader.next()?;
                let value = reader.node(first, 0)?.node.to_json()?;
                return Ok(Parsed {
                    value,
                    repeated: reader.repeated,
                });
            }
            Event::StreamEnd => return Ok(Parsed::default()),
            _ => {}
        }
    }
}

/// A value before it is known whether JSON has it. What an anchor names is shared
/// by all that mean it, not copied.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Null,
    Bool(bool),
    Int(Number),
    Float(f64),
    Text(Rc<str>),
    List(Rc<Vec<Node>>),
    /// In order; a key that comes again has replaced the earlier value.
    Map(Rc<Vec<(Node, Node)>>),
    /// The key of a merge.
    Merge,
}

/// A value with what the limits look at.
#[derive(Debug, Clone)]
struct Found {
    node: Node,
    /// How many values it is.
    size: usize,
    /// How deep it nests; 0 for a scalar.
    depth: usize,
}

/// The entries of a map by the identity of their keys, in order.
type Entries = IndexMap<String, (Node, Node)>;

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Found>,
    aliased: usize,
    /// Where the last event begins, counted from one.
    line: usize,
    repeated: Vec<String>,
}

impl<'a> Reader<'a> {
    /// The next event that is more than a comment.
    fn next(&mut self) -> Result<Event<'a>, YamlError> {
        loop {
            match self.parser.next() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, span))) => {
                    self.line = span.start.line();
                    return Ok(event);
                }
                Some(Err(error)) => return Err(YamlError::Syntax(error.to_string())),
                None => return Ok(Event::StreamEnd),
            }
        }
    }

    /// The node that begins with `event`, inside of so many others. An alias is as
    /// deep as what it names.
    fn node(&mut self, event: Event<'a>, level: usize) -> Result<Found, YamlError> {
        let (found, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let found = Found {
                    node: scalar(&text, style, tag.as_deref())?,
                    size: 1,
                    depth: 0,
                };
                (found, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(deeper(level)?)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(deeper(level)?)?, anchor),
            Event::Alias(id) => {
                let found = self.anchors.get(&id).cloned();
                let found =
                    found.ok_or_else(|| YamlError::Syntax("anchor contains itself".to_owned()))?;
                self.aliased += found.size;
                if self.aliased > ALIASED {
                    return Err(YamlError::Aliasing);
                }
                if level + found.depth > READABLE {
                    return Err(YamlError::Depth);
                }
                (found, 0)
            }
            _ => return Err(YamlError::Syntax("unexpected end".to_owned())),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, found.clone());
        }
        Ok(found)
    }

    fn list(&mut self, level: usize) -> Result<Found, YamlError> {
        let (mut items, mut size, mut depth) = (Vec::new(), 1, 0);
        loop {
            match self.next()? {
                Event::SequenceEnd => {
                    return Ok(Found {
                        node: Node::List(Rc::new(items)),
                        size,
                        depth: depth + 1,
                    });
                }
                event => {
                    let item = self.node(event, level)?;
                    size += item.size;
                    depth = depth.max(item.depth);
                    items.push(item.node);
                }
            }
        }
    }

    fn map(&mut self, level: usize) -> Result<Found, YamlError> {
        let (mut entries, mut size, mut depth) = (Entries::new(), 1, 0);
        // What a merge sets may be set again.
        let mut own = HashSet::new();
        loop {
            let event = self.next()?;
            let line = self.line;
            let key = match event {
                Event::MappingEnd => {
                    let entries = entries.into_values().collect();
                    return Ok(Found {
                        node: Node::Map(Rc::new(entries)),
                        size,
                        depth: depth + 1,
                    });
                }
                event => self.node(event, level)?,
            };
            let identity = key.node.identity();
            if own.contains(&identity) {
                let shown = match &key.node {
                    Node::Text(text) => quoted(text),
                    other => other.to_key()?,
                };
                self.repeated
                    .push(format!("line {line}: key {shown} already set in map"));
            } else {
                own.insert(identity.clone());
            }
            let event = self.next()?;
            let value = self.node(event, level)?;
            size += key.size + value.size;
            depth = depth.max(key.depth).max(value.depth);
            if key.node == Node::Merge {
                merge(&mut entries, &value.node)?;
            } else {
                put(&mut entries, identity, key.node, value.node);
            }
        }
    }
}

/// One level further in, where that can be read.
fn deeper(level: usize) -> Result<usize, YamlError> {
    if level < READABLE {
        Ok(level + 1)
    } else {
        Err(YamlError::Depth)
    }
}

/// Sets what the map at `<<`, or each map of the list there, has. Of a list the
/// earlier maps count.
fn merge(entries: &mut Entries, value: &Node) -> Result<(), YamlError> {
    let maps = match value {
        Node::List(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    for map in maps.iter().rev() {
        let Node::Map(more) = map else {
            return Err(YamlError::Merge);
        };
        for (key, value) in more.iter() {
            put(entries, key.identity(), key.clone(), value.clone());
        }
    }
    Ok(())
}

/// Sets one entry; one that is there keeps its place.
fn put(entries: &mut Entries, identity: String, key: Node, value: Node) {
    entries.insert(identity, (key, value));
}

impl Node {
    /// What tells a key from others.
    fn identity(&self) -> String {
        match self {
            Node::Text(text) => format!("={text}"),
            other => format!("{other:?}"),
        }
    }

    fn to_json(&self) -> Result<Value, YamlError> {
        Ok(match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(number) => Value::Number(number.clone()),
            Node::Float(number) => Value::Number(json_number(*number)?),
            Node::Text(text) => Value::String(text.as_ref().to_owned()),
            Node::Merge => Value::String("<<".to_owned()),
            Node::List(items) => {
                let items = items.iter().map(Node::to_json);
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Node::Map(entries) => {
                let mut object = Map::new();
                for (key, value) in entries.iter() {
                    object.insert(key.to_key()?, value.to_json()?);
                }
                Value::Object(object)
            }
        })
    }

    /// The text that stands for it as a key.
    fn to_key(&self) -> Result<String, YamlError> {
        Ok(match self {
            Node::Text(text) => text.as_ref().to_owned(),
            Node::Int(number) => number.to_string(),
            Node::Bool(value) => value.to_string(),
            Node::Float(number) if number.is_nan() => ".nan".to_owned(),
            Node::Float(number) if number.is_infinite() && *number > 0.0 => ".inf".to_owned(),
            Node::Float(number) if number.is_infinite() => "-.inf".to_owned(),
            Node::Float(number) => number.to_string(),
            other => return Err(YamlError::Key(format!("{other:?}"))),
        })
    }
}

/// A float as JSON writes it: without a point where there is no fraction.
fn json_number(number: f64) -> Result<Number, YamlError> {
    let text = number.to_string();
    let whole = text.parse::<i64>().map(Number::from).ok();
    whole
        .or_else(|| Number::from_f64(number))
        .ok_or(YamlError::Number(text))
}

/// What a scalar is, by its tag, its quotes, or its looks.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, YamlError> {
    let plain = style == ScalarStyle::Plain;
    let Some(tag) = tag else {
        return Ok(if plain {
            resolve(text)
        } else {
            Node::Text(text.into())
        });
    };
    let found = resolve(text);
    let wrong = || YamlError::Tag {
        value: text.to_owned(),
        tag: tag.suffix().to_owned(),
    };
    match (tag.core_suffix(), found) {
        (Some("int"), found @ Node::Int(_))
        | (Some("float"), found @ Node::Float(_))
        | (Some("bool"), found @ Node::Bool(_))
        | (Some("null"), found @ Node::Null) => Ok(found),
        (Some("float"), Node::Int(number)) => Ok(Node::Float(number.as_f64().unwrap_or_default())),
        (Some("int" | "float" | "bool" | "null"), _) => Err(wrong()),
        _ => Ok(Node::Text(text.into())),
    }
}

/// What a plain scalar looks like.
fn resolve(text: &str) -> Node {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Node::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Node::Bool(false);
        }
        "" | "~" | "null" | "Null" | "NULL" => return Node::Null,
        ".nan" | ".NaN" | ".NAN" => return Node::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Node::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Node::Float(f64::NEG_INFINITY),
        "<<" => return Node::Merge,
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => decimal(text).map(Node::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = text.replace('_', "");
            integer(&digits)
                .map(Node::Int)
                .or_else(|| decimal(&digits).map(Node::Float))
        }
        _ => None,
    };
    number.unwrap_or_else(|| Node::Text(text.into()))
}

/// An integer, in the base that its prefix says.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let bases = [
        ("0x", 16),
        ("0X", 16),
        ("0b", 2),
        ("0B", 2),
        ("0o", 8),
        ("0O", 8),
    ];
    let prefixed = bases
        .iter()
        .find_map(|(prefix, base)| Some((digits.strip_prefix(prefix)?, *base)));
    let (digits, base) = match prefixed {
        Some(found) => found,
        None => match digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
            Some(rest) => (rest, 8),
            None => (digits, 10),
        },
    };
    // Rust would take another sign here.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(digits, base).ok()?;
    if negative {
        let number = 0_i64.checked_sub_unsigned(number)?;
        return Some(number.into());
    }
    Some(number.into())
}

/// A number with a fraction or an exponent.
fn decimal(text: &str) -> Option<f64> {
    let looks = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    // Rust reads words, too.
    let parsed = text.chars().all(looks).then(|| text.parse::<f64>().ok());
    parsed.flatten().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(
            parse(text).map(|parsed| parsed.value),
            Ok(expected),
            "{text}"
        );
    }

    #[test]
    fn plain_scalars_are_those_of_yaml_1_1() {
        for text in ["y", "Y", "yes", "Yes", "YES", "on", "On", "true", "TRUE"] {
            check(text, json!(true));
        }
        for text in ["n", "N", "no", "NO", "off", "Off", "false", "False"] {
            check(text, json!(false));
        }
        for text in ["", "~", "null", "Null", "# nothing", "---\n"] {
            check(text, Value::Null);
        }
        for (text, number) in [
            ("1", 1),
            ("-7", -7),
            ("+7", 7),
            ("0644", 420),
            ("0o17", 15),
            ("0x1A", 26),
            ("0b101", 5),
            ("1_000", 1000),
            ("0", 0),
            ("1e3", 1000),
            ("1.0", 1),
        ] {
            check(text, json!(number));
        }
        check("18446744073709551615", json!(u64::MAX));
        check("1.5", json!(1.5));
        check(".5", json!(0.5));
        check("-1.5e-1", json!(-0.15));
    }

    #[test]
    fn what_looks_like_a_text_is_one() {
        for text in [
            "yEs",
            "tRue",
            "nope",
            "1.2.3",
            "0o8",
            "0x",
            "089x",
            "1 2",
            "2026-01-02",
            "12:30:45",
            "1Gi",
            "--1",
            "+-1",
            "infinity",
            ".e",
            "1e",
            "_",
        ] {
            check(text, json!(text));
        }
        for text in [
            "'yes'", "\"no\"", "'1'", "\"~\"", "!!str 1", "|-\n  on", ">-\n  12",
        ] {
            assert!(parse(text).unwrap().value.is_string(), "{text}");
        }
    }

    #[test]
    fn keys_that_come_twice_are_told_but_for_those_of_merges() {
        let repeated = |text: &str| parse(text).unwrap().repeated;
        assert_eq!(
            repeated("a: 1\nb:\n  c: {x: 1, x: 2}\n  1: y\n  1: z\na: 3\n"),
            [
                "line 3: key \"x\" already set in map",
                "line 5: key 1 already set in map",
                "line 6: key \"a\" already set in map",
            ]
        );
        let merged = "base: &b {x: 1}\nmore:\n  <<: *b\n  x: 2\n";
        assert_eq!(repeated(merged), [""; 0]);
    }

    #[test]
    fn keys_become_texts_and_merges_merge() {
        check(
            "{1: a, yes: b, 1.5: c}",
            json!({"1": "a", "true": "b", "1.5": "c"}),
        );
        check("{a: 1, a: 2}", json!({"a": 2}));
        check(
            "base: &b {x: 1, z: 2}\nmore:\n  <<: *b\n  z: 3\n",
            json!({"base": {"x": 1, "z": 2}, "more": {"x": 1, "z": 3}}),
        );
        check(
            "- &a {x: 1}\n- &b {x: 2, z: 2}\n- {<<: [*a, *b]}\n",
            json!([{"x": 1}, {"x": 2, "z": 2}, {"x": 1, "z": 2}]),
        );
        check("a: 1\n---\nb: 2\n", json!({"a": 1}));
    }

    #[test]
    fn what_json_has_not_is_refused() {
        for (text, message) in [
            ("{[a]: 1}", "unsupported map key: List([Text(\"a\")])"),
            ("a: .inf", "json: unsupported value: inf"),
            ("a: !!int b", "yaml: cannot decode \"b\" as a !!int"),
            (
                "<<: 1",
                "yaml: map merge requires map or sequence of maps as the value",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
        assert!(matches!(parse("a: [1"), Err(YamlError::Syntax(_))));
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..30 {
            let below = level - 1;
            bomb += &format!("a{level}: &a{level} [*a{below}, *a{below}]\n");
        }
        assert_eq!(parse(&bomb), Err(YamlError::Aliasing));
    }

    #[test]
    fn nothing_is_read_deeper_than_it_can_be_stored() {
        let nested = |levels: usize, inner: &str| {
            format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels))
        };
        assert!(parse(&nested(READABLE, "1")).is_ok());
        assert_eq!(parse(&nested(READABLE + 1, "1")), Err(YamlError::Depth));
        // Each anchor is as deep as the one before and its own lists.
        let mut tower = format!("- &a0 {}\n", nested(100, "x"));
        for level in 1..56 {
            let alias = nested(100, &format!("*a{}", level - 1));
            tower += &format!("- &a{level} {alias}\n");
        }
        assert_eq!(parse(&tower), Err(YamlError::Depth));
        let level = nested(READABLE - 2, "x");
        assert!(parse(&format!("- &a {level}\n- [*a]\n")).is_ok());
        assert_eq!(
            parse(&format!("- &a {level}\n- [[*a]]\n")),
            Err(YamlError::Depth)
        );
        assert_eq!(
            parse(&format!("- &a {level}\n- {{? *a : 1, b: {{c: *a}}}}\n")),
            Err(YamlError::Depth)
        );
    }

    #[test]
    fn many_keys_and_nested_anchors_cost_what_they_hold() {
        let start = std::time::Instant::now();
        let keys: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
        assert_eq!(
            parse(&keys).unwrap().value.as_object().unwrap().len(),
            100_000
        );
        // Were an anchor a copy, these would be a hundred of all items.
        let open: String = (0..100).map(|n| format!("&a{n} [")).collect();
        let items = "1,".repeat(100_000);
        parse(&format!("{open}{items}{}", "]".repeat(100))).unwrap();
        assert!(
            start.elapsed().as_secs() < 30,
            "took {:?}, which is more than linear",
            start.elapsed()
        );
    }
}

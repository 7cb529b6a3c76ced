//! What lists and watches look like on the wire.

use super::objects::Name;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A page of a list; the items are slices of the page.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    pub(super) metadata: PageMetadata,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    pub(super) resource_version: String,
    /// Token of the next page; empty on the last.
    #[serde(default, rename = "continue")]
    pub(super) next: String,
}

/// A line of a watch, in whatever order its two members come.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// Takes a line apart that is written byte for byte as API servers write it, without reading
/// past the object: what is returned as that is the object where it can be read as one, and
/// nothing is known of it otherwise. Every other line is a [`Line`].
pub(super) fn told(line: &[u8]) -> Option<(Told, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_prefix("{\"type\":\"")?.strip_suffix('}')?;
    let (kind, object) = line.split_once("\",\"object\":")?;
    let told = match kind {
        "ADDED" | "MODIFIED" => Told::Put,
        "DELETED" => Told::Gone,
        _ => return None,
    };
    Some((told, object))
}

/// What an object is and in which state, from the beginning of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) name: Name<'a>,
    pub(super) uid: &'a str,
    pub(super) version: &'a str,
}

impl<'a> Head<'a> {
    /// Of one that is written byte for byte as API servers write built-in kinds: these fields
    /// first, and plain. Whether what follows can be read as an object is not known.
    pub(super) fn of(json: &'a str) -> Option<Self> {
        let (_, rest) = member("{\"kind\":", json)?;
        let (_, rest) = member(",\"apiVersion\":", rest)?;
        let (name, rest) = member(",\"metadata\":{\"name\":", rest)?;
        let (namespace, rest) = match member(",\"namespace\":", rest) {
            Some((namespace, rest)) => (Some(namespace), rest),
            None => (None, rest),
        };
        let (uid, rest) = member(",\"uid\":", rest)?;
        let (version, rest) = member(",\"resourceVersion\":", rest)?;
        let name = Name { namespace, name };
        matches!(rest.as_bytes().first(), Some(b',' | b'}')).then_some(Self { name, uid, version })
    }
}

/// A text without escapes behind what introduces it, and the rest.
fn member<'a>(introduced: &str, json: &'a str) -> Option<(&'a str, &'a str)> {
    let json = json.strip_prefix(introduced)?.strip_prefix('"')?;
    let (text, rest) = json.split_once('"')?;
    (!text.contains('\\')).then_some((text, rest))
}

/// What happened to an object of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is there, in this state.
    Put,
    /// It is gone, and this was its last state.
    Gone,
}

/// A bookmark, of which only the version counts.
#[derive(Deserialize)]
pub(super) struct Bookmark {
    pub(super) metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookmarkMetadata {
    pub(super) resource_version: String,
}

/// Cuts a stream of bytes into lines.
///
/// Bytes are looked at once: the search goes on where it stopped, however many
/// pieces a long line comes in.
#[derive(Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the line that is being read begins.
    start: usize,
    searched: usize,
}

impl Lines {
    /// Adds bytes that came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Lines that were handed out are dropped here, once per piece.
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end, blank ones left out.
    pub(super) fn next_line(&mut self) -> Option<&[u8]> {
        loop {
            let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return None;
            };
            let (start, end) = (self.start, self.searched + length);
            self.start = end + 1;
            self.searched = self.start;
            if !self.buffer[start..end].trim_ascii().is_empty() {
                return Some(&self.buffer[start..end]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::resource::Resource;
    use reeve_core::GroupVersionKind;

    #[test]
    fn lines_survive_any_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":\"long enough\"}\n{}\nrest";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next_line() {
                    got.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            assert_eq!(
                got,
                ["{\"a\":1}", "{\"b\":\"long enough\"}", "{}"],
                "{size}"
            );
        }
    }

    #[test]
    fn a_head_as_servers_write_it_is_taken_apart() {
        let head = |metadata: &str| {
            let json = format!(r#"{{"kind":"A","apiVersion":"v1","metadata":{{{metadata}}}}}"#);
            let head = Head::of(&json);
            head.map(|head| format!("{:?} {} {}", head.name.namespace, head.name.name, head.uid))
        };
        let whole = r#""name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{}"#;
        assert_eq!(head(whole).as_deref(), Some("Some(\"n\") a u"));
        let bare = r#""name":"a","uid":"u","resourceVersion":"7""#;
        assert_eq!(head(bare).as_deref(), Some("None a u"));
        for other in [
            r#""name":"a","uid":"u""#,
            r#""name":"a","uid":"u","resourceVersion":"7"#,
            r#""name":"a\"","uid":"u","resourceVersion":"7""#,
            r#""annotations":{},"name":"a","uid":"u","resourceVersion":"7""#,
            r#""name":"a","generateName":"a-","uid":"u","resourceVersion":"7""#,
            r#""name":"a", "uid":"u","resourceVersion":"7""#,
        ] {
            assert_eq!(head(other), None, "{other}");
        }
    }

    #[test]
    fn a_line_as_servers_write_it_is_taken_apart() {
        let object = r#"{"x":"\",\"object\":"}"#;
        for (kind, expected) in [
            ("ADDED", Some(Told::Put)),
            ("MODIFIED", Some(Told::Put)),
            ("DELETED", Some(Told::Gone)),
            ("BOOKMARK", None),
            ("ERROR", None),
        ] {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            let expected = expected.map(|told| (told, object));
            assert_eq!(told(line.as_bytes()), expected, "{kind}");
        }
        for line in [
            &br#"{"object":{},"type":"ADDED"}"#[..],
            br#"{ "type":"ADDED","object":{}}"#,
            b"{\"type\":\"ADDED\",\"object\":{}}\r",
            b"{\"type\":\"ADDED\",\"object\":\"\xff\"}",
            b"",
        ] {
            assert_eq!(told(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn what_is_more_than_an_object_is_read_as_none() {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
        for (more, is_object) in [
            ("", true),
            (r#","type":"ERROR""#, false),
            (r#","more":1"#, false),
            ("}", false),
        ] {
            let line = format!(r#"{{"type":"ADDED","object":{object}{more}}}"#);
            let (_, cut) = told(line.as_bytes()).unwrap();
            let read = Object::parse(&resource, cut.as_bytes());
            assert_eq!(read.is_ok(), is_object, "{line}");
            // Then the whole line is read.
            let line = serde_json::from_str::<Line<'_>>(&line);
            let is_line = more.is_empty() || more.contains("more");
            assert_eq!(line.is_ok_and(|line| line.object.get() == object), is_line);
        }
    }

    #[test]
    fn the_members_of_a_line_come_in_any_order() {
        for text in [
            r#"{"type":"ADDED","object":{"x":1.0}}"#,
            r#"{"object":{"x":1.0},"type":"ADDED"}"#,
        ] {
            let line: Line<'_> = serde_json::from_str(text).unwrap();
            assert_eq!((&*line.kind, line.object.get()), ("ADDED", r#"{"x":1.0}"#));
        }
    }
}

//! Where things stand in a YAML file: lines for messages, places for updates.

use serde_saphyr::granit_parser::{Event, Parser, Span, StructureStyle};

/// A value in the text of a file. Byte positions, and lines from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The first byte.
    pub(crate) start: usize,
    /// The first byte after it.
    pub(crate) end: usize,
    /// The line of the first byte.
    pub(crate) line: usize,
    /// Bytes before it on its line.
    pub(crate) column: usize,
    /// What it is.
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text, a number, a boolean, or nothing.
    Scalar,
    /// The value of an anchor elsewhere.
    Alias,
    /// Items, between brackets or not.
    Sequence { flow: bool, items: Vec<Node> },
    /// Keys and values, between braces or not.
    Mapping {
        flow: bool,
        entries: Vec<(String, Node)>,
    },
}

/// One part of the way to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The value of a key.
    Key(&'a str),
    /// The item at an index.
    Item(usize),
}

impl Node {
    /// The documents of a text. Documents with nothing in them are left out; of a
    /// text that is no YAML, what comes before the error is kept.
    pub(crate) fn documents(text: &str) -> Vec<Self> {
        let mut reader = Reader {
            text,
            parser: Parser::new_from_str(text),
        };
        let mut documents = Vec::new();
        while let Some((event, span)) = reader.next() {
            match event {
                Event::DocumentEnd | Event::DocumentStart(..) | Event::StreamStart => {}
                Event::StreamEnd => break,
                event => {
                    let Some(node) = reader.node(&event, span) else {
                        break;
                    };
                    let empty = node.content == Content::Scalar && node.start == node.end;
                    if !empty {
                        documents.push(node);
                    }
                }
            }
        }
        documents
    }

    /// The value at the end of a way; none where the way leads through an alias
    /// or to nothing.
    pub(crate) fn at(&self, path: &[Part<'_>]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let next = match (&self.content, first) {
            (Content::Mapping { entries, .. }, Part::Key(key)) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, node)| node),
            (Content::Sequence { items, .. }, Part::Item(index)) => items.get(*index),
            _ => None,
        };
        next?.at(rest)
    }

    /// The line of the value at the end of a way, or of what comes closest to it.
    pub(crate) fn line_of(&self, path: &[Part<'_>]) -> usize {
        (0..=path.len())
            .rev()
            .find_map(|length| self.at(&path[..length]))
            .map_or(self.line, |node| node.line)
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, serde_saphyr::granit_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    /// The next event that is about a value.
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        loop {
            let (event, span) = self.parser.next_event()?.ok()?;
            let presentation = matches!(event, Event::Comment(..) | Event::Anchor(..));
            if !presentation {
                return Some((event, span));
            }
        }
    }

    /// The value that begins with an event.
    fn node(&mut self, event: &Event<'a>, span: Span) -> Option<Node> {
        let start = span.start.byte_offset()?;
        let mut end = span.end.byte_offset()?;
        let content = match event {
            Event::Scalar(..) => Content::Scalar,
            Event::Alias(_) | Event::UnresolvedAlias(_) => Content::Alias,
            Event::SequenceStart(style, ..) => {
                let flow = *style == StructureStyle::Flow;
                let mut items: Vec<Node> = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, span) => {
                            // Without brackets, the end is noticed only at the
                            // next value, after blank lines and comments.
                            end = match items.last() {
                                Some(last) if !flow => last.end,
                                _ => span.end.byte_offset()?,
                            };
                            break;
                        }
                        (event, span) => items.push(self.node(&event, span)?),
                    }
                }
                Content::Sequence { flow, items }
            }
            Event::MappingStart(style, ..) => {
                let flow = *style == StructureStyle::Flow;
                let mut entries: Vec<(String, Node)> = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, span) => {
                            end = match entries.last() {
                                Some((_, last)) if !flow => last.end,
                                _ => span.end.byte_offset()?,
                            };
                            break;
                        }
                        (event, span) => {
                            let key = match &event {
                                Event::Scalar(text, ..) => text.to_string(),
                                _ => String::new(),
                            };
                            let name = self.node(&event, span)?;
                            let (event, span) = self.next()?;
                            let mut value = self.node(&event, span)?;
                            if value.start == value.end {
                                // A value that is left out is said to stand before
                                // the colon; what is put there has to follow it.
                                let colon = self.text.get(name.end..)?.find(':')?;
                                value.start = name.end + colon + 1;
                                value.end = value.start;
                            }
                            entries.push((key, value));
                        }
                    }
                }
                Content::Mapping { flow, entries }
            }
            _ => return None,
        };
        Some(Node {
            start,
            end,
            line: span.start.line(),
            column: span.start.col(),
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Part::{Item, Key};
    use super::*;

    const TEXT: &str = "\
# first
name: a
none :
list:
  - x: 1 # one
    y: [2, {z: 'three'}]
  - plain text
# end
---
name: b
";

    fn check(path: &[Part<'_>], expected: &str) {
        let documents = Node::documents(TEXT);
        let node = documents[0].at(path).unwrap();
        assert_eq!(&TEXT[node.start..node.end], expected);
    }

    #[test]
    fn places_are_those_of_the_values() {
        check(&[Key("name")], "a");
        check(&[Key("none")], "");
        let none = Node::documents(TEXT)[0].at(&[Key("none")]).unwrap().start;
        assert_eq!(&TEXT[none - 2..none], " :");
        check(&[Key("list"), Item(0), Key("x")], "1");
        check(&[Key("list"), Item(0), Key("y")], "[2, {z: 'three'}]");
        check(
            &[Key("list"), Item(0), Key("y"), Item(1), Key("z")],
            "'three'",
        );
        check(
            &[Key("list"), Item(0)],
            "x: 1 # one\n    y: [2, {z: 'three'}]",
        );
        check(&[Key("list"), Item(1)], "plain text");
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let documents = Node::documents(TEXT);
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[1].line, 10);
        assert_eq!(documents[0].line_of(&[Key("list"), Item(0), Key("y")]), 6);
        assert_eq!(
            documents[0].line_of(&[Key("list"), Item(0), Key("missing")]),
            5
        );
    }

    #[test]
    fn a_broken_text_has_the_documents_before_the_error() {
        assert_eq!(Node::documents("a: 1\n---\nb: [\n").len(), 1);
        assert_eq!(Node::documents("# nothing\n").len(), 0);
    }
}

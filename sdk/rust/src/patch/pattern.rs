//! Regular expressions that match a whole text, as far as names need them: characters,
//! `.`, classes, groups, `|`, `*`, `+` and `?`. A library for all of them is larger than
//! most components.
//!
//! A pattern becomes the states of an automaton, all of which are followed at once, so
//! that no pattern takes more time than its length times that of the text.

use std::iter::Peekable;
use std::str::Chars;

/// The longest pattern: its states are followed for each object.
const MOST_CHARACTERS: usize = 256;
/// How deep groups may be in one another.
const MOST_GROUPS: usize = 16;

#[derive(Debug)]
pub(super) struct Pattern {
    states: Vec<State>,
    start: usize,
}

#[derive(Debug)]
enum State {
    /// The end of the pattern.
    End,
    /// One character, and what comes then.
    One(Matcher, usize),
    /// Either of two.
    Split(usize, usize),
}

#[derive(Clone, Debug)]
enum Matcher {
    Any,
    Char(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

enum Node {
    One(Matcher),
    All(Vec<Node>),
    Either(Vec<Node>),
    Repeated {
        inner: Box<Node>,
        none: bool,
        more: bool,
    },
}

impl Pattern {
    /// Matches just this text.
    pub(super) fn literal(text: &str) -> Self {
        let nodes = text.chars().map(|c| Node::One(Matcher::Char(c)));
        Self::of(&Node::All(nodes.collect()))
    }

    /// Reads a pattern. It is anchored: `^` at its begin and `$` at its end change
    /// nothing.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let problem = |what: &str| format!("`{text}` is no pattern that can be used: {what}");
        if text.chars().count() > MOST_CHARACTERS {
            return Err(problem("it has more than 256 characters"));
        }
        let inner = text.strip_prefix('^').unwrap_or(text);
        let inner = match inner.strip_suffix('$') {
            Some(inner) if !inner.ends_with('\\') => inner,
            _ => inner,
        };
        let mut parser = Parser {
            rest: inner.chars().peekable(),
            depth: 0,
        };
        let node = parser.either().map_err(problem)?;
        match parser.rest.next() {
            None => Ok(Self::of(&node)),
            Some(_) => Err(problem("a `)` has no `(`")),
        }
    }

    fn of(node: &Node) -> Self {
        let mut pattern = Self {
            states: vec![State::End],
            start: 0,
        };
        pattern.start = pattern.add(node, 0);
        pattern
    }

    /// Adds the states of a node, after which `next` comes. Returns the first.
    fn add(&mut self, node: &Node, next: usize) -> usize {
        match node {
            Node::One(matcher) => self.push(State::One(matcher.clone(), next)),
            Node::All(nodes) => {
                let nodes = nodes.iter().rev();
                nodes.fold(next, |next, node| self.add(node, next))
            }
            Node::Either(nodes) => {
                let starts: Vec<usize> = nodes.iter().map(|node| self.add(node, next)).collect();
                let mut starts = starts.into_iter().rev();
                let last = starts.next().unwrap_or(next);
                starts.fold(last, |other, start| self.push(State::Split(start, other)))
            }
            Node::Repeated { inner, none, more } => {
                if !more {
                    let start = self.add(inner, next);
                    return self.push(State::Split(start, next));
                }
                let again = self.push(State::End);
                let start = self.add(inner, again);
                self.states[again] = State::Split(start, next);
                if *none { again } else { start }
            }
        }
    }

    fn push(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let mut now = self.reached([self.start]);
        for c in text.chars() {
            let next = now.iter().filter_map(|state| match &self.states[*state] {
                State::One(matcher, next) if matcher.matches(c) => Some(*next),
                _ => None,
            });
            now = self.reached(next.collect::<Vec<_>>());
        }
        now.iter()
            .any(|state| matches!(self.states[*state], State::End))
    }

    /// The states that are reached from these without a character.
    fn reached(&self, from: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut seen = vec![false; self.states.len()];
        let mut left: Vec<usize> = from.into_iter().collect();
        let mut reached = Vec::new();
        while let Some(state) = left.pop() {
            if std::mem::replace(&mut seen[state], true) {
                continue;
            }
            match self.states[state] {
                State::Split(one, other) => left.extend([one, other]),
                _ => reached.push(state),
            }
        }
        reached
    }
}

impl Matcher {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<Node, &'static str> {
        let mut ways = vec![self.all()?];
        while self.rest.next_if_eq(&'|').is_some() {
            ways.push(self.all()?);
        }
        Ok(Node::Either(ways))
    }

    fn all(&mut self) -> Result<Node, &'static str> {
        let mut nodes = Vec::new();
        while let Some(c) = self.rest.next_if(|c| !"|)".contains(*c)) {
            let mut node = self.one(c)?;
            while let Some(c) = self.rest.next_if(|c| "*+?".contains(*c)) {
                node = Node::Repeated {
                    inner: Box::new(node),
                    none: c != '+',
                    more: c != '?',
                };
            }
            nodes.push(node);
        }
        Ok(Node::All(nodes))
    }

    fn one(&mut self, c: char) -> Result<Node, &'static str> {
        Ok(Node::One(match c {
            '.' => Matcher::Any,
            '\\' => Matcher::Char(self.escaped()?),
            '[' => self.class()?,
            '(' => return self.group(),
            '*' | '+' | '?' => return Err("nothing stands before a `*`, `+` or `?`"),
            '{' | '}' => return Err("counts in `{}` are not supported"),
            '^' | '$' => return Err("`^` and `$` may only stand at its begin and end"),
            c => Matcher::Char(c),
        }))
    }

    fn escaped(&mut self) -> Result<char, &'static str> {
        match self.rest.next() {
            Some(c) if c.is_ascii_punctuation() => Ok(c),
            _ => Err("after `\\` only punctuation is supported"),
        }
    }

    fn group(&mut self) -> Result<Node, &'static str> {
        self.depth += 1;
        if self.depth > MOST_GROUPS {
            return Err("groups are too deep in one another");
        }
        if self.rest.next_if_eq(&'?').is_some() && self.rest.next_if_eq(&':').is_none() {
            return Err("of groups with `?` only `(?:…)` is supported");
        }
        let node = self.either()?;
        self.depth -= 1;
        match self.rest.next() {
            Some(')') => Ok(node),
            _ => Err("a `(` has no `)`"),
        }
    }

    fn class(&mut self) -> Result<Matcher, &'static str> {
        const OPEN: &str = "a `[` has no `]`";
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut ranges = Vec::new();
        loop {
            let from = match self.rest.next().ok_or(OPEN)? {
                ']' if !ranges.is_empty() => return Ok(Matcher::Class { negated, ranges }),
                '[' => return Err("classes within classes are not supported"),
                '\\' => self.escaped()?,
                c => c,
            };
            if self.rest.next_if_eq(&'-').is_none() {
                ranges.push((from, from));
                continue;
            }
            match self.rest.next().ok_or(OPEN)? {
                // A `-` at the end is one.
                ']' => {
                    ranges.extend([(from, from), ('-', '-')]);
                    return Ok(Matcher::Class { negated, ranges });
                }
                to if from <= to && to != '\\' => ranges.push((from, to)),
                _ => return Err("a range in `[]` ends before it begins"),
            }
        }
    }
}

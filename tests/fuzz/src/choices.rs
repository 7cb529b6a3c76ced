//! Decisions taken from the bytes of an input.
//!
//! Where the interesting inputs are structures that plain bytes hardly ever spell,
//! the bytes decide instead which structure is built. When they run out, every
//! decision is the first one, so that a shorter input is a simpler case.

use arbitrary::Unstructured;
use serde_json::{Map, Value, json};

/// A stream of decisions.
pub(crate) struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self(Unstructured::new(input))
    }

    /// Whether there are bytes left to decide with.
    pub(crate) fn has_more(&self) -> bool {
        !self.0.is_empty()
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.int_in_range(0..=n.max(1) - 1).unwrap_or(0)
    }

    /// True in one of `n` cases.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of a few texts, so that the same ones meet again.
    pub(crate) fn text(&mut self) -> &'static str {
        self.pick(&["a", "b", "c", "", "x/y", "<\"&>", "é\u{2028}"])
    }

    /// Any JSON, at most `depth` containers deep.
    pub(crate) fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => self.text().into(),
            1 => self.below(4).into(),
            2 => Value::Null,
            3 => (self.below(2) == 0).into(),
            4 => json!(0.5),
            5 => self
                .pick(&[json!(-1), json!(1e300), json!(i64::MAX)].each_ref())
                .clone(),
            6 | 7 => {
                let mut map = Map::new();
                for _ in 0..self.below(4) {
                    let name = self.text();
                    map.insert(name.to_owned(), self.json(depth - 1));
                }
                map.into()
            }
            _ => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
        }
    }
}

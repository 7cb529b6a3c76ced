//! What calls cost in the language itself.

use kube_cel::cel::common::ast::operators;
use kube_cel::cel::parser::Expression;

use super::range::Range;
use super::{Argument, Estimate, FREE, USE, calls};
use crate::cel::functions::Overload;
use crate::cel::types::Type;

/// Going through a text costs so much a character.
pub(super) const TEXT: f64 = 0.1;
/// And a pattern so much for each of its own.
pub(super) const PATTERN: f64 = 0.25;

/// A call.
pub(super) struct Call<'c, 'e> {
    pub(super) expression: &'c Expression,
    /// The name of the function.
    pub(super) name: &'c str,
    /// What it is called on.
    pub(super) on: Option<&'c Argument<'e>>,
    pub(super) arguments: &'c [Argument<'e>],
    /// What the arguments cost.
    pub(super) paid: &'c [Range],
}

impl<'e> Estimate<'e> {
    /// What one way to make a call costs, with its arguments, and how large what comes
    /// out of it is, if that is known.
    pub(super) fn overload(
        &mut self,
        call: &Call<'_, 'e>,
        overload: &Overload,
    ) -> (Range, Option<Range>) {
        let paid = call.paid.iter().fold(FREE, |sum, paid| sum.plus(*paid));
        if let Some((cost, size)) = calls::estimated(self.root, call, overload) {
            return (cost.plus(paid), size);
        }
        if call.name == operators::CONDITIONAL
            && let ([condition, paid_then, paid_else], [_, then, other]) =
                (call.paid, call.arguments)
        {
            let contents = self
                .contents_of(then.expression)
                .zip(self.contents_of(other.expression));
            if let Some((one, other)) = contents {
                self.note(call.expression, one, other);
            }
            let size = known(then).joined(known(other));
            return (condition.plus(paid_then.joined(*paid_else)), Some(size));
        }
        if call.name == operators::ADD
            && let [left, right] = call.arguments
            && let Some(of @ (Type::Text | Type::Bytes | Type::List(_))) =
                overload.arguments.first()
        {
            let contents = self
                .contents_of(left.expression)
                .zip(self.contents_of(right.expression));
            if let Some((one, other)) = contents {
                self.note(call.expression, one, other);
            }
            let size = known(left).plus(known(right));
            let cost = match of {
                Type::List(_) => USE,
                _ => size.scaled(TEXT),
            };
            return (cost.plus(paid), Some(size));
        }
        let (cost, size) = plain(call, overload).unwrap_or((USE, None));
        (cost.plus(paid), size)
    }

    /// Notes that what comes out has what is in the one or in the other.
    fn note(&mut self, expression: &Expression, one: super::Contents, other: super::Contents) {
        let contents = super::Contents {
            is_list: one.is_list,
            key: one.key.joined(other.key),
            value: one.value.joined(other.value),
        };
        self.contents.insert(expression.id, contents);
    }
}

fn known(argument: &Argument<'_>) -> Range {
    argument.size.unwrap_or(Range::UNKNOWN)
}

/// Calls whose cost depends on nothing but how large the arguments are. What is too large
/// for a number begins again at zero here, as in the real server.
fn plain(call: &Call<'_, '_>, overload: &Overload) -> Option<(Range, Option<Range>)> {
    let of_overload = overload.arguments.as_slice();
    let cost = match (call.name, call.on, call.arguments) {
        ("format", Some(on), _) => known(on).scaled(TEXT),
        ("bytes", None, [text]) if of_overload == [Type::Text] => {
            let size = known(text);
            let made = Range {
                least: size.least,
                most: size.most.wrapping_mul(4),
            };
            return Some((size.scaled(TEXT), Some(made)));
        }
        ("string", None, [bytes]) if of_overload == [Type::Bytes] => {
            let size = known(bytes);
            let made = Range {
                least: size.least / 4,
                most: size.most,
            };
            return Some((size.scaled(TEXT), Some(made)));
        }
        ("strings.quote", None, [text]) => {
            let size = known(text);
            let made = Range {
                least: size.least.wrapping_add(2),
                most: size.most.wrapping_mul(2).wrapping_add(2),
            };
            return Some((size.scaled(TEXT), Some(made)));
        }
        ("startsWith" | "endsWith", Some(_), [part]) => known(part).scaled(TEXT),
        (operators::IN, None, [_, list]) if matches!(of_overload, [_, Type::List(_)]) => {
            known(list).scaled(1.0)
        }
        ("matches", Some(on), [pattern]) => {
            let text = known(on).plus(Range::fixed(1)).scaled(TEXT);
            text.times(known(pattern).scaled(PATTERN))
        }
        ("contains", Some(on), [part]) => known(on).scaled(TEXT).times(known(part).scaled(TEXT)),
        (operators::EQUALS | operators::NOT_EQUALS, None, [left, right]) => compared(left, right),
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            None,
            [left, right],
        ) if matches!(of_overload, [Type::Text | Type::Bytes, _]) => compared(left, right),
        _ => return None,
    };
    Some((cost, None))
}

/// Comparing goes no further than the shorter of two.
fn compared(left: &Argument<'_>, right: &Argument<'_>) -> Range {
    let most = known(left).most.min(known(right).most);
    let least = most.min(1);
    Range { least, most }.scaled(TEXT)
}

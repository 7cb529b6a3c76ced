//! What calls of the functions of Kubernetes, and of those for lists and sets, cost.

use kube_cel::cel::common::ast::{Expr, LiteralValue, operators};

use super::extent::Extent;
use super::range::Range;
use super::standard::{Call, PATTERN, TEXT};
use super::trail::ITEMS;
use super::{Argument, LIST, USE};
use crate::cel::functions::Overload;
use crate::cel::types::Type;

/// What asking whether somebody may do something costs: an expression can pay it twice.
const AUTHORIZED: u64 = 350_000;
/// How long the pattern behind the name of a format may be.
const PATTERN_OF_FORMAT: f64 = 128.0;
/// How long the name of a format may be.
const FORMAT: u64 = 64;
/// How many bytes an address has.
const ADDRESS: Range = Range { least: 4, most: 16 };
/// A requirement of a selector has at least so many characters.
const PER_REQUIREMENT: f64 = 0.5;
/// And costs so much.
const REQUIREMENT: f64 = 50.0;

/// What a call costs without its arguments, and how large what comes out of it is, if that
/// is known; none where the function is one of the language itself.
pub(super) fn estimated(
    root: &Extent,
    call: &Call<'_, '_>,
    overload: &Overload,
) -> Option<(Range, Option<Range>)> {
    let size = |of: &Argument<'_>| size(root, of);
    if let Some(found) = of_lists(&size, call, overload) {
        return Some(found);
    }
    let first = overload.arguments.first();
    let cost = match (call.name, call.on, call.arguments) {
        ("check", ..) => Range::fixed(AUTHORIZED),
        (
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery",
            ..,
        ) => USE,
        ("ip", ..) if first == Some(&Type::Opaque("net.CIDR")) => USE,
        ("fieldSelector" | "labelSelector", _, [selector]) => {
            let length = size(selector);
            let requirements = length.scaled(PER_REQUIREMENT).scaled(REQUIREMENT);
            LIST.plus(length.scaled(TEXT)).plus(requirements)
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(on), _) => {
            match item(root, on) {
                Some((ty, length)) => {
                    let each = match ty {
                        Type::Text | Type::Bytes => USE.plus(length.scaled(TEXT)),
                        _ => USE,
                    };
                    size(on).times(each)
                }
                None => size(on).scaled(TEXT),
            }
        }
        ("url" | "jsonpatch.escapeKey", _, [text])
        | ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
            let size = size(text);
            return Some((size.scaled(TEXT), Some(size)));
        }
        ("replace", Some(on), [what, with, ..]) => {
            let length = size(on);
            let made = replaced(length, size(what), size(with));
            return Some((length.scaled(2.0 * TEXT), Some(made)));
        }
        ("split", Some(on), arguments) => {
            let length = size(on);
            let limit = arguments.get(1).and_then(|limit| number(limit));
            let most = limit.map_or(length.most, i64::cast_unsigned);
            return Some((length.scaled(2.0 * TEXT), Some(Range::up_to(most))));
        }
        ("join", Some(on), arguments) => {
            let made = joined(size(on), item(root, on), arguments.first().map(size));
            return Some((made.scaled(TEXT), Some(made)));
        }
        ("find" | "findAll", Some(on), [pattern, ..]) => {
            let length = size(on);
            let text = length.plus(Range::fixed(1)).scaled(TEXT);
            let cost = text.times(size(pattern).scaled(PATTERN));
            return Some((cost, Some(Range::up_to(length.most))));
        }
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
            [text, ..],
        ) => size(text).scaled(TEXT),
        ("ip.isCanonical", _, [text]) => size(text).scaled(2.0 * TEXT),
        ("containsIP" | "containsCIDR", Some(_), [other]) => {
            let mut cost = ADDRESS.plus(ADDRESS).scaled(TEXT);
            if call.name == "containsCIDR" {
                cost = cost.plus(ADDRESS.scaled(TEXT)).plus(USE);
            }
            if overload.arguments.get(1) == Some(&Type::Text) {
                cost = cost.plus(size(other).scaled(TEXT));
            }
            cost
        }
        ("validate", _, [text]) => size(text).scaled(TEXT).scaled(PATTERN_OF_FORMAT * PATTERN),
        (operators::EQUALS, None, [left, right]) if left.ty == right.ty => equal(left, right)?,
        _ => return None,
    };
    Some((cost, None))
}

/// What comparing two values of a type of Kubernetes costs.
fn equal(left: &Argument<'_>, right: &Argument<'_>) -> Option<Range> {
    let Type::Opaque(name) = left.ty else {
        return None;
    };
    let most = match name {
        "kubernetes.NamedFormat" => FORMAT,
        "kubernetes.URL" => right.size.map_or(1, |size| size.most),
        _ => return Some(USE),
    };
    Some(Range { least: 1, most }.scaled(TEXT))
}

/// Functions on lists and sets.
fn of_lists(
    size: &impl Fn(&Argument<'_>) -> Range,
    call: &Call<'_, '_>,
    overload: &Overload,
) -> Option<(Range, Option<Range>)> {
    let made =
        |made: Range, factor: f64| Some((made.scaled(factor).plus(USE).plus(LIST), Some(made)));
    match (call.name, call.on, call.arguments) {
        ("slice", Some(on), [start, end]) => {
            let start = number_or(start, 0);
            let end = number_or(end, size(on).most);
            made(Range::fixed(end.wrapping_sub(start)), 1.0)
        }
        ("lists.range", None, [count]) => made(Range::fixed(number_or(count, u64::MAX)), 1.0),
        ("reverse", Some(on), []) => made(size(on), 1.0),
        ("flatten", Some(on), []) => made(size(on), 1.0),
        ("flatten", Some(on), [depth]) => made(size(on), number_or(depth, u64::MAX) as f64),
        ("distinct", Some(on), []) => made(size(on).times(size(on)), 2.0),
        ("sort", Some(on), []) => sorted(size(on), overload.arguments.first()),
        ("@sortByAssociatedKeys", Some(_), [keys]) => sorted(size(keys), overload.arguments.get(1)),
        ("sets.contains" | "sets.intersects" | "sets.equivalent", None, [left, right]) => {
            let factor = match call.name {
                "sets.equivalent" => 2.0,
                _ => 1.0,
            };
            let cost = size(left).times(size(right)).scaled(factor);
            Some((cost.plus(USE), None))
        }
        _ => None,
    }
}

fn sorted(by: Range, list: Option<&Type>) -> Option<(Range, Option<Range>)> {
    let factor = match list {
        Some(Type::List(item)) if matches!(**item, Type::Text | Type::Bytes) => 2.0 + TEXT,
        _ => 2.0,
    };
    let made = by.times(by);
    Some((made.scaled(factor).plus(USE).plus(LIST), Some(made)))
}

fn size(root: &Extent, of: &Argument<'_>) -> Range {
    let size = of.size.or_else(|| root.size(&of.trail));
    size.unwrap_or(Range::UNKNOWN)
}

/// The type of what is in a list, and how large that is; none where it is no list.
fn item<'t>(root: &Extent, list: &'t Argument<'_>) -> Option<(&'t Type, Range)> {
    let ty = match &list.ty {
        Type::List(item) => item.as_ref(),
        Type::Map(key, _) => key.as_ref(),
        _ => return None,
    };
    let size = if list.trail.is_empty() {
        None
    } else {
        root.size(&list.trail.copied().grown(ITEMS))
    };
    Some((ty, size.unwrap_or(Range::UNKNOWN)))
}

/// A number that is written out.
fn number(argument: &Argument<'_>) -> Option<i64> {
    match &argument.expression.expr {
        Expr::Literal(LiteralValue::Int(number)) => Some(*number.inner()),
        _ => None,
    }
}

fn number_or(argument: &Argument<'_>, otherwise: u64) -> u64 {
    number(argument).map_or(otherwise, |number| number.max(0).cast_unsigned())
}

/// How long a text is in which parts are replaced.
fn replaced(text: Range, what: Range, with: Range) -> Range {
    let times = |text: u64, what: u64| (text as f64 / what as f64).ceil() as u64;
    // How often the longest replacement takes place, and what stays besides.
    let (most, stays_most) = if what.least == 0 {
        (text.most.saturating_add(1), text.most)
    } else if with.most <= what.least {
        (0, text.most)
    } else {
        (times(text.most, what.least), 0)
    };
    let (least, stays_least) = if what.most == 0 {
        (text.least.saturating_add(1), text.least)
    } else if what.most <= with.least {
        (0, text.least)
    } else {
        (times(text.least, what.most), 0)
    };
    let stays = Range {
        least: stays_least,
        most: stays_most,
    };
    Range { least, most }.times(with).plus(stays)
}

/// How long the text is that a list is joined to.
fn joined(list: Range, item: Option<(&Type, Range)>, separator: Option<Range>) -> Range {
    let texts = item.map_or(Range::fixed(0), |(_, size)| list.times(size));
    let Some(separator) = separator else {
        return texts;
    };
    let separators = Range {
        least: list.least.saturating_sub(1),
        most: list.most.saturating_sub(1),
    };
    texts.plus(separator.times(separators))
}

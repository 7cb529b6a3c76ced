//! Functions with regular expressions, which are those of Go.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::{ResolveResult, Value};

use super::failed;
use crate::crd::Pattern;

/// So many compiled patterns are kept by each thread.
const KEPT: usize = 100;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Arc<Pattern>>> = RefCell::default();
}

/// Whether a text is a pattern.
pub(in crate::cel) fn is_pattern(text: &str) -> bool {
    compiled(text).is_ok()
}

fn compiled(text: &str) -> Result<Arc<Pattern>, String> {
    COMPILED.with_borrow_mut(|known| {
        if let Some(pattern) = known.get(text) {
            return Ok(Arc::clone(pattern));
        }
        let pattern = Arc::new(Pattern::compile(text)?);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    })
}

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let (text, pattern, rest) = match (name, arguments) {
        (
            "matches" | "find" | "findAll",
            [Value::String(text), Value::String(pattern), rest @ ..],
        ) => (text, pattern, rest),
        _ => return None,
    };
    let pattern = match compiled(pattern) {
        Ok(pattern) => pattern,
        Err(why) if name == "matches" => return Some(Err(failed(name, why))),
        Err(why) => return Some(Err(failed(name, format!("Illegal regex: {why}")))),
    };
    let found = |text: &str| Value::String(Arc::new(text.to_owned()));
    Some(Ok(match (name, rest) {
        ("matches", _) => Value::Bool(pattern.matches(text)),
        ("find", _) => found(pattern.found(text).next().unwrap_or_default()),
        (_, rest) => {
            let most = match rest {
                [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            Value::List(Arc::new(
                pattern.found(text).take(most).map(found).collect(),
            ))
        }
    }))
}

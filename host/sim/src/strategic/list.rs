//! Lists that are merged item by item, and the order of what comes out.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{PATCH, StrategicError, go_type, merge, printed, printed_list};
use crate::decode::{Merging, Type};

/// How the items of one list are merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    /// Their type.
    ty: Type,
    /// The field that tells them apart; without one they are plain values.
    key: Option<&'static str>,
}

/// What the items of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Maps,
    Plain,
}

/// What the items of several lists are, all of which must be of one sort.
pub(super) fn sort_of(lists: &[&[Value]]) -> Result<Sort, StrategicError> {
    let mut items = lists.iter().copied().flatten();
    let first = items.next().ok_or(StrategicError::Nothing)?;
    if first.is_array() {
        return Err(StrategicError::Nested);
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        let lists: Vec<String> = lists.iter().map(|list| printed_list(list)).collect();
        return Err(StrategicError::Mixed(format!("[{}]", lists.join(" "))));
    }
    Ok(if first.is_object() {
        Sort::Maps
    } else {
        Sort::Plain
    })
}

impl Items {
    /// Those of a list that is merged so.
    pub(super) fn of(ty: Type, merging: Merging) -> Self {
        let key = match merging {
            Merging::ByKey(key) => Some(key),
            Merging::Usual | Merging::Set | Merging::Replace => None,
        };
        Items { ty, key }
    }

    /// The list with the items of the patch, or without them where it `deletes`.
    pub(super) fn merge(
        self,
        items: Vec<Value>,
        patch: Vec<Value>,
        deletes: bool,
    ) -> Result<Vec<Value>, StrategicError> {
        if items.is_empty() && patch.is_empty() {
            return Ok(items);
        }
        if sort_of(&[&items, &patch])? == Sort::Plain {
            let named: HashSet<String> = patch.iter().map(Value::to_string).collect();
            if deletes {
                let stays = |item: &Value| !named.contains(&item.to_string());
                return Ok(items.into_iter().filter(stays).collect());
            }
            let mut seen = HashSet::new();
            let both = items.iter().chain(&patch);
            let both = both.filter(|item| seen.insert(item.to_string()));
            let merged = both.cloned().collect();
            return Items { key: None, ..self }.arrange(merged, &patch, &items);
        }
        let Some(key) = self.key else {
            return Err(StrategicError::Keyless("struct"));
        };
        let (items, patch) = heed_directives(key, items, patch)?;
        let merged = self.merge_maps(key, items.clone(), &patch)?;
        self.arrange(merged, &patch, &items)
    }

    fn merge_maps(
        self,
        key: &'static str,
        mut items: Vec<Value>,
        patch: &[Value],
    ) -> Result<Vec<Value>, StrategicError> {
        let mut places = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = item.get(key) {
                places.entry(id.to_string()).or_insert(index);
            }
        }
        for item in patch {
            let id = self.id(item)?;
            let place = places.get(&id).and_then(|index| items.get_mut(*index));
            match (place, item) {
                (Some(Value::Object(present)), Value::Object(item)) => {
                    merge(self.ty, present, item.clone())?;
                }
                _ => {
                    places.entry(id).or_insert(items.len());
                    items.push(item.clone());
                }
            }
        }
        Ok(items)
    }

    /// Brings items into the order of the server: those that `order` names as it has
    /// them, and the others as they were `before`, behind the new ones that come first.
    pub(super) fn arrange(
        self,
        items: Vec<Value>,
        order: &[Value],
        before: &[Value],
    ) -> Result<Vec<Value>, StrategicError> {
        let (order, before) = (self.ranks(order)?, self.ranks(before)?);
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for item in items {
            let id = self.id(&item)?;
            let was = before.get(&id).copied();
            match order.get(&id) {
                Some(rank) => named.push((*rank, was, item)),
                None => others.push((was, item)),
            }
        }
        named.sort_by_key(|(rank, _, _)| *rank);
        others.sort_by_key(|(was, _)| *was);
        let mut out = Vec::with_capacity(named.len() + others.len());
        let mut others = others.into_iter().peekable();
        for (_, was, item) in named {
            while let Some((other, _)) = others.peek()
                && other.is_some()
                && *other < was
                && let Some((_, other)) = others.next()
            {
                out.push(other);
            }
            out.push(item);
        }
        out.extend(others.map(|(_, item)| item));
        Ok(out)
    }

    /// The first place of each item in a list.
    fn ranks(self, items: &[Value]) -> Result<HashMap<String, usize>, StrategicError> {
        let mut ranks = HashMap::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            ranks.entry(self.id(item)?).or_insert(index);
        }
        Ok(ranks)
    }

    /// What tells an item from the others.
    fn id(self, item: &Value) -> Result<String, StrategicError> {
        let Some(key) = self.key else {
            return Ok(item.to_string());
        };
        match item {
            Value::Object(fields) => {
                let id = fields.get(key).map(Value::to_string);
                id.ok_or_else(|| no_key(item, key))
            }
            other => Err(StrategicError::Sort {
                expected: super::MAP,
                received: go_type(other),
            }),
        }
    }

    /// Refuses a list whose items are not in the order that comes with it.
    pub(super) fn check_order(
        self,
        patch: &[Value],
        order: &[Value],
    ) -> Result<(), StrategicError> {
        if patch.is_empty() || order.is_empty() {
            return Ok(());
        }
        let goes = |item: &Value| {
            item.get(PATCH)
                .is_some_and(|directive| directive == "delete")
        };
        let mut left = patch.iter().filter(|item| !goes(item)).peekable();
        for one in order {
            while left.peek().is_some_and(|item| item.get(PATCH).is_some()) {
                left.next();
            }
            let Some(next) = left.peek() else { break };
            if self.id(next)? == self.id(one)? {
                left.next();
            }
        }
        match left.peek() {
            None => Ok(()),
            Some(_) => Err(StrategicError::Order(
                printed_list(patch),
                printed_list(order),
            )),
        }
    }
}

fn no_key(item: &Value, key: &'static str) -> StrategicError {
    StrategicError::NoKey {
        item: printed(item),
        key,
    }
}

/// Takes away what the patch says is to go, and what it only says: the answer is the
/// list, and the items to merge into it.
fn heed_directives(
    key: &'static str,
    mut items: Vec<Value>,
    patch: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let (mut plain, mut gone, mut replaces) = (Vec::new(), HashSet::new(), false);
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = item.get(key).ok_or_else(|| no_key(&item, key))?;
                gone.insert(id.to_string());
            }
            Some("replace") => replaces = true,
            Some("merge") => return Err(StrategicError::MergeInList),
            _ => {
                let directive = printed(directive);
                return Err(StrategicError::Directive(directive, printed(&item)));
            }
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    let goes = |item: &Value| {
        item.get(key)
            .is_some_and(|id| gone.contains(&id.to_string()))
    };
    items.retain(|item| !goes(item));
    Ok((items, plain))
}

//! Which names a CustomResourceDefinition gets, and when it is established.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kinds::edit::{ensure_object, items, present, set, text};

/// The names that the other resources of a group have.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Plural, singular and short names.
    pub resources: BTreeSet<String>,
    /// Kinds and list kinds.
    pub kinds: BTreeSet<String>,
}

impl Names {
    /// Adds the names that another definition of the group was given.
    pub fn add_accepted(&mut self, definition: &Value) {
        if let Some(names) = definition.pointer("/status/acceptedNames") {
            self.add(names);
        }
    }

    /// Adds names as they stand in `acceptedNames`.
    pub fn add(&mut self, names: &Value) {
        let add = |set: &mut BTreeSet<String>, name: &str| {
            if !name.is_empty() {
                set.insert(name.to_owned());
            }
        };
        add(&mut self.resources, text(names, "plural"));
        add(&mut self.resources, text(names, "singular"));
        for short in items(names, "shortNames").filter_map(Value::as_str) {
            add(&mut self.resources, short);
        }
        add(&mut self.kinds, text(names, "kind"));
        add(&mut self.kinds, text(names, "listKind"));
    }
}

/// Gives a definition the names that nobody else has, and writes the conditions
/// `NamesAccepted` and, when it is new, `Established` as `Installing`. Says
/// whether the status changed.
pub fn accept_names(definition: &mut Value, taken: &Names, now: &str) -> bool {
    let before = definition.get("status").cloned();
    let null = Value::Null;
    let wanted = definition
        .pointer("/spec/names")
        .cloned()
        .unwrap_or(Value::Null);
    let had = definition
        .pointer("/status/acceptedNames")
        .unwrap_or(&null)
        .clone();
    let mut accepted = had.clone();
    let mut conflict: Option<(&str, String)> = None;
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        if wanted.get(field) == had.get(field) {
            continue;
        }
        match conflicts(&wanted, &had, field, taken) {
            Some(message) => conflict = Some((reason, message)),
            None => copy(&mut accepted, &wanted, field),
        }
    }
    copy(&mut accepted, &wanted, "categories");
    let good = conflict.is_none();
    let (reason, message) =
        conflict.unwrap_or_else(|| ("NoConflicts", "no conflicts found".to_owned()));
    let Some(status) = ensure_object(definition, "status") else {
        return false;
    };
    set(status, "acceptedNames", accepted);
    put_condition(status, "NamesAccepted", good, reason, &message, now);
    if !is_true(status, "Established") {
        let (reason, message) = if good {
            ("Installing", "the initial names have been accepted")
        } else {
            ("NotAccepted", "not all names are accepted")
        };
        put_condition(status, "Established", false, reason, message, now);
    }
    definition.get("status") != before.as_ref()
}

/// Marks a definition whose names are accepted as served. Says whether that is
/// news.
pub fn establish(definition: &mut Value, now: &str) -> bool {
    let Some(status) = ensure_object(definition, "status") else {
        return false;
    };
    if !is_true(status, "NamesAccepted") || is_true(status, "Established") {
        return false;
    }
    put_condition(
        status,
        "Established",
        true,
        "InitialNamesAccepted",
        "the initial names have been accepted",
        now,
    );
    true
}

/// Why a name, or one of a list of names, cannot be had.
fn conflicts(wanted: &Value, had: &Value, field: &str, taken: &BTreeSet<String>) -> Option<String> {
    let in_use = |name: &str| {
        taken
            .contains(name)
            .then(|| format!("{} is already in use", crate::field::quoted(name)))
    };
    if field != "shortNames" {
        return in_use(text(wanted, field));
    }
    let ours = |name: &&str| items(had, field).any(|known| known == *name);
    let messages: Vec<String> = items(wanted, field)
        .filter_map(Value::as_str)
        .filter(|name| !ours(name))
        .filter_map(in_use)
        .collect();
    match messages.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn copy(accepted: &mut Value, wanted: &Value, field: &str) {
    if accepted.is_null() {
        *accepted = json!({});
    }
    match present(wanted, field) {
        Some(value) => set(accepted, field, value.clone()),
        None => {
            crate::kinds::edit::remove(accepted, field);
        }
    }
}

fn is_true(status: &Value, condition: &str) -> bool {
    items(status, "conditions")
        .any(|known| text(known, "type") == condition && text(known, "status") == "True")
}

/// Writes a condition; the time of its last transition is that of its status.
fn put_condition(
    status: &mut Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: &str,
) {
    let mut conditions: Vec<Value> = items(status, "conditions").cloned().collect();
    let value = if holds { "True" } else { "False" };
    let known = conditions
        .iter_mut()
        .find(|condition| text(condition, "type") == kind);
    let since = known
        .as_deref()
        .filter(|known| text(known, "status") == value)
        .map_or(now, |known| text(known, "lastTransitionTime"))
        .to_owned();
    let condition = json!({
        "lastTransitionTime": since,
        "message": message,
        "reason": reason,
        "status": value,
        "type": kind,
    });
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    set(status, "conditions", conditions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str) -> Value {
        json!({
            "spec": {"names": {
                "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"), "shortNames": ["x"],
            }},
            "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": null},
        })
    }

    fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
        items(&definition["status"], "conditions")
            .find(|condition| condition["type"] == kind)
            .unwrap()
    }

    #[test]
    fn the_first_gets_the_names() {
        let mut first = definition("as", "A");
        assert!(accept_names(&mut first, &Names::default(), "t1"));
        assert_eq!(first["status"]["acceptedNames"], first["spec"]["names"]);
        assert_eq!(condition(&first, "NamesAccepted")["status"], "True");
        assert_eq!(condition(&first, "Established")["reason"], "Installing");
        assert!(establish(&mut first, "t2"));
        assert!(!establish(&mut first, "t3"));
        assert!(!accept_names(&mut first, &Names::default(), "t4"));
        assert_eq!(condition(&first, "Established")["lastTransitionTime"], "t2");

        let mut taken = Names::default();
        taken.add_accepted(&first);
        let mut second = definition("bs", "A");
        assert!(accept_names(&mut second, &taken, "t"));
        let accepted = condition(&second, "NamesAccepted");
        assert_eq!(accepted["status"], "False");
        assert_eq!(accepted["reason"], "ListKindConflict");
        assert_eq!(accepted["message"], "\"AList\" is already in use");
        assert_eq!(second["status"]["acceptedNames"]["plural"], "bs");
        assert_eq!(condition(&second, "Established")["reason"], "NotAccepted");
        assert!(!establish(&mut second, "t"));
    }
}

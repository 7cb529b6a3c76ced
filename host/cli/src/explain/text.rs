//! An explanation for people.

use crate::looking::in_text;
use crate::style::{Painter, Style};
use reeve_agent::planner::{
    Call, Explanation, FieldOwner, Question, ReadReport, Writer, is_bookkeeping,
};
use std::fmt::Write as _;

/// The text of an explanation. `verbose` adds the marks of ownership.
pub(super) fn of(explanation: &Explanation, verbose: bool, painter: Painter) -> String {
    let mut out = String::new();
    heading(&mut out, painter, &explanation.object.to_string());
    let mut rows = Vec::new();
    for field in &explanation.fields {
        if is_bookkeeping(&field.path) && !verbose {
            continue;
        }
        let owners: Vec<String> = field
            .owners
            .iter()
            .map(|one| owner(one, explanation))
            .collect();
        let owners = match owners.is_empty() {
            true => "nobody: set by the API server".to_owned(),
            false => owners.join(", "),
        };
        let value = in_text(&field.value).unwrap_or_default();
        rows.push((field.path.clone(), value, owners));
    }
    let width = |of: fn(&(String, String, String)) -> &String, most: usize| {
        let lengths = rows.iter().map(|row| of(row).chars().count());
        lengths.max().unwrap_or(0).min(most)
    };
    let (paths, values) = (width(|row| &row.0, 60), width(|row| &row.1, 40));
    for (path, value, owners) in &rows {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {path:paths$}  {value:values$}  {owners}");
    }
    for (manager, writer) in &explanation.writers {
        out.push('\n');
        of_writer(&mut out, manager, writer, painter);
    }
    out
}

fn heading(out: &mut String, painter: Painter, text: &str) {
    out.push_str(&painter.paint(Style::Heading, text));
    out.push('\n');
}

/// `plugin quotas`, or the field manager of somebody else and how it wrote.
fn owner(owner: &FieldOwner, explanation: &Explanation) -> String {
    if owner.operation == "Apply"
        && let Some(writer) = explanation.writers.get(&owner.manager)
    {
        return format!("plugin {}", writer.plugin);
    }
    let mut text = format!("{} ({}", owner.manager, owner.operation);
    if !owner.subresource.is_empty() {
        let _ = write!(text, " of {}", owner.subresource);
    }
    if let Some(since) = &owner.since {
        let _ = write!(text, ", {since}");
    }
    text.push(')');
    text
}

fn of_writer(out: &mut String, manager: &str, writer: &Writer, painter: Painter) {
    let mut title = format!("plugin {}", writer.plugin);
    if let Some((version, digest)) = &writer.version {
        let _ = write!(title, " {version} ({digest})");
    }
    heading(out, painter, &title);
    let _ = writeln!(out, "  field manager  {manager}");
    if let Some(primary) = &writer.primary {
        let _ = writeln!(out, "  unit           {primary}");
    } else if writer.version.is_some() {
        let _ = writeln!(
            out,
            "  unit           none: no call of it returns the object now"
        );
    }
    if let Some(call) = &writer.call {
        of_call(out, call);
    }
    for problem in &writer.problems {
        let line = painter.paint(Style::Warning, &format!("! {problem}"));
        let _ = writeln!(out, "  {line}");
    }
}

fn of_call(out: &mut String, call: &Call) {
    out.push_str("  the call that returns it reads\n");
    let fields = some_fields(&call.fields);
    let _ = writeln!(out, "    the primary {}{fields}", call.primary);
    let config = match call.config.as_object().is_some_and(|map| map.is_empty()) {
        true => "none".to_owned(),
        false => call.config.to_string(),
    };
    let _ = writeln!(out, "    its configuration: {config}");
    for read in &call.reads {
        let _ = writeln!(out, "    {}", of_read(read));
    }
}

fn of_read(read: &ReadReport) -> String {
    let (question, answer) = match &read.question {
        Question::Object { object, fields } => {
            let answer = match &read.answer {
                Ok(0) => "absent".to_owned(),
                Ok(_) => "there".to_owned(),
                Err(error) => error.clone(),
            };
            (format!("{object}{}", some_fields(fields)), answer)
        }
        Question::Objects {
            kind,
            namespace,
            selector,
            fields,
        } => {
            let place = match namespace {
                Some(namespace) => format!("in namespace {namespace}"),
                None => "everywhere".to_owned(),
            };
            let labels = match selector.as_str() {
                "" => String::new(),
                selector => format!(" with labels {selector}"),
            };
            let fields = match fields {
                Some(fields) => some_fields(fields),
                None => ", names only".to_owned(),
            };
            let answer = match &read.answer {
                Ok(count) => format!("{count} found"),
                Err(error) => error.clone(),
            };
            (format!("every {kind} {place}{labels}{fields}"), answer)
        }
        Question::Source { name } => (format!("the outside document {name}"), String::new()),
        Question::Time(time) => ("the time".to_owned(), time.to_string()),
    };
    format!("{question}: {answer}")
}

fn some_fields(fields: &[String]) -> String {
    match fields {
        [] => String::new(),
        fields => format!(" ({})", fields.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};

    #[test]
    fn reads_are_told_in_words() {
        let kind = GroupVersionKind::new("", "v1", "Pod");
        let object = ObjectReference::new(kind.clone(), Some("a".into()), "b");
        for (question, answer, expected) in [
            (
                Question::Object {
                    object: object.clone(),
                    fields: vec![],
                },
                Ok(0),
                "Pod a/b: absent",
            ),
            (
                Question::Object {
                    object,
                    fields: vec!["/spec".into()],
                },
                Ok(1),
                "Pod a/b (/spec): there",
            ),
            (
                Question::Objects {
                    kind: kind.clone(),
                    namespace: Some("a".into()),
                    selector: "x=y".into(),
                    fields: None,
                },
                Ok(3),
                "every Pod.v1 in namespace a with labels x=y, names only: 3 found",
            ),
            (
                Question::Objects {
                    kind,
                    namespace: None,
                    selector: String::new(),
                    fields: Some(vec![]),
                },
                Err("not synced".into()),
                "every Pod.v1 everywhere: not synced",
            ),
        ] {
            assert_eq!(of_read(&ReadReport { question, answer }), expected);
        }
    }
}

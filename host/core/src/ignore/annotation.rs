//! Ignore rules that an object brings along.

use super::{IgnoreError, Rule, RuleText};
use crate::annotations::Annotations;
use crate::kind::ObjectReference;
use serde_json::Value;

/// Annotation: fields of the object that are left to others, one a line: JSON
/// Pointers (`/spec/replicas`) and jq path expressions (`.data["a.b"]`).
pub const ANNOTATION: &str = "reeve.dev/ignore";

/// Why the annotation cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// A line is of neither form.
    #[error(
        "{object}: annotation {ANNOTATION}: `{line}` is neither a JSON Pointer such as \
         `/spec/replicas` nor a jq path expression such as `.spec.replicas`; write one a line"
    )]
    Form {
        /// The object.
        object: Box<ObjectReference>,
        /// The line.
        line: String,
    },
    /// A line does not name fields.
    #[error("{object}: annotation {ANNOTATION}")]
    Rule {
        /// The object.
        object: Box<ObjectReference>,
        /// Why.
        source: IgnoreError,
    },
}

impl Rule {
    /// The rule in an object's annotation, if there is one.
    pub fn of(object: &ObjectReference, body: &Value) -> Result<Option<Self>, AnnotationError> {
        let Some(text) = Annotations::of(body).get(ANNOTATION) else {
            return Ok(None);
        };
        let mut rule = RuleText {
            group: object.kind.group.clone(),
            kind: object.kind.kind.clone(),
            ..RuleText::default()
        };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.as_bytes().first() {
                Some(b'/') => rule.json_pointers.push(line.to_owned()),
                Some(b'.') => rule.jq_path_expressions.push(line.to_owned()),
                _ => {
                    return Err(AnnotationError::Form {
                        object: Box::new(object.clone()),
                        line: crate::annotations::shortened(line, 80),
                    });
                }
            }
        }
        let rule = Self::try_from(rule).map_err(|source| AnnotationError::Rule {
            object: Box::new(object.clone()),
            source,
        })?;
        Ok(Some(rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::chain;
    use crate::ignore::strip;
    use crate::kind::GroupVersionKind;
    use serde_json::json;

    fn check(text: &str, expected: Result<Value, &str>) {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let object = ObjectReference::new(kind, Some("n".into()), "c");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {ANNOTATION: text}},
            "data": {"a": "1", "b.c": "2", "d": "3"},
        });
        let stripped = Rule::of(&object, &body)
            .map(|rule| {
                let rules: Vec<Rule> = rule.into_iter().collect();
                strip(&object, &body, &rules, None).object["data"].clone()
            })
            .map_err(|error| chain(&error));
        assert_eq!(stripped, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn each_line_names_fields() {
        check("/data/a", Ok(json!({"b.c": "2", "d": "3"})));
        check("  /data/a\n\n.data[\"b.c\"]\n", Ok(json!({"d": "3"})));
        check("/spec/absent", Ok(json!({"a": "1", "b.c": "2", "d": "3"})));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        check(
            "/data/a, data.b",
            Ok(json!({"a": "1", "b.c": "2", "d": "3"})),
        );
        check(
            "data.b",
            Err(
                "ConfigMap n/c: annotation reeve.dev/ignore: `data.b` is neither a JSON Pointer \
                 such as `/spec/replicas` nor a jq path expression such as `.spec.replicas`; \
                 write one a line",
            ),
        );
        check(
            "/metadata/name",
            Err(
                "ConfigMap n/c: annotation reeve.dev/ignore: ignore rule for ConfigMap: \
                 `/metadata/name` identifies the object and cannot be ignored",
            ),
        );
        check(
            "\n",
            Err(
                "ConfigMap n/c: annotation reeve.dev/ignore: ignore rule for ConfigMap: nothing \
                 is ignored; give jsonPointers, jqPathExpressions or managedFieldsManagers",
            ),
        );
    }
}

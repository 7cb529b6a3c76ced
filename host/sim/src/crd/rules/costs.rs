//! What the rules of a schema may cost together, and the limits of that.

use serde_json::Value;

use crate::crd::expression::whole;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::text;

/// What one rule may cost.
const LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const LIMIT_OF_ALL: u64 = 100_000_000;
/// How many of the rules are named when all cost too much together.
const NAMED: usize = 4;

/// What the rules of a schema cost so far.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    /// The dearest rules, and what is said of them if all cost too much.
    dearest: Vec<(u64, FieldError)>,
    /// Whether a single rule may cost as much as it likes: it is not new.
    is_old: bool,
}

impl Costs {
    /// None yet, of rules that are checked for themselves as well, or not if they are old.
    pub(super) fn new(is_old: bool) -> Self {
        Costs {
            is_old,
            ..Costs::default()
        }
    }

    /// Counts an expression, and says so where it costs too much alone.
    pub(super) fn count(&mut self, path: &Path<'_>, what: &str, cost: u64, errors: &mut Errors) {
        if cost > LIMIT && !self.is_old {
            errors.push(FieldError::forbidden(path, beyond(what, cost, LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost < LIMIT_OF_ALL / 100 {
            return;
        }
        let why = "contributed to estimated rule cost total exceeding cost limit for entire \
                   OpenAPIv3 schema";
        self.dearest.push((cost, FieldError::forbidden(path, why)));
        self.dearest
            .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.dearest.truncate(NAMED);
    }

    /// Says so where all together cost too much.
    pub(super) fn judge(self, path: &Path<'_>, errors: &mut Errors) {
        if self.total <= LIMIT_OF_ALL {
            return;
        }
        errors.extend(self.dearest.into_iter().map(|(_, error)| error));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let why = beyond(what, self.total, LIMIT_OF_ALL);
        errors.push(FieldError::forbidden(path, why));
    }
}

fn beyond(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// How often at most the values right below a schema are there in one of its own; none
/// where there is no limit.
pub(super) fn most_below(schema: &Value) -> Option<u64> {
    let limit = |field: &str| whole(schema, field).map(|most| most.max(0).cast_unsigned());
    let has_values = schema
        .get("additionalProperties")
        .is_some_and(|values| !values.is_null());
    match text(schema, "type") {
        "object" if has_values => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::rules::validate_schema;

    /// What is said of a list of so many texts with these rules, without what all such
    /// messages end with.
    fn told(items: u64, rules: &Value, is_old: bool) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"l": {
            "type": "array",
            "maxItems": items,
            "items": {
                "type": "string", "maxLength": 10, "x-kubernetes-validations": rules,
            },
        }}});
        let errors = validate_schema(&Path::new("s"), &schema, is_old);
        let told = errors.iter().map(ToString::to_string);
        let told = told.map(|told| told.split(" (try").next().unwrap().to_owned());
        told.map(|told| told.replace("s.properties[l].items.x-kubernetes-validations", "x"))
            .collect()
    }

    #[test]
    fn a_rule_may_cost_so_much_and_no_more() {
        let rules = json!([{"rule": "self == 'a'"}]);
        assert!(told(5_000_000, &rules, false).is_empty());
        assert_eq!(
            told(5_000_001, &rules, false),
            ["x[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.000000x"]
        );
        assert!(told(5_000_001, &rules, true).is_empty());
    }

    #[test]
    fn costs_are_told_before_what_else_is_wrong() {
        let rules = json!([
            {"rule": "self == oldSelf"},
            {"rule": "self == 'a'", "messageExpression": "self + 1"},
            {"rule": "self == 1", "messageExpression": "self + 1"},
        ]);
        let found = told(9_000_000, &rules, false);
        let begin = |(index, start): (usize, &str)| found[index].starts_with(start);
        assert_eq!(found.len(), 5, "{found:#?}");
        let starts = [
            "x[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 5.4x",
            "x[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used",
            "x[1].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.8x",
            "x[1].messageExpression: Invalid value: ",
            "x[2].rule: Invalid value: ",
        ];
        assert!(starts.into_iter().enumerate().all(begin), "{found:#?}");
    }

    #[test]
    fn the_dearest_rules_are_named_where_all_cost_too_much() {
        let rule = json!({"rule": "self == 'a' && self == 'b' && self == 'c' && self == 'd'"});
        let rules = |count: usize| Value::from(vec![rule.clone(); count]);
        assert!(told(1_000_000, &rules(12), false).is_empty());
        let found = told(1_000_000, &rules(13), true);
        let contributed = "Forbidden: contributed to estimated rule cost total exceeding cost \
                           limit for entire OpenAPIv3 schema";
        let total = "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
                     OpenAPIv3 schema exceeds budget by factor of 1.040000x";
        let mut expected: Vec<String> = (0..NAMED)
            .map(|index| format!("x[{index}].rule: {contributed}"))
            .collect();
        expected.push(total.to_owned());
        assert_eq!(found, expected);
    }

    #[test]
    fn factors_are_told_as_far_as_they_matter() {
        for (cost, factor) in [
            (10_000_001, "1.000000x"),
            (14_999_999, "1.500000x"),
            (15_000_000, "1.5x"),
            (1_000_000_000, "100.0x"),
            (1_000_000_001, "more than 100x"),
        ] {
            let told = beyond("cost", cost, LIMIT);
            assert!(
                told.starts_with(&format!("cost exceeds budget by factor of {factor} (")),
                "{told}"
            );
        }
    }
}

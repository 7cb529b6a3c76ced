//! What the server answers for the same schema and objects.

use serde_json::{Value, json};

use super::*;

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked \
    because the object was invalid; correct the existing errors to complete validation";

fn schema() -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "required": ["s"],
        "x-kubernetes-validations": [
            {"rule": "!has(self.replicas) || self.replicas >= 0"},
            {"rule": "!has(self.replicas) || self.replicas < 100", "message": "too many"},
            {"rule": "!has(self.min) || !has(self.replicas) || self.min <= self.replicas",
             "messageExpression": "'min over ' + 'replicas'", "fieldPath": ".min",
             "reason": "FieldValueForbidden"},
            {"rule": "!has(oldSelf.imm) || (has(self.imm) && self.imm == oldSelf.imm)",
             "message": "imm is immutable"},
        ],
        "properties": {
            "s": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^a"},
            "e": {"type": "string", "enum": ["A", "B"]},
            "replicas": {"type": "integer"},
            "min": {"type": "integer"},
            "imm": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
            "num": {"type": "number", "minimum": 1, "maximum": 10, "multipleOf": 0.5},
            "xm": {"type": "integer", "minimum": 1, "exclusiveMinimum": true,
                   "maximum": 5, "exclusiveMaximum": true},
            "when": {"type": "string", "format": "date-time"},
            "i32": {"type": "integer", "format": "int32"},
            "ios": {"x-kubernetes-int-or-string": true},
            "map": {"type": "object", "additionalProperties": {"type": "integer"},
                    "maxProperties": 2},
            "set": {"type": "array", "items": {"type": "string"},
                    "x-kubernetes-list-type": "set", "maxItems": 3},
            "lm": {"type": "array", "minItems": 1, "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["k"],
                   "items": {"type": "object", "required": ["k"],
                     "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v",
                       "message": "v may not shrink"}],
                     "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
            "obj": {"type": "object", "properties": {"a": {"type": "string"},
                    "nn": {"type": "object"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["nn"]}]},
            "not1": {"type": "string", "not": {"enum": ["zz"]}},
            "any1": {"type": "object",
                     "properties": {"x": {"type": "integer"}, "z": {"type": "integer"}},
                     "anyOf": [{"required": ["x"]}, {"required": ["z"]}]},
            "all1": {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 6}]},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
        },
    }}}))
    .unwrap()
}

#[track_caller]
fn check_change(spec: Value, old: Option<Value>, expected: &[&str]) {
    let mut errors = Errors::new();
    let old = old.map(|old| json!({ "spec": old }));
    schema().validate(&json!({ "spec": spec }), old.as_ref(), &mut errors);
    let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{spec}");
}

#[track_caller]
fn check(spec: Value, expected: &[&str]) {
    check_change(spec, None, expected);
}

#[test]
fn texts() {
    check(json!({"s": "aa"}), &[]);
    check(json!({}), &["spec.s: Required value", UNCHECKED]);
    check(
        json!({"s": "b"}),
        &["spec.s: Invalid value: \"b\": spec.s in body should be at least 2 chars long"],
    );
    check(
        json!({"s": "aaaaaaaaa"}),
        &["spec.s: Too long: may not be more than 5 bytes", UNCHECKED],
    );
    check(
        json!({"s": "aa", "e": "C"}),
        &[
            "spec.e: Unsupported value: \"C\": supported values: \"A\", \"B\"",
            UNCHECKED,
        ],
    );
    check(
        json!({"s": "aa", "when": "yesterday"}),
        &[
            "spec.when: Invalid value: \"yesterday\": spec.when in body must be of type \
             date-time: \"yesterday\"",
            UNCHECKED,
        ],
    );
}

#[test]
fn types() {
    check(
        json!({"s": 5}),
        &[
            "spec.s: Invalid value: \"integer\": spec.s in body must be of type string: \
             \"integer\"",
            UNCHECKED,
        ],
    );
    check(
        json!({"s": "aa", "ios": true}),
        &[
            "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of type \
             integer,string: \"boolean\"",
            UNCHECKED,
        ],
    );
    check(json!({"s": "aa", "ios": "5"}), &[]);
    check(json!({"s": "aa", "ios": 5}), &[]);
    check(
        json!("x"),
        &[
            "spec: Invalid value: \"string\": spec in body must be of type object: \"string\"",
            UNCHECKED,
        ],
    );
}

#[test]
fn numbers() {
    check(
        json!({"s": "aa", "num": 0.5}),
        &["spec.num: Invalid value: 0.5: spec.num in body should be greater than or equal to 1"],
    );
    check(
        json!({"s": "aa", "num": 1.3}),
        &["spec.num: Invalid value: 1.3: spec.num in body should be a multiple of 0.5"],
    );
    check(
        json!({"s": "aa", "xm": 1}),
        &["spec.xm: Invalid value: 1: spec.xm in body should be greater than 1"],
    );
    check(
        json!({"s": "aa", "xm": 5}),
        &["spec.xm: Invalid value: 5: spec.xm in body should be less than 5"],
    );
    check(
        json!({"s": "aa", "i32": 99_999_999_999_i64}),
        &[
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 \
             in spec.i32",
        ],
    );
}

#[test]
fn lists_and_maps() {
    check(
        json!({"s": "aa", "map": {"a": 1, "b": 1, "c": 2}}),
        &[
            "spec.map: Too many: 3: must have at most 2 items",
            UNCHECKED,
        ],
    );
    check(
        json!({"s": "aa", "map": {"a": "x"}}),
        &[
            "spec.map.a: Invalid value: \"string\": spec.map.a in body must be of type integer: \
             \"string\"",
            UNCHECKED,
        ],
    );
    check(
        json!({"s": "aa", "set": ["a", "a"]}),
        &["spec.set[1]: Duplicate value: \"a\""],
    );
    check(
        json!({"s": "aa", "lm": []}),
        &["spec.lm: Invalid value: 0: spec.lm in body should have at least 1 items"],
    );
    check(
        json!({"s": "aa", "lm": [{"k": "a", "v": 1}, {"k": "a", "v": 2}]}),
        &["spec.lm[1]: Duplicate value: {\"k\":\"a\"}"],
    );
}

#[test]
fn junctors() {
    check(
        json!({"s": "aa", "obj": {"a": "x", "nn": {}}}),
        &[
            "<nil>: Invalid value: \"\": \"spec.obj\" must validate one and only one schema \
             (oneOf). Found 2 valid alternatives",
        ],
    );
    check(
        json!({"s": "aa", "not1": "zz"}),
        &["<nil>: Invalid value: \"\": \"spec.not1\" must not validate the schema (not)"],
    );
    check(
        json!({"s": "aa", "any1": {}}),
        &[
            "<nil>: Invalid value: \"\": \"spec.any1\" must validate at least one schema (anyOf)",
            "spec.any1.x: Required value",
            UNCHECKED,
        ],
    );
    check(
        json!({"s": "aa", "all1": 7}),
        &[
            "spec.all1: Invalid value: 7: spec.all1 in body should be less than or equal to 6",
            "<nil>: Invalid value: \"\": \"spec.all1\" must validate all the schemas (allOf)",
        ],
    );
}

#[test]
fn embedded_resources() {
    check(
        json!({"s": "aa", "emb": {"a": 1}}),
        &[
            "spec.emb.apiVersion: Required value",
            "spec.emb.kind: Required value",
            UNCHECKED,
        ],
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "B@D"}});
    check(json!({"s": "aa", "emb": pod}), &[]);
}

#[test]
fn rules() {
    check(
        json!({"s": "aa", "replicas": -1}),
        &["spec: Invalid value: failed rule: !has(self.replicas) || self.replicas >= 0"],
    );
    check(
        json!({"s": "aa", "replicas": 101}),
        &["spec: Invalid value: too many"],
    );
    check(
        json!({"s": "aa", "replicas": 1, "min": 2}),
        &["spec.min: Forbidden: min over replicas"],
    );
    check(
        json!({"s": "aa", "imm": "bad"}),
        &["spec.imm: Invalid value: \"bad\": failed rule: self != 'bad'"],
    );
    check_change(
        json!({"s": "aa", "imm": "b"}),
        Some(json!({"s": "aa", "imm": "a"})),
        &["spec: Invalid value: imm is immutable"],
    );
    check_change(
        json!({"s": "aa", "lm": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]}),
        Some(json!({"s": "aa", "lm": [{"k": "a", "v": 2}, {"k": "b", "v": 1}]})),
        &["spec.lm[1]: Invalid value: v may not shrink"],
    );
}

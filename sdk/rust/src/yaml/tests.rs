//! What is read of streams, and what is said of those that cannot be.

use serde_json::json;

use super::documents as parse;

#[test]
fn documents_are_read_as_kubectl_reads_them() {
    let text = "# Flux\n---\n---\na: 1\nb: [x, 'y', {c: null}]\n...\n---\n- |\n  two\n  lines\n- >-\n  one\n  line\n---\n";
    assert_eq!(
        parse(text).unwrap(),
        [
            json!({"a": 1, "b": ["x", "y", {"c": null}]}),
            json!(["two\nlines\n", "one line"]),
        ]
    );
    assert!(parse("").unwrap().is_empty());
    assert_eq!(
        parse("{\"a\": [1, \"x\"]}").unwrap(),
        [json!({"a": [1, "x"]})]
    );
}

#[test]
fn there_may_be_any_number_of_comments() {
    let text = format!(
        "a:\n{}  1\nb: # none\n  # at all\n  - 2\n",
        "  # more\n".repeat(10_000)
    );
    assert_eq!(parse(&text).unwrap(), [json!({"a": 1, "b": [2]})]);
}

#[test]
fn what_has_no_quotes_is_what_it_looks_like() {
    for (text, expected) in [
        ("~", json!(null)),
        ("null", json!(null)),
        ("NULL", json!(null)),
        ("true", json!(true)),
        ("Yes", json!(true)),
        ("on", json!(true)),
        ("OFF", json!(false)),
        ("n", json!(false)),
        ("nO", json!("nO")),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("0644", json!(420)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("-0x10", json!(-16)),
        ("089", json!(89)),
        ("+7", json!(7)),
        ("-12", json!(-12)),
        ("18446744073709551615", json!(u64::MAX)),
        ("1.5", json!(1.5)),
        ("0+7", json!("0+7")),
        ("0x+5", json!("0x+5")),
        ("00", json!(0)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1.2.3", json!("1.2.3")),
        ("v2.9.4", json!("v2.9.4")),
        ("100m", json!("100m")),
        ("1_000", json!("1_000")),
        ("", json!(null)),
        (".", json!(".")),
        ("+", json!("+")),
        (".inf", json!(".inf")),
        ("0.0.0.0/0", json!("0.0.0.0/0")),
        ("2026-01-01", json!("2026-01-01")),
        ("\"1\"", json!("1")),
        ("'true'", json!("true")),
        ("!!str 1", json!("1")),
        ("!!map {a: 1}", json!({"a": 1})),
    ] {
        let found = parse(&format!("a: {text}")).unwrap();
        assert_eq!(found, [json!({"a": expected})], "{text}");
    }
    // Names are texts: definitions have fields such as these.
    let found = parse("y: 1\n8080: 2\n'on': 3\ntrue: 4\n").unwrap();
    assert_eq!(found, [json!({"y": 1, "8080": 2, "on": 3, "true": 4})]);
}

#[test]
fn what_cannot_be_read_is_told_with_its_line() {
    for (text, expected) in [
        ("a: 1\nb: [", "line"),
        (
            "a: 1\nb: 2\na: 3",
            "line 3: \"a\" stands twice in one object",
        ),
        ("a: &x 1\nb: *x", "line 1: anchors and aliases are not read"),
        ("a: &x {b: 1}", "line 1: anchors"),
        ("a: &x [1]", "line 1: anchors"),
        ("a:\n  <<: {b: 1}", "line 2: merge keys are not read"),
        (
            "? [a]\n: b",
            "line 1: expected a text as the name of a field",
        ),
        ("a: !secret b", "line 1: tag !secret is not known"),
        (
            "a: !!int '1'",
            "line 1: tag tag:yaml.org,2002:int is not known",
        ),
        ("a: !!set {b}", "is not known"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse(&deep).is_err());
    let deep = "- ".repeat(100_000);
    assert!(parse(&deep).is_err());
}

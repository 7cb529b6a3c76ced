//! Expressions that people write, and some that nobody should.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {"a/b": "1", "c": "2"}},
        "spec": {"replicas": 3, "template": {"spec": {
            "containers": [
                {"name": "main", "image": "a", "env": [
                    {"name": "HTTP_PROXY", "value": "x"}, {"name": "HOME", "value": "/"}]},
                {"name": "istio-proxy", "image": "b"},
            ],
        }}},
        "webhooks": [{"clientConfig": {"caBundle": "x"}}, {"clientConfig": {}}],
    })
}

fn check(expression: &str, expected: &[&str]) {
    let path = JqPath::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let found = path
        .find(&deployment())
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{expression}");
}

#[test]
fn expressions_name_places() {
    let containers = "/spec/template/spec/containers";
    let at = |rest: &str| format!("{containers}{rest}");
    for (expression, expected) in [
        (".spec.replicas", vec!["/spec/replicas".to_owned()]),
        (".spec.missing", vec!["/spec/missing".to_owned()]),
        (
            ".metadata.annotations[\"a/b\"]",
            vec!["/metadata/annotations/a~1b".to_owned()],
        ),
        (
            ".metadata.annotations.\"a/b\"",
            vec!["/metadata/annotations/a~1b".to_owned()],
        ),
        (
            ".webhooks[].clientConfig.caBundle",
            vec![
                "/webhooks/0/clientConfig/caBundle".to_owned(),
                "/webhooks/1/clientConfig/caBundle".to_owned(),
            ],
        ),
        (".nothing[]?", vec![]),
        (
            ".spec.template.spec.containers[] | select(.name == \"istio-proxy\")",
            vec![at("/1")],
        ),
        (
            ".spec.template.spec.containers[].env[]? | select(.name | test(\"^HTTPS?_\")).value",
            vec![at("/0/env/0/value")],
        ),
        (
            ".spec.template.spec.containers[] | select(.name | startswith(\"istio-\") or . == \"x\")",
            vec![at("/1")],
        ),
        (
            ".spec.template.spec.containers[-1].image",
            vec![at("/1/image")],
        ),
        (
            ".spec.template.spec.containers | last | .image",
            vec![at("/1/image")],
        ),
        (
            ".spec.replicas, .spec.paused",
            vec!["/spec/replicas".into(), "/spec/paused".into()],
        ),
        (
            ".spec | (.min // .replicas)",
            vec!["/spec/replicas".to_owned()],
        ),
        (
            ".. | select(type == \"object\" and has(\"caBundle\")) | .caBundle",
            vec!["/webhooks/0/clientConfig/caBundle".to_owned()],
        ),
        (
            "if .spec.replicas > 2 then .spec.replicas else empty end",
            vec!["/spec/replicas".to_owned()],
        ),
        (
            ".spec.template.spec.containers[] | select(any(.env[]?; .name == \"HOME\")) | .env",
            vec![at("/0/env")],
        ),
        (
            "first(.spec.template.spec.containers[] | select(.image | not | not))",
            vec![at("/0")],
        ),
        (
            ".metadata.annotations | select((keys | length) == 2) | .c",
            vec!["/metadata/annotations/c".to_owned()],
        ),
        (".", vec![String::new()]),
    ] {
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(expression, &expected);
    }
}

#[test]
fn what_is_more_than_naming_places_is_refused() {
    let deep = format!("{}.{}", "(".repeat(400), ")".repeat(400));
    let chain = vec!["."; 200].join("|");
    let long = format!(".{}", "a".repeat(MAX_LENGTH));
    for (expression, expected) in [
        ("", "it is no jq"),
        (".spec[", "it is no jq"),
        ("select()", "it is no jq"),
        ("select", "it is no jq"),
        (
            "def f: f; f",
            "it uses definitions, which is not offered for naming places",
        ),
        (
            "reduce .[] as $x (0; .)",
            "it uses reduce, which is not offered for naming places",
        ),
        (
            ".a as $x | .b",
            "it uses variables, which is not offered for naming places",
        ),
        (
            "$ENV",
            "it uses variables, which is not offered for naming places",
        ),
        (
            ".a = 1",
            "it uses assignment, which is not offered for naming places",
        ),
        (
            "del(.a)",
            "it uses the function del, which is not offered for naming places",
        ),
        (
            "range(9)",
            "it uses the function range, which is not offered for naming places",
        ),
        (
            "repeat(.)",
            "it uses the function repeat, which is not offered for naming places",
        ),
        (
            "env",
            "it uses the function env, which is not offered for naming places",
        ),
        (
            "main_expression",
            "it uses the function main_expression, which is not offered for naming places",
        ),
        (
            ".a + .b",
            "it uses arithmetic, which is not offered for naming places",
        ),
        (
            "-.a",
            "it uses arithmetic, which is not offered for naming places",
        ),
        (
            "\"\\(.a)\"",
            "it uses text with an expression in it, which is not offered for naming places",
        ),
        (
            "{a: .b}",
            "it uses making objects, which is not offered for naming places",
        ),
        (
            ".a[1:2]",
            "it uses parts of lists, which is not offered for naming places",
        ),
        (
            "label $x | break $x",
            "it uses labels, which is not offered for naming places",
        ),
        (
            &chain,
            "it is too deep or too large; at most 24 parts in each other and 120 in all are accepted",
        ),
        (&long, "it has 1025 bytes; at most 1024 are accepted"),
    ] {
        let error = JqPath::parse(expression).unwrap_err();
        assert_eq!(error.to_string(), expected, "{expression}");
    }
    // Brackets alone make no parts: what is in them counts.
    assert_eq!(
        JqPath::parse(&deep),
        Ok(JqPath {
            source: deep.clone()
        })
    );
}

#[test]
fn what_does_not_fit_an_object_is_told() {
    for (expression, expected) in [
        (".missing[]", "cannot use null as iterable"),
        (".spec[]", ""),
        (".spec.replicas | test(\"x\")", "Invalid path"),
        (
            "select(.spec.replicas | test(\"x\"))",
            "only texts can be tested",
        ),
        ("select(.metadata.name | test(\"(\"))", "`(` is no pattern"),
        ("1", "Invalid path"),
    ] {
        let path = JqPath::parse(expression).unwrap();
        let found = path.find(&deployment());
        if expected.is_empty() {
            assert!(found.is_ok(), "{expression}");
            continue;
        }
        let error = found.unwrap_err().to_string();
        assert!(
            error.to_lowercase().contains(&expected.to_lowercase()),
            "{expression}: {error}"
        );
    }
}

#[test]
fn no_expression_runs_for_ever() {
    let object = json!({"items": vec![json!({"a": [1, 2, 3]}); 200]});
    let doubling = vec!["(.,.)"; 40].join("|");
    let caught = vec!["(.,.)?"; 30].join("|");
    for expression in [
        ".. | select(any(..; . == 9)) | select(any(..; . == 8))",
        "(.items[], .items[]) | select([.., ..] | any(.[]; . == [..]))",
        ".items[.items | length] | .. | select(any(..; any(..; any(..; . == 7))))",
        "[.., ..] | select(all(.[]; any(..; . == 4)))",
        &doubling,
        &caught,
    ] {
        if let Ok(path) = JqPath::parse(expression) {
            let _ = path.find(&object);
        }
    }
    let costly = JqPath::parse(&vec!["(.,.)"; 20].join("|")).unwrap();
    assert_eq!(costly.find(&object), Err(Misfit::TooCostly));
    let caught = JqPath::parse(&vec!["(.,.)?"; 18].join("|")).unwrap();
    assert_eq!(caught.find(&object), Err(Misfit::TooCostly));
}

#[test]
fn rules_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<JqPath>();
    shared::<crate::ignore::Rule>();
}

proptest! {
    #[test]
    fn no_text_ends_the_program(words in prop::collection::vec(prop::sample::select(vec![
        ".", "..", ".a", ".spec", "[]", "[", "]", "(", ")", "|", ",", "//", "?", "select(", "not",
        "==", "<", "and", "or", "\"x\"", "\"", "\\", "1", "-1", "if", "then", "else", "end", "try",
        "first(", "any(", "all(", "has(", "test(", "map(", "keys", "length", "empty", ";", "null",
        "inside(", "in(", "to_entries", "[.[]]", "-", "1e999", "0.1", "{", "}", "$x", " as ",
    ]), 0..16)) {
        let text = words.join(" ");
        if let Ok(path) = JqPath::parse(&text) {
            let _ = path.find(&deployment());
        }
    }
}

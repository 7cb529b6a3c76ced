//! What the real server says of the same expressions.

use super::*;

fn environment() -> Environment {
    let item = Type::object(
        "self.items.@elem",
        [("name", Type::Text), ("port", Type::Int)],
    );
    let me = Type::object(
        "self",
        [
            ("text", Type::Text),
            ("number", Type::Int),
            ("ratio", Type::Double),
            ("flag", Type::Bool),
            ("when", Type::Timestamp),
            ("long", Type::Duration),
            ("any", Type::Dyn),
            ("texts", Type::list(Type::Text)),
            ("labels", Type::map(Type::Text)),
            ("items", Type::list(item)),
        ],
    );
    Environment::default()
        .with("self", me.clone())
        .with("old", Type::optional(me))
        .with(
            "authorizer",
            Type::Opaque("kubernetes.authorization.Authorizer"),
        )
        .with(
            "authorizer.requestResource",
            Type::Opaque("kubernetes.authorization.ResourceCheck"),
        )
}

fn checked(text: &str) -> Result<String, String> {
    let expression = parse(text)?;
    check(&expression, text, &environment()).map(|ty| ty.to_string())
}

#[test]
fn expressions_have_types() {
    for (text, expected) in [
        ("self.number > 1", "bool"),
        ("self.number > 1.5", "bool"),
        ("self.number + 1", "int"),
        ("self.ratio * 2.0", "double"),
        ("self.text + 'x'", "string"),
        ("self.when + self.long", "timestamp"),
        ("self.when - self.when", "duration"),
        ("self.texts[0]", "string"),
        ("self.labels['a']", "string"),
        ("self.labels.a", "string"),
        ("self.any.what.ever", "dyn"),
        ("self.any + 1", "int"),
        ("self.any == 'x'", "bool"),
        ("self.items.all(i, i.port > 0)", "bool"),
        ("self.items.exists_one(i, i.name == 'a')", "bool"),
        ("self.items.map(i, i.name)", "list(string)"),
        (
            "self.items.filter(i, i.port > 0).map(i, i.port).sum()",
            "int",
        ),
        ("self.items.map(i, i.port > 1, i.name)[0]", "string"),
        ("self.labels.all(k, k.startsWith('a'))", "bool"),
        ("has(self.text) ? self.text : ''", "string"),
        ("self.?text", "optional_type(string)"),
        ("self.?text.orValue('')", "string"),
        ("self.?items[?0].?name.orValue('')", "string"),
        ("old.hasValue() && old.value().number < self.number", "bool"),
        ("old.number.orValue(1)", "int"),
        ("old.orValue(self).text", "string"),
        ("optional.of(1).or(optional.none())", "optional_type(int)"),
        ("self.text in ['a', 'b']", "bool"),
        ("self.text in self.labels", "bool"),
        ("type(self.any) == string", "bool"),
        ("type(self.number) == int || self.when == null", "bool"),
        ("size(self.items) == self.items.size()", "bool"),
        (
            "quantity('1').add(quantity('2')).isLessThan(quantity('3'))",
            "bool",
        ),
        ("sets.contains(self.texts, ['a'])", "bool"),
        ("self.texts.isSorted()", "bool"),
        ("[1, 2].map(n, [n])", "list(list(int))"),
        ("[]", "list(dyn)"),
        ("{'a': 1}", "map(string, int)"),
        ("'%s'.format([self.number])", "string"),
        ("authorizer.requestResource.check('get').allowed()", "bool"),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "bool",
        ),
        ("self.labels.all(k, v, v != '')", "bool"),
        ("ip(self.text).family() == 4", "bool"),
    ] {
        assert_eq!(checked(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_does_not_go_together_is_shown() {
    for (text, expected) in [
        (
            "self.nothing > 1",
            "ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing > 1\n | ....^",
        ),
        (
            "self.number + 'x' == 'y'",
            "ERROR: <input>:1:13: found no matching overload for '_+_' applied to '(int, string)'\n | self.number + 'x' == 'y'\n | ............^",
        ),
        (
            "self.number == 'x'",
            "ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n | self.number == 'x'\n | ............^",
        ),
        (
            "other > 1",
            "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')\n | other > 1\n | ^",
        ),
        (
            "self.text.size",
            "ERROR: <input>:1:10: type 'string' does not support field selection\n | self.text.size\n | .........^",
        ),
        (
            "jsonpatch.escapeKey(self.text)",
            "ERROR: <input>:1:1: undeclared reference to 'jsonpatch' (in container '')\n | jsonpatch.escapeKey(self.text)\n | ^\nERROR: <input>:1:20: undeclared reference to 'escapeKey' (in container '')\n | jsonpatch.escapeKey(self.text)\n | ...................^",
        ),
        (
            "self.text.startswith('a')",
            "ERROR: <input>:1:21: undeclared reference to 'startswith' (in container '')\n | self.text.startswith('a')\n | ....................^",
        ),
        (
            "self.number.startsWith('a')",
            "ERROR: <input>:1:23: found no matching overload for 'startsWith' applied to 'int.(string)'\n | self.number.startsWith('a')\n | ......................^",
        ),
        (
            "self.flag && self.number",
            "ERROR: <input>:1:18: expected type 'bool' but found 'int'\n | self.flag && self.number\n | .................^",
        ),
        (
            "self.number.all(n, n > 1)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.number.all(n, n > 1)\n | ....^",
        ),
        (
            "[1, 'a'].size() == 2",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() == 2\n | ....^",
        ),
        (
            "self.a &&\n  self.b",
            "ERROR: <input>:1:5: undefined field 'a'\n | self.a &&\n | ....^\nERROR: <input>:2:7: undefined field 'b'\n |   self.b\n | ......^",
        ),
        (
            "self.items.all(i, i.nam == 'a')",
            "ERROR: <input>:1:20: undefined field 'nam'\n | self.items.all(i, i.nam == 'a')\n | ...................^",
        ),
        (
            "has(self.nothing)",
            "ERROR: <input>:1:4: undefined field 'nothing'\n | has(self.nothing)\n | ...^",
        ),
        (
            "self.text == null",
            "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(string, null)'\n | self.text == null\n | ..........^",
        ),
    ] {
        assert_eq!(checked(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_shown() {
    let refused = parse("self ++").unwrap_err();
    assert!(
        refused.starts_with("ERROR: <input>:1:7: Syntax error: "),
        "{refused}"
    );
    assert!(refused.contains("\n | self ++\n | ......^"), "{refused}");
}

#[test]
fn deep_expressions_do_not_exhaust_the_stack() {
    let deep = format!("self{}", ".a".repeat(250));
    assert!(checked(&deep).is_err());
    let deep = format!("1{} == 1", " + 1".repeat(240));
    assert_eq!(checked(&deep).as_deref(), Ok("bool"));
    // As a type, each would be twice the one before.
    let wide = format!("[1]{}.size() == 1", ".map(a, {a: a})".repeat(60));
    assert_eq!(checked(&wide).as_deref(), Ok("bool"));
    for hostile in [
        format!("self{}", ".a".repeat(40_000)),
        format!("1{}", "+1".repeat(40_000)),
        "[".repeat(90_000),
        "(".repeat(90_000),
        "!".repeat(90_000),
    ] {
        assert!(parse(&hostile).is_err());
    }
}

/// Each of these types is made of the next one twice. Written out, they would take more
/// memory than there is.
#[test]
fn types_that_double_and_double_are_not_written_out() {
    const MANY: usize = 40;
    let pairs = (1..MANY).map(|n| format!("a{} == {{a{n}: a{n}}}", n - 1));
    let pairs: Vec<String> = pairs.collect();
    let backwards: Vec<String> = pairs.iter().rev().cloned().collect();
    for conditions in [pairs, backwards] {
        let inner = conditions.join(" && ");
        let rule = (0..MANY)
            .rev()
            .fold(inner, |rule, n| format!("[[][0]].all(a{n}, {rule})"));
        match checked(&rule) {
            Ok(ty) => assert_eq!(ty, "bool"),
            // Where it was too much to look into.
            Err(error) => assert!(error.contains("no matching overload"), "{error}"),
        }
    }
}

//! Every function that rules may call is called here.

use kube_cel::cel::{Context, Value};

use super::super::budget::{HELD, hold};
use super::super::{
    Budget, Environment, Exceeded, Type, check, functions, is_deep, make_ready, on_a_large_stack,
    parse,
};
use super::{context, has, type_name};

/// Checks an expression and evaluates it.
fn evaluated(text: &str) -> Result<(Type, Value), String> {
    evaluated_within(text, HELD)
}

/// As [`evaluated`], with room for so many values in others.
fn evaluated_within(text: &str, room: usize) -> Result<(Type, Value), String> {
    let mut expression = parse(text)?;
    // Those that make objects know all functions.
    let environment = Environment::default().making_objects();
    let ty = check(&expression, text, &environment)?;
    make_ready(&mut expression);
    let made = on_a_large_stack(|| {
        let context = context();
        let context = Context::new_inner_scope(&context);
        let paid = Budget::of_object().pay(|| {
            hold(HELD - room);
            Value::resolve(&expression, &context)
        });
        let made = paid.map_err(|why| format!("{why:?}"))?;
        made.map_err(|error| error.to_string())
    });
    Ok((ty, made.unwrap()?))
}

#[track_caller]
fn holds(text: &str) {
    match evaluated(text) {
        Ok((_, Value::Bool(true))) => {}
        other => panic!("{text}: {other:?}"),
    }
}

/// A value of a type, as an argument of a function.
fn sample(function: &str, ty: &Type) -> String {
    let text = match function {
        "bool" => "true",
        "double" | "uint" | "int" | "quantity" | "isQuantity" => "1",
        "duration" => "1h",
        "timestamp" => "2020-01-01T00:00:00Z",
        "url" | "isURL" => "http://a:80/p?q=1",
        "ip" | "isIP" | "ip.isCanonical" | "containsIP" => "10.0.0.1",
        "cidr" | "isCIDR" | "containsCIDR" => "10.0.0.0/8",
        "semver" | "isSemver" => "1.2.3",
        "format.named" => "dns1123Label",
        name if name.starts_with("get") => "+01:00",
        _ => "a",
    };
    match ty {
        Type::Text => format!("'{text}'"),
        Type::Bool => "true".to_owned(),
        Type::Int | Type::Variable(0) => "1".to_owned(),
        Type::Uint => "1u".to_owned(),
        Type::Double => "1.5".to_owned(),
        Type::Bytes => "b'a'".to_owned(),
        Type::Timestamp => "timestamp('2020-01-01T00:00:00Z')".to_owned(),
        Type::Duration => "duration('1h')".to_owned(),
        Type::Variable(_) => "'a'".to_owned(),
        Type::List(_) if function == "format" => "[dyn('a')]".to_owned(),
        Type::List(item) if **item == Type::Dyn => "[[1], [2]]".to_owned(),
        Type::List(item) => format!("[{}]", sample(function, item)),
        Type::Map(key, value) => {
            format!("{{{}: {}}}", sample(function, key), sample(function, value))
        }
        Type::Optional(value) => format!("optional.of({})", sample(function, value)),
        Type::Opaque("kubernetes.URL") => "url('http://a')".to_owned(),
        Type::Opaque("kubernetes.Quantity") => "quantity('1')".to_owned(),
        Type::Opaque("net.IP") => "ip('10.0.0.1')".to_owned(),
        Type::Opaque("net.CIDR") => "cidr('10.0.0.0/8')".to_owned(),
        Type::Opaque("kubernetes.Semver") => "semver('1.2.3')".to_owned(),
        Type::Opaque("kubernetes.NamedFormat") => "format.dns1123Label()".to_owned(),
        other => panic!("no value of type {other}"),
    }
}

#[test]
fn every_function_can_be_called() {
    let mut wrong = Vec::new();
    let mut called = 0;
    for name in functions::names() {
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.contains('@') {
            continue;
        }
        for overload in functions::named(name).unwrap() {
            let mut arguments: Vec<String> = Vec::new();
            let opaque =
                |ty: &Type| matches!(ty, Type::Opaque(name) if name.contains("authorization"));
            // No number is a duration, whatever is declared.
            let is_refused = name == "duration" && overload.arguments == [Type::Int];
            if is_refused || overload.arguments.iter().any(opaque) {
                continue;
            }
            for (index, ty) in overload.arguments.iter().enumerate() {
                arguments.push(match (name, index, ty) {
                    ("format", 0, _) => "'%s'".to_owned(),
                    ("substring", 2, _) => "1".to_owned(),
                    ("substring" | "charAt" | "slice", 1, _) => "0".to_owned(),
                    ("indexOf" | "lastIndexOf", 2, _) => "0".to_owned(),
                    _ => sample(name, ty),
                });
            }
            let text = if overload.is_member {
                let on = arguments.remove(0);
                format!("{on}.{name}({})", arguments.join(", "))
            } else {
                format!("{name}({})", arguments.join(", "))
            };
            called += 1;
            match evaluated(&text) {
                Ok((_, made)) if is_of(&made, &overload.result) => {}
                Ok((_, made)) => wrong.push(format!("{text} is a {}", type_name(&made))),
                Err(why) => wrong.push(format!("{text}: {why}")),
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(called > 150, "{called}");
    assert!(!has("_+_") && !has("or") && has("sets.contains"));
}

fn is_of(value: &Value, ty: &Type) -> bool {
    let wanted = match ty {
        Type::Dyn | Type::Variable(_) => return true,
        Type::Null => "null_type",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Double => "double",
        Type::Text => "string",
        Type::Bytes => "bytes",
        Type::Timestamp => super::TIMESTAMP,
        Type::Duration => super::DURATION,
        Type::List(_) => "list",
        Type::Map(..) => "map",
        Type::Meta(_) => "type",
        Type::Optional(_) | Type::Opaque(_) => return matches!(value, Value::Opaque(_)),
        other => panic!("no values of type {other}"),
    };
    type_name(value) == wanted
}

#[test]
fn functions_mean_what_they_mean_in_go() {
    for text in [
        "type(1) == int && type('a') == string && type(type(1)) == type",
        "type(dyn(1)) == int ? dyn(1) > 0 : false",
        "type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp",
        "dyn('a') == 'a'",
        "size('é') == 1 && '😀'.size() == 1 && 'aé'.size() == 2",
        "'%s-%d'.format(['a', 1]) == 'a-1'",
        "url('http://a:80/p').getHost() == 'a:80'",
        "url('http://a:80/p').getPort() == '80'",
        "url('http://a').getEscapedPath() == ''",
        "url('http://localhost/p').getScheme() == 'http'",
        "url('http://a/?k=b&k=c%20d').getQuery() == {'k': ['b', 'c d']}",
        "string(timestamp('2020-01-01T00:00:00Z')) == '2020-01-01T00:00:00Z'",
        "string(duration('1h')) == '3600s' && string(duration('1500ms')) == '1.5s'",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "int(duration('1s')) == 1000000000",
        "timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
        "string(true) == 'true' && bool('t')",
        "timestamp('2020-01-01T00:00:00Z').getHours('-05:00') == 19",
        "timestamp('2020-01-01T00:00:00+02:00').getHours() == 22",
        "timestamp('1970-01-01T00:00:00Z').getHours('-1:-2147483648') == 4",
        "timestamp(253402300799) == timestamp('9999-12-31T23:59:59Z')",
        "string(timestamp(253402300799)) == '9999-12-31T23:59:59Z'",
        "timestamp('9999-12-31T23:59:59Z').getFullYear() == 9999",
        "timestamp('9999-12-31T23:59:59.5Z').getMilliseconds() == 500",
        "timestamp(253402300799).getFullYear('+01:00') == 10000",
        "timestamp(-62135596800).getFullYear() == 1",
        "int(9223372036854774784.0) == 9223372036854774784",
        "int(-9223372036854774784.0) == -9223372036854774784",
        "'abc'.split('')[0] == 'a' && 'a,b'.split(',', 1) == ['a,b']",
        "format.named('dns1123Subdomain').value().validate('a.b') == optional.none()",
        "format.dns1123Label().validate('A').hasValue()",
        "!format.named('none').hasValue()",
        "!'é'.matches('^\\\\w+$') && 'a1'.matches('^\\\\w+$')",
        "'a1b2'.find('[0-9]') == '1' && 'a1b2'.findAll('[0-9]', 1) == ['1']",
        "'a' in ['a', 'b'] && !(3 in [1, 2]) && 'k' in {'k': 1}",
        "['a'] + ['b'] == ['a', 'b'] && 'a' + 'b' == 'ab' && [1] != [2]",
        "'a' < 'b' && 'b' >= 'b' && 2 > 1",
        "[1, 2, 3].map(x, x * 2).filter(x, x > 2).all(x, x in [4, 6])",
        "[1, 2].exists_one(x, x == 2) && [1, 2].exists(x, x == 1)",
        "[1].first().value() == 1 && !['a'].filter(x, x == 'b').last().hasValue()",
        "has({'a': 1}.a) && (true || 1 / 0 == 1) && !(1 / 0 == 1 && false)",
    ] {
        holds(text);
    }
}

#[test]
fn texts_are_looked_into_before_they_are_used() {
    for (text, why) in [
        ("'a'.matches('(')", "invalid matches argument"),
        ("int(-9223372036854775808.0) < 0", "integer overflow"),
        ("int(9223372036854775808.0) > 0", "integer overflow"),
        (
            "timestamp(253402300800) > timestamp(0)",
            "timestamp overflow",
        ),
        (
            "timestamp(-62135596801) < timestamp(0)",
            "timestamp overflow",
        ),
        (
            "duration('1x') == duration('1h')",
            "invalid duration argument",
        ),
        (
            "timestamp('no') == timestamp(1)",
            "invalid timestamp argument",
        ),
        (
            "['a', 1].size() == 2",
            "expected type 'string' but found 'int'",
        ),
    ] {
        let refused = evaluated(text).unwrap_err();
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

#[test]
fn macros_that_are_written_out_are_evaluated() {
    for text in [
        "[3, 4].all(i, v, v == i + 3)",
        "!{'a': 1}.all(k, v, k == 'a' && v == 2)",
        "[3, 4].exists(i, v, i == 1 && v == 4)",
        "[3, 4].existsOne(i, v, v > 3) && ![3, 4].exists_one(i, v, v > 2)",
        "[3, 4].transformList(i, v, i * 10 + v) == [3, 14]",
        "[3, 4].transformList(i, v, i > 0, v) == [4]",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "{'a': 1, 'b': 2}.transformMap(k, v, k == 'b', v + 1) == {'b': 3}",
        "{'a': 1}.transformMapEntry(k, v, {string(v): k}) == {'1': 'a'}",
        // A variable of one hides that of another around it.
        "[[1], [2]].all(i, v, v.all(i, v, i == 0) && i < 2)",
        "['b', 'a', 'c'].sortBy(x, x) == ['a', 'b', 'c']",
        "[{'n': 2}, {'n': 1}].sortBy(x, x.n)[0].n == 1",
        "[1, 3, 2].sortBy(x, -x) == [3, 2, 1]",
        "optional.of(1).optMap(v, v + 1) == optional.of(2)",
        "optional.of(1).optFlatMap(v, v > 1 ? optional.of(v) : optional.none()) == optional.none()",
        "{'a': 1}[?'b'].optMap(v, v + 1).orValue(7) == 7",
    ] {
        holds(text);
    }
    for (text, expected) in [
        (
            "[1, 1].transformMapEntry(i, v, {v: i}) == {}",
            "insert failed: key 1 already exists",
        ),
        (
            "[1].transformList(i, v, v + 'a') == []",
            "no matching overload",
        ),
        ("[1].all(i, v, w)", "undeclared reference to 'w'"),
        ("[1].all(1, v, v > 0)", "argument must be a simple name"),
        ("[1].all(i, i, i > 0)", "duplicate variable name: i"),
        ("[1].sortBy(1, 1) == []", "argument is not an identifier"),
        ("[1].optMap(v, v) == 1", "no matching overload"),
    ] {
        let refused = evaluated(text).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
    let list = format!("[{}]", vec!["1"; 200].join(", "));
    let dear = format!("{list}.all(i, x, {list}.all(j, y, {list}.all(k, z, x + y + z > 0)))");
    let refused = evaluated(&dear).unwrap_err();
    assert_eq!(refused, format!("{:?}", Exceeded::Call));
}

#[test]
fn what_has_no_order_is_not_sorted() {
    let numbers: Vec<String> = (0..40)
        .map(|number| match number % 7 {
            0 => "0.0 / 0.0".to_owned(),
            _ => format!("{}.0", 100 - number),
        })
        .collect();
    let text = format!("[{}].sortBy(x, x).size() == 40", numbers.join(", "));
    let refused = evaluated(&text).unwrap_err();
    assert!(refused.contains("must be comparable"), "{refused}");
}

#[test]
fn one_optmap_after_another_does_not_double_without_end() {
    let chain = |times| format!("optional.of(1){}", ".optMap(v, v + 1)".repeat(times));
    holds(&format!("{}.value() == 5", chain(4)));
    assert!(evaluated(&format!("{}.value() == 41", chain(40))).is_err());
    let nested = (0..30).fold("1".to_owned(), |inner, _| {
        format!("optional.of(1).optMap(v, {inner}).value()")
    });
    holds(&format!("{nested} == 1"));
}

#[test]
fn deep_expressions_have_a_stack() {
    let sorted = (0..40).fold("1".to_owned(), |inner, _| {
        format!("[1].sortBy(x, {inner})[0]")
    });
    for deep in [
        format!("{sorted} == 1"),
        format!("1{} == 241", " + 1".repeat(240)),
        format!("{}1{} > 0", "(1 + ".repeat(90), ")".repeat(90)),
    ] {
        let mut expression = parse(&deep).unwrap();
        make_ready(&mut expression);
        assert!(is_deep(&expression), "{deep}");
        holds(&deep);
    }
    assert!(!is_deep(&parse("self.a.all(x, x.b > 0)").unwrap()));
}

#[test]
fn loops_are_paid_for() {
    let list = format!("[{}]", vec!["1"; 200].join(", "));
    for text in [
        format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z > 0)))"),
        // Whatever is made of what is not paid for, it comes to an end.
        format!("{list}.all(x, {list}.exists(y, {list}.exists(z, x + y + z < 0)) || true)"),
        format!("{list}.exists(x, {list}.exists(y, {list}.exists(z, x + y + z < 0))) || true"),
        "lists.range(2000000).size() > 1".to_owned(),
        format!("['{}'].all(a, {})", "a".repeat(1_000), doubled(20)),
    ] {
        let refused = evaluated(&text).unwrap_err();
        assert_eq!(refused, format!("{:?}", Exceeded::Call), "{text:.80}");
    }
    holds(&format!("{list}.all(x, {list}.all(y, x + y > 0))"));
}

#[test]
fn values_in_others_take_room() {
    for (text, room) in [
        ("[1, 2] != []", 0),
        ("[[1, 2], [3]] != []", 5),
        ("{'a': [1, 2]} != {}", 3),
        ("[1, 2] + [3] != []", 5),
        ("[[1]].map(x, [x, x]) != []", 11),
        ("[[1]].map(x, x + x)[0].size() == 2", 9),
        ("[optional.of([1])][0].hasValue()", 3),
    ] {
        assert!(evaluated_within(text, room).is_ok(), "{text}");
        if let Some(less) = room.checked_sub(1) {
            let refused = evaluated_within(text, less).unwrap_err();
            assert!(
                refused.ends_with("the values are too large"),
                "{text}: {refused}"
            );
        }
    }
}

#[test]
fn nothing_is_made_that_is_not_known() {
    let mut expression = parse("Object{a: 1} == 1").unwrap();
    make_ready(&mut expression);
    let made = Value::resolve(&expression, &context()).unwrap_err();
    assert_eq!(made.to_string(), "Undeclared reference to 'Object'");
}

/// `a` with as many doublings.
fn doubled(times: usize) -> String {
    let steps = "[s + s].all(s, ".repeat(times);
    let opened = format!("[a].all(s, {steps}s != ''");
    format!("{opened}{}", ")".repeat(times + 1))
}

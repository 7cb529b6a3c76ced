//! Lists that count, and lists that do not.

use reeve_sdk::prelude::*;

use super::{changed, config, entry, list, listing, names, run};

const URL: &str = "https://app.datarobot.com/api/v2/deployments/";

/// A configuration that reads these pages of two.
fn paged(pages: u32) -> Value {
    let mut config = config();
    config["supervisor"]["deployments"] = json!({"pages": pages, "pageSize": 2});
    config
}

fn page(total: &Value, ids: &[&str]) -> Value {
    let entries: Vec<Value> = ids.iter().map(|id| entry(id)).collect();
    json!({"totalCount": total, "data": entries})
}

#[test]
fn pages_are_put_together() {
    let three = json!(3);
    // Each begins with what the one before ends with.
    let cx = listing(&[page(&three, &["c", "a"]), page(&three, &["a", "b"])]);
    assert_eq!(names(&run(&paged(2), cx).unwrap()), ["a", "b", "c"]);
    let two = json!(2);
    let cx = listing(&[page(&two, &["a", "b"]), page(&two, &["b"])]);
    assert_eq!(names(&run(&paged(2), cx).unwrap()), ["a", "b"]);
    let one = json!(1);
    let cx = listing(&[page(&one, &["a"]), page(&one, &[])]);
    assert_eq!(names(&run(&paged(2), cx).unwrap()), ["a"]);
    // One without an id that two pages share is one.
    let nobody = json!({"model": {"id": "m"}, "predictionEnvironment": {"id": "env-1"}});
    let first = json!({"totalCount": 3, "data": [entry("a"), nobody.clone()]});
    let second = json!({"totalCount": 3, "data": [nobody, entry("b")]});
    let cx = listing(&[first, second]);
    assert_eq!(names(&run(&paged(2), cx).unwrap()), ["a", "b"]);
}

#[test]
fn pages_of_different_moments_are_refused() {
    let three = json!(3);
    let old = [page(&three, &["a", "b"]), page(&three, &["b", "c"])];
    // `a` is gone and `d` is new: as many as before.
    let new = [page(&three, &["b", "c"]), page(&three, &["c", "d"])];
    for pages in [
        [old[0].clone(), new[1].clone()],
        [new[0].clone(), old[1].clone()],
        [old[0].clone(), page(&three, &[])],
        [page(&three, &["a"]), old[1].clone()],
    ] {
        let Err(Failure::Retry(text)) = run(&paged(2), listing(&pages)) else {
            panic!("{pages:?}");
        };
        assert!(
            text.contains("does not begin with the deployment"),
            "{text}"
        );
    }
    let unlike = changed("b", &json!({"model": {"id": "m2"}}));
    let second = json!({"totalCount": 3, "data": [unlike, entry("c")]});
    let Err(Failure::Retry(text)) = run(&paged(2), listing(&[old[0].clone(), second])) else {
        panic!("it was taken");
    };
    assert!(text.contains("otherwise before"), "{text}");
    // What cannot be had just now may be of any moment.
    let cx = listing(&old).with_old_source("deployments-1", old[0].to_string(), 60);
    let Err(Failure::Retry(text)) = run(&paged(2), cx) else {
        panic!("it was taken");
    };
    assert!(
        text.starts_with("page 1 of ") && text.contains("at present"),
        "{text}"
    );
}

#[test]
fn the_order_of_a_list_means_nothing() {
    let (one, two) = (entry("a"), changed("b", &json!({"model": {}})));
    let there = run(&config(), listing(&[list(&[one.clone(), two.clone()])]));
    assert_eq!(there, run(&config(), listing(&[list(&[two, one])])));
}

#[test]
fn a_list_that_is_not_whole_is_refused_and_says_why() {
    let of = |total: u64, ids: &[&str]| page(&json!(total), ids);
    let unlike = json!({"totalCount": 1, "data": [entry("a"), changed("a", &json!({"model": {"id": "m2"}}))]});
    for (pages, expected) in [
        (
            vec![of(250, &["a", "b"])],
            "has 250 deployments and 1 page of 2 is read: 31 pages are the most, so have \
             /supervisor/deployments/query ask for fewer, or set a larger pageSize",
        ),
        (
            vec![of(5, &["a", "b"])],
            "has 5 deployments and 1 page of 2 is read: set /supervisor/deployments/pages to 4",
        ),
        (
            vec![of(5, &["a", "b"]), of(5, &["b", "c"])],
            "has 5 deployments and 2 pages of 2 are read: set /supervisor/deployments/pages to 4",
        ),
        (
            vec![of(2, &["a"])],
            "changed while its pages were read: it says that there are 2 deployments, and 1 are \
             in it; if this stays, it gives fewer at once than /supervisor/deployments/pageSize, 2",
        ),
        (
            vec![of(1, &["a", "b"])],
            "changed while its pages were read: it says that there are 1 deployments, and 2",
        ),
        (
            vec![of(2, &["a", "b"]), of(2, &["b", "c"])],
            "changed while its pages were read: it says that there are 2 deployments, and 3",
        ),
        (
            vec![unlike],
            "changed while its pages were read: deployment `a` is in it twice, and not alike",
        ),
        (
            vec![json!({"data": [entry("a")]})],
            "no number of deployments at `/totalCount`; of a list that does not say it, set \
             /supervisor/fields/total to \"\"",
        ),
        (
            vec![page(&json!(null), &["a"])],
            "no number of deployments at `/totalCount`",
        ),
    ] {
        refuses(
            &paged(u32::try_from(pages.len()).unwrap()),
            &pages,
            expected,
        );
    }
    let mut untold = paged(1);
    untold["supervisor"]["fields"] = json!({"total": ""});
    refuses(
        &untold,
        &[page(&json!(null), &["a", "b"])],
        "may have more than 2 deployments, since the last page is full, and 1 page of 2 is \
             read: set /supervisor/deployments/pages to 2",
    );
}

fn refuses(config: &Value, pages: &[Value], expected: &str) {
    let Err(Failure::Retry(text)) = run(config, listing(pages)) else {
        panic!("{expected}");
    };
    assert!(text.starts_with(URL) || text.contains(&format!(" of {URL}: ")));
    assert!(text.contains(expected), "{text}");
}

#[test]
fn pages_that_contradict_each_other_are_named() {
    let cx = listing(&[page(&json!(3), &["a", "b"]), page(&json!(2), &["c"])]);
    assert_eq!(
        run(&paged(2), cx),
        Err(Failure::retry(format!(
            "page 2 of {URL}: changed while its pages were read: a page before it says that \
             there are 3 deployments, and this one 2"
        )))
    );
}

#[test]
fn what_is_no_list_is_named() {
    for (text, expected) in [
        ("", "not JSON: expected a JSON value at byte 0"),
        (r#"{"data": ["#, "/data/0: not JSON"),
        ("[]", "no array of deployments at `/data`"),
        (r#"{"data": {}}"#, "no array of deployments at `/data`"),
        (
            r#"{"data": [], "totalCount": "0"}"#,
            "no number of deployments at `/totalCount`",
        ),
        (
            r#"{"data": [], "totalCount": -1}"#,
            "no number of deployments at `/totalCount`",
        ),
    ] {
        let cx = listing(&[]).with_source("deployments-1", text);
        let Err(Failure::Retry(found)) = run(&config(), cx) else {
            panic!("{text}");
        };
        assert!(found.starts_with(&format!("{URL}: {expected}")), "{found}");
    }
    let cx = listing(&[list(&[])]).with_source("packages", "[]");
    assert_eq!(
        run(&config(), cx),
        Err(Failure::retry(
            "https://packages.example.com/index.json: no JSON object of packages by id"
        ))
    );
}

#[test]
fn without_a_document_nothing_is_known() {
    let missing = |cx: Context| matches!(run(&paged(2), cx), Err(Failure::NotReady(_)));
    assert!(missing(listing(&[])));
    assert!(missing(listing(&[page(&json!(1), &["a"])])));
    let cx = Context::test().with_source("deployments-1", list(&[]).to_string());
    assert!(matches!(run(&config(), cx), Err(Failure::NotReady(_))));
}

#[test]
fn a_document_may_be_the_array_itself() {
    let mut config = config();
    config["supervisor"]["fields"] = json!({"entries": "", "total": ""});
    let cx = listing(&[json!([entry("a")])]);
    assert_eq!(names(&run(&config, cx).unwrap()), ["a"]);
}

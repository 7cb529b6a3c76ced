//! What becomes of a deployment.

use reeve_sdk::prelude::*;

use super::{
    changed, config, deployments, entry, list, listing, made, names, package, problems, run,
    run_for, sha, status,
};

/// The outcome of a list of these.
fn of(entries: &[Value]) -> Outcome {
    run(&config(), listing(&[list(entries)])).unwrap()
}

#[test]
fn a_deployment_becomes_a_model_deployment() {
    let outcome = of(&[entry("64F0_c2")]);
    assert_eq!(
        deployments(&outcome),
        [json!({
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "metadata": {
                "name": "deployment-64f0-c2", "namespace": "models",
                "labels": {"models.reeve.dev/prediction-environment": "env"},
            },
            "spec": {"deploymentId": "64F0_c2", "model": {"id": "m1", "package": package('1')}},
        })]
    );
    assert_eq!(
        status(&outcome),
        Some(json!({"deployments": 1, "unusable": 0}))
    );
    assert_eq!(problems(&outcome), "");
}

#[test]
fn those_of_other_environments_and_those_that_others_look_after_do_not_count() {
    let environment = |value: Value| changed("b", &json!({"predictionEnvironment": value}));
    for other in [
        environment(json!(null)),
        environment(json!({"id": null})),
        environment(json!({"id": "other"})),
        environment(json!({"id": {"id": "env"}})),
        environment(json!({"id": "env", "isManagedByManagementAgent": false})),
        json!(null),
        json!(["env"]),
        json!({"predictionEnvironment": {"id": "other"}}),
    ] {
        let outcome = of(&[entry("a"), other.clone()]);
        assert_eq!(names(&outcome), ["a"], "{other}");
        assert_eq!(problems(&outcome), "");
    }
    for managed in [json!(null), json!(true), json!("false")] {
        let one = environment(json!({"id": "env", "isManagedByManagementAgent": managed}));
        assert_eq!(names(&of(&[one])), ["b"]);
    }
}

#[test]
fn ids_may_be_numbers() {
    let mut one = changed("x", &json!({"predictionEnvironment": {"id": 7}}));
    one["id"] = json!(17);
    let cx = listing(&[list(&[one])]);
    let outcome = run_for("7", &config(), cx).unwrap();
    assert_eq!(deployments(&outcome)[0]["spec"]["deploymentId"], "17");
}

#[test]
fn a_package_comes_of_the_entry_or_else_of_the_index() {
    let mut config = config();
    config["supervisor"]["fields"] = json!({
        "packageUrl": "/p/url", "packageSha256": "/p/sha", "packageSizeBytes": "/p/size",
        "modelFormat": "/format",
    });
    let own = json!({"url": "http://a.example.com:8080/x?y=%20", "sha": sha('F'), "size": 12});
    for (changes, expected) in [
        (
            json!({"p": own, "format": "f"}),
            json!({"id": "m1", "format": "f", "package": {"url": own["url"], "sha256": sha('f'), "sizeBytes": 12}}),
        ),
        (
            json!({"p": null, "format": "f"}),
            json!({"id": "m1", "format": "f", "package": package('1')}),
        ),
        (
            json!({"p": {"url": "", "size": 3}, "modelPackage": {"id": "m2"}}),
            json!({"id": "m1", "package": package('2')}),
        ),
        (
            json!({"modelPackage": {"id": "unknown"}}),
            json!({"id": "m1", "package": package('1')}),
        ),
        (
            json!({"model": {"id": "rich"}}),
            json!({"id": "rich", "format": "g", "package": {"url": "https://a/b", "sha256": sha('a'), "sizeBytes": 5}}),
        ),
    ] {
        let rich = json!({"url": "https://a/b", "sha256": sha('A'), "sizeBytes": 5, "format": "g"});
        let index = json!({"m1": package('1'), "m2": package('2'), "rich": rich});
        let cx = listing(&[list(&[changed("a", &changes)])]);
        let cx = cx.with_source("packages", index.to_string());
        let outcome = run(&config, cx).unwrap();
        assert_eq!(problems(&outcome), "");
        assert_eq!(deployments(&outcome)[0]["spec"]["model"], expected);
    }
}

#[test]
fn what_cannot_be_used_names_the_deployment_the_field_and_what_to_do() {
    let index = "https://packages.example.com/index.json";
    for (id, changes, expected) in [
        (
            "a b",
            json!({}),
            "deployment `a b`: /id: cannot be part of a path".to_owned(),
        ),
        (
            "a.b",
            json!({}),
            "deployment `a.b`: /id: cannot be part of a path".to_owned(),
        ),
        (
            "a-",
            json!({}),
            "deployment `a-`: /id: cannot be part of a path".to_owned(),
        ),
        (
            &"9".repeat(42),
            json!({}),
            "/id: makes no name of a ModelDeployment, which has at most 52 characters".to_owned(),
        ),
        (
            "",
            json!({}),
            "entry 1 of the list: /id is missing; give the deployment an id".to_owned(),
        ),
        (
            "x",
            json!({"id": [1]}),
            "entry 1 of the list: /id is neither a text nor a whole number".to_owned(),
        ),
        (
            "x",
            json!({"status": {}}),
            "deployment `x`: /status: expected the word".to_owned(),
        ),
        (
            "x",
            json!({"model": null}),
            "deployment `x`: /model/id: no id of a model".to_owned(),
        ),
        (
            "x",
            json!({"model": {"id": "a/b"}}),
            "deployment `x`: /model/id: cannot be part of a tag; use at most 115".to_owned(),
        ),
        (
            "x",
            json!({"model": {"id": 1.5}}),
            "deployment `x`: /model/id: cannot be part of a tag".to_owned(),
        ),
        (
            "x",
            json!({"model": {"id": "m9"}, "modelPackage": {"id": "p9"}}),
            format!("deployment `x`: {index} has no package `p9` or `m9`; add it"),
        ),
        (
            "x",
            json!({"model": {"id": "url"}}),
            format!("deployment `x`: url of `url` in {index}: no http or https URL"),
        ),
        (
            "x",
            json!({"model": {"id": "sha"}}),
            format!("deployment `x`: sha256 of `sha` in {index}: expected 64 hexadecimal digits"),
        ),
        (
            "x",
            json!({"model": {"id": "size"}}),
            format!("deployment `x`: sizeBytes of `size` in {index}: expected a whole number"),
        ),
        (
            "x",
            json!({"model": {"id": "format"}}),
            format!("deployment `x`: format of `format` in {index}: expected the name"),
        ),
        (
            "x",
            json!({"model": {"id": "no-object"}}),
            format!("deployment `x`: url of `no-object` in {index}: no http or https URL"),
        ),
    ] {
        let broken = |field: &str, value: Value| {
            let mut one = package('1');
            one[field] = value;
            one
        };
        let index = json!({
            "m1": package('1'),
            "url": broken("url", json!("ftp://a/b")), "sha": broken("sha256", json!("11")),
            "size": broken("sizeBytes", json!(u64::MAX)), "format": broken("format", json!([])),
            "no-object": "text",
        });
        let cx = listing(&[list(&[changed(id, &changes), entry("good")])]);
        let cx = cx.with_source("packages", index.to_string());
        let outcome = run(&config(), cx).unwrap();
        assert_eq!(names(&outcome), ["good"], "{expected}");
        let told = problems(&outcome);
        assert!(told.contains(&expected), "{expected}: {told}");
        assert!(told.ends_with("What there is of them stays as it is."));
        let status = status(&outcome).unwrap();
        assert_eq!(
            (&status["deployments"], &status["unusable"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(status["message"], told);
    }
}

#[test]
fn without_an_index_the_remedy_is_to_have_one() {
    let cx = Context::test().with_source("deployments-1", list(&[entry("a")]).to_string());
    let outcome = run(&json!({}), cx).unwrap();
    assert!(
        problems(&outcome).contains("or /supervisor/packages/url"),
        "{}",
        problems(&outcome)
    );
}

#[test]
fn what_is_there_of_an_unusable_deployment_stays() {
    let mut there = made("a", "a", '7');
    there["spec"]["stopped"] = json!(true);
    there["spec"]["replicas"] = json!(3);
    there["spec"]["model"]["format"] = json!("f");
    there["spec"]["model"]["package"]["sizeBytes"] = json!(5);
    let broken = changed("a", &json!({"model": {"id": "m9"}}));
    let cx = listing(&[list(&[broken])]).with_object(&there);
    let outcome = run(&config(), cx).unwrap();
    let mut kept = there["spec"].clone();
    // That is somebody else's to decide.
    kept.as_object_mut().unwrap().remove("replicas");
    assert_eq!(deployments(&outcome)[0]["spec"], kept);
}

#[test]
fn stopped_ones_need_no_package() {
    let stopped = changed("a", &json!({"status": "archived", "model": {"id": "m9"}}));
    let outcome = run(&config(), listing(&[list(std::slice::from_ref(&stopped))])).unwrap();
    assert_eq!(
        (names(&outcome).len(), problems(&outcome)),
        (0, String::new())
    );
    let cx = listing(&[list(&[stopped])]).with_object(made("a", "a", '7'));
    let outcome = run(&config(), cx).unwrap();
    let mut expected = made("a", "a", '7')["spec"].clone();
    expected["stopped"] = json!(true);
    assert_eq!(deployments(&outcome)[0]["spec"], expected);
    let known = changed("a", &json!({"status": "inactive"}));
    assert_eq!(deployments(&of(&[known]))[0]["spec"]["stopped"], true);
    let serving = changed("a", &json!({"status": "errored"}));
    assert_eq!(deployments(&of(&[serving]))[0]["spec"].get("stopped"), None);
}

#[test]
fn names_and_ids_of_others_are_theirs() {
    let stranger = |name: &str, id: Option<&str>| {
        let mut object = made(name, "x", '7');
        object["metadata"]["ownerReferences"] = json!(null);
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("ownerReferences");
        object["metadata"]["labels"] = json!({"models.reeve.dev/prediction-environment": "env"});
        object["spec"]["deploymentId"] = json!(id);
        object
    };
    for (other, what) in [
        (
            stranger("churn", Some("a")),
            "churn, which was not made for this PredictionEnvironment, has this id",
        ),
        (stranger("a", Some("z")), "has the name that is needed"),
        (stranger("a", None), "has the name that is needed"),
    ] {
        let cx = listing(&[list(&[entry("a"), entry("b")])]).with_object(other);
        let outcome = run(&config(), cx).unwrap();
        assert_eq!(names(&outcome), ["b"]);
        assert!(problems(&outcome).contains(what), "{}", problems(&outcome));
    }
    // Whose owner it is makes it ours, whatever became of its labels; and what another
    // PredictionEnvironment owns is not ours, whatever its labels say.
    let mut unlabelled = made("a", "a", '7');
    unlabelled["metadata"]["labels"] = json!({});
    let cx = listing(&[list(&[entry("a")])]).with_object(unlabelled);
    assert_eq!(problems(&run(&config(), cx).unwrap()), "");
    let mut anothers = made("a", "a", '7');
    anothers["metadata"]["ownerReferences"][0]["uid"] = json!("uid-2");
    let cx = listing(&[list(&[entry("a")])]).with_object(anothers);
    assert_eq!(names(&run(&config(), cx).unwrap()).len(), 0);
}

#[test]
fn of_two_ids_with_one_name_neither_is_made_and_what_is_there_stays() {
    let both = list(&[entry("a-1"), entry("A_1"), entry("b")]);
    let outcome = run(&config(), listing(std::slice::from_ref(&both))).unwrap();
    assert_eq!(names(&outcome), ["b"]);
    let cx = listing(&[both]).with_object(made("a-1", "A_1", '7'));
    let outcome = run(&config(), cx).unwrap();
    assert_eq!(names(&outcome), ["a-1", "b"]);
    assert_eq!(
        deployments(&outcome)[0]["spec"],
        made("a-1", "A_1", '7')["spec"]
    );
    assert_eq!(status(&outcome).unwrap()["unusable"], 2);
}

#[test]
fn what_is_not_listed_any_more_is_withdrawn_unless_an_entry_has_no_id() {
    let there = || {
        let cx = listing(&[]).with_object(made("a", "a", '7'));
        cx.with_object(made("b", "b", '7'))
    };
    let with = |entries: &[Value]| {
        let cx = there().with_source("deployments-1", list(entries).to_string());
        run(&config(), cx).unwrap()
    };
    assert_eq!(names(&with(&[entry("a")])), ["a"]);
    let nameless = changed("", &json!({}));
    let outcome = with(&[entry("a"), nameless]);
    assert_eq!(names(&outcome), ["a", "b"]);
    assert_eq!(deployments(&outcome)[0]["spec"]["model"]["id"], "m1");
    assert_eq!(deployments(&outcome)[1]["spec"]["model"]["id"], "m0");
    // One of another environment says nothing about ours.
    let other = json!({"predictionEnvironment": {"id": "other"}});
    assert_eq!(names(&with(&[entry("a"), other])), ["a"]);
}

#[test]
fn a_list_that_has_lost_all_of_them_has_an_answer_without_any_object() {
    let cx = listing(&[list(&[])]).with_object(made("a", "a", '7'));
    assert_eq!(run(&config(), cx).unwrap(), Outcome::new());
    let none = run(&config(), listing(&[list(&[])])).unwrap();
    assert_eq!(
        status(&none),
        Some(json!({"deployments": 0, "unusable": 0}))
    );
    assert_eq!(none.objects_json().len(), 1);
}

#[test]
fn one_of_ours_whose_environment_cannot_be_read_stays() {
    let there = made("a", "a", '7');
    for odd in [
        json!(null),
        json!({"id": null}),
        json!({"id": {"id": "env"}}),
    ] {
        let one = changed("a", &json!({"predictionEnvironment": odd}));
        let cx = listing(&[list(&[one, entry("b")])]).with_object(&there);
        let outcome = run(&config(), cx).unwrap();
        assert_eq!(names(&outcome), ["a", "b"], "{odd}");
        assert_eq!(deployments(&outcome)[0]["spec"], there["spec"]);
        let told = problems(&outcome);
        assert!(
            told.contains("deployment `a`: /predictionEnvironment/id"),
            "{told}"
        );
        let expected = json!({"deployments": 2, "unusable": 1});
        assert_eq!(status(&outcome).unwrap()["unusable"], expected["unusable"]);
        assert_eq!(
            status(&outcome).unwrap()["deployments"],
            expected["deployments"]
        );
    }
    let elsewhere = changed("a", &json!({"predictionEnvironment": {"id": "other"}}));
    let cx = listing(&[list(&[elsewhere, entry("b")])]).with_object(&there);
    assert_eq!(names(&run(&config(), cx).unwrap()), ["b"]);
}

//! Containers: asked for, made, and whose they are.

use std::cell::RefCell;
use std::rc::Rc;

use reeve_sdk::Actuates;
use reeve_sdk::prelude::*;

use super::*;

const URL: &str = "https://acct.blob.core.windows.net/a-b?restype=container";
const METADATA: &str = "https://acct.blob.core.windows.net/a-b?restype=container&comp=metadata";
const OWNER: &str = "x-ms-meta-kubeflowprofile";

fn config() -> Value {
    let instance = |name: &str, read_only: bool, endpoint: &str| {
        json!({
            "name": name, "classification": "unclassified", "secretRef": "s", "readOnly": read_only,
            "blobEndpoint": endpoint,
        })
    };
    json!({"instances": [
        instance("rw", false, "https://acct.blob.core.windows.net/"),
        instance("ro", true, ""),
        {"name": "by-hand", "classification": "protected-b", "secretRef": "other"},
    ]})
}

fn action() -> Action {
    Action::new("container", "container-rw")
        .input(&json!({"url": "https://acct.blob.core.windows.net/a-b", "profile": "a--b"}))
}

/// Requests that were sent, and an answer to each.
fn carry_out(verb: Verb, answers: Vec<Response>) -> (Vec<String>, Result<Completion, Failure>) {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&sent);
    let answers = RefCell::new(answers.into_iter());
    let outside = Outside::test().with_http(move |request| {
        let headers: String = request
            .headers
            .iter()
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        log.borrow_mut()
            .push(format!("{} {}{headers}", request.method, request.url));
        answers
            .borrow_mut()
            .next()
            .ok_or_else(|| HttpError("Azure is away".to_owned()))
    });
    let call = Actuation::new(&action(), verb);
    let done = ReevePlugin::actuate(&call, config().to_string().as_bytes(), &outside);
    (sent.take(), done)
}

fn response(status: u16, headers: &[(&str, &str)]) -> Response {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Response {
        status,
        headers: headers.iter().map(own).collect(),
        body: Vec::new(),
    }
}

fn exists() -> Response {
    response(409, &[("x-ms-error-code", "ContainerAlreadyExists")])
}

fn made() -> Result<Completion, Failure> {
    Ok(Completion::with_fact(
        &json!({"url": "https://acct.blob.core.windows.net/a-b"}),
    ))
}

#[track_caller]
fn check(verb: Verb, answers: Vec<Response>, sent: &[String], done: &Result<Completion, Failure>) {
    let (found, result) = carry_out(verb, answers);
    assert_eq!((found.as_slice(), &result), (sent, done));
}

#[test]
fn a_container_is_made_for_its_profile_and_for_no_other() {
    let make = format!("PUT {URL} {OWNER}=a--b");
    let look = format!("GET {METADATA}");
    check(
        Verb::Apply,
        vec![response(201, &[])],
        std::slice::from_ref(&make),
        &made(),
    );
    let own = response(200, &[(OWNER, "a--b")]);
    check(
        Verb::Apply,
        vec![exists(), own],
        &[make.clone(), look.clone()],
        &made(),
    );
    check(
        Verb::Apply,
        vec![exists(), response(200, &[(OWNER, "a-b")])],
        &[make.clone(), look.clone()],
        &Err(Failure::terminal(
            "container https://acct.blob.core.windows.net/a-b is that of Profile a-b: both names give the \
             same container; recreate one of the Profiles under another name",
        )),
    );
    // The original says of no container whose it is.
    let former = response(200, &[("x-ms-meta-team", "x"), ("etag", "1")]);
    check(
        Verb::Apply,
        vec![exists(), former, response(200, &[])],
        &[
            make,
            look,
            format!("PUT {METADATA} {OWNER}=a--b x-ms-meta-team=x"),
        ],
        &made(),
    );
}

#[test]
fn what_azure_refuses_is_said() {
    let make = [format!("PUT {URL} {OWNER}=a--b")];
    for (answer, failure) in [
        (
            response(409, &[("x-ms-error-code", "ContainerBeingDeleted")]),
            "Azure answers 409 ContainerBeingDeleted",
        ),
        (
            response(403, &[("x-ms-error-code", "AuthenticationFailed")]),
            "Azure answers 403 AuthenticationFailed; does the key that is granted for it belong to this \
             storage account?",
        ),
        (response(500, &[]), "Azure answers 500 "),
    ] {
        let failure = format!("container https://acct.blob.core.windows.net/a-b: {failure}");
        check(
            Verb::Apply,
            vec![answer],
            &make,
            &Err(Failure::retry(failure)),
        );
    }
    check(
        Verb::Apply,
        Vec::new(),
        &make,
        &Err(Failure::retry("Azure is away")),
    );
}

#[test]
fn it_is_looked_at_and_never_deleted() {
    let look = [format!("GET {METADATA}")];
    for (answer, in_place) in [
        (response(200, &[(OWNER, "a--b")]), true),
        (response(200, &[(OWNER, "bob")]), false),
        (response(200, &[]), false),
        (response(404, &[]), false),
    ] {
        check(
            Verb::Verify,
            vec![answer],
            &look,
            &Ok(Completion::is_in_place(in_place)),
        );
    }
    check(Verb::Retire, Vec::new(), &[], &Ok(Completion::done()));
}

#[test]
fn volumes_wait_for_the_container_that_they_mount() {
    let run = |cx| try_run("a--b", &config(), cx).unwrap();
    let waiting = run(Context::test());
    assert_eq!(
        names(&waiting),
        [
            "PersistentVolume a--b-by-hand",
            "PersistentVolumeClaim by-hand"
        ]
    );
    let all = [
        "PersistentVolume a--b-rw",
        "PersistentVolumeClaim rw",
        "PersistentVolume a--b-ro",
        "PersistentVolumeClaim ro",
        "PersistentVolume a--b-by-hand",
        "PersistentVolumeClaim by-hand",
    ];
    let cx = || Context::test().with_fact("container-rw", json!({"url": "x"}));
    let done = run(cx());
    assert_eq!(names(&done), all);
    // What is there does not go because a fact was lost.
    assert_eq!(names(&run(converged(&done, Context::test()))), all);
    assert_eq!(waiting.objects_json()[0], done.objects_json()[4]);
    assert_eq!(waiting.actions(), [action()]);
}

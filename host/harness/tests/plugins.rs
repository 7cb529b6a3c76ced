//! The scenarios beside the plugins of this repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use reeve_harness::{Options, Printer, run};
use std::path::Path;

fn check(plugin: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let options = Options {
        paths: vec![root.join("plugins").join(plugin)],
        component: Some(reeve_test_support::component(plugin)),
        ..Options::default()
    };
    let printer = Printer { colour: false };
    let mut failed = String::new();
    let report = run(&options, |scenario| {
        if !scenario.failures.is_empty() {
            failed.push_str(&printer.scenario(scenario));
        }
    })
    .unwrap();
    assert!(failed.is_empty(), "\n{failed}");
    print!("{plugin}: {}", printer.summary(&report));
}

#[test]
fn authpolicy() {
    check("authpolicy");
}

#[test]
fn blobcsi() {
    check("blobcsi");
}

#[test]
fn cloudmain() {
    check("cloudmain");
}

#[test]
fn gitea() {
    check("gitea");
}

#[test]
fn limitranges() {
    check("limitranges");
}

#[test]
fn models() {
    check("models");
}

#[test]
fn network() {
    check("network");
}

#[test]
fn notebook() {
    check("notebook");
}

#[test]
fn packs() {
    check("packs");
}

#[test]
fn quotas() {
    check("quotas");
}

#[test]
fn rbac() {
    check("rbac");
}

#[test]
fn s3proxy() {
    check("s3proxy");
}

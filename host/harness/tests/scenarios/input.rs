//! What is read, and what is refused.

use crate::support::{GIVEN, Scenarios};
use reeve_harness::{Error, Options, run};
use std::fs;
use std::num::NonZero;
use std::path::Path;

/// Text that is no scenario, and what the error says.
fn refused(text: &str, expected: &[&str]) {
    let scenarios = Scenarios::with_text(text);
    let error = run(&scenarios.options(), |_| {}).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    let error = error.to_string();
    for expected in expected {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_no_scenario_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "name: a\nexpects: {}\n",
            ["quotas.yaml:2:1", "expects"].as_slice(),
        ),
        (
            "name: a\ngiven:\n  object: []\n",
            &["quotas.yaml:3:3", "object"],
        ),
        (
            "name: a\nexpect:\n  events:\n    - {of: Profile a, kind: Warning}\n",
            &["quotas.yaml:4:", "kind"],
        ),
        ("given: {}\n", &["quotas.yaml:1", "name"]),
        (
            "name: a\nsteps:\n  - expect: {}\n",
            &["quotas.yaml:3:", "exactly one", "this one has 0"],
        ),
        (
            "name: a\nsteps:\n  - {restart: agent, advance: 1s}\n",
            &["quotas.yaml:3:", "this one has 2"],
        ),
        (
            "name: a\nsteps:\n  - advance: soon\n",
            &["quotas.yaml:3:", "`soon` is no time"],
        ),
        (
            "name: a\ngiven:\n  cluster: {actors: {nods: 3}}\n",
            &[
                "quotas.yaml:3:",
                "`actors` is true, false, or a map of",
                "unknown field `nods`",
            ],
        ),
        (
            "name: a\ngiven:\n  cluster: {actors: {kinds: [Widget]}}\n",
            &["\"Widget\" names no custom kind; write the kind and its group"],
        ),
        (
            "name: a\nsteps:\n  - faults: [\"latency: dely=1s\"]\n",
            &[
                "quotas.yaml:3:",
                "fault latency: there is no field \"dely\"; there are delay, jitter,",
            ],
        ),
        (
            "name: a\nsteps:\n  - delete: profile\n",
            &["quotas.yaml:3:", "`profile` names no object"],
        ),
        (
            "name: a\nexpect:\n  objects:\n    - {kind: A}\n",
            &["quotas.yaml:4:", "an object needs `apiVersion`"],
        ),
        (
            "name: a\ngiven:\n  files:\n    - no/such.yaml\n",
            &["quotas.yaml:4: cannot read", "no/such.yaml"],
        ),
        ("name: [\n", &["quotas.yaml:"]),
        ("# nothing\n", &["there is no scenario in it"]),
    ] {
        refused(text, expected);
    }
}

#[test]
fn other_input_that_cannot_be_used_is_named() {
    let scenarios = Scenarios::with("");
    let with = |change: fn(&mut Options, &Path)| {
        let mut options = scenarios.options();
        change(&mut options, scenarios.folder.path());
        run(&options, |_| {}).unwrap_err().to_string()
    };
    for (error, expected) in [
        (
            with(|o, _| o.filter = Some("nonsense".into())),
            "no scenario has `nonsense`",
        ),
        (
            with(|o, _| o.paths = vec!["no/such/folder".into()]),
            "cannot read no/such/folder",
        ),
        (
            with(|o, f| o.paths = vec![f.join("shared")]),
            "unknown field",
        ),
        (
            with(|o, _| o.component = Some("no/such.wasm".into())),
            "cannot read no/such.wasm",
        ),
        (
            with(|o, f| o.component = Some(f.join("quotas.yaml"))),
            "cannot load",
        ),
        (
            with(|o, _| o.component = None),
            "name the component with --component",
        ),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn files_have_several_scenarios_and_a_filter_selects() {
    let text = format!(
        "name: first\n{GIVEN}---\nname: second\n{GIVEN}expect: {{writes: 99}}\n---\nname: third\n{GIVEN}"
    );
    let scenarios = Scenarios::with_text(&text);
    let mut seen = Vec::new();
    let options = Options {
        threads: NonZero::new(2),
        junit: Some(scenarios.folder.path().join("junit.xml")),
        ..scenarios.options()
    };
    let report = run(&options, |scenario| seen.push(scenario.name.clone())).unwrap();
    assert_eq!(seen, ["first", "second", "third"]);
    assert_eq!(report.scenarios[1].line, 8);
    let counts = report.counts();
    assert_eq!((counts.passed, counts.failed), (2, 1));
    let junit = fs::read_to_string(scenarios.folder.path().join("junit.xml")).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"1\""), "{junit}");
    let filtered = Options {
        filter: Some("ir".into()),
        ..scenarios.options()
    };
    let report = run(&filtered, |_| {}).unwrap();
    assert_eq!(report.counts().passed, 2);
    let repeated = Options {
        repeat: NonZero::new(3),
        ..filtered
    };
    let report = run(&repeated, |_| {}).unwrap();
    assert_eq!(report.counts().passed, 6);
    let names: Vec<_> = report.scenarios.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        ["first", "first", "first", "third", "third", "third"]
    );
}

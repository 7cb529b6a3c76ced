//! Scenarios from text to report: what fails, how it reads, what an update makes
//! of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use reeve_harness::{Error, Options, Printer, Report, Verdict, run};
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The given part of a scenario with one profile.
const GIVEN: &str = "\
given:
  files: [shared/profile.yaml]
  objects:
    - {apiVersion: v1, kind: Namespace, metadata: {name: alice}}
    - {apiVersion: kubeflow.org/v1, kind: Profile, metadata: {name: alice}}
";

/// A folder with one scenario file for the plugin quotas.
struct Scenarios {
    folder: TempDir,
}

impl Scenarios {
    /// One scenario: its name, [`GIVEN`], and the rest.
    fn with(rest: &str) -> Self {
        Self::with_text(&format!("name: it\n{GIVEN}{rest}"))
    }

    fn with_text(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let crd = serde_json::to_string(&reeve_test_support::samples::profile_crd()).unwrap();
        fs::create_dir(folder.path().join("shared")).unwrap();
        fs::write(folder.path().join("shared/profile.yaml"), crd).unwrap();
        let scenarios = Self { folder };
        fs::write(scenarios.file(), text).unwrap();
        scenarios
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("quotas.yaml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn options(&self) -> Options {
        Options {
            paths: vec![self.folder.path().to_owned()],
            component: Some(reeve_test_support::component("quotas")),
            ..Options::default()
        }
    }

    fn run(&self) -> Report {
        run(&self.options(), |_| {}).unwrap()
    }

    fn update(&self) -> Report {
        let options = Options {
            update: true,
            ..self.options()
        };
        run(&options, |_| {}).unwrap()
    }
}

/// What a failing scenario prints about its failures: no times, no places of this
/// machine, no conditions and log, which are not what is tested.
fn printed(report: &Report) -> String {
    let mut text = String::new();
    for scenario in &report.scenarios {
        let mut scenario = scenario.clone();
        scenario.seconds = 0.0;
        scenario.file = "quotas.yaml".into();
        scenario.conditions.clear();
        scenario.log.clear();
        text.push_str(&Printer { colour: false }.scenario(&scenario));
    }
    text
}

/// A scenario that must fail, and what it prints below its first line.
fn fails(rest: &str, expected: &str) {
    let report = Scenarios::with(rest).run();
    let printed = printed(&report);
    let (first, below) = printed.split_once('\n').unwrap();
    assert_eq!(first, "FAILED quotas: it (0.0 ms)", "{printed}");
    assert_eq!(below, expected);
    assert_eq!(report.exit_code(), 1);
}

fn passes(rest: &str) {
    let report = Scenarios::with(rest).run();
    assert_eq!(printed(&report), "ok quotas: it (0.0 ms)\n");
    assert_eq!(report.exit_code(), 0);
}

#[test]
fn a_field_that_differs() {
    fails(
        r#"
expect:
  objects:
    - apiVersion: v1
      kind: ResourceQuota
      metadata: {name: quotas, namespace: alice}
      spec: {hard: {pods: "7", limits.cpu: "70"}}
"#,
        r#"  quotas.yaml:10 (given): ResourceQuota alice/quotas is not as expected
    @@ -6,4 +6,4 @@
     spec:
       hard:
         limits.cpu: "70"
    -    pods: "7"
    +    pods: "100"
"#,
    );
}

#[test]
fn a_field_that_should_not_be_there() {
    fails(
        r#"
expect:
  objects:
    - apiVersion: v1
      kind: ResourceQuota
      metadata: {name: quotas, namespace: alice}
      spec: {hard: {pods: null}}
"#,
        r#"  quotas.yaml:10 (given): ResourceQuota alice/quotas is not as expected
    @@ -4,4 +4,5 @@
       name: quotas
       namespace: alice
     spec:
    -  hard: {}
    +  hard:
    +    pods: "100"
"#,
    );
}

#[test]
fn an_object_with_more_than_is_expected_of_the_whole() {
    fails(
        r#"
steps:
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: alice}, data: {x: "1", z: "2"}}]
    expect:
      exact: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: alice}, data: {x: "1"}}]
"#,
        r#"  quotas.yaml:11 (step 1): ConfigMap alice/a is not as expected
    @@ -1,6 +1,7 @@
     apiVersion: v1
     data:
       x: "1"
    +  z: "2"
     kind: ConfigMap
     metadata:
       name: a
"#,
    );
}

#[test]
fn an_object_that_is_not_there() {
    fails(
        r#"
expect:
  objects:
    - {apiVersion: v1, kind: ResourceQuota, metadata: {name: quota, namespace: alice}}
"#,
        "  quotas.yaml:10 (given): ResourceQuota alice/quota does not exist; those that do: quotas\n",
    );
}

#[test]
fn an_object_that_should_not_be_there() {
    fails(
        "expect: {absent: [ResourceQuota alice/quota, ResourceQuota alice/quotas]}\n",
        "  quotas.yaml:7 (given): ResourceQuota alice/quotas exists, and should not\n",
    );
}

#[test]
fn a_condition_that_differs() {
    fails(
        "expect: {conditions: [{of: Plugin, type: Ready, status: \"False\", message: units ready}]}\n",
        r#"  quotas.yaml:7 (given): condition Ready of Plugin quotas is not as expected
    @@ -1,2 +1,2 @@
     message: units ready
    -status: "False"
    +status: "True"
"#,
    );
}

#[test]
fn a_condition_that_is_not_there() {
    fails(
        "expect: {conditions: [{of: Plugin, type: Happy}, {of: Profile alice, type: Ready}]}\n",
        "  quotas.yaml:7 (given): Plugin quotas has no condition Happy; it has Loaded, Ready, Granted\n  \
         quotas.yaml:7 (given): the unit of Profile alice has no condition Ready; it has none\n",
    );
}

#[test]
fn a_condition_that_should_not_be_there() {
    let report =
        Scenarios::with("expect: {conditions: [{of: Plugin, type: Granted, absent: true}]}\n")
            .run();
    let message = &report.scenarios[0].failures[0].message;
    assert!(
        message.starts_with(
            "Plugin quotas has a condition Granted, and should not: Granted=True AllGranted"
        ),
        "{message}"
    );
}

#[test]
fn events_of_another_number() {
    fails(
        r#"
steps:
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: two}}
    expect:
      events:
        - {of: Profile alice, type: Warning, reason: UnusableLabels, count: 2}
        - {of: Profile alice, type: Normal}
"#,
        "  quotas.yaml:12 (step 1): expected 2 events Warning UnusableLabels on Profile alice; there are 1
    The events on it:
      Warning UnusableLabels: Quota labels that cannot be used: quotas.statcan.gc.ca/pods=two (not a quantity, using 100). Set each to a number such as 10 or 4Gi, or remove it.
  quotas.yaml:13 (step 1): expected at least 1 events Normal on Profile alice; there are 0
    The events on it:
      Warning UnusableLabels: Quota labels that cannot be used: quotas.statcan.gc.ca/pods=two (not a quantity, using 100). Set each to a number such as 10 or 4Gi, or remove it.
",
    );
}

#[test]
fn writes_of_another_number() {
    let report = Scenarios::with(
        r#"
steps:
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
    expect: {writes: 1}
  - name: put back
    edit: {object: ResourceQuota alice/quotas, patch: {spec: {hard: {pods: "1"}}}}
    expect: {writes: 0}
"#,
    )
    .run();
    assert_eq!(
        printed(&report).lines().nth(1),
        Some("  quotas.yaml:13 (step 2, put back): expected the agent to send 0 writes; it sent 1"),
    );
}

#[test]
fn a_step_that_cannot_be_taken() {
    fails(
        "\nsteps:\n  - delete: ResourceQuota alice/other\n",
        "  quotas.yaml:9 (step 1): cannot delete ResourceQuota alice/other: it does not exist\n",
    );
    fails(
        "\nsteps:\n  - delete: Cow bella\n",
        "  quotas.yaml:9 (step 1): there is no kind Cow; give its CustomResourceDefinition under `given`, in `files` or `objects`\n",
    );
}

#[test]
fn a_failure_shows_conditions() {
    let report = Scenarios::with("expect: {writes: 99}\n").run();
    let conditions = &report.scenarios[0].conditions;
    assert!(
        conditions
            .iter()
            .any(|line| line.starts_with("Plugin quotas: Ready=True Running: 1 of 1 units ready")),
        "{conditions:?}"
    );
}

#[test]
fn the_clock_is_virtual() {
    let begun = std::time::Instant::now();
    passes(
        r#"
steps:
  - advance: 240h
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: alice}}]
    expect:
      objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: late, namespace: alice, creationTimestamp: "2026-01-11T00:00:00Z"}
"#,
    );
    // Ten days in far less than one.
    assert!(begun.elapsed() < std::time::Duration::from_secs(3600));
}

#[test]
fn a_component_can_be_swapped_for_a_broken_one() {
    let scenarios = Scenarios::with(
        r#"
steps:
  - component: shared/broken.wasm
    expect:
      conditions:
        - {of: Plugin, type: Loaded, status: "False", reason: NotAComponent}
        - {of: Plugin, type: Ready, status: "True", reason: Running}
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
    expect:
      objects:
        - apiVersion: v1
          kind: ResourceQuota
          metadata: {name: quotas, namespace: alice}
          spec: {hard: {pods: "7"}}
---
name: a broken one from the beginning
given:
  component: shared/broken.wasm
expect:
  conditions:
    - {of: Plugin, type: Ready, status: "False", reason: NotAComponent}
"#,
    );
    fs::write(
        scenarios.folder.path().join("shared/broken.wasm"),
        "rubbish",
    )
    .unwrap();
    let report = scenarios.run();
    assert_eq!(
        printed(&report),
        "ok quotas: it (0.0 ms)\nok quotas: a broken one from the beginning (0.0 ms)\n"
    );
}

#[test]
fn the_agent_outlives_an_outage() {
    passes(
        r#"
steps:
  - outage: unavailable
  - advance: 10m
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
    expect:
      writes: 0
      objects:
        - apiVersion: v1
          kind: ResourceQuota
          metadata: {name: quotas, namespace: alice}
          spec: {hard: {pods: "100"}}
  - outage: none
    expect:
      objects:
        - apiVersion: v1
          kind: ResourceQuota
          metadata: {name: quotas, namespace: alice}
          spec: {hard: {pods: "7"}}
"#,
    );
}

#[test]
fn an_update_makes_what_fails_pass_and_leaves_the_rest_as_it_was() {
    let wrong = r#"
# What is expected.
expect:
  objects:
    - apiVersion: v1 # the core group
      kind: ResourceQuota
      metadata: {name: quotas, namespace: alice}
      spec:
        hard:
          pods: "7"   # seven
          bananas: "3"
  conditions:
    - {of: Plugin, type: Ready, status: "False", reason: Broken}
  events:
    - {of: Profile alice, count: 4}
# The end.
"#;
    let right = wrong
        .replace("pods: \"7\"", "pods: \"100\"")
        .replace("bananas: \"3\"", "bananas: null")
        .replace(
            "status: \"False\", reason: Broken",
            "status: \"True\", reason: Running",
        )
        .replace("count: 4", "count: 0");
    let scenarios = Scenarios::with(wrong);
    let report = scenarios.update();
    assert_eq!(report.scenarios[0].verdict, Verdict::Updated);
    assert_eq!(report.rewritten, [scenarios.file()]);
    assert_eq!(scenarios.text(), format!("name: it\n{GIVEN}{right}"));
    let again = scenarios.update();
    assert_eq!(again.scenarios[0].verdict, Verdict::Passed);
    assert_eq!(again.rewritten, [""; 0].map(PathBuf::from));
}

#[test]
fn an_update_rewrites_whole_objects_where_the_whole_counts() {
    let scenarios = Scenarios::with(
        r#"
steps:
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: alice}, data: {x: "1", z: "2"}}]
    expect:
      exact:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: a, namespace: alice}
          data:
            x: "1"
      writes: 5
"#,
    );
    scenarios.update();
    let text = scenarios.text();
    assert!(
        text.contains(
            "          data:\n            x: \"1\"\n            z: \"2\"\n      writes: 0\n"
        ),
        "{text}"
    );
    assert_eq!(scenarios.run().exit_code(), 0);
}

#[test]
fn an_update_does_not_invent_what_is_missing() {
    let scenarios = Scenarios::with("expect: {absent: [Profile alice], writes: 77}\n");
    let report = scenarios.update();
    assert_eq!(report.scenarios[0].verdict, Verdict::Failed);
    assert_eq!(report.exit_code(), 1);
}

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
}

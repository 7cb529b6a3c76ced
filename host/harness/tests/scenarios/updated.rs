//! What an update makes of what fails.

use crate::support::{GIVEN, Scenarios};
use reeve_harness::Verdict;
use std::path::PathBuf;

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

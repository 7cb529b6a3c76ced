//! Primaries that wait for the end of their units, as with the rights that an ordinary
//! grant gives.

use crate::support::{Scenarios, printed};
use reeve_harness::{Options, run};
use std::fs;

const SCENARIO: &str = r#"
name: it
given:
  files: [shared/bundle.yaml]
  objects:
    - {apiVersion: v1, kind: Namespace, metadata: {name: apps}}
    - apiVersion: example.com/v1
      kind: Bundle
      metadata: {name: one, namespace: apps}
      spec:
        objects:
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: apps, annotations: {reeve.dev/sync-wave: "0"}}}
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: apps, annotations: {reeve.dev/sync-wave: "1"}}}
          - apiVersion: batch/v1
            kind: Job
            metadata: {name: farewell, namespace: apps, annotations: {reeve.dev/hook: PreDelete}}
            spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
  config:
    primary: Bundle.v1.example.com
    writes: {ConfigMap.v1: primary-namespace, Job.v1.batch: primary-namespace}
  cluster: {actors: true}
expect:
  objects:
    - apiVersion: example.com/v1
      kind: Bundle
      metadata: {name: one, namespace: apps, finalizers: [hooks.reeve.dev/quotas]}
  absent: [Job apps/farewell]
steps:
  - delete: Bundle apps/one
    expect:
      objects:
        - {apiVersion: batch/v1, kind: Job, metadata: {name: farewell, namespace: apps}}
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: apps}}
  - advance: 1m
    expect:
      absent: [Bundle apps/one, ConfigMap apps/first, ConfigMap apps/second]
"#;

#[test]
fn hooks_of_the_end_run_before_the_primary_goes() {
    let scenarios = Scenarios::with_text(SCENARIO);
    let definition = reeve_test_support::samples::open_crd("Bundle", "bundles");
    let path = scenarios.folder.path().join("shared/bundle.yaml");
    fs::write(path, definition.to_string()).unwrap();
    let options = Options {
        component: Some(reeve_test_support::guest("courier")),
        ..scenarios.options()
    };
    let report = run(&options, |_| {}).unwrap();
    let printed = printed(&report);
    assert!(printed.starts_with("ok "), "{printed}");
}

//! What passes, what fails, and how a failure reads.

use crate::support::{Scenarios, fails, passes, printed};
use std::fs;

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
        "  quotas.yaml:7 (given): Plugin quotas has no condition Happy; it has Loaded, Ready, Granted, Pruned\n  \
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
        Some("  quotas.yaml:13 (step 2, put back): expected the agent to send 0 writes; it sent 2"),
        "the field put back, and the journal of what it had been"
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
    // Compiled, and in the cache.
    passes("steps:\n  - advance: 1s\n");
    let begun = std::time::Instant::now();
    passes(
        r#"
steps:
  - advance: 48h
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: alice}}]
    expect:
      objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: late, namespace: alice, creationTimestamp: "2026-01-03T00:00:00Z"}
"#,
    );
    // Two days in much less than that, however busy the machine is.
    assert!(begun.elapsed() < std::time::Duration::from_secs(120));
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
  - advance: 10m
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
fn workloads_become_ready_where_that_is_asked_for() {
    const STEPS: &str = r#"
steps:
  - create:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: alice}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            # What the quota of the plugin bounds has to be said.
            spec:
              containers:
                - name: web
                  image: "example.com/web:1"
                  resources: {limits: {cpu: 100m, memory: 64Mi}}
  - advance: 10s
    expect:
      objects:
        - apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web, namespace: alice}
          status: {availableReplicas: AVAILABLE}
"#;
    for (actors, available) in [
        ("", "null"),
        ("  cluster: {actors: false}\n", "null"),
        ("  cluster: {actors: true}\n", "1"),
        ("  cluster: {actors: {readyAfter: 1m}}\n", "null"),
        ("  cluster: {actors: {readyAfter: 0s, nodes: 2}}\n", "1"),
    ] {
        passes(&format!(
            "{actors}{}",
            STEPS.replace("AVAILABLE", available)
        ));
    }
}

#[test]
fn faults_strike_the_agent_until_they_are_taken_back() {
    passes(
        r#"
steps:
  - faults: ["unavailable: verb=create|patch|update, resource=resourcequotas"]
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
    expect:
      objects:
        - {apiVersion: v1, kind: ResourceQuota, metadata: {name: quotas, namespace: alice}, spec: {hard: {pods: "100"}}}
  - faults: []
  - advance: 10m
    expect:
      objects:
        - {apiVersion: v1, kind: ResourceQuota, metadata: {name: quotas, namespace: alice}, spec: {hard: {pods: "7"}}}
"#,
    );
}

/// A change while these faults are on, what is known of it after a while, and that all
/// is well some time after they are taken back.
#[track_caller]
fn struck(faults: &str, restart: bool, during: &str) {
    let quota = |pods: &str| {
        format!(
            "      objects:\n        - {{apiVersion: v1, kind: ResourceQuota, metadata: {{name: quotas, namespace: alice}}, spec: {{hard: {{pods: \"{pods}\"}}}}}}\n"
        )
    };
    // Long enough for a list and some watches, each of which is late.
    let restart = if restart {
        "  - restart: agent\n  - advance: 150s\n"
    } else {
        ""
    };
    passes(&format!(
        "steps:\n  - faults: {faults}\n{restart}  - label: {{object: Profile alice, labels: {{quotas.statcan.gc.ca/pods: \"7\"}}}}\n    expect:\n{}  - faults: []\n  - advance: 10m\n    expect:\n{}",
        quota(during),
        quota("7"),
    ));
}

#[test]
fn a_fault_that_strikes_nothing_is_a_failure() {
    let quiet = [
        // Nobody asks for them.
        (r#"["conflict: resource=limitranges"]"#, "conflict"),
        // Watches that are open already stay so.
        (
            r#"["truncated-watch: resource=profiles"]"#,
            "truncated-watch",
        ),
        // The one before it answers every request.
        (
            r#"["unavailable: resource=resourcequotas", "conflict: resource=resourcequotas"]"#,
            "conflict",
        ),
    ];
    for (faults, quiet) in quiet {
        let steps = format!(
            "steps:\n  - faults: {faults}\n  - label: {{object: Profile alice, labels: {{quotas.statcan.gc.ca/pods: \"7\"}}}}\n"
        );
        for steps in [format!("{steps}  - faults: []\n"), steps] {
            let report = Scenarios::with(&steps).run();
            let failure = &report.scenarios[0].failures[0];
            let text = &failure.message;
            let expected = format!("the fault \"{quiet}: ");
            assert!(
                text.starts_with(&expected) && text.contains("has struck nothing"),
                "{faults}: {text}"
            );
        }
    }
}

#[test]
fn nothing_is_listed_anew_while_nothing_happens() {
    let report =
        Scenarios::with("steps:\n  - faults: [\"unavailable: verb=list\"]\n  - advance: 2h\n")
            .run();
    let failure = &report.scenarios[0].failures[0];
    assert!(
        failure.message.contains("has struck nothing"),
        "{}",
        failure.message
    );
}

#[test]
fn a_silent_watch_is_not_heard() {
    struck(r#"["silent-watch: resource=profiles"]"#, false, "100");
}

#[test]
fn a_watch_that_breaks_is_opened_again() {
    // With nothing to read but what it says at its beginning, which comes too late.
    struck(
        r#"["truncated-watch: resource=profiles", "latency: delay=8s, verb=list|watch, resource=profiles"]"#,
        true,
        "100",
    );
    struck(
        r#"["truncated-watch: after=2s, resource=profiles"]"#,
        true,
        "7",
    );
}

#[test]
fn a_version_that_is_too_old_is_left_behind() {
    struck(
        r#"["expired: resource=profiles, count=2", "truncated-watch: after=1s, resource=profiles"]"#,
        true,
        "7",
    );
}

#[test]
fn a_conflict_keeps_a_write_away() {
    struck(r#"["conflict: resource=resourcequotas"]"#, false, "100");
    // Once is no more than a moment.
    struck(
        r#"[{fault: conflict, verb: [patch], resource: resourcequotas, count: 1}]"#,
        false,
        "7",
    );
}

#[test]
fn the_clock_of_the_server_jumps() {
    passes(
        r#"
steps:
  - faults: ["clock-jump: by=48h"]
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: alice}}]
    expect:
      objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: late, namespace: alice, creationTimestamp: "2026-01-03T00:00:00Z"}
  - faults: ["clock-jump: by=-24h"]
  - create: [{apiVersion: v1, kind: ConfigMap, metadata: {name: early, namespace: alice}}]
    expect:
      objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: early, namespace: alice, creationTimestamp: "2026-01-02T00:00:00Z"}
  - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
    expect:
      objects:
        - {apiVersion: v1, kind: ResourceQuota, metadata: {name: quotas, namespace: alice}, spec: {hard: {pods: "7"}}}
"#,
    );
}

#[test]
fn an_owner_is_found_by_its_name() {
    passes(
        r#"
steps:
  - apply:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: owned
          namespace: alice
          ownerReferences: [{apiVersion: kubeflow.org/v1, kind: Profile, name: alice}]
    expect: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: alice}}]}
  - delete: Profile alice
    expect: {absent: [ConfigMap alice/owned]}
"#,
    );
}

/// What is absent, and what is not written, would be so without the plugin, too.
#[test]
fn a_plugin_that_does_not_run_is_a_failure_unless_that_is_meant() {
    let misspelled = "config: {hrad: {}}";
    let nothing = "absent: [ResourceQuota alice/none]";
    let meant = "conditions: [{of: Plugin, type: Loaded, status: \"False\"}]";
    for (steps, passes) in [
        (format!("- {misspelled}"), false),
        (format!("- {misspelled}\n    expect: {{{nothing}}}"), false),
        (
            format!("- {misspelled}\n  - advance: 1h\n    expect: {{writes: 0}}"),
            false,
        ),
        (
            format!("- {misspelled}\n    expect: {{{meant}}}\n  - advance: 1h"),
            true,
        ),
        (
            format!("- {misspelled}\n  - advance: 1h\n    expect: {{{meant}}}"),
            true,
        ),
        (format!("- {misspelled}\n  - config: {{}}"), true),
        // Nothing was said of the second time.
        (
            format!("- {misspelled}\n    expect: {{{meant}}}\n  - config: {{}}\n  - {misspelled}"),
            false,
        ),
    ] {
        let report = Scenarios::with(&format!("steps:\n  {steps}\n")).run();
        let failures = &report.scenarios[0].failures;
        assert_eq!(failures.is_empty(), passes, "{steps}: {failures:?}");
        if let Some(failure) = failures.first() {
            let text = &failure.message;
            assert!(
                text.starts_with("the plugin does not run as it is given: ConfigInvalid: ")
                    && text.ends_with("expects a condition `of: Plugin`"),
                "{text}"
            );
        }
    }
}

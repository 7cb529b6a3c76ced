//! Scenarios in a folder of their own, and what their reports read like.

use reeve_harness::{Options, Printer, Report, run};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The given part of a scenario with one profile.
pub(crate) const GIVEN: &str = "\
given:
  files: [shared/profile.yaml]
  objects:
    - {apiVersion: v1, kind: Namespace, metadata: {name: alice}}
    - {apiVersion: kubeflow.org/v1, kind: Profile, metadata: {name: alice}}
";

/// A folder with one scenario file for the plugin quotas.
pub(crate) struct Scenarios {
    pub(crate) folder: TempDir,
}

impl Scenarios {
    /// One scenario: its name, [`GIVEN`], and the rest.
    pub(crate) fn with(rest: &str) -> Self {
        Self::with_text(&format!("name: it\n{GIVEN}{rest}"))
    }

    pub(crate) fn with_text(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let crd = serde_json::to_string(&reeve_test_support::samples::profile_crd()).unwrap();
        fs::create_dir(folder.path().join("shared")).unwrap();
        fs::write(folder.path().join("shared/profile.yaml"), crd).unwrap();
        let scenarios = Self { folder };
        fs::write(scenarios.file(), text).unwrap();
        scenarios
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("quotas.yaml")
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            paths: vec![self.folder.path().to_owned()],
            component: Some(reeve_test_support::component("quotas")),
            cache: reeve_test_cache::compiled(),
            ..Options::default()
        }
    }

    pub(crate) fn run(&self) -> Report {
        run(&self.options(), |_| {}).unwrap()
    }

    pub(crate) fn update(&self) -> Report {
        let options = Options {
            update: true,
            ..self.options()
        };
        run(&options, |_| {}).unwrap()
    }
}

/// What a failing scenario prints about its failures: no times, no places of this
/// machine, no conditions and log, which are not what is tested.
pub(crate) fn printed(report: &Report) -> String {
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
pub(crate) fn fails(rest: &str, expected: &str) {
    let report = Scenarios::with(rest).run();
    let printed = printed(&report);
    let (first, below) = printed.split_once('\n').unwrap();
    assert_eq!(first, "FAILED quotas: it (0.0 ms)", "{printed}");
    assert_eq!(below, expected);
    assert_eq!(report.exit_code(), 1);
}

pub(crate) fn passes(rest: &str) {
    let report = Scenarios::with(rest).run();
    assert_eq!(printed(&report), "ok quotas: it (0.0 ms)\n");
    assert_eq!(report.exit_code(), 0);
}

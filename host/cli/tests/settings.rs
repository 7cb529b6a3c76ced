//! Settings of `reeve run`: flags, environment and file, and what is said of bad
//! ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// `reeve run` in a folder in which `reeve.yaml` is this file.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn run(file: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("reeve.yaml"), file).unwrap();
    reeve(folder.path(), arguments, environment)
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn reeve(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut reeve = Command::new(env!("CARGO_BIN_EXE_reeve"));
    reeve.arg("run").args(arguments).current_dir(folder);
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("REEVE_") || name == "KUBERNETES_SERVICE_HOST" {
            reeve.env_remove(&variable);
        }
    }
    reeve.envs(environment.iter().copied());
    reeve.output().unwrap()
}

#[test]
fn each_setting_says_where_it_comes_from() {
    let file = "# a comment\nconcurrency: 3\nlease-duration: 40s\nleader-elect: true\n\
        lease-name: from-file\ncache:\nnamespace: from-file\n";
    let output = run(
        file,
        &[
            "--print-config",
            "--config",
            "reeve.yaml",
            "--lease-name=from-flag",
        ],
        &[
            ("REEVE_NAMESPACE", "from-env"),
            ("REEVE_LEASE_NAME", "from-env"),
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "concurrency: 3 # file",
        "lease-duration: 40s # file",
        "leader-elect: true # file",
        "lease-name: from-flag # flag",
        "namespace: from-env # environment, REEVE_NAMESPACE",
        "health-address: 127.0.0.1:8081 # default",
        "# cache: # not set",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no {line:?} in {text}"
        );
    }
    assert_eq!(output.status.code(), Some(0));

    // What was printed is a file that says the same.
    let again = run(
        &text,
        &["--print-config"],
        &[("REEVE_CONFIG", "reeve.yaml")],
    );
    let values = |text: &str| -> Vec<String> {
        let value = |line: &str| line.split(" # ").next().unwrap_or_default().to_owned();
        text.lines().map(value).collect()
    };
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(values(&again), values(&text));
}

#[test]
fn what_nobody_sets_is_as_documented() {
    let output = run("", &["--print-config"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "namespace: reeve-system # default",
        "# kubeconfig: # not set",
        "# context: # not set",
    ] {
        let found = text.lines().any(|found| found == line);
        assert!(found, "no {line:?} in {text}");
    }
}

/// The chart refuses what it does not know, so it has to know them all.
#[test]
fn the_chart_takes_every_setting_that_is_not_its_own() {
    /// What the chart itself decides.
    const OWN: [&str; 5] = [
        "kubeconfig",
        "context",
        "namespace",
        "cache",
        "lease-namespace",
    ];
    let output = run("", &["--print-config"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| {
        let (name, _) = line.trim_start_matches("# ").split_once(':')?;
        Some(name.to_owned())
    });
    let mut names: Vec<String> = names.filter(|name| !OWN.contains(&&**name)).collect();
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/reeve");
    let schema = fs::read_to_string(chart.join("values.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let known = schema["properties"]["config"]["properties"].as_object();
    let mut known: Vec<String> = known.unwrap().keys().cloned().collect();
    names.sort();
    known.sort();
    assert_eq!(known, names);

    // The limits that may be bounded have names, too.
    let unknown = run("", &["--max-limit=x=1"], &[]);
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    let (_, limits) = error
        .split_once("there is no limit `x`; there are ")
        .unwrap();
    let mut limits: Vec<&str> = limits.trim_end().split(", ").collect();
    let pattern = &schema["properties"]["config"]["properties"]["max-limit"]["pattern"];
    let (known, _) = pattern.as_str().unwrap()[3..].split_once(')').unwrap();
    let mut known: Vec<&str> = known.trim_start_matches('(').split('|').collect();
    limits.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, limits);
}

#[test]
fn one_of_two_settings_may_come_alone() {
    for (file, arguments) in [
        ("guest-threads: 8\n", &["--guest-threads-per-plugin=2"][..]),
        ("guest-threads-per-plugin: 2\n", &["--guest-threads=8"][..]),
        ("guest-threads: 8\n", &[][..]),
    ] {
        let arguments = [&["--print-config", "--config", "reeve.yaml"], arguments].concat();
        let output = run(file, &arguments, &[]);
        assert_eq!(output.status.code(), Some(0), "{file}: {output:?}");
    }
}

#[test]
fn what_is_no_setting_says_which_and_why() {
    let file = &["--config", "reeve.yaml"][..];
    for (text, arguments, expected) in [
        (
            "concurency: 3\n",
            file,
            "reeve.yaml: `concurency` is no setting; there are ",
        ),
        (
            "concurrency: many\n",
            file,
            "reeve.yaml: concurrency: `many` is not valid: invalid digit found in string",
        ),
        (
            "log-format: xml\n",
            file,
            "reeve.yaml: log-format: `xml` is not valid; possible values: text, json",
        ),
        (
            "lease-duration: soon\n",
            file,
            "reeve.yaml: lease-duration: `soon` is not valid: ",
        ),
        (
            "namespace: [a]\n",
            file,
            "reeve.yaml: namespace: expected one value, not a list or a map",
        ),
        (
            "- a\n",
            file,
            "reeve.yaml: expected settings, one `name: value` a line",
        ),
        ("a: [\n", file, "reeve.yaml is no YAML: "),
        ("config: x\n", file, "reeve.yaml: `config` is no setting"),
        (
            "",
            &["--config", "none.yaml"][..],
            "cannot read none.yaml: ",
        ),
        (
            "guest-threads: 0\n",
            file,
            "reeve.yaml: guest-threads: `0` is not valid: ",
        ),
        (
            "lease-duration: 5s\n",
            file,
            "cannot elect a leader with these durations: ",
        ),
        (
            "compile-timeout: 0s\n",
            file,
            "compile-timeout: nothing would ever be compiled; use 100ms or more",
        ),
        (
            "max-limit: hostCalls=5,hostCalls=6\n",
            file,
            "--max-limit: hostCalls is given twice",
        ),
        (
            "cache: reeve.yaml\n",
            file,
            "cache: reeve.yaml is a file; name a folder",
        ),
        (
            "concurrency: 0\n",
            file,
            "concurrency: no unit would ever run",
        ),
        (
            "namespace: Not_ok\n",
            file,
            "namespace: `Not_ok` is no name of a namespace",
        ),
        (
            "lease-name: Bad_Name\n",
            file,
            "lease-name: `Bad_Name` is no name of an object",
        ),
        ("max-limit: foo=5\n", file, "--max-limit: "),
        (
            "signature-keys: none.pem\n",
            file,
            "signature-keys: cannot read none.pem: ",
        ),
        (
            "leader-elect: true\nlease-duration: 1s\n",
            file,
            "cannot elect a leader with these durations",
        ),
    ] {
        for print in [&[][..], &["--print-config"][..]] {
            let arguments = [arguments, print].concat();
            let output = run(text, &arguments, &[]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let expected = format!("error: {expected}");
            assert!(
                said.starts_with(&expected),
                "{said} should start with {expected}"
            );
            assert_eq!(output.status.code(), Some(2), "{said}");
        }
    }
}

/// It is set by `.cargo/config.toml`, which counts only where cargo runs inside the workspace.
#[test]
fn the_allocator_gives_back_what_is_free() {
    let mut reeve = Command::new(env!("CARGO_BIN_EXE_reeve"));
    reeve.arg("--version");
    reeve.env("_RJEM_MALLOC_CONF", "stats_print:true");
    let output = reeve.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said
        .lines()
        .find(|line| line.contains("config.malloc_conf"))
        .unwrap();
    assert!(
        line.contains("narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0"),
        "{line}"
    );
}

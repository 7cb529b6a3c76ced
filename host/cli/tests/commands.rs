//! What the program itself says and how it exits, where nothing runs yet.

use reeve_test_support::definitions::FOLDER;
use std::fs;
use std::io::pipe;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A scenario that passes with a component that is none.
const SCENARIO: &str = "
name: what is no component does not run
given: {component: broken.wasm}
expect:
  conditions:
    - {of: Plugin, type: Ready, status: \"False\", reason: NotAComponent}
";

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("broken.wasm", "text"),
        ("good.yaml", SCENARIO),
        ("key.yaml", "name: a\ngiven:\n  objets: []\n"),
        ("time.yaml", "name: a\nsteps:\n  - advance: soon\n"),
        ("open.yaml", "name: [\n"),
        ("kubeconfig", "clusters: {"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn reeve(folder: &Path, arguments: &str) -> Command {
    let mut reeve = Command::new(env!("CARGO_BIN_EXE_reeve"));
    reeve
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        // For tests, and no setting.
        .env_remove(FOLDER)
        .env_remove("RUST_LOG");
    reeve
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_error_is_told_once_and_says_where() {
    let folder = folder();
    let scenario = |name: &str| format!("test {name} --component broken.wasm");
    for (arguments, expected) in [
        (
            "run --kubeconfig /nonexistent".to_owned(),
            "cannot read the kubeconfig /nonexistent; name another with --kubeconfig or KUBECONFIG: \
             No such file or directory (os error 2)\n",
        ),
        (
            "run --max-limit hostCalls=5,memoryBytes=1".to_owned(),
            "--max-limit: memoryBytes is 1; it must be between 65536 and 1073741824\n",
        ),
        (
            "run --kubeconfig kubeconfig".to_owned(),
            "kubeconfig is no kubeconfig: line 1 column 11: expected sequence start\n",
        ),
        (
            scenario("key.yaml"),
            "key.yaml:3:3: unknown field `objets`, expected one of config, files, objects, component, cluster, sources, actions\n\
             3 |   objets: []\n  \
               |   ^\n",
        ),
        (
            scenario("time.yaml"),
            "time.yaml:3:14: `soon` is no time; write numbers with units, such as `10m`, `1h30m` or `250ms`\n\
             3 |   - advance: soon\n  \
               |              ^\n",
        ),
        (
            scenario("open.yaml"),
            "open.yaml:1:7: expected string scalar\n\
             1 | name: [\n  \
               |       ^\n",
        ),
        (
            scenario("none.yaml"),
            "cannot read none.yaml: No such file or directory (os error 2)\n",
        ),
    ] {
        let output = reeve(folder.path(), &arguments).output().unwrap();
        let (stdout, stderr) = text(&output);
        assert_eq!(stderr, format!("error: {expected}"), "{arguments}");
        assert_eq!((stdout.as_str(), output.status.code()), ("", Some(2)));
    }
}

/// Its first line says what it is for, and the whole is on standard output.
#[test]
fn help_is_told_for_the_asking() {
    let folder = folder();
    for (arguments, first, part) in [
        (
            "",
            "Kubernetes controllers as WebAssembly components",
            "  dev ",
        ),
        (
            "dev",
            "Run the agent and your plugins on an embedded cluster",
            "Exit when everything has converged",
        ),
        (
            "run",
            "Run the agent against a cluster",
            "[default: reeve-system]",
        ),
        ("cluster", "", "--kubeconfig <FILE>"),
        ("test", "", "--junit"),
        ("crds", "", "Usage: reeve crds"),
        ("plugin new", "", "Usage: reeve plugin new"),
    ] {
        let output = reeve(folder.path(), &format!("{arguments} --help")).output();
        let output = output.unwrap();
        let (out, err) = text(&output);
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""));
        assert!(
            out.starts_with(first) && out.contains(part),
            "{part}: {out}"
        );
    }
}

/// `reeve … | head` ends the reader before the writer.
#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let folder = folder();
    for arguments in [
        "crds",
        "test good.yaml --component broken.wasm --junit report.xml",
        "test good.yaml --component broken.wasm -o json",
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut reeve = reeve(folder.path(), arguments);
        let output = reeve.stdout(writer).stderr(Stdio::piped()).output();
        let output = output.unwrap();
        assert_eq!(text(&output).1, "", "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
    }
    // What was to be written elsewhere still is.
    let report = fs::read_to_string(folder.path().join("report.xml")).unwrap();
    assert_eq!(report.matches("<testcase").count(), 1, "{report}");
}

/// A disk that is full is one.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = folder();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = reeve(folder.path(), "crds").stdout(full).output().unwrap();
    let (_, stderr) = text(&output);
    assert!(
        stderr.starts_with("error: cannot write to standard output: "),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(2));
}

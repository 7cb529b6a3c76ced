//! Runs scripts on two servers at once.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use reeve_real::without_collecting;
use serde_json::Value;
use similar::TextDiff;

use super::normal::normal;
use super::script::{Compared, Script, Step};

/// No command of a script takes longer, or it hangs.
const LIMIT: &str = "60";

/// A server, for kubectl.
pub(crate) struct Runner {
    /// With the programs' folders in front.
    path: OsString,
    kubeconfig: Value,
    folder: PathBuf,
}

/// How a command ended.
#[derive(Debug, PartialEq)]
struct Outcome {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Runner {
    /// For the server of `kubeconfig`; files go to `folder`.
    pub(crate) fn new(programs: &[PathBuf], kubeconfig: &Path, folder: &Path) -> Result<Self> {
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = programs.iter().cloned();
        let path = env::join_paths(folders.chain(env::split_paths(&others)))?;
        let view = Command::new("kubectl")
            .env("PATH", &path)
            .args(["config", "view", "--raw", "--output=json"])
            .env("KUBECONFIG", kubeconfig)
            .output()?;
        if !view.status.success() {
            bail!("kubectl cannot read {}", kubeconfig.display());
        }
        Ok(Self {
            path,
            kubeconfig: serde_json::from_slice(&view.stdout)?,
            folder: folder.to_owned(),
        })
    }

    /// The kubeconfig of a script, whose default is its namespace.
    fn kubeconfig_for(&self, script: &Script) -> Result<PathBuf> {
        let mut config = self.kubeconfig.clone();
        config["contexts"][0]["context"]["namespace"] = script.name.as_str().into();
        let path = self.folder.join(format!("{}.kubeconfig", script.name));
        fs::write(&path, config.to_string())?;
        Ok(path)
    }

    fn run(&self, script: &Script, step: &Step) -> Result<Outcome> {
        let home = self.folder.join("home");
        fs::create_dir_all(&home)?;
        let mut command = Command::new("timeout");
        let mut child = without_collecting(&mut command)
            .args([LIMIT, "sh", "-c", &step.command])
            .current_dir(super::folder())
            .env("PATH", &self.path)
            .env("HOME", &home)
            .env("TMPDIR", &self.folder)
            .env("KUBECONFIG", self.kubeconfig_for(script)?)
            .env("NAMESPACE", &script.name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a shell")?;
        let input = step.input.clone();
        let mut stdin = child.stdin.take().context("no input")?;
        // Written aside: the command may print before it has read everything, and
        // need not read anything.
        let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        if output.status.code() == Some(124) {
            bail!(
                "line {}: `{}` hangs; it has said: {}{}",
                step.line,
                step.command,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let text = |bytes: &[u8]| normal(&String::from_utf8_lossy(bytes));
        Ok(Outcome {
            code: output.status.code(),
            output: text(&output.stdout),
            errors: text(&output.stderr),
        })
    }
}

/// Runs every command on both servers, at the same time, and shows those that
/// end differently.
pub(crate) fn compare(script: &Script, real: &Runner, embedded: &Runner) -> Result<Vec<String>> {
    let namespace = Step {
        command: "kubectl create namespace $NAMESPACE".to_owned(),
        ..Step::default()
    };
    let mut differences = Vec::new();
    for step in [&namespace].into_iter().chain(&script.steps) {
        let (expected, found) = thread::scope(|scope| {
            let expected = scope.spawn(|| real.run(script, step));
            let found = embedded.run(script, step);
            (expected.join(), found)
        });
        let Ok(expected) = expected else {
            bail!("the thread of the real server panicked");
        };
        differences.extend(difference(script, step, expected?, found?));
    }
    Ok(differences)
}

fn difference(
    script: &Script,
    step: &Step,
    mut expected: Outcome,
    mut found: Outcome,
) -> Option<String> {
    for outcome in [&mut expected, &mut found] {
        match step.compared {
            Compared::Everything => {}
            Compared::Unordered => {
                for text in [&mut outcome.output, &mut outcome.errors] {
                    let mut lines: Vec<_> = text.lines().collect();
                    lines.sort_unstable();
                    *text = lines.join("\n");
                }
            }
            Compared::Success => {
                outcome.output.clear();
                outcome.errors.clear();
            }
        }
    }
    if expected == found {
        return None;
    }
    let (expected, found) = (shown(&expected), shown(&found));
    let diff = TextDiff::from_lines(&expected, &found);
    let diff = diff.unified_diff().context_radius(2).to_string();
    Some(format!(
        "{}.script:{}: {}\n{diff}",
        script.name, step.line, step.command
    ))
}

fn shown(outcome: &Outcome) -> String {
    let code = match outcome.code {
        Some(code) => code.to_string(),
        None => "a signal".to_owned(),
    };
    let Outcome { output, errors, .. } = outcome;
    format!("exit code {code}\n{output}\n--- errors\n{errors}\n")
}

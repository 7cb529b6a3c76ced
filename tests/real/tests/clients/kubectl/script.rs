//! Scripts: command lines, one after the other, with what they read.
//!
//! ```text
//! # A comment.
//! $ kubectl apply -f -
//! | apiVersion: v1
//! | kind: ConfigMap
//! | metadata: {name: a}
//! @ differs: why the two servers may print different things here
//! $ kubectl version
//! ```
//!
//! A command line is given to the shell, in a namespace of the script's own,
//! which kubectl takes for its default and which is also `$NAMESPACE`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A file of command lines.
#[derive(Debug)]
pub(crate) struct Script {
    /// The file's name, and that of the namespace.
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// A command line.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Where it stands in the file.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) input: String,
    pub(crate) compared: Compared,
    /// Why not everything is compared.
    pub(crate) why: String,
}

/// What of a command's end is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Compared {
    /// What it printed and its exit code.
    #[default]
    Everything,
    /// The same, with its lines in any order.
    Unordered,
    /// The exit code; the script says why.
    Success,
}

impl Script {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        let name = path.file_stem().context("no name")?.to_string_lossy();
        let steps = parse(&text).with_context(|| format!("in {}", path.display()))?;
        Ok(Self {
            name: name.replace('_', "-"),
            steps,
        })
    }
}

fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut compared, mut reason) = (Compared::default(), String::new());
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match line.split_at_checked(2).unwrap_or((line, "")) {
            ("$ ", command) => steps.push(Step {
                line: number,
                command: command.to_owned(),
                compared: std::mem::take(&mut compared),
                why: std::mem::take(&mut reason),
                input: String::new(),
            }),
            ("| " | "|", input) => {
                let step = steps.last_mut();
                let step = step.with_context(|| format!("line {number}: input of nothing"))?;
                step.input.push_str(input);
                step.input.push('\n');
            }
            ("@ ", mark) => {
                compared = match mark.split_once(": ") {
                    Some(("differs", why)) if !why.is_empty() => Compared::Success,
                    Some(("unordered", why)) if !why.is_empty() => Compared::Unordered,
                    _ => bail!("line {number}: {mark:?} is no mark with a reason"),
                };
                let why = mark.split_once(": ").map(|(_, why)| why);
                reason = why.unwrap_or_default().to_owned();
            }
            ("# " | "#" | "", _) => {}
            _ => bail!("line {number} is no command, input, mark or comment: {line}"),
        }
    }
    Ok(steps)
}

#[test]
fn scripts_are_read() {
    let text = "# a\n$ one\n\n@ differs: so\n$ two x\n| a:\n|   b\n|\n$ three\n";
    let steps = parse(text).unwrap();
    let shown: Vec<_> = steps
        .iter()
        .map(|s| {
            let (command, input, why) = (s.command.as_str(), s.input.as_str(), s.why.as_str());
            (s.line, command, input, s.compared, why)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (2, "one", "", Compared::Everything, ""),
            (5, "two x", "a:\n  b\n\n", Compared::Success, "so"),
            (9, "three", "", Compared::Everything, ""),
        ]
    );
    for (text, message) in [
        ("| a\n", "line 1: input of nothing"),
        ("$ a\nb", "line 2 is no command, input, mark or comment: b"),
        (
            "@ differs\n",
            "line 1: \"differs\" is no mark with a reason",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }
}

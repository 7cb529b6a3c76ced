//! What may differ: the rows of `accepted.yaml`, which are also the table in
//! `docs/embedded-cluster.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use regex::Regex;
use serde::Deserialize;

use crate::compare::Difference;
use crate::corpus;

/// A difference that is meant. Patterns are regular expressions and match the
/// whole of what they are held against; absent ones match everything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What differs, for the reader.
    what: String,
    /// Why it is left so.
    why: String,
    /// Whether it only shows by chance, so that it need not.
    #[serde(default)]
    chance: bool,
    /// Where it shows: any of these.
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The scenario; generated ones are called `generated/KIND`.
    #[serde(default = "anything")]
    scenario: String,
    /// Method and path.
    #[serde(default = "anything")]
    request: String,
    /// The place in the answer.
    #[serde(default = "anything")]
    at: String,
    /// What the real server says.
    #[serde(default = "anything")]
    real: String,
    /// What the embedded server says.
    #[serde(default = "anything")]
    embedded: String,
}

fn anything() -> String {
    ".*".to_owned()
}

struct Patterns {
    row: usize,
    patterns: [Regex; 5],
}

/// The table.
pub(crate) struct Accepted {
    rows: Vec<Row>,
    cases: Vec<Patterns>,
    used: BTreeSet<usize>,
}

impl Accepted {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        let rows: Vec<Row> =
            corpus::parse(&text).with_context(|| format!("cannot read {}", path.display()))?;
        let mut cases = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            for case in &row.cases {
                let whole = |text: &str| Regex::new(&format!("^(?s:{text})$"));
                cases.push(Patterns {
                    row: index,
                    patterns: [
                        whole(&case.scenario)?,
                        whole(&case.request)?,
                        whole(&case.at)?,
                        whole(&case.real)?,
                        whole(&case.embedded)?,
                    ],
                });
            }
        }
        Ok(Self {
            rows,
            cases,
            used: BTreeSet::new(),
        })
    }

    /// Whether a difference is in the table. The case that has it has occurred.
    pub(crate) fn has(&mut self, scenario: &str, request: &str, difference: &Difference) -> bool {
        let texts = [
            scenario,
            request,
            &difference.at,
            &difference.real,
            &difference.embedded,
        ];
        let mut accepted = false;
        for (index, case) in self.cases.iter().enumerate() {
            if case
                .patterns
                .iter()
                .zip(texts)
                .all(|(p, text)| p.is_match(text))
            {
                self.used.insert(index);
                accepted = true;
            }
        }
        accepted
    }

    /// Cases that never occurred, by what their rows say.
    pub(crate) fn unused(&self) -> Vec<String> {
        let unused = self
            .cases
            .iter()
            .enumerate()
            .filter(|(i, case)| !self.used.contains(i) && !self.rows[case.row].chance);
        unused
            .map(|(_, case)| format!("{}: {}", self.rows[case.row].what, case.patterns[2]))
            .collect()
    }

    /// The rows as a table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut table = "| Difference | Reason |\n|---|---|\n".to_owned();
        for row in &self.rows {
            table.push_str(&format!("| {} | {} |\n", row.what.trim(), row.why.trim()));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between these marks the table stands in the documents.
    const MARKS: [&str; 2] = ["<!-- accepted differences -->\n", "<!-- end -->"];

    #[test]
    fn the_table_in_the_documents_has_these_rows() -> Result<()> {
        let accepted = Accepted::read(&crate::suite::folder().join("accepted.yaml"))?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/embedded-cluster.md");
        let document = fs::read_to_string(path)?;
        let (_, rest) = document.split_once(MARKS[0]).context("no table")?;
        let (table, _) = rest.split_once(MARKS[1]).context("no end of the table")?;
        assert_eq!(
            table,
            accepted.markdown(),
            "copy the table from accepted.yaml"
        );
        Ok(())
    }

    #[test]
    fn rows_accept_what_they_describe_and_are_missed() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("accepted.yaml");
        let text = "- what: words\n  why: none\n  cases:\n  - {scenario: crud/.*, at: body\\.message, real: '\"a.*'}\n  - {at: other}\n";
        fs::write(&path, text)?;
        let mut accepted = Accepted::read(&path)?;
        let difference = |at: &str, real: &str| Difference {
            at: at.to_owned(),
            real: real.to_owned(),
            embedded: "absent".to_owned(),
        };
        assert!(accepted.has("crud/x", "GET /", &difference("body.message", "\"ab\"")));
        assert!(!accepted.has("watch/x", "GET /", &difference("body.message", "\"ab\"")));
        assert!(!accepted.has("crud/x", "GET /", &difference("body.message.x", "\"ab\"")));
        assert_eq!(accepted.unused(), ["words: ^(?s:other)$"]);
        assert!(accepted.markdown().contains("| words | none |"));
        Ok(())
    }
}

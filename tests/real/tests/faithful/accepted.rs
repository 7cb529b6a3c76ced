//! What may differ: the rows of `accepted.yaml`, which are also the table in
//! `docs/embedded-cluster.md`.
//!
//! A row cannot be wider than what it describes. Each of its cases names the
//! scenario, the request, one place in the answer, and what both servers say there;
//! all of it as it is, but for `…`, which stands for anything where that is allowed.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::compare::Difference;
use crate::corpus;

/// What stands for anything.
const ANYTHING: char = '…';
/// How many letters a value has to have besides, so that it says something.
const LETTERS: usize = 10;
/// How many say of what sort a value is: the quotes of a text.
const SORT: usize = 2;

/// What the names of generated scenarios begin with.
const GENERATED: &str = "generated/";

/// A difference that is meant.
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

/// One place where it shows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The scenario: `file/name`; generated ones are called `generated/KIND`. The
    /// file is given.
    scenario: Pattern,
    /// Method and path. The method is given.
    request: Pattern,
    /// The place in the answer. Anything is an index there, and nothing else.
    at: Pattern,
    /// What the real server says.
    real: Pattern,
    /// What the embedded server says.
    embedded: Pattern,
}

impl Case {
    /// Refuses one that would take in more than somebody looked at.
    fn check(&self) -> Result<()> {
        ensure!(
            self.scenario.start().contains('/'),
            "scenario: name at least its file, as in crud/{ANYTHING}"
        );
        ensure!(
            !self.request.is_open() || self.request.start().contains(" /"),
            "request: give at least the method and a slash, as in GET /{ANYTHING}"
        );
        let at = &self.at.0;
        let indexes = at.matches(&format!("[{ANYTHING}]")).count();
        ensure!(
            !at.is_empty() && indexes == at.matches(ANYTHING).count(),
            "at: only an index may be anything, as in items[{ANYTHING}].kind"
        );
        let values = [
            ("real", &self.real, &self.embedded),
            ("embedded", &self.embedded, &self.real),
        ];
        for (name, value, other) in values {
            // Beside a value that is given as it is, it is enough to say of what sort
            // the other one is.
            let least = if other.is_open() { LETTERS } else { SORT };
            ensure!(
                !value.is_open() || value.letters() >= least,
                "{name}: give at least {least} letters of what is said"
            );
        }
        Ok(())
    }

    fn has(&self, scenario: &str, request: &str, difference: &Difference) -> bool {
        self.scenario.matches(scenario) && self.shows(request, difference)
    }

    /// As [`Case::has`], in whatever scenario.
    fn shows(&self, request: &str, difference: &Difference) -> bool {
        self.request.matches(request)
            && self.at.matches(&difference.at)
            && self.real.matches(&difference.real)
            && self.embedded.matches(&difference.embedded)
    }
}

/// A text in which [`ANYTHING`] may stand for any part.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Pattern(String);

impl Pattern {
    fn is_open(&self) -> bool {
        self.0.contains(ANYTHING)
    }

    /// What comes before the first part that is open; all, if none is.
    fn start(&self) -> &str {
        self.0.split(ANYTHING).next().unwrap_or_default()
    }

    fn letters(&self) -> usize {
        self.0.chars().filter(|letter| *letter != ANYTHING).count()
    }

    fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split(ANYTHING);
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// A difference in the form of a case, to be copied where it is meant.
pub(crate) struct AsCase<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) request: &'a str,
    pub(crate) difference: &'a Difference,
}

impl fmt::Display for AsCase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { at, real, embedded } = self.difference;
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        writeln!(f, "  - scenario: {}", quoted(self.scenario))?;
        writeln!(f, "    request: {}", quoted(self.request))?;
        writeln!(f, "    at: {}", quoted(at))?;
        writeln!(f, "    real: {}", quoted(real))?;
        writeln!(f, "    embedded: {}", quoted(embedded))
    }
}

/// The table, and how often each of its cases has occurred.
#[derive(Debug)]
pub(crate) struct Accepted {
    rows: Vec<Row>,
    counts: Vec<Vec<usize>>,
}

impl Accepted {
    /// Reads the table.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        Self::parse(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let rows: Vec<Row> = corpus::parse(text)?;
        let mut known = BTreeSet::new();
        for row in &rows {
            ensure!(known.insert(&row.what), "{:?} comes twice", row.what);
            if row.cases.is_empty() {
                bail!("{:?} has no cases", row.what);
            }
            for (index, case) in row.cases.iter().enumerate() {
                let place = || format!("{:?}, case {}", row.what, index + 1);
                case.check().with_context(place)?;
            }
        }
        let counts = rows.iter().map(|row| vec![0; row.cases.len()]).collect();
        Ok(Self { rows, counts })
    }

    /// Whether a difference is in the table.
    pub(crate) fn has(&self, scenario: &str, request: &str, difference: &Difference) -> bool {
        let mut cases = self.rows.iter().flat_map(|row| &row.cases);
        cases.any(|case| case.has(scenario, request, difference))
    }

    /// Whether a difference is one that rows of chance describe, whatever scenario they
    /// name: it may be gone when the same is played again.
    pub(crate) fn may_be_chance(&self, request: &str, difference: &Difference) -> bool {
        let rows = self.rows.iter().filter(|row| row.chance);
        let mut cases = rows.flat_map(|row| &row.cases);
        cases.any(|case| case.shows(request, difference))
    }

    /// As [`Accepted::has`], and the cases that have it have occurred.
    pub(crate) fn take(&mut self, scenario: &str, request: &str, difference: &Difference) -> bool {
        let mut accepted = false;
        for (row, counts) in self.rows.iter().zip(&mut self.counts) {
            for (case, count) in row.cases.iter().zip(counts) {
                if case.has(scenario, request, difference) {
                    *count += 1;
                    accepted = true;
                }
            }
        }
        accepted
    }

    /// What each row has taken in, a line each.
    pub(crate) fn account(&self) -> String {
        let rows = self.rows.iter().zip(&self.counts);
        let lines = rows.map(|(row, counts)| {
            let sum: usize = counts.iter().sum();
            format!("{sum:>6}  {}\n", row.what)
        });
        lines.collect()
    }

    /// Cases that never occurred. What is generated is decided by the seed, so cases of
    /// that need not.
    pub(crate) fn unused(&self) -> Vec<String> {
        let mut unused = Vec::new();
        for (row, counts) in self.rows.iter().zip(&self.counts) {
            let cases = row.cases.iter().zip(counts);
            let missed = cases.filter(|(case, count)| {
                **count == 0 && !row.chance && !case.scenario.0.starts_with(GENERATED)
            });
            for (case, _) in missed {
                let Case {
                    scenario,
                    request,
                    at,
                    real,
                    ..
                } = case;
                unused.push(format!(
                    "{}: {}, {}, {}: {}",
                    row.what, scenario.0, request.0, at.0, real.0
                ));
            }
        }
        unused
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

    fn difference(at: &str, real: &str) -> Difference {
        Difference {
            at: at.to_owned(),
            real: real.to_owned(),
            embedded: "absent".to_owned(),
        }
    }

    /// A table of one row of one case: scenario, request, at, real, embedded.
    fn table(case: [&str; 5]) -> Result<Accepted> {
        let [scenario, request, at, real, embedded] = case.map(|text| format!("'{text}'"));
        Accepted::parse(&format!(
            "- what: words\n  why: none\n  cases:\n  - {{scenario: {scenario}, request: {request}, at: {at}, real: {real}, embedded: {embedded}}}\n"
        ))
    }

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
    fn rows_take_in_what_they_describe_and_are_missed() -> Result<()> {
        let mut accepted = table([
            "crud/…",
            "GET /…/a",
            "body.items[…].message",
            "\"a thing is … here\"",
            "absent",
        ])?;
        let real = "\"a thing is there or here\"";
        let at = "body.items[3].message";
        assert_eq!(accepted.unused().len(), 1);
        for (scenario, request, at, real, expected) in [
            ("crud/x", "GET /x/a", at, real, true),
            ("watch/x", "GET /x/a", at, real, false),
            ("crud/x", "PUT /x/a", at, real, false),
            ("crud/x", "GET /x/b", at, real, false),
            ("crud/x", "GET /x/a", "body.items[3].reason", real, false),
            ("crud/x", "GET /x/a", at, "\"a thing is gone\"", false),
        ] {
            let difference = difference(at, real);
            assert_eq!(accepted.has(scenario, request, &difference), expected);
            assert_eq!(accepted.take(scenario, request, &difference), expected);
        }
        let generated = table(["generated/A", "GET /x", "x", "\"a\"", "\"b\""])?;
        assert!(generated.unused().is_empty());
        let other = Difference {
            embedded: "\"x\"".to_owned(),
            ..difference(at, real)
        };
        assert!(!accepted.has("crud/x", "GET /x/a", &other));
        assert!(accepted.unused().is_empty());
        assert_eq!(accepted.account(), "     1  words\n");
        assert!(accepted.markdown().contains("| words | none |"));
        Ok(())
    }

    #[test]
    fn only_rows_of_chance_make_a_scenario_worth_another_try() -> Result<()> {
        let row = |chance: bool| {
            Accepted::parse(&format!(
                "- what: words\n  why: none\n  chance: {chance}\n  cases:\n  - {{scenario: 'generated/…', request: 'PUT /…', at: x, real: '\"a\"', embedded: absent}}\n"
            ))
        };
        let (found, other) = (difference("x", "\"a\""), difference("x", "\"b\""));
        assert!(row(true)?.may_be_chance("PUT /x", &found));
        assert!(!row(true)?.may_be_chance("GET /x", &found));
        assert!(!row(true)?.may_be_chance("PUT /x", &other));
        assert!(!row(false)?.may_be_chance("PUT /x", &found));
        Ok(())
    }

    #[test]
    fn rows_that_are_too_wide_are_refused() {
        let narrow = ["crud/x", "GET /x", "body.message", "\"x\"", "absent"];
        assert!(table(narrow).is_ok());
        for (part, wide, why) in [
            (0, "…", "scenario: name at least its file"),
            (0, "crud…", "scenario: name at least its file"),
            (1, "…", "request: give at least the method"),
            (1, "GET …", "request: give at least the method"),
            (2, "…", "at: only an index may be anything"),
            (2, "body.…", "at: only an index may be anything"),
            (2, "", "at: only an index may be anything"),
            (3, "…", "real: give at least 2 letters"),
            (4, "…", "embedded: give at least 2 letters"),
        ] {
            let mut case = narrow;
            case[part] = wide;
            let error = table(case).map_err(|error| format!("{error:#}"));
            let error = error.err().unwrap_or_default();
            assert!(error.contains(why), "{wide}: {error}");
        }
        let both = ["crud/x", "GET /x", "body.message", "\"a …\"", "\"…short\""];
        let error = table(both).map_err(|error| format!("{error:#}"));
        let error = error.err().unwrap_or_default();
        assert!(error.contains("give at least 10 letters"), "{error}");
        for text in [
            "- {what: a, why: b, cases: []}",
            "- {what: a, why: b, cases: [{scenario: a/b, request: GET /, at: x, real: y}]}",
        ] {
            assert!(Accepted::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_difference_is_printed_as_its_own_case() -> Result<()> {
        let difference = difference("body.message", "\"it's so\"");
        let case = AsCase {
            scenario: "crud/x",
            request: "events w",
            difference: &difference,
        };
        let text = format!("- what: words\n  why: none\n  cases:\n{case}");
        assert!(Accepted::parse(&text)?.has("crud/x", "events w", &difference));
        Ok(())
    }
}

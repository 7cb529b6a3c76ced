//! The report as JUnit XML, which CI systems read.

use crate::print::Printer;
use crate::report::{Report, ScenarioReport, Verdict};
use std::fmt::Write as _;

/// The report as a JUnit XML document: a suite for each plugin, a case for each
/// scenario.
pub fn junit(report: &Report) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let failed = report.counts().failed;
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "<testsuites name=\"reeve\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" time=\"{:.3}\">",
        report.scenarios.len(),
        report.seconds,
    );
    let mut plugins: Vec<&str> = report.scenarios.iter().map(|s| s.plugin.as_str()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    for plugin in plugins {
        let cases: Vec<&ScenarioReport> = report
            .scenarios
            .iter()
            .filter(|s| s.plugin == plugin)
            .collect();
        suite(&mut text, plugin, &cases);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(text: &mut String, plugin: &str, cases: &[&ScenarioReport]) {
    let failed = cases
        .iter()
        .filter(|case| case.verdict == Verdict::Failed)
        .count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\">",
        escape(plugin),
        cases.len(),
    );
    for case in cases {
        let _ = write!(
            text,
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
            escape(&case.name),
            escape(plugin),
            escape(&case.file.display().to_string()),
            case.line,
            case.seconds,
        );
        if case.verdict != Verdict::Failed {
            text.push_str("/>\n");
            continue;
        }
        let message = case
            .failures
            .first()
            .map(|failure| failure.message.as_str());
        let _ = writeln!(
            text,
            ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
            escape(message.unwrap_or_default()),
            escape(&Printer { colour: false }.scenario(case)),
        );
    }
    text.push_str("  </testsuite>\n");
}

/// Text for an attribute or an element. What XML cannot hold at all becomes the
/// replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\t' => escaped.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Failure;

    fn scenario(name: &str, verdict: Verdict) -> ScenarioReport {
        ScenarioReport {
            plugin: "quotas".into(),
            file: "a.yaml".into(),
            line: 3,
            name: name.into(),
            seconds: 0.5,
            verdict,
            failures: Vec::new(),
            conditions: Vec::new(),
            log: Vec::new(),
        }
    }

    #[test]
    fn every_scenario_is_a_case() {
        let mut failed = scenario("b & \"c\"", Verdict::Failed);
        failed.failures.push(Failure {
            step: 1,
            name: None,
            line: 7,
            message: "1 < 2\u{1}".into(),
            difference: "-a\n+b\n".into(),
        });
        let report = Report {
            scenarios: vec![scenario("a", Verdict::Passed), failed],
            rewritten: Vec::new(),
            seconds: 0.75,
        };
        assert_eq!(
            junit(&report),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="reeve" tests="2" failures="1" errors="0" time="0.750">
  <testsuite name="quotas" tests="2" failures="1" errors="0" skipped="0" time="1.000">
    <testcase name="a" classname="quotas" file="a.yaml" line="3" time="0.500"/>
    <testcase name="b &amp; &quot;c&quot;" classname="quotas" file="a.yaml" line="3" time="0.500">
      <failure message="1 &lt; 2�">FAILED quotas: b &amp; &quot;c&quot; (500.0 ms)
  a.yaml:7 (step 1): 1 &lt; 2�
    -a
    +b
</failure>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }
}

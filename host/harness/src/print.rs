//! The report as people read it in a terminal.

use crate::report::{Counts, Failure, Report, ScenarioReport, Verdict};
use std::fmt::Write as _;

/// Turns reports into text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Printer {
    /// Whether the text is coloured, for a terminal.
    pub colour: bool,
}

#[derive(Clone, Copy)]
enum Style {
    Good,
    Bad,
    Place,
    Faint,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Bad => "31",
            Self::Place => "36",
            Self::Faint => "2",
        }
    }
}

impl Printer {
    /// One scenario: a line, and below it what went wrong.
    pub fn scenario(self, scenario: &ScenarioReport) -> String {
        let (mark, style) = match scenario.verdict {
            Verdict::Passed => ("ok", Style::Good),
            Verdict::Updated => ("updated", Style::Good),
            Verdict::Failed => ("FAILED", Style::Bad),
        };
        let mut text = format!(
            "{} {}: {} {}\n",
            self.paint(style, mark),
            scenario.plugin,
            scenario.name,
            self.paint(Style::Faint, &format!("({:.1} ms)", scenario.seconds * 1e3)),
        );
        for failure in &scenario.failures {
            self.failure(&mut text, scenario, failure);
        }
        self.section(&mut text, "conditions", &scenario.conditions);
        self.section(&mut text, "log", &scenario.log);
        text
    }

    /// The last line.
    pub fn summary(self, report: &Report) -> String {
        let Counts {
            passed,
            updated,
            failed,
        } = report.counts();
        let mut text = String::new();
        for file in &report.rewritten {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "rewrote {}", file.display());
        }
        let updated = match updated {
            0 => String::new(),
            updated => format!(", {updated} updated"),
        };
        let counts = format!("{passed} passed{updated}, {failed} failed");
        let style = if failed == 0 { Style::Good } else { Style::Bad };
        let _ = writeln!(
            text,
            "{} in {:.2} s ({:.0} scenarios/s)",
            self.paint(style, &counts),
            report.seconds,
            report.rate()
        );
        text
    }

    fn failure(self, text: &mut String, scenario: &ScenarioReport, failure: &Failure) {
        let moment = match (failure.step, &failure.name) {
            (0, _) => "given".to_owned(),
            (step, None) => format!("step {step}"),
            (step, Some(name)) => format!("step {step}, {name}"),
        };
        let place = format!("{}:{}", scenario.file.display(), failure.line);
        let _ = writeln!(
            text,
            "  {} ({moment}): {}",
            self.paint(Style::Place, &place),
            failure.message
        );
        for line in failure.difference.lines() {
            let style = match line.as_bytes().first() {
                Some(b'-') => Some(Style::Bad),
                Some(b'+') => Some(Style::Good),
                Some(b'@') => Some(Style::Faint),
                _ => None,
            };
            let line = match style {
                Some(style) => self.paint(style, line),
                None => line.to_owned(),
            };
            let _ = writeln!(text, "    {line}");
        }
    }

    fn section(self, text: &mut String, name: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(text, "  {}", self.paint(Style::Faint, &format!("{name}:")));
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
        } else {
            text.to_owned()
        }
    }
}

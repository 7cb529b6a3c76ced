//! A replay for people.

use super::Compared;
use crate::columns::counted;
use crate::looking::field_in_text;
use crate::style::{Painter, Style};
use reeve_core::fields::FieldChange;
use reeve_core::recording::{Difference, Extent};
use reeve_engine::Obstacle;

/// The text of a replay. `verbose` adds what was logged, and what was not read.
pub(super) fn of(compared: &Compared, verbose: bool, painter: Painter) -> String {
    let mut text = Text {
        out: String::new(),
        painter,
    };
    text.heading(compared);
    for obstacle in &compared.replayed.obstacles {
        text.obstacle(obstacle);
    }
    for difference in &compared.differences {
        text.difference(difference);
    }
    if verbose {
        for question in &compared.replayed.unasked {
            let line = format!("it does not read {question}, which the recorded call did");
            text.line(2, Some(Style::Faint), &line);
        }
        for line in &compared.replayed.logs {
            let line = format!("log: {}: {}", line.level, line.message);
            text.line(2, Some(Style::Faint), &line);
        }
    }
    text.verdict(compared);
    text.out
}

struct Text {
    out: String,
    painter: Painter,
}

impl Text {
    fn line(&mut self, indent: usize, style: Option<Style>, line: &str) {
        self.painter.line(&mut self.out, indent, style, line);
    }

    fn heading(&mut self, compared: &Compared) {
        let recording = &compared.recording;
        let about = &recording.metadata;
        let recorded = format!(
            "{} ({})",
            recording.component.version, recording.component.digest
        );
        let called = if compared.is_same_component() {
            recorded
        } else {
            let version = compared.version.as_deref().unwrap_or("of no version");
            format!("{version} ({}) in the place of {recorded}", compared.digest)
        };
        let line = format!(
            "{} {called} for {}, recorded at {}",
            about.plugin,
            about.primary.reference(),
            about.recorded_at
        );
        self.line(0, Some(Style::Heading), &line);
        if compared.edited {
            self.line(2, Some(Style::Warning), "the file was edited");
        }
        if !recording.redacted.is_empty() {
            let line = format!(
                "values of {} are redacted: both answers are to what stands in their place",
                counted(recording.redacted.len(), "Secret")
            );
            self.line(2, Some(Style::Warning), &line);
        }
    }

    fn obstacle(&mut self, obstacle: &Obstacle) {
        let line = match obstacle {
            Obstacle::Unanswered(_) => {
                format!("! {obstacle}; it was told that this is not known yet")
            }
            _ => format!("! {obstacle}; it was not called"),
        };
        self.line(2, Some(Style::Warning), &line);
    }

    fn difference(&mut self, difference: &Difference) {
        match difference {
            Difference::Answer { recorded, now } => {
                self.line(2, Some(Style::Removed), &format!("- {recorded}"));
                self.line(2, Some(Style::Added), &format!("+ {now}"));
            }
            Difference::Object { object, extent } => self.object(object, extent),
            Difference::Rest(fields) if fields.is_empty() => {
                let line = "= the status of the primary, in other bytes";
                self.line(2, Some(Style::Faint), line);
            }
            Difference::Rest(fields) => {
                self.line(2, Some(Style::Changed), "~ beside objects");
                self.fields(fields);
            }
        }
    }

    fn object(&mut self, object: &str, extent: &Extent) {
        let (style, line) = match extent {
            Extent::Added(_) => (Style::Added, format!("+ {object}")),
            Extent::Gone => (Style::Removed, format!("- {object}")),
            Extent::Changed(fields) if fields.is_empty() => (
                Style::Changed,
                format!("~ {object}, in fields that are not compared one by one"),
            ),
            Extent::Changed(_) => (Style::Changed, format!("~ {object}")),
            Extent::Bytes => (Style::Faint, format!("= {object}, the same in other bytes")),
            Extent::Place => (Style::Faint, format!("= {object}, at another place")),
        };
        self.line(2, Some(style), &line);
        if let Extent::Added(fields) | Extent::Changed(fields) = extent {
            self.fields(fields);
        }
    }

    fn fields(&mut self, fields: &[FieldChange]) {
        for field in fields {
            if let Some((style, line)) = field_in_text(field) {
                self.line(6, Some(style), &line);
            }
        }
    }

    fn verdict(&mut self, compared: &Compared) {
        let (replayed, differences) = (&compared.replayed, &compared.differences);
        let answer = replayed.answer.as_ref();
        let line = match (compared.is_equal(), answer) {
            (true, Some(answer)) if differences.is_empty() => {
                format!("equal in each byte: {}", answer.summary())
            }
            (true, _) => "equal, but for the bytes".to_owned(),
            (false, None) => "different: it has no answer to this call".to_owned(),
            (false, Some(answer)) if differences.is_empty() => format!(
                "not known: what it answers is the same ({}), without {} that was not recorded",
                answer.summary(),
                counted(replayed.obstacles.len(), "read")
            ),
            (false, Some(_)) if !replayed.obstacles.is_empty() => format!(
                "different, as far as can be told without {} that {} not recorded",
                counted(replayed.obstacles.len(), "read"),
                if replayed.obstacles.len() == 1 {
                    "was"
                } else {
                    "were"
                },
            ),
            (false, Some(_)) => "different".to_owned(),
        };
        self.line(0, None, &line);
    }
}

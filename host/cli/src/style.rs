//! Colours, where somebody sees them.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// How text is emphasised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// What is added.
    Added,
    /// What is taken away.
    Removed,
    /// What changes.
    Changed,
    /// What somebody should look at.
    Warning,
    /// What a block is about.
    Heading,
    /// What matters less.
    Faint,
}

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painter {
    colours: bool,
}

impl Painter {
    /// For standard output: coloured on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: std::io::stdout().is_terminal() && !unwanted,
        }
    }

    /// Paints a text.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match style {
            Style::Added => "32",
            Style::Removed => "31",
            Style::Changed => "33",
            Style::Warning => "1;33",
            Style::Heading => "1",
            Style::Faint => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Adds a line to a text, so far to the right.
    pub(crate) fn line(self, out: &mut String, indent: usize, style: Option<Style>, line: &str) {
        let painted = style.map(|style| self.paint(style, line));
        let line = painted.as_deref().unwrap_or(line);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_painted_where_nobody_sees_it() {
        for (colours, expected) in [(false, "a"), (true, "\u{1b}[32ma\u{1b}[0m")] {
            assert_eq!(Painter { colours }.paint(Style::Added, "a"), expected);
        }
    }
}

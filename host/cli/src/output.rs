//! What commands print on standard output.
//!
//! A reader that has gone away (`reeve test | head`) is no failure: nobody misses
//! the rest, and the exit code still tells how the command ended.

use anyhow::Context as _;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Prints text that is the command's result.
///
/// # Errors
///
/// When it cannot be written although somebody reads: a full disk, for instance.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    write(&mut std::io::stdout().lock(), text)
}

/// Prints a line that says how the command is getting on. Nothing depends on it: it
/// is dropped where it cannot be written.
pub(crate) fn tell(line: impl Display) {
    // See above.
    let _ = print(format_args!("{line}\n"));
}

/// Says on standard error why the command ends. Where nobody reads it, the exit code
/// has to do.
pub(crate) fn complain(problem: impl Display) {
    let _ = writeln!(std::io::stderr(), "error: {problem}");
}

fn write(output: &mut impl Write, text: impl Display) -> anyhow::Result<()> {
    let written = write!(output, "{text}").and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// A message, which may have several lines, on one.
pub(crate) fn on_one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error with its causes, from the outermost to the root. Of what the API server answers it
/// is its message: the rest is for programs.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let answer = match cause.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if !status.message.is_empty() => Some(&status.message),
            _ => None,
        };
        let told = answer.cloned().unwrap_or_else(|| cause.to_string());
        if !text.contains(&told) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&told);
        }
        // Its cause says the same once more.
        if answer.is_some() {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_an_absent_reader_is_no_failure() {
        assert!(write(&mut Failing(ErrorKind::BrokenPipe), "text").is_ok());
        let error = write(&mut Failing(ErrorKind::StorageFull), "text").unwrap_err();
        assert_eq!(error.to_string(), "cannot write to standard output");
    }

    #[test]
    fn what_the_api_server_answers_is_told_once_and_in_its_words() {
        let status = kube::core::Status::failure("a is invalid: b", "Invalid").with_code(422);
        let error: Result<(), _> = Err(kube::Error::Api(Box::new(status)));
        let error = error.context("cannot make a").unwrap_err();
        assert_eq!(in_words(&error), "cannot make a: a is invalid: b");
        let error = anyhow::anyhow!("root")
            .context("middle: root")
            .context("top");
        assert_eq!(in_words(&error), "top: middle: root");
    }
}

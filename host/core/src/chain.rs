//! Errors as people read them: one line, with every cause once.

use std::error::Error;

/// An error with all of its causes, from the outermost to the root, each after a
/// colon. Errors of other libraries often repeat their cause in their own message:
/// a cause that has been told already is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Told(&'static str, Option<Box<Told>>);

    impl fmt::Display for Told {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Told {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            let source = self.1.as_deref()?;
            Some(source)
        }
    }

    #[test]
    fn every_cause_is_told_once() {
        for (messages, expected) in [
            (["a", "b", "c"], "a: b: c"),
            (
                ["cannot read: no file", "no file", "(os error 2)"],
                "cannot read: no file: (os error 2)",
            ),
            (["a", "b: c", "c"], "a: b: c"),
        ] {
            let [outer, middle, root] = messages;
            let root = Told(root, None);
            let middle = Told(middle, Some(Box::new(root)));
            let outer = Told(outer, Some(Box::new(middle)));
            assert_eq!(chain(&outer), expected);
        }
    }
}

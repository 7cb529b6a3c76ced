//! Finding what `cargo xtask plugins` has built.

use std::path::{Path, PathBuf};

/// The component of the plugin in `plugins/<name>`.
///
/// # Panics
///
/// When it has not been built, with the command that does: a test that needs it
/// cannot go on, and must not pass.
#[must_use]
pub fn component(name: &str) -> PathBuf {
    built("plugins", name, &["wasm"])
}

/// The guest in `tests/guests/<name>`: a component, or the text of one.
///
/// # Panics
///
/// As [`component`].
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    built("guests", name, &["wasm", "wat"])
}

#[expect(clippy::panic, reason = "the error message of a test")]
fn built(folder: &str, name: &str, endings: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let folder = root.unwrap_or(Path::new("")).join("target").join(folder);
    let found = endings
        .iter()
        .map(|ending| folder.join(format!("{name}.{ending}")))
        .find(|path| path.is_file());
    match found {
        Some(path) => path,
        None => panic!(
            "there is no {name} in {}; run `cargo xtask plugins`",
            folder.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "run `cargo xtask plugins`")]
    fn what_is_not_built_is_named_with_the_command_that_builds_it() {
        let _ = component("no-such-plugin");
    }
}

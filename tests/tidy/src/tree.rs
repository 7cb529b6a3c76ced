//! The files of the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The text files that are in the repository, or would be with the next commit.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    files: Vec<TextFile>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Relative to the root, with `/` between its parts.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl Tree {
    /// Reads the checkout that this crate is part of.
    ///
    /// # Errors
    ///
    /// When git cannot list its files, or one cannot be read.
    pub fn read() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).context("no root folder")?;
        let listing = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("cannot start git")?;
        if !listing.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
        }
        let mut files = Vec::new();
        for path in String::from_utf8(listing.stdout)?.split_terminator('\0') {
            // A file that is deleted but not yet committed is listed all the same.
            let Ok(bytes) = fs::read(root.join(path)) else {
                continue;
            };
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        Ok(Self {
            root: root.to_owned(),
            files,
        })
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every text file.
    pub fn files(&self) -> &[TextFile] {
        &self.files
    }

    /// The Rust sources.
    pub fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

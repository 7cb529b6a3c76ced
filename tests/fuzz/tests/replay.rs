//! The checked-in inputs of every target, run as ordinary tests.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests panic where they fail"
)]

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reeve_core::Digest;
use reeve_fuzz::{TARGETS, Target};

/// The corpus of one target, as `cargo xtask fuzz --keep` bounds it: some hundred inputs,
/// which reach most of what fuzzing has reached, and are in a checkout and replayed within
/// seconds.
const LARGEST: u64 = 16 << 10;

/// How the names of inputs begin that `cargo xtask fuzz --keep` has added.
const FOUND: &str = "found-";

/// Panics seen so far, those of tasks in the background too.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// The hook is one for the process, and counts what fails in any test.
static HOOK: Mutex<()> = Mutex::new(());

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs a target on every input of its corpus, and names those that fail.
fn replay(name: &str, target: Target) -> Vec<String> {
    let inputs = files_in(&corpus().join(name));
    assert!(!inputs.is_empty(), "{name} has no inputs");
    let mut failed = Vec::new();
    for path in inputs {
        let input = fs::read(&path).unwrap();
        let before = PANICS.load(Ordering::SeqCst);
        let ended = panic::catch_unwind(AssertUnwindSafe(|| target(&input)));
        if ended.is_err() || PANICS.load(Ordering::SeqCst) != before {
            failed.push(path.display().to_string());
        }
    }
    failed
}

#[test]
fn every_input_of_every_corpus_passes() {
    let _hook = HOOK.lock();
    let shown = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        shown(info);
    }));
    let failed: Vec<String> = TARGETS
        .iter()
        .flat_map(|(name, target)| replay(name, *target))
        .collect();
    assert_eq!(failed, Vec::<String>::new(), "these inputs fail");
}

#[test]
fn corpora_belong_to_targets_and_stay_small() {
    let _hook = HOOK.lock();
    let mut names = Vec::new();
    for folder in files_in(&corpus()) {
        let files = files_in(&folder);
        let sizes = files.iter().map(|file| file.metadata().unwrap().len());
        let size: u64 = sizes.sum();
        let name = folder.display();
        assert!(size <= LARGEST, "{size} bytes; minimise {name}");
        names.push(folder.file_name().unwrap().to_string_lossy().into_owned());
    }
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names, targets);
}

/// So that what is added again is the same file.
#[test]
fn what_was_found_is_named_by_its_digest() {
    let _hook = HOOK.lock();
    for file in files_in(&corpus()).iter().flat_map(|of| files_in(of)) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(digest) = name.strip_prefix(FOUND) {
            let found = Digest::of(&fs::read(&file).unwrap()).hex();
            assert_eq!(digest, &found[..12], "{}", file.display());
        }
    }
}

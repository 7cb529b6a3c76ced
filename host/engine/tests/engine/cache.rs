//! The artifact cache believes only itself.

use crate::guests::{World, bytes, config, limits, request};
use reeve_engine::{Engine, EngineConfig, EngineStats, Limits};
use reeve_test_support::skipped;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A new engine on the folder, as after a restart, that loads and runs a guest.
async fn start(folder: &Path) -> EngineStats {
    let engine = Engine::new(EngineConfig {
        cache: Some(folder.to_owned()),
        max_instances: 0,
        ..config()
    })
    .unwrap();
    let component = engine.load(bytes("tourist")).await.unwrap();
    let world = Arc::new(World::default());
    let called = component
        .reconcile(request(&json!({})), world, &limits())
        .await;
    assert!(called.unwrap().value.is_ok());
    engine.stats()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("key"))
        .collect();
    entries.sort();
    entries
}

fn cached() -> EngineStats {
    let mut stats = EngineStats::default();
    stats.cached = 1;
    stats
}

fn compiled() -> EngineStats {
    let mut stats = EngineStats::default();
    stats.compiled = 1;
    stats
}

#[tokio::test]
async fn a_restart_compiles_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("cache");
    assert_eq!(start(&folder).await, compiled());
    assert_eq!(start(&folder).await, cached());
    assert_eq!(entries(&folder).len(), 1, "nothing temporary stays behind");
}

/// What runs is mapped from a file that nobody can name: neither memory that is not given
/// back, nor an entry that somebody might change.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_runs_is_in_a_file_without_a_name() {
    // In memory, as the folder for temporary files may be, no code is mapped.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = place.path().join("cache");
    if !has_files_without_names(place.path()) {
        return;
    }
    let maps = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let of_folder = |line: &&str| line.contains(folder.to_str().unwrap());
        maps.lines()
            .filter(of_folder)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Just compiled, and from the cache.
    for _ in 0..2 {
        let engine = Engine::new(EngineConfig {
            cache: Some(folder.clone()),
            max_instances: 0,
            ..config()
        })
        .unwrap();
        let component = engine.load(bytes("tourist")).await.unwrap();
        let mapped = maps();
        let is_code = |line: &String| line.contains(" r-xp ") && line.ends_with(" (deleted)");
        assert!(mapped.iter().any(is_code), "{mapped:?}");
        assert!(
            mapped.iter().all(|line| line.ends_with(" (deleted)")),
            "{mapped:?}"
        );
        drop((component, engine));
        // It goes with the component, which the thread that made it may hold a moment longer.
        let before = Instant::now();
        while !maps().is_empty() {
            assert!(before.elapsed() < Duration::from_secs(10), "{:?}", maps());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Whether code is mapped from a folder at all, which depends on its file system.
#[cfg(target_os = "linux")]
fn has_files_without_names(folder: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    let is_memory = rustix::fs::statfs(folder).unwrap().f_type == TMPFS;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let has = !is_memory && rustix::fs::open(folder, flags, Mode::RUSR).is_ok();
    if !has {
        skipped(&format!("{} has no files without names", folder.display()));
    }
    has
}

/// Kilobytes of code in memory that is mapped from a folder.
#[cfg(target_os = "linux")]
fn resident(folder: &Path) -> u64 {
    let mut is_code = false;
    let mut sum = 0;
    for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let is_mapping = line.split(' ').next().unwrap_or_default().contains('-');
        if is_mapping {
            is_code = line.contains(" r-xp ") && line.contains(folder.to_str().unwrap());
        } else if is_code && let Some(rest) = line.strip_prefix("Rss:") {
            let kilobytes = rest.trim().strip_suffix(" kB").unwrap();
            sum += kilobytes.parse::<u64>().unwrap();
        }
    }
    sum
}

/// What is not called is not in memory, whether it has run in the pool or outside of it.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn code_that_does_not_run_is_given_back() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = place.path().join("cache");
    if !has_files_without_names(place.path()) {
        return;
    }
    let engine = Engine::new(EngineConfig {
        cache: Some(folder.clone()),
        ..config()
    })
    .unwrap();
    let component = engine.load(bytes("tourist")).await.unwrap();
    let other_stack = Limits {
        stack_bytes: 128 << 10,
        ..limits()
    };
    let in_memory = async |enough: fn(u64) -> bool| {
        let begun = Instant::now();
        while !enough(resident(&folder)) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}",
                resident(&folder)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    in_memory(|kilobytes| kilobytes == 0).await;
    for limits in [limits(), limits(), other_stack.clone(), other_stack] {
        let world = Arc::new(World::default());
        let called = component
            .reconcile(request(&json!({})), world, &limits)
            .await;
        assert!(resident(&folder) > 0, "it has just run");
        assert!(called.unwrap().value.is_ok());
        in_memory(|kilobytes| kilobytes == 0).await;
    }
}

#[tokio::test]
async fn the_key_and_the_folder_are_private() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("cache");
    start(&folder).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("key")), 0o600);
    assert_eq!(mode(&entries(&folder)[0]), 0o600);
}

#[tokio::test]
async fn entries_that_were_not_written_here_are_discarded() {
    type Tamper = fn(&Path);
    let cases: [(&str, Tamper); 6] = [
        ("truncated", |entry| {
            let contents = fs::read(entry).unwrap();
            fs::write(entry, &contents[..contents.len() - 1]).unwrap();
        }),
        ("empty", |entry| fs::write(entry, b"").unwrap()),
        ("altered", |entry| {
            let mut contents = fs::read(entry).unwrap();
            let middle = contents.len() / 2;
            contents[middle] ^= 1;
            fs::write(entry, contents).unwrap();
        }),
        ("extended", |entry| {
            let mut contents = fs::read(entry).unwrap();
            contents.push(0);
            fs::write(entry, contents).unwrap();
        }),
        ("without its MAC", |entry| {
            let contents = fs::read(entry).unwrap();
            fs::write(entry, &contents[32..]).unwrap();
        }),
        ("under another key", |entry| {
            let key = entry.with_file_name("key");
            fs::remove_file(&key).unwrap();
        }),
    ];
    let place = tempfile::tempdir().unwrap();
    for (what, tamper) in cases {
        start(place.path()).await;
        tamper(&entries(place.path())[0]);
        assert_eq!(start(place.path()).await, compiled(), "{what}");
        assert_eq!(start(place.path()).await, cached(), "{what}, afterwards");
    }
}

/// An entry is bound to its name: to the component, wasmtime's version and its
/// settings.
#[tokio::test]
async fn an_entry_under_another_name_is_discarded() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await;
    let entry = entries(place.path()).remove(0);
    let engine = Engine::new(EngineConfig {
        cache: Some(place.path().to_owned()),
        max_instances: 0,
        ..config()
    })
    .unwrap();
    let other = bytes("chameleon");
    let own = entry.file_name().unwrap().to_str().unwrap();
    let settings = own.split_once('-').unwrap().1;
    let forged = format!("{}-{settings}", reeve_core::Digest::of(&other).hex());
    fs::copy(&entry, place.path().join(forged)).unwrap();
    engine.load(other).await.unwrap();
    assert_eq!(engine.stats(), compiled());
}

/// Even to the very bytes that were there before: what is outside of the folder is
/// not the cache's, and is neither read nor written.
#[tokio::test]
async fn a_link_out_of_the_folder_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (folder, outside) = (place.path().join("cache"), place.path().join("outside"));
    start(&folder).await;
    let entry = entries(&folder).remove(0);
    fs::rename(&entry, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &entry).unwrap();
    let before = fs::read(&outside).unwrap();
    assert_eq!(start(&folder).await, compiled());
    assert_eq!(fs::read(&outside).unwrap(), before);
    assert!(!entry.is_symlink(), "an entry has taken its place");
    assert_eq!(start(&folder).await, cached());
}

/// What is let in may change from one version of the engine to the next, and what is
/// in the cache is not looked at again.
#[tokio::test]
async fn an_entry_of_other_settings_is_left_alone_and_not_used() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await;
    let entry = entries(place.path()).remove(0);
    let name = entry.file_name().unwrap().to_str().unwrap();
    let (digest, settings) = name.split_once('-').unwrap();
    assert_eq!((digest.len(), settings.len()), (64, 16));
    let other = entry.with_file_name(format!("{digest}-{}", "0".repeat(16)));
    fs::rename(&entry, &other).unwrap();
    assert_eq!(start(place.path()).await, compiled());
    assert!(other.exists() && entry.exists());
}

#[tokio::test]
async fn a_key_that_others_can_read_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    start(place.path()).await;
    let key = place.path().join("key");
    let before = fs::read(&key).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(start(place.path()).await, compiled());
    assert_ne!(fs::read(&key).unwrap(), before);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Engine::new(EngineConfig {
        cache: Some(file),
        max_instances: 0,
        ..config()
    })
    .unwrap_err();
    assert_eq!(error.to_string(), "cannot use the artifact cache");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.starts_with("cannot open the folder "), "{source}");
}

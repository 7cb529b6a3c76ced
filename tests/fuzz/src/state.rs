//! State folders of the embedded API server, which a disk, a crash or somebody else has
//! changed.

mod folder;
mod records;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use reeve_sim::{StateError, load_state, save_state};

use self::folder::{Made, Scratch};
use crate::choices::Choices;
use crate::cluster::Cluster;

/// Lists that have to stay readable.
const LISTS: &[&str] = &[
    "/api/v1/configmaps",
    "/apis/fuzz.dev/v1/things",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/api/v1/namespaces",
    "/apis",
];

/// The first byte chooses what the rest is.
///
/// | Byte | The rest |
/// |---|---|
/// | `L` | a whole log |
/// | `S` | a whole snapshot |
/// | `J` | `server.json` |
/// | `N` | the name of one more log or snapshot |
/// | `l` | records, as [`records::forged`] reads them, behind those of a log |
/// | `s` | records of a snapshot that has no others |
/// | any other | decisions of what is done to files that a server has written |
///
/// A folder is refused with an error that names a file, and is then as it was; or it is
/// taken. What of a server's files is taken, without checksums that somebody has made,
/// is what was there at one moment. What is taken can be copied, opened by a server, and
/// opened again after that.
pub fn state(input: &[u8]) {
    let (choice, rest) = input.split_first().unwrap_or((&0, &[]));
    let made = folder::made();
    let scratch = Scratch::new();
    let folder = scratch.path("folder");
    made.write_to(&folder);
    match choice {
        b'L' => write(&folder.join(folder::LOG), rest),
        b'S' => write(&folder.join(folder::SNAPSHOT), rest),
        b'J' => write(&folder.join(folder::SERVER), rest),
        b'l' => {
            let mut log = made.log.clone();
            log.extend(records::forged(rest, made.version));
            write(&folder.join(folder::LOG), &log);
        }
        b's' => {
            let mut snapshot = format!("reeve-state 2 snapshot {}\n", made.version).into_bytes();
            snapshot.extend(records::forged(rest, 0));
            write(&folder.join(folder::SNAPSHOT), &snapshot);
            let log = format!("reeve-state 2 log {}\n", made.version);
            write(&folder.join(folder::LOG), log.as_bytes());
        }
        b'N' => {
            let Some(name) = name(rest) else { return };
            let is_log = name.starts_with("log");
            let bytes = if is_log { &made.log } else { &made.snapshot };
            write(&folder.join(name), bytes);
            return check(&scratch, &folder, Some(&made));
        }
        _ => {
            damage(&made, &folder, &mut Choices::new(input));
            return check(&scratch, &folder, Some(&made));
        }
    }
    check(&scratch, &folder, None);
}

/// A name that a file may have, and that none has.
fn name(bytes: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(bytes).ok()?;
    let is_one =
        !name.contains(['/', '\0']) && !matches!(name, "" | "." | "..") && name.len() < 200;
    let is_free = ![folder::LOG, folder::SNAPSHOT, folder::SERVER, "lock"].contains(&name);
    (is_one && is_free).then_some(name)
}

/// Does to a file what disks, crashes and people do.
fn damage(made: &Made, folder: &Path, choices: &mut Choices<'_>) {
    let (name, whole) =
        choices.pick(&[(folder::LOG, &made.log), (folder::SNAPSHOT, &made.snapshot)]);
    let mut bytes = whole.clone();
    loop {
        // Near the edge of a record more depends on every byte.
        let at = match choices.below(3) {
            0 => choices.below(bytes.len() + 1),
            _ => {
                let edges = records::edges(&bytes);
                let edge = edges.get(choices.below(edges.len())).copied();
                edge.unwrap_or_default() + choices.below(16)
            }
        };
        let at = at.min(bytes.len());
        let end = (at + 1 + choices.below(64)).min(bytes.len());
        match choices.below(6) {
            0 => bytes.truncate(at),
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << choices.below(8);
                }
            }
            2 => bytes[at..end].fill(0),
            3 => bytes[at..].fill(0),
            4 => drop(bytes.drain(at..end)),
            _ => {
                let part = bytes[at..end].to_vec();
                let to = choices.below(bytes.len() + 1);
                drop(bytes.splice(to..to, part));
            }
        }
        if !choices.has_more() {
            break;
        }
    }
    write(&folder.join(name), &bytes);
    // A copy of an old file, or a file that is gone.
    match choices.below(8) {
        1 => write(&folder.join("log-2"), &bytes),
        2 => drop(fs::remove_file(folder.join(folder::LOG))),
        3 => drop(fs::remove_file(folder.join(folder::SNAPSHOT))),
        4 => write(&folder.join("snapshot-0"), &bytes),
        _ => {}
    }
}

/// Looks at a folder in each way there is. Of one that holds only what a server has
/// written, it is known what can be in it.
fn check(scratch: &Scratch, folder: &Path, made: Option<&Made>) {
    let saved = scratch.path("saved");
    let before = files(folder);
    let found = save_state(folder, &saved);
    match &found {
        Err(error) => {
            named(error);
            assert_eq!(files(folder), before, "refused, and changed: {error}");
        }
        Ok(count) => {
            let bytes = read(&saved);
            if let Some(made) = made {
                assert!(
                    made.moments.contains(&bytes),
                    "never was so: {count} objects"
                );
            }
            copied(scratch, &bytes, *count);
        }
    }
    match folder::open(folder) {
        Err(error) => {
            named(&error);
            let is_known = matches!(&error, StateError::Damaged { path, .. } if path.ends_with(folder::SERVER));
            assert!(is_known || found.is_err(), "saved, and not opened: {error}");
            return;
        }
        Ok(server) => {
            assert!(found.is_ok(), "opened, and not saved: {found:?}");
            let cluster = Cluster::of(&server);
            for path in LISTS {
                let list = cluster.get(path);
                let mut seen = BTreeSet::new();
                for item in list.json()["items"].as_array().into_iter().flatten() {
                    let metadata = &item["metadata"];
                    let key = (&metadata["namespace"], &metadata["name"]);
                    let is_new = seen.insert(format!("{key:?}"));
                    assert!(is_new || made.is_none(), "{path}: twice {metadata}");
                }
            }
        }
    }
    let again = folder::open(folder);
    assert!(again.is_ok(), "opened once: {:?}", again.err());
}

/// What was saved loads, and is saved as the same once more.
fn copied(scratch: &Scratch, bytes: &[u8], count: usize) {
    let (saved, folder) = (scratch.path("saved"), scratch.path("loaded"));
    let loaded = load_state(&saved, &folder);
    assert_eq!(loaded.ok(), Some(count), "saved, and not loaded");
    let again = scratch.path("again");
    assert_eq!(save_state(&folder, &again).ok(), Some(count));
    assert!(read(&again) == bytes, "saved again as something else");
}

/// An error that somebody can do something with.
fn named(error: &StateError) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() < 4096, "{text}");
    assert!(!matches!(error, StateError::InUse { .. }), "{text}");
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("there is room for a file");
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("what was written can be read")
}

/// All that is in a folder, but who has locked it.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .filter(|(name, _)| name != "lock")
        .map(|(name, path)| (name, read(&path)))
        .collect();
    files.sort();
    files
}

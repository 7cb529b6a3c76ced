//! The last good version of each plugin and the one before it, where a restart finds
//! them again.
//!
//! A ConfigMap holds one version. When that is refused, the one that ran before
//! goes on running, and a person may go back to it when it is not refused and should
//! have been. A restart would lose it, so its bytes are kept in the artifact
//! cache, two entries for each plugin. Two things must agree before they run again:
//! the entry, which proves by its MAC that this installation ran just these bytes
//! under this plugin's name, and the status of the `Plugin`, which proves which
//! versions ran last, here or elsewhere.
//!
//! ```text
//! <digest of the component> <proofs as JSON>\n<configuration as JSON on one line>\n<the component>
//! ```

use crate::delivery::{Package, Proof};
use crate::version::VersionId;
use bytes::Bytes;
use reeve_core::Digest;
use reeve_engine::Engine;

/// Why there is nothing to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    /// The agent keeps nothing.
    #[error("no version is kept: the agent runs without --cache")]
    NoCache,
    /// The entry is absent, altered, or of another version.
    #[error(
        "it is not in this agent's cache, as after a move to another node or with an emptied folder"
    )]
    NotThere,
}

/// The two versions of a plugin that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The last good one.
    Last,
    /// The one before it.
    Previous,
}

/// Keeps a package as the last good one, for the next start; the one that was becomes
/// the previous one. Blocks.
pub(crate) fn keep(engine: &Engine, namespace: &str, plugin: &str, package: &Package) {
    let last = key(namespace, plugin, Place::Last);
    let before = engine.kept(last).map(Bytes::from);
    let before = before.as_ref().and_then(parse);
    if let Some(before) = before.filter(|one| VersionId::of(one) != VersionId::of(package)) {
        let previous = key(namespace, plugin, Place::Previous);
        engine.keep(previous, &head(&before), &before.component);
    }
    engine.keep(last, &head(package), &package.component);
}

/// A package that was kept, if it is this version. Blocks.
pub(crate) fn kept(
    engine: &Engine,
    namespace: &str,
    plugin: &str,
    wanted: VersionId,
) -> Result<Package, Lost> {
    if !engine.has_cache() {
        return Err(Lost::NoCache);
    }
    let found = [Place::Last, Place::Previous]
        .into_iter()
        .find_map(|place| {
            let entry = engine.kept(key(namespace, plugin, place)).map(Bytes::from);
            let package = entry.as_ref().and_then(parse);
            package.filter(|package| VersionId::of(package) == wanted)
        });
    found.ok_or(Lost::NotThere)
}

/// Two entries for each plugin of each agent that shares the folder.
fn key(namespace: &str, plugin: &str, place: Place) -> Digest {
    let place = match place {
        Place::Last => "last good version",
        Place::Previous => "previous version",
    };
    let parts = [place, namespace, plugin];
    Digest::of_parts(parts.map(str::as_bytes))
}

fn head(package: &Package) -> Vec<u8> {
    let proofs = Proof::write_all(&package.proofs);
    let mut head = format!("{} {proofs}\n", package.digest).into_bytes();
    // One line: the configuration was written by serde_json, without spaces.
    head.extend_from_slice(&package.config);
    head.push(b'\n');
    head
}

fn parse(entry: &Bytes) -> Option<Package> {
    let mut lines = entry.splitn(3, |byte| *byte == b'\n');
    let (head, config, component) = (lines.next()?, lines.next()?, lines.next()?);
    let proofs = head.splitn(2, |byte| *byte == b' ').nth(1);
    Some(Package {
        proofs: proofs.map(Proof::read_all).unwrap_or_default(),
        digest: Digest::of(component),
        component: entry.slice_ref(component),
        // It stays as long as the plugin runs, and the component does not.
        config: Bytes::copy_from_slice(config),
        place: "the version kept in the cache".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_engine::{Compiler, EngineConfig};

    fn engine(cache: Option<&std::path::Path>) -> Engine {
        Engine::new(EngineConfig {
            cache: cache.map(Into::into),
            max_instances: 0,
            ..EngineConfig::new(Compiler::InThisProcess)
        })
        .unwrap()
    }

    fn package(component: &'static [u8], config: &'static str) -> Package {
        Package {
            component: Bytes::from_static(component),
            digest: Digest::of(component),
            config: Bytes::from_static(config.as_bytes()),
            proofs: vec![
                Proof::Component(Bytes::from_static(b"signature\n")),
                Proof::Manifest {
                    manifest: Bytes::from_static(b"{}\n"),
                    payload: Bytes::from_static(b"payload"),
                    signature: Bytes::from_static(b"\0\xff"),
                },
            ],
            place: "the version kept in the cache".to_owned(),
        }
    }

    #[test]
    fn a_package_is_found_under_its_plugin_and_version_only() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(Some(folder.path()));
        let first = package(b"\0asm\nfirst\n", r#"{"a":"b\n"}"#);
        let second = package(b"\0asm\nfirst\n", r#"{"a":"c"}"#);
        keep(&engine, "ns", "quotas", &first);
        let find = |namespace: &str, plugin: &str, wanted: &Package| {
            kept(&engine, namespace, plugin, VersionId::of(wanted))
        };
        assert_eq!(find("ns", "quotas", &first), Ok(first.clone()));
        for (namespace, plugin, wanted) in [
            ("ns", "limits", &first),
            ("other", "quotas", &first),
            ("ns", "quotas", &second),
        ] {
            assert_eq!(find(namespace, plugin, wanted), Err(Lost::NotThere));
        }
        keep(&engine, "ns", "quotas", &second);
        assert_eq!(find("ns", "quotas", &second), Ok(second.clone()));
        assert_eq!(
            find("ns", "quotas", &first),
            Ok(first.clone()),
            "the one before"
        );
        // The same once more is no other version.
        keep(&engine, "ns", "quotas", &second);
        assert_eq!(find("ns", "quotas", &first), Ok(first.clone()));
        let third = package(b"\0asm\nthird\n", "{}");
        keep(&engine, "ns", "quotas", &third);
        assert_eq!(find("ns", "quotas", &second), Ok(second));
        assert_eq!(find("ns", "quotas", &first), Err(Lost::NotThere));
    }

    #[test]
    fn without_a_cache_nothing_is_kept() {
        let engine = engine(None);
        let package = package(b"\0asm", "{}");
        keep(&engine, "ns", "quotas", &package);
        let found = kept(&engine, "ns", "quotas", VersionId::of(&package));
        assert_eq!(found, Err(Lost::NoCache));
    }
}

//! The last good version of each plugin, where a restart finds it again.
//!
//! A ConfigMap holds one version. When that is refused, the one that ran before
//! goes on running; a restart would lose it, so its bytes are kept in the artifact
//! cache, one entry for each plugin. Two things must agree before they run again:
//! the entry, which proves by its MAC that this installation ran just these bytes
//! under this plugin's name, and the status of the `Plugin`, which proves that no
//! other version has run since, here or elsewhere.
//!
//! ```text
//! <digest of the component>\n<configuration as JSON on one line>\n<the component>
//! ```

use crate::delivery::Package;
use bytes::Bytes;
use reeve_api::GoodVersion;
use reeve_core::Digest;
use reeve_engine::Engine;

/// Names a component and a configuration that have passed every gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastGood {
    pub(crate) component: Digest,
    pub(crate) config: Digest,
}

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

impl LastGood {
    pub(crate) fn of(package: &Package) -> Self {
        Self {
            component: package.digest,
            config: Digest::of(&package.config),
        }
    }

    /// From a status; none when what stands there is no digest.
    pub(crate) fn from_status(status: &GoodVersion) -> Option<Self> {
        Some(Self {
            component: status.digest.parse().ok()?,
            config: status.config_digest.parse().ok()?,
        })
    }

    pub(crate) fn to_status(self) -> GoodVersion {
        GoodVersion {
            digest: self.component.to_string(),
            config_digest: self.config.to_string(),
        }
    }
}

/// Keeps a package for the next start. Blocks.
pub(crate) fn keep(engine: &Engine, namespace: &str, plugin: &str, package: &Package) {
    engine.keep(key(namespace, plugin), &head(package), &package.component);
}

/// The package that was kept. Blocks.
pub(crate) fn kept(
    engine: &Engine,
    namespace: &str,
    plugin: &str,
    wanted: LastGood,
) -> Result<Package, Lost> {
    if !engine.has_cache() {
        return Err(Lost::NoCache);
    }
    let entry = engine.kept(key(namespace, plugin)).map(Bytes::from);
    let package = entry.as_ref().and_then(parse).ok_or(Lost::NotThere)?;
    if LastGood::of(&package) == wanted {
        Ok(package)
    } else {
        Err(Lost::NotThere)
    }
}

/// One entry for each plugin of each agent that shares the folder.
fn key(namespace: &str, plugin: &str) -> Digest {
    let parts = ["last good version", namespace, plugin];
    Digest::of_parts(parts.map(str::as_bytes))
}

fn head(package: &Package) -> Vec<u8> {
    let mut head = package.digest.to_string().into_bytes();
    head.push(b'\n');
    // One line: the configuration was written by serde_json, without spaces.
    head.extend_from_slice(&package.config);
    head.push(b'\n');
    head
}

fn parse(entry: &Bytes) -> Option<Package> {
    let mut lines = entry.splitn(3, |byte| *byte == b'\n');
    let (_digest, config, component) = (lines.next()?, lines.next()?, lines.next()?);
    Some(Package {
        digest: Digest::of(component),
        component: entry.slice_ref(component),
        config: entry.slice_ref(config),
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
            kept(&engine, namespace, plugin, LastGood::of(wanted))
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
        assert_eq!(find("ns", "quotas", &second), Ok(second));
        assert_eq!(find("ns", "quotas", &first), Err(Lost::NotThere));
    }

    #[test]
    fn without_a_cache_nothing_is_kept() {
        let engine = engine(None);
        let package = package(b"\0asm", "{}");
        keep(&engine, "ns", "quotas", &package);
        let found = kept(&engine, "ns", "quotas", LastGood::of(&package));
        assert_eq!(found, Err(Lost::NoCache));
    }

    #[test]
    fn a_status_names_what_it_named() {
        let good = LastGood::of(&package(b"\0asm", "{}"));
        let status = good.to_status();
        assert_eq!(LastGood::from_status(&status), Some(good));
        let broken = GoodVersion {
            digest: "sha256:12".into(),
            ..status
        };
        assert_eq!(LastGood::from_status(&broken), None);
    }
}

//! Versions of a plugin: how they are told apart, and what they are loaded from.

use crate::active::Active;
use crate::delivery::Package;
use bytes::Bytes;
use reeve_api::GoodVersion;
use reeve_core::{Digest, upgrade};
use reeve_engine::Component;
use reeve_outside::signature::VerifyingKey;
use std::sync::Arc;

/// Names a component under a configuration. Another configuration is another version,
/// for it may mean as much as another component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionId {
    pub(crate) component: Digest,
    pub(crate) config: Digest,
}

impl VersionId {
    pub(crate) fn of(package: &Package) -> Self {
        Self {
            component: package.digest,
            config: Digest::of(&package.config),
        }
    }

    /// Of what runs.
    pub(crate) fn running(active: &Active) -> Self {
        Self {
            component: active.key.component,
            config: Digest::of(&active.config),
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

    /// What names it in a text that names another one too: the component, and the
    /// configuration where that is all that tells them apart.
    pub(crate) fn beside(&self, other: Self) -> String {
        match self.component == other.component && self.config != other.config {
            true => format!("{} with configuration {}", self.component, self.config),
            false => self.component.to_string(),
        }
    }

    /// What names it in an annotation.
    pub(crate) fn token(&self) -> String {
        upgrade::token(&self.component, &self.config)
    }
}

/// What a version is loaded from.
#[derive(Clone, Debug)]
pub(crate) enum Artifact {
    /// What ConfigMaps deliver, or did.
    Delivered(Package),
    /// A version that has run here, and is compiled.
    Compiled {
        component: Component,
        config: Bytes,
        /// The keys by which it was found to be signed when it was loaded.
        signers: Arc<[VerifyingKey]>,
    },
}

impl Artifact {
    /// What runs, to be loaded once more.
    pub(crate) fn of(active: &Active) -> Self {
        Self::Compiled {
            component: active.component.clone(),
            config: active.config.clone(),
            signers: active.signers.clone(),
        }
    }

    /// Digest of the component.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Delivered(package) => package.digest,
            Self::Compiled { component, .. } => component.digest(),
        }
    }

    /// The configuration.
    pub(crate) fn config(&self) -> &Bytes {
        match self {
            Self::Delivered(package) => &package.config,
            Self::Compiled { config, .. } => config,
        }
    }

    pub(crate) fn version(&self) -> VersionId {
        VersionId {
            component: self.digest(),
            config: Digest::of(self.config()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_two_versions_apart_is_named() {
        let version = |component: &str, config: &str| VersionId {
            component: Digest::of(component.as_bytes()),
            config: Digest::of(config.as_bytes()),
        };
        let one = version("a", "{}");
        assert_eq!(one.beside(version("b", "1")), one.component.to_string());
        assert_eq!(one.beside(one), one.component.to_string());
        let text = format!("{} with configuration {}", one.component, one.config);
        assert_eq!(one.beside(version("a", "1")), text);
    }

    #[test]
    fn a_status_names_what_it_named() {
        let version = VersionId::of(&Package {
            component: Bytes::from_static(b"\0asm"),
            digest: Digest::of(b"\0asm"),
            config: Bytes::from_static(b"{}"),
            proofs: Vec::new(),
            place: String::new(),
        });
        let status = version.to_status();
        assert_eq!(VersionId::from_status(&status), Some(version));
        let broken = GoodVersion {
            digest: "sha256:12".into(),
            ..status
        };
        assert_eq!(VersionId::from_status(&broken), None);
    }
}

//! Why an artifact cannot be had, or not be put there.

use super::manifest::ManifestError;
use reeve_core::Digest;

/// Why an artifact cannot be had, or not be put there. Holds no credential.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The client cannot be set up.
    #[error("{image}: the registry cannot be asked: {problem}")]
    Setup {
        /// The artifact.
        image: String,
        /// Why.
        problem: String,
    },
    /// There is no answer, or one that says to come back later.
    #[error("{image}: the registry cannot be reached: {problem}")]
    Unreachable {
        /// The artifact.
        image: String,
        /// What went wrong.
        problem: String,
    },
    /// The registry, or its token service, does not let whoever asks.
    #[error("{image}: the registry refuses {who}: {problem}")]
    Denied {
        /// The artifact.
        image: String,
        /// Who asked.
        who: String,
        /// What it says.
        problem: String,
    },
    /// There is no such tag, digest or layer.
    #[error("{image} does not exist: {url} answers 404")]
    Absent {
        /// The artifact.
        image: String,
        /// What was asked for.
        url: String,
    },
    /// What is there is no plugin.
    #[error("{image}: {problem}")]
    Manifest {
        /// The artifact.
        image: String,
        /// What is wrong.
        problem: ManifestError,
    },
    /// What came is not what was asked for.
    #[error("{image}: {what} with digest {wanted} has digest {found}; push it again")]
    OtherDigest {
        /// The artifact.
        image: String,
        /// Of what.
        what: &'static str,
        /// What was asked for.
        wanted: Digest,
        /// What came.
        found: Digest,
    },
    /// More came than may.
    #[error("{image}: {url} returned more than {limit} bytes")]
    TooLarge {
        /// The artifact.
        image: String,
        /// What was asked for.
        url: String,
        /// How many bytes may come.
        limit: u64,
    },
    /// The registry does something that it should not.
    #[error("{image}: {problem}")]
    Protocol {
        /// The artifact.
        image: String,
        /// What it does.
        problem: String,
    },
}

impl RegistryError {
    /// Whether that is for want of something that may come back by itself.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

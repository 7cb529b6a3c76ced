//! Whom TLS trusts.
//!
//! A server is always verified, its name included. Roots are those of the machine,
//! or just those that a grant names: a grant for a private service then trusts
//! nobody else.

use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Where systems keep the roots in one file, in the order in which they are looked
/// for: Debian and Alpine, Fedora, openSUSE, and the BSDs with macOS.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The variable by which OpenSSL, Go and others are told another file.
const VARIABLE: &str = "SSL_CERT_FILE";

/// Whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// Those of the machine.
    #[default]
    System,
    /// Just these, as PEM.
    Only(String),
}

/// Why nobody can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// There are no roots on this machine.
    #[error(
        "this machine has no certificate authorities: none of {} exists; mount a bundle and name it in {VARIABLE}, or give the grant a `caBundle`",
        BUNDLES.join(", ")
    )]
    Absent,
    /// A file with roots cannot be read.
    #[error("cannot read certificate authorities from {path}: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// There is no certificate in what should hold some.
    #[error("no certificate could be read from {place}; it must be PEM with `CERTIFICATE` blocks")]
    Empty {
        /// The file, or the field.
        place: String,
    },
    /// The TLS library refuses to work.
    #[error("tls cannot be set up: {problem}")]
    Library {
        /// Why.
        problem: String,
    },
}

impl Roots {
    /// The settings of a client that trusts these.
    ///
    /// # Errors
    ///
    /// When there are no such roots.
    pub fn client(&self) -> Result<ClientConfig, RootsError> {
        let store = match self {
            Self::System => system()?,
            Self::Only(text) => Arc::new(read(text.as_bytes(), "`caBundle`")?),
        };
        trusting(store)
    }
}

/// The settings of a client that trusts nobody, for those who speak without TLS.
pub(crate) fn nobody() -> Result<ClientConfig, RootsError> {
    trusting(Arc::new(RootCertStore::empty()))
}

fn trusting(store: Arc<RootCertStore>) -> Result<ClientConfig, RootsError> {
    let library = |error: rustls::Error| RootsError::Library {
        problem: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(library)?
        .with_root_certificates(store)
        .with_no_client_auth())
}

/// The roots of the system as they are now. A bundle has well over a hundred, and each
/// client of each plugin would read and hold them once more: as long as the file says the
/// same, all share what was read of it last.
fn system() -> Result<Arc<RootCertStore>, RootsError> {
    static LAST: Mutex<Option<(Vec<u8>, Arc<RootCertStore>)>> = Mutex::new(None);
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let path = match named {
        Some(path) => PathBuf::from(path),
        None => {
            let mut known = BUNDLES.iter().map(PathBuf::from);
            known
                .find(|path| path.is_file())
                .ok_or(RootsError::Absent)?
        }
    };
    let bytes = fs::read(&path).map_err(|error| RootsError::Unreadable {
        path: path.clone(),
        problem: error.to_string(),
    })?;
    let mut last = LAST.lock();
    if let Some((_, store)) = last.as_ref().filter(|(known, _)| *known == bytes) {
        return Ok(store.clone());
    }
    let store = Arc::new(read(&bytes, &path.display().to_string())?);
    *last = Some((bytes, store.clone()));
    Ok(store)
}

fn read(bytes: &[u8], place: &str) -> Result<RootCertStore, RootsError> {
    let empty = || RootsError::Empty {
        place: place.to_owned(),
    };
    let blocks = pem::parse_many(bytes).map_err(|_| empty())?;
    let certificates = blocks
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(|block| CertificateDer::from(block.into_contents()));
    let mut store = RootCertStore::empty();
    // A bundle of the system may hold some that are too old to be understood.
    store.add_parsable_certificates(certificates);
    if store.is_empty() {
        return Err(empty());
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        for text in [
            "",
            "no pem",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            let error = Roots::Only(text.to_owned()).client().unwrap_err();
            assert!(error.to_string().contains("`caBundle`"), "{error}");
        }
    }
}

//! Artifacts in OCI registries: pulled, and pushed.
//!
//! ```text
//! ImageReference ─▶ Registry ─▶ pull     (manifest, then its one layer)
//! Login ──────────▶    │    └─▶ push     (blobs, then the manifest)
//! Roots ──────────▶    └──────▶ signatures (those that cosign keeps beside an image)
//! ```
//!
//! A registry is named by the operator, so that the rules for what plugins reach do not
//! hold for it. Three others do: nothing is read beyond a bound that is known before,
//! what is read has the digest under which it was asked for, and credentials go to the
//! registry that they are for and to the token service that it names, but nowhere that
//! a redirect leads.
//!
//! The protocol is the OCI distribution specification 1.1, as far as artifacts of one
//! layer need it. It is spoken here and not by a library, since those at hand read
//! manifests and tokens of any size into memory.

mod cosign;
mod error;
mod exchange;
mod login;
mod manifest;
mod push;
mod reference;
mod token;

pub use cosign::{SIGNATURE_LIMIT, SignedImage};
pub use error::RegistryError;
pub use login::{Login, LoginError};
pub use manifest::{Component, ManifestError, OURS, Wanted, component};
pub use reference::{ImageReference, ReferenceError};

use crate::tls::{self, Roots};
use bytes::Bytes;
use exchange::Ask;
use parking_lot::Mutex;
use reeve_core::{Digest, chain};
use reqwest::Url;
use std::time::Duration;

/// Bytes of a manifest: what registries accept (the specification asks them for 4 MiB)
/// is more than an artifact of one layer ever needs.
const MANIFEST_BYTES: u64 = 256 << 10;

/// The registry of which `docker.io` is the name.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// How a registry is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrySettings {
    /// Whom TLS trusts.
    pub roots: Roots,
    /// Whether it is spoken to without TLS. A registry on loopback is anyway, unless
    /// roots are named for it.
    pub plain_http: bool,
    /// Who asks; nobody in particular if none.
    pub login: Option<Login>,
}

/// A manifest as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its digest.
    pub digest: Digest,
    /// The bytes of which that is the digest.
    pub bytes: Bytes,
}

/// One repository of one registry.
pub struct Registry {
    client: reqwest::Client,
    /// `https://registry.example:5000/v2/team/app/`.
    base: Url,
    /// Name and tag or digest, for messages.
    name: String,
    repository: String,
    login: Option<Login>,
    /// What it gave for the login; asked for when it is first wanted.
    authorization: Mutex<Option<exchange::Authorization>>,
}

impl Registry {
    /// The way to the repository of a reference.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn new(
        reference: &ImageReference,
        settings: RegistrySettings,
    ) -> Result<Self, RegistryError> {
        let name = reference.to_string();
        let setup = |problem: String| RegistryError::Setup {
            image: name.clone(),
            problem,
        };
        let loopback = reference.is_loopback() && settings.roots == Roots::System;
        let scheme = match settings.plain_http || loopback {
            true => "http",
            false => "https",
        };
        let host = match reference.host() {
            host if host == DOCKER_HUB.0 => DOCKER_HUB.1,
            host => host,
        };
        let base = format!("{scheme}://{host}/v2/{}/", reference.repository());
        let base = Url::parse(&base).map_err(|error| setup(error.to_string()))?;
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // What the environment says is not what the operator said.
            .no_proxy()
            .user_agent(concat!("reeve/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(exchange::CONNECT)
            .read_timeout(exchange::SILENCE)
            .pool_idle_timeout(Duration::from_secs(30));
        // Without TLS no roots are needed, and a machine may have none; a redirect to
        // where they are is then refused by its scheme.
        let trusted = match scheme {
            "http" if settings.roots == Roots::System => tls::nobody(),
            _ => settings.roots.client(),
        };
        let trusted = trusted.map_err(|error| setup(chain(&error)))?;
        let client = builder
            .tls_backend_preconfigured(trusted)
            .build()
            .map_err(|error| setup(chain(&error)))?;
        Ok(Self {
            client,
            base,
            repository: reference.repository().to_owned(),
            login: settings.login,
            authorization: Mutex::default(),
            name,
        })
    }

    /// The manifest of a tag or digest.
    ///
    /// # Errors
    ///
    /// When it is not there, cannot be read, is too large, or is another than the digest
    /// says.
    pub async fn manifest(&self, wanted: &Wanted) -> Result<Manifest, RegistryError> {
        let ask = Ask {
            accept: manifest::ACCEPTED,
            limit: MANIFEST_BYTES,
            ..Ask::get(self.url(&format!("manifests/{wanted}"))?)
        };
        let bytes = self.read(ask).await?;
        let digest = Digest::of(&bytes);
        if let Wanted::Digest(wanted) = wanted
            && *wanted != digest
        {
            return Err(RegistryError::OtherDigest {
                image: self.name.clone(),
                what: "the manifest",
                wanted: *wanted,
                found: digest,
            });
        }
        Ok(Manifest { digest, bytes })
    }

    /// How many bytes the component has that a manifest of this repository describes.
    ///
    /// # Errors
    ///
    /// When the manifest describes something else, or more than `limit`.
    pub fn component_size(&self, manifest: &Manifest, limit: u64) -> Result<u64, RegistryError> {
        Ok(self.described(manifest, limit)?.size)
    }

    /// The component that a manifest of this repository describes, of no more than
    /// `limit` bytes.
    ///
    /// # Errors
    ///
    /// When the manifest describes something else, or its layer cannot be had.
    pub async fn component(&self, manifest: &Manifest, limit: u64) -> Result<Bytes, RegistryError> {
        let found = self.described(manifest, limit)?;
        self.blob(found.digest, found.size).await
    }

    /// What a manifest of this repository describes.
    fn described(&self, manifest: &Manifest, limit: u64) -> Result<Component, RegistryError> {
        component(&manifest.bytes, limit).map_err(|problem| RegistryError::Manifest {
            image: self.name.clone(),
            problem,
        })
    }

    /// A blob of which digest and size are known.
    ///
    /// # Errors
    ///
    /// When it is not there, cannot be read, or is another. No more than its size is
    /// read.
    async fn blob(&self, digest: Digest, size: u64) -> Result<Bytes, RegistryError> {
        let ask = Ask {
            limit: size,
            ..Ask::get(self.url(&format!("blobs/{digest}"))?)
        };
        let bytes = self.read(ask).await?;
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(RegistryError::OtherDigest {
                image: self.name.clone(),
                what: "a layer",
                wanted: digest,
                found,
            });
        }
        Ok(bytes)
    }

    async fn read(&self, ask: Ask<'_>) -> Result<Bytes, RegistryError> {
        let answer = self.ask(ask).await?;
        match answer.status.as_u16() {
            200 => Ok(answer.body),
            404 => Err(RegistryError::Absent {
                image: self.name.clone(),
                url: answer.url,
            }),
            _ => Err(self.unexpected(&answer)),
        }
    }

    fn url(&self, path: &str) -> Result<Url, RegistryError> {
        self.base.join(path).map_err(|error| RegistryError::Setup {
            image: self.name.clone(),
            problem: error.to_string(),
        })
    }
}

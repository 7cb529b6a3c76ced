//! How commands find a registry, and as whom they ask it.

use crate::plugin::source::Source;
use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use clap::Args;
use reeve_agent::delivery::{MAX_COMPONENT_BYTES, Package};
use reeve_api::ArtifactSource;
use reeve_core::Digest;
use reeve_outside::{ImageReference, Login, Registry, RegistrySettings, Roots};
use std::path::PathBuf;

/// How a command speaks to a registry.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Registry")]
pub(super) struct RegistryArgs {
    /// File with logins, as `docker login` writes it; by default config.json in
    /// $DOCKER_CONFIG or ~/.docker, if it is there. Credential helpers are not asked
    #[arg(long, value_name = "FILE")]
    docker_config: Option<PathBuf>,
    /// Certificate authorities that the registry's certificate must come from, PEM; by
    /// default those of this machine
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Speak to the registry without TLS. One on loopback is spoken to like that anyway,
    /// unless --ca-bundle is given
    #[arg(long)]
    plain_http: bool,
}

impl RegistryArgs {
    /// The way to an artifact's repository.
    pub(super) fn open(&self, image: &ImageReference) -> anyhow::Result<Registry> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let roots = self.ca_bundle.as_ref().map(read).transpose()?;
        let settings = RegistrySettings {
            roots: roots.map_or(Roots::System, Roots::Only),
            plain_http: self.plain_http,
            login: self.login(image)?,
        };
        Ok(Registry::new(image, settings)?)
    }

    /// As a plugin's policy says, with the login of whoever runs the command.
    pub(super) fn open_like(source: &ArtifactSource) -> anyhow::Result<(ImageReference, Registry)> {
        let image = source.image.parse::<ImageReference>();
        let image = image.context("spec.artifact.image of the Plugin")?;
        let settings = RegistrySettings {
            roots: source.ca_bundle.clone().map_or(Roots::System, Roots::Only),
            plain_http: source.plain_http,
            login: Self::default().login(&image)?,
        };
        let registry = Registry::new(&image, settings)?;
        Ok((image, registry))
    }

    /// The login for a registry. A file that was named must have it; the usual one may.
    fn login(&self, image: &ImageReference) -> anyhow::Result<Option<Login>> {
        let usual = || {
            let folder = std::env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty());
            let home = || Some(std::env::home_dir()?.join(".docker"));
            let path = folder.map(PathBuf::from).or_else(home)?.join("config.json");
            path.is_file().then_some(path)
        };
        let Some(path) = self.docker_config.clone().or_else(usual) else {
            return Ok(None);
        };
        let text = std::fs::read(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        match Login::from_docker_config(&text, image.host(), image.repository()) {
            Ok(login) => Ok(Some(login)),
            Err(_) if self.docker_config.is_none() => Ok(None),
            Err(error) => Err(anyhow!("{}: {error}", path.display())),
        }
    }
}

/// Pulls the component that a plugin's policy names.
pub(super) async fn pull(
    name: &str,
    source: &ArtifactSource,
    config: Bytes,
) -> anyhow::Result<Source> {
    let (image, registry) = RegistryArgs::open_like(source)?;
    let manifest = registry.manifest(&image.wanted()).await?;
    let component = registry.component(&manifest, MAX_COMPONENT_BYTES as u64);
    let component = component.await?;
    Ok(Source {
        name: name.to_owned(),
        package: Package {
            digest: Digest::of(&component),
            component,
            config,
            proofs: Vec::new(),
            place: format!("image {image}"),
        },
        origin: image.to_string(),
    })
}

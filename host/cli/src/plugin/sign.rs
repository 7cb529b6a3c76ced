//! `reeve plugin sign`.

use super::registry::RegistryArgs;
use super::source;
use crate::output::print;
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use reeve_outside::ImageReference;
use reeve_outside::registry::SignedImage;
use reeve_outside::signature::{SigningKey, payload};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Sign a component, as cosign does
///
/// Of a file, the signature is printed in base64: put it into the plugin's ConfigMap
/// under data["plugin.wasm.sig"]. It is of the component as it is unpacked, so that a
/// file is signed once, however it is packed. Of an artifact in a registry, the signature
/// is put beside it, under the tag where cosign keeps it, in the place of one that is
/// there.
///
/// The key is an unencrypted private key in PEM, ECDSA on P-256 or Ed25519, as `openssl
/// genpkey -algorithm ed25519` writes. With a key that cosign holds or a service keeps,
/// sign with `cosign sign-blob --key` or `cosign sign --key`.
#[derive(Args)]
pub(crate) struct SignArgs {
    /// A file, or an artifact: registry.example/team/plugin:1.0
    #[arg(value_name = "FILE|IMAGE")]
    what: String,
    /// The private key, PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(crate) async fn run(args: SignArgs) -> anyhow::Result<ExitCode> {
    let path = args.key.display();
    let text = std::fs::read_to_string(&args.key);
    let text = text.with_context(|| format!("cannot read {path}"))?;
    let key = SigningKey::read(&text).with_context(|| path.to_string())?;
    let sign = |message: &[u8]| {
        let signature = key.sign(message);
        signature.context("the system gives no random numbers")
    };
    let file = Path::new(&args.what);
    if file.exists() {
        let source = source::from_file(file, Some("plugin"), None)?;
        let signature = sign(&source.package.component)?;
        print(format_args!("{}\n", STANDARD.encode(signature)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.what.contains('/') || args.what.starts_with(['.', '/']) {
        bail!("there is no file {}", args.what);
    }
    let image: ImageReference = args.what.parse()?;
    let registry = args.registry.open(&image)?;
    let manifest = registry.manifest(&image.wanted()).await?.digest;
    let name = format!("{}/{}", image.host(), image.repository());
    let payload = payload(&name, &manifest);
    let signed = SignedImage {
        signature: sign(payload.as_bytes())?.into(),
        payload: payload.into(),
    };
    registry.push_signature(&manifest, &signed).await?;
    print(format_args!("signed {name}@{manifest}\n"))?;
    Ok(ExitCode::SUCCESS)
}

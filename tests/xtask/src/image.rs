//! `cargo xtask image`: what an image of the agent is built from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::workspace::{Workspace, executable_named};

/// What tells how the image is made, in the root folder.
const CONTAINERFILE: &str = "Containerfile";

/// Where this machine may keep the certificate authorities that it trusts: Debian and
/// Alpine, Fedora, openSUSE.
const BUNDLES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// What they are called in the folder.
const AUTHORITIES: &str = "ca-certificates.crt";

/// The profile of what users deploy.
pub(crate) const DEPLOYED: &str = "dist";

/// Builds a `reeve` that needs no files of the system it runs on, and leaves it in
/// target/image/<profile>, which it returns, beside copies of the `Containerfile` and of the
/// certificate authorities of this machine.
///
/// The program is that of every other build, linked with another libc: with the static
/// one of this system. From glibc 2.34 on that looks names up by itself, in `/etc/hosts`
/// and by DNS.
pub(crate) fn context(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    if !cfg!(target_os = "linux") {
        bail!("an image holds a program for Linux; build it there");
    }
    check_libc()?;
    let authorities = BUNDLES.iter().map(Path::new).find(|path| path.is_file());
    let authorities = authorities.with_context(|| {
        format!(
            "this machine has no certificate authorities, which the image is to have: none of {} \
             is there; install ca-certificates",
            BUNDLES.join(", ")
        )
    })?;
    let mut build = workspace.cargo(["rustc", "--package", "reeve-cli", "--bin", "reeve"]);
    build.args(["--profile", profile]);
    let linked = ["-C", "target-feature=+crt-static", "-C", "strip=debuginfo"];
    let messages = process::messages_with(&mut build, &linked)?;
    let reeve = executable_named(&messages, "reeve")?;
    let folder = workspace.output("image").join(profile);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let program = folder.join("reeve");
    fs::copy(&reeve, &program).with_context(|| format!("cannot write {}", program.display()))?;
    if profile == "dev" {
        // Tests run the one that was built with them, which has its place back.
        workspace.build_reeve()?;
    }
    let told = workspace.root().join(CONTAINERFILE);
    for (from, name) in [(told.as_path(), CONTAINERFILE), (authorities, AUTHORITIES)] {
        fs::copy(from, folder.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(folder)
}

/// Fails where a static program could not look names up.
fn check_libc() -> Result<()> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    // Another libc has no such trouble, or is no libc that this works with.
    let version = said.unwrap_or_default();
    let mut numbers = version
        .strip_prefix("glibc ")
        .into_iter()
        .flat_map(|version| version.split('.'))
        .map_while(|number| number.parse::<u32>().ok());
    let Some(major) = numbers.next() else {
        return Ok(());
    };
    if (major, numbers.next().unwrap_or_default()) < (2, 34) {
        bail!(
            "a static program that is linked with {version} cannot look names up in an image; \
             build it on a system with glibc 2.34 or newer, such as Debian 12"
        );
    }
    Ok(())
}

/// Prints what was made, and what makes an image of it.
pub(crate) fn run(workspace: &Workspace, profile: &str) -> Result<()> {
    let folder = context(workspace, profile)?;
    let shown = folder.strip_prefix(workspace.root()).unwrap_or(&folder);
    let (shown, version) = (shown.display(), env!("CARGO_PKG_VERSION"));
    println!(
        "{shown}/reeve is a static program of {:.1} MB; {shown}/{AUTHORITIES} is what this machine \
         trusts. Make an image of them with one of\n\n  \
         buildah build --tag reeve:{version} {shown}\n  \
         podman build --tag reeve:{version} {shown}\n  \
         docker build --tag reeve:{version} --file {shown}/{CONTAINERFILE} {shown}",
        folder.join("reeve").metadata()?.len() as f64 / 1e6,
    );
    Ok(())
}

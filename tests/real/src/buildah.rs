//! Buildah, without an engine and with a store of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use reeve_test_support::skipped;
use serde_json::Value;
use tempfile::TempDir;

use crate::parts::BUILDAH;
use crate::registry::Registry;

/// Buildah looks for the program that makes networks also where nothing needs one.
const NETWORKS: &str = "netavark";

/// Whoever has made an image is not asked for.
const ANYBODY: &str = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;

/// Images that are built, pushed and pulled. They are gone when it is dropped.
#[derive(Debug)]
pub struct Buildah {
    program: PathBuf,
    folder: TempDir,
}

/// An image that has been unpacked.
#[derive(Clone, Debug)]
pub struct Unpacked {
    /// Its files.
    pub root: PathBuf,
    /// How it is run: its configuration, in the form of the OCI image specification.
    pub config: Value,
}

impl Buildah {
    /// Whether images can be unpacked here, with the owners of their files: by root alone.
    /// Says so, loudly, where they cannot.
    ///
    /// # Errors
    ///
    /// When Buildah cannot be built.
    pub fn possible() -> Result<Option<Self>> {
        let id = Command::new("id").arg("-u").output()?;
        if id.stdout != b"0\n" {
            skipped("images are unpacked by root alone");
            return Ok(None);
        }
        let folder = tempfile::Builder::new()
            .prefix("reeve-buildah-")
            .tempdir()?;
        let path = folder.path();
        fs::write(path.join(NETWORKS), "")?;
        fs::set_permissions(path.join(NETWORKS), Permissions::from_mode(0o755))?;
        fs::write(path.join(POLICY), ANYBODY)?;
        fs::write(
            path.join(SETTINGS),
            format!("[engine]\nhelper_binaries_dir = [\"{}\"]\n", path.display()),
        )?;
        let program = BUILDAH.get()?.join("buildah");
        Ok(Some(Self { program, folder }))
    }

    /// Builds the `Containerfile` of a folder, with the folder as its context.
    ///
    /// # Errors
    ///
    /// When it cannot be built, with what Buildah says.
    pub fn build(&self, context: &Path, name: &str) -> Result<()> {
        let mut build = self.command("build");
        build
            .args(["--network", "host", "--format", "oci", "--tag", name])
            .arg(context);
        run(build).map(drop)
    }

    /// Pushes an image to a registry.
    ///
    /// # Errors
    ///
    /// When it is not taken.
    pub fn push(&self, name: &str, to: &str) -> Result<()> {
        let mut push = self.command("push");
        push.args(Self::login())
            .args([name, &format!("docker://{to}")]);
        run(push).map(drop)
    }

    /// Pulls an image and unpacks it.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn pull(&self, from: &str) -> Result<Unpacked> {
        let mut pull = self.command("from");
        pull.args(["--pull-always", "--network", "host"])
            .args(Self::login())
            .arg(format!("docker://{from}"));
        let container = run(pull)?;
        let mut mount = self.command("mount");
        mount.arg(&container);
        let root = PathBuf::from(run(mount)?);
        ensure!(root.is_dir(), "it was unpacked to {}", root.display());
        let mut inspect = self.command("inspect");
        inspect.arg(&container);
        let found: Value = serde_json::from_str(&run(inspect)?)?;
        let config = found["OCIv1"].clone();
        ensure!(config.is_object(), "no configuration in {found}");
        Ok(Unpacked { root, config })
    }

    /// For a [`Registry`], whose certificate nobody knows.
    fn login() -> [String; 4] {
        [
            "--tls-verify=false".to_owned(),
            "--creds".to_owned(),
            format!("{}:{}", Registry::USER, Registry::PASSWORD),
            "--quiet".to_owned(),
        ]
    }

    fn command(&self, what: &str) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(&self.program);
        command
            .env("CONTAINERS_CONF", folder.join(SETTINGS))
            .env("TMPDIR", folder)
            .args(["--storage-driver", "vfs", "--root"])
            .arg(folder.join("store"))
            .arg("--runroot")
            .arg(folder.join("run"))
            .arg(what);
        // Where nothing is taken in or given out, there is nothing to be signed.
        if !matches!(what, "mount" | "inspect") {
            command.arg("--signature-policy").arg(folder.join(POLICY));
        }
        if matches!(what, "build" | "from") {
            command.args(["--isolation", "chroot"]);
        }
        command
    }
}

const POLICY: &str = "policy.json";
const SETTINGS: &str = "containers.conf";

/// Runs a command to its end, and returns what it prints.
fn run(mut command: Command) -> Result<String> {
    let output = command.output().context("buildah")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("buildah ended with {}: {said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

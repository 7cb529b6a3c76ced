//! Stand-ins for charts, in a registry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use reeve_real::{NODE, Registry};
use reeve_test_support::http::Certificate;

use crate::helm::helm;
use crate::stage::Stage;

/// What a broken chart says.
pub(super) const COMPLAINT: &str = "this chart is broken";

/// Whether a chart can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Sound,
    Broken,
}

/// The charts, and how they are reached.
pub(super) struct Charts {
    repository: String,
    home: PathBuf,
    authority: PathBuf,
}

impl Charts {
    pub(super) fn new(
        stage: &Stage,
        registry: &Registry,
        certificate: &Certificate,
    ) -> Result<Self> {
        let home = stage.file("charts");
        fs::create_dir_all(&home)?;
        let authority = home.join("authority.pem");
        fs::write(&authority, &certificate.pem)?;
        Ok(Self {
            repository: format!("oci://{}", registry.image("charts")),
            home,
            authority,
        })
    }

    /// The URL below which they are.
    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// Publishes a version: a Deployment of one Pod on the simulated node.
    pub(super) fn publish(&self, name: &str, version: &str, health: Health) -> Result<()> {
        let folder = self.home.join(format!("{name}-{version}")).join(name);
        fs::create_dir_all(folder.join("templates"))?;
        let about = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
        fs::write(folder.join("Chart.yaml"), about)?;
        let broken = match health {
            Health::Sound => String::new(),
            Health::Broken => format!("{{{{ fail {COMPLAINT:?} }}}}\n"),
        };
        let workload = format!(
            "{broken}apiVersion: apps/v1\n\
             kind: Deployment\n\
             metadata:\n  name: {{{{ .Release.Name }}}}\n\
             spec:\n  selector:\n    matchLabels:\n      app: {{{{ .Release.Name }}}}\n  \
             template:\n    metadata:\n      labels:\n        app: {{{{ .Release.Name }}}}\n    \
             spec:\n      nodeName: {NODE}\n      containers:\n        - name: main\n          \
             image: example.com/{name}:{version}\n"
        );
        fs::write(folder.join("templates/workload.yaml"), workload)?;
        let to = folder.parent().context("no parent")?;
        let (folder, to) = (folder.to_string_lossy(), to.to_string_lossy());
        helm(
            &self.home,
            None,
            &["package", &folder, "--destination", &to],
        )?;
        let packed = format!("{to}/{name}-{version}.tgz");
        self.with_login(&["push", &packed, &self.repository])
    }

    /// Gets the newest version in a range: its archive.
    pub(super) fn pull(&self, url: &str, range: &str, into: &Path) -> Result<PathBuf> {
        fs::create_dir_all(into)?;
        let to = into.to_string_lossy();
        self.with_login(&["pull", url, "--version", range, "--destination", &to])?;
        let found = fs::read_dir(into)?.next().context("nothing was pulled")?;
        Ok(found?.path())
    }

    fn with_login(&self, arguments: &[&str]) -> Result<()> {
        let authority = self.authority.to_string_lossy();
        let login = [
            "--username",
            Registry::USER,
            "--password",
            Registry::PASSWORD,
            "--ca-file",
            &authority,
        ];
        helm(&self.home, None, &[arguments, &login].concat()).map(drop)
    }
}

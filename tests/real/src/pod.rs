//! What a pod finds around it: the address of the API server in its environment, and the
//! token of its ServiceAccount in a folder whose path is the same in each pod.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use reeve_test_support::skipped;

use crate::ControlPlane;

/// Where Kubernetes mounts what belongs to a pod's ServiceAccount.
pub(crate) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Mounts are the program's own: nobody else sees them.
pub(crate) const UNSHARE: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];

/// Puts what is in folder $1 where pods find it, and becomes the rest of its arguments.
const ENTER: &str = r#"
set -e
mount -t tmpfs pod /var/run
mkdir -p "$0"
cp "$1"/* "$0"
shift
exec "$@"
"#;

/// Whose pod it is.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The namespace of pod and account.
    pub namespace: &'a str,
    /// What the account shows the API server.
    pub token: &'a str,
}

impl Account<'_> {
    /// Writes what pods of the account are given into a folder.
    pub(crate) fn write(&self, cluster: &ControlPlane, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("token"), self.token)?;
        fs::write(folder.join("namespace"), self.namespace)?;
        fs::copy(cluster.certificate(), folder.join("ca.crt"))
            .context("cannot read the certificate of the API server")?;
        Ok(())
    }
}

/// A system on which a program can be given the surroundings of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Pod(());

impl Pod {
    /// Whether this system lets a program have mounts of its own; says so, loudly, where
    /// it does not.
    pub fn possible() -> Option<Self> {
        let mount = ["mount", "-t", "tmpfs", "pod", "/var/run"];
        let tried = Command::new("env").args(UNSHARE).args(mount).output();
        let why = match tried {
            Ok(tried) if tried.status.success() => return Some(Self(())),
            Ok(tried) => String::from_utf8_lossy(&tried.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        skipped(&format!(
            "the agent is not run as in a pod, without mounts of its own: {why}"
        ));
        None
    }

    /// What `env` is given before a program, so that it runs as in a pod of the cluster.
    /// It finds no kubeconfig.
    pub(crate) fn surroundings(
        self,
        cluster: &ControlPlane,
        account: &Account<'_>,
    ) -> Result<Vec<String>> {
        let folder = cluster.folder().join("pod");
        account.write(cluster, &folder)?;
        let mut before = vec![
            "--unset=KUBECONFIG".to_owned(),
            format!("HOME={}", folder.display()),
            "KUBERNETES_SERVICE_HOST=127.0.0.1".to_owned(),
            format!("KUBERNETES_SERVICE_PORT={}", cluster.port()),
        ];
        before.extend(UNSHARE.map(str::to_owned));
        let enter = ["sh", "-c", ENTER, ACCOUNT].map(str::to_owned);
        before.extend(enter);
        before.push(folder.display().to_string());
        Ok(before)
    }
}

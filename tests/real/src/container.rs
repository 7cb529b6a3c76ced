//! A container of a pod, as far as a program can tell: the files of its image, which it
//! cannot change, the volumes of the pod, and the environment that the pod says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::ControlPlane;
use crate::buildah::Unpacked;
use crate::pod::{ACCOUNT, Account};

/// Mounts are the program's own: nobody else sees them.
const UNSHARE: [&str; 2] = ["unshare", "--mount"];

/// Puts the first of each pair of paths at the second within folder $0, up to `--`, and
/// becomes the rest of its arguments as user $USER_ID, with that folder for a root that
/// nobody can write to.
const ENTER: &str = r#"
set -e
root=$0
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then
        mkdir -p "$root$2"
    else
        mkdir -p "$(dirname "$root$2")"
        touch "$root$2"
    fi
    mount --rbind "$1" "$root$2"
    shift 2
done
shift
mount -o remount,bind,ro "$root"
exec chroot --userspec="$USER_ID" "$root" "$@"
"#;

/// The name by which a pod can find the API server.
const API_SERVER: &str = "kubernetes.default.svc";

/// A program in an image, and what a pod gives it.
#[derive(Clone, Debug)]
pub struct Container {
    /// The image.
    pub image: Unpacked,
    /// What is added to the image's command.
    pub arguments: Vec<String>,
    /// The environment that the pod says.
    pub environment: Vec<(String, String)>,
    /// Folders of this system, and where they are in the container.
    pub volumes: Vec<(PathBuf, String)>,
    /// The namespace of the pod.
    pub namespace: String,
    /// The token of the pod's ServiceAccount.
    pub token: String,
}

impl Container {
    /// Whether this system lets a program have such mounts.
    pub fn possible() -> bool {
        let mount = ["mount", "-t", "tmpfs", "container", "/mnt"];
        let tried = Command::new("env").args(UNSHARE).args(mount).output();
        tried.is_ok_and(|tried| tried.status.success())
    }

    /// Who the image says is to run it: a user and a group, by their numbers.
    ///
    /// # Errors
    ///
    /// When it does not say.
    pub fn user(&self) -> Result<&str> {
        let user = self.image.config.pointer("/config/User");
        user.and_then(Value::as_str)
            .context("the image does not say who is to run it")
    }

    /// What `env` is given to become the program. `overrides` are for what two containers
    /// on one system cannot share.
    pub(crate) fn command(
        &self,
        cluster: &ControlPlane,
        overrides: &[(&str, &str)],
    ) -> Result<Vec<String>> {
        let folder = cluster.folder().join("container");
        let account = Account {
            namespace: &self.namespace,
            token: &self.token,
        };
        account.write(cluster, &folder.join("account"))?;
        let hosts = folder.join("hosts");
        fs::write(&hosts, format!("127.0.0.1 localhost {API_SERVER}\n"))?;
        // What a runtime puts into each container.
        let mut mounts = vec![
            (PathBuf::from("/proc"), "/proc"),
            (PathBuf::from("/dev"), "/dev"),
            (hosts, "/etc/hosts"),
            (folder.join("account"), ACCOUNT),
        ];
        let volumes = self.volumes.iter();
        mounts.extend(volumes.map(|(from, to)| (from.clone(), to.as_str())));

        let path = std::env::var("PATH").context("PATH")?;
        let mut all = vec![
            "--ignore-environment".to_owned(),
            format!("PATH={path}"),
            format!("USER_ID={}", self.user()?),
            // By its name, so that the program has to look names up.
            format!("KUBERNETES_SERVICE_HOST={API_SERVER}"),
            format!("KUBERNETES_SERVICE_PORT={}", cluster.port()),
        ];
        let environment = self.environment.iter();
        let said = environment.map(|(name, value)| (name.as_str(), value.as_str()));
        all.extend(
            said.chain(overrides.iter().copied())
                .map(|(name, value)| format!("{name}={value}")),
        );
        all.extend(UNSHARE.map(str::to_owned));
        all.extend(["sh", "-c", ENTER].map(str::to_owned));
        all.push(text(&self.image.root));
        for (from, to) in mounts {
            all.extend([text(&from), to.to_owned()]);
        }
        all.push("--".to_owned());
        let entry = self.image.config.pointer("/config/Entrypoint");
        let entry: Vec<String> = entry
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        ensure!(
            !entry.is_empty(),
            "the image does not say what is to be run"
        );
        all.extend(entry);
        all.extend(self.arguments.iter().cloned());
        Ok(all)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

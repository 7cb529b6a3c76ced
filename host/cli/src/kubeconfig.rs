//! The kubeconfig of an embedded cluster: whoever has it uses the cluster that wrote it,
//! and no other that has come since. A file of somebody else is left as it is.

use anyhow::{Context as _, bail};
use kube::config::Kubeconfig as Contents;
use reeve_sim::{KUBECONFIG_NAME, Serving};
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A cluster that has just been told to stop is gone by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// A kubeconfig that no other embedded cluster writes over for as long as this lives. The
/// file is locked, which ends with the process, however that ends.
pub(crate) struct Kubeconfig(#[expect(dead_code, reason = "it is held")] Option<File>);

impl Kubeconfig {
    /// Writes how a server is reached. The namespace of an earlier one's context stays.
    ///
    /// # Errors
    ///
    /// When the file is another cluster's that still runs, or not an embedded cluster's, or
    /// cannot be written.
    pub(crate) async fn write(
        serving: &Serving,
        path: &Path,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        let before = check(path).await?;
        let namespace = before.as_deref().unwrap_or(namespace);
        serving.write_kubeconfig(path, namespace)?;
        // Where files cannot be locked, all is as it would be without.
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        let file = is_file.then(|| File::open(path).ok()).flatten();
        Ok(Self(file.filter(|file| file.try_lock().is_ok())))
    }
}

/// That this kubeconfig may be written: there is none, or an embedded cluster's that has
/// ended. The answer is the namespace that its context has.
///
/// # Errors
///
/// When a cluster that wrote it still runs, and when it is somebody else's.
pub(crate) async fn check(path: &Path) -> anyhow::Result<Option<String>> {
    let patient_until = Instant::now() + PATIENCE;
    loop {
        // To open a pipe would wait for who reads it.
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        let locked = is_file && File::open(path).is_ok_and(|file| is_locked(&file));
        if !locked {
            return if is_file { ours(path) } else { Ok(None) };
        }
        if Instant::now() >= patient_until {
            bail!(
                "{} is locked, as it is while another embedded cluster runs that is reached by it; \
                 stop that one, or name another file with --kubeconfig",
                path.display()
            );
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// The namespace in the kubeconfig of an embedded cluster.
fn ours(path: &Path) -> anyhow::Result<Option<String>> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let found = Contents::from_yaml(&text).ok();
    let found = found.filter(|found| {
        let clusters = found.clusters.iter().map(|one| &one.name);
        let contexts = found.contexts.iter().map(|one| &one.name);
        let users = found.auth_infos.iter().map(|one| &one.name);
        let mut names = clusters.chain(contexts).chain(users).peekable();
        names.peek().is_some() && names.all(|name| name == KUBECONFIG_NAME)
    });
    let Some(found) = found else {
        bail!(
            "{} is there and no kubeconfig of an embedded cluster, so it is left as it is; name \
             another file with --kubeconfig",
            path.display()
        );
    };
    let context = found.contexts.into_iter().next();
    Ok(context.and_then(|one| one.context?.namespace))
}

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_sim::{Config, Server};
    use std::net::{Ipv4Addr, SocketAddr};

    #[tokio::test]
    async fn a_kubeconfig_is_that_of_one_cluster_for_as_long_as_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let server = Server::new(Config::default());
        let serving = || server.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (first, second) = (serving().await.unwrap(), serving().await.unwrap());
        check(&path).await.unwrap();
        let held = Kubeconfig::write(&first, &path, "default").await.unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let error = Kubeconfig::write(&second, &path, "default").await.map(drop);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("name another file"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        drop(held);
        let text = text.replace("namespace: default", "namespace: demo");
        fs::write(&path, &text).unwrap();
        let _held = Kubeconfig::write(&second, &path, "default").await.unwrap();
        let now = fs::read_to_string(&path).unwrap();
        assert_ne!(now, text);
        assert!(now.contains("namespace: demo"), "{now}");
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let server = Server::new(Config::default());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = server.serve(address).await.unwrap();
        let prod = "apiVersion: v1\nkind: Config\nclusters: [{name: prod, cluster: {server: 'https://prod'}}]\n";
        let mixed = prod.replace("{name: prod", "{name: reeve, cluster: {}}, {name: prod");
        for text in [prod, &mixed, "kind: Config\n", "a note", "a: [b"] {
            fs::write(&path, text).unwrap();
            let error = Kubeconfig::write(&serving, &path, "default")
                .await
                .map(drop);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("left as it is"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, " \n").unwrap();
        Kubeconfig::write(&serving, &path, "default").await.unwrap();
    }
}

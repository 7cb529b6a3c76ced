//! The kubeconfig of an embedded cluster: whoever has it uses the cluster that wrote it,
//! and no other that has come since.

use anyhow::bail;
use reeve_sim::Serving;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A cluster that has just been told to stop is gone by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// A kubeconfig that no other embedded cluster writes over for as long as this lives. The
/// file is locked, which ends with the process, however that ends.
pub(crate) struct Kubeconfig(#[expect(dead_code, reason = "it is held")] Option<File>);

impl Kubeconfig {
    /// Writes how a server is reached.
    ///
    /// # Errors
    ///
    /// When the file is another cluster's that still runs, or cannot be written.
    pub(crate) async fn write(
        serving: &Serving,
        path: &Path,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        check(path).await?;
        serving.write_kubeconfig(path, namespace)?;
        // Where files cannot be locked, all is as it would be without.
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        let file = is_file.then(|| File::open(path).ok()).flatten();
        Ok(Self(file.filter(|file| file.try_lock().is_ok())))
    }
}

/// That nobody is reached by this kubeconfig.
///
/// # Errors
///
/// When a cluster that wrote it still runs.
pub(crate) async fn check(path: &Path) -> anyhow::Result<()> {
    let patient_until = Instant::now() + PATIENCE;
    loop {
        // To open a pipe would wait for who reads it.
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        let locked = is_file && File::open(path).is_ok_and(|file| is_locked(&file));
        if !locked {
            return Ok(());
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

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_sim::{Config, Server};
    use std::fs;
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
        let _held = Kubeconfig::write(&second, &path, "default").await.unwrap();
        assert_ne!(fs::read_to_string(&path).unwrap(), text);
    }
}

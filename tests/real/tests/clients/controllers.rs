//! client-go and controller-runtime, as controllers use them: typed, dynamic and
//! metadata clients, informers, caches and leases. The checks are in
//! `parts/clients`; here they are run against both servers, with informers that
//! list and with informers that stream what is there in the beginning.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::parts::CLIENTS;
use reeve_real::{ControlPlane, EmbeddedCluster};

/// What decides how informers of client-go begin.
pub(crate) const STREAMING: &str = "KUBE_FEATURE_WatchListClient";

/// Runs all checks in a namespace of their own, which there is. The answer is what was
/// printed, one line a check.
fn check(kubeconfig: &Path, namespace: &str, streaming: bool) -> Result<String> {
    let ran = Command::new(CLIENTS.get()?.join("clients"))
        .arg(kubeconfig)
        .arg(namespace)
        .env(STREAMING, streaming.to_string())
        .output()?;
    let printed = String::from_utf8(ran.stdout)?;
    let log = String::from_utf8_lossy(&ran.stderr);
    ensure!(
        ran.status.success(),
        "with streaming {streaming}:\n{printed}\n{log}"
    );
    ensure!(!printed.contains("FAILED"), "{printed}");
    Ok(printed)
}

#[test]
fn controllers_work_unchanged() -> Result<()> {
    let real = ControlPlane::start()?;
    let embedded = EmbeddedCluster::start()?;
    for streaming in [false, true] {
        let namespace = format!("streaming-{streaming}");
        let create = ["create", "namespace", &namespace];
        real.kubectl(&create)?;
        embedded.kubectl(&create)?;
        let expected = check(&real.kubeconfig(), &namespace, streaming)
            .context("the checks do not hold for kube-apiserver")?;
        let found = check(&embedded.kubeconfig(), &namespace, streaming)?;
        assert_eq!(found, expected);
        ensure!(expected.lines().count() >= 14, "{expected}");
    }
    Ok(())
}

//! The ground itself: the servers start, answer as the versions they claim to
//! be, know who is asking, survive an outage and end with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reeve_real::{ControlPlane, User, eventually};

const QUOTA: &str = r#"
apiVersion: v1
kind: ResourceQuota
metadata:
  name: small
  namespace: ann
spec:
  hard:
    requests.cpu: "1"
"#;

#[test]
fn servers_start_and_deletion_reaches_the_contents_of_a_namespace() -> Result<()> {
    let cluster = ControlPlane::start()?;

    let version = cluster.kubectl(&["version", "-o", "json"])?;
    let version: serde_json::Value = serde_json::from_str(&version)?;
    assert_eq!(version["serverVersion"]["gitVersion"], "v1.36.3");
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.36.3");

    cluster.kubectl(&["create", "namespace", "ann"])?;
    assert_eq!(cluster.apply(QUOTA)?, "resourcequota/small created\n");
    assert_eq!(cluster.apply(QUOTA)?, "resourcequota/small unchanged\n");

    // Only a controller manager finishes the deletion of a namespace.
    cluster.kubectl(&["delete", "namespace", "ann", "--wait=false"])?;
    eventually("the namespace is gone", || {
        let left = cluster.kubectl(&["get", "namespace", "ann", "--ignore-not-found"])?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })
}

#[test]
fn users_may_do_what_they_are_granted() -> Result<()> {
    let cluster = ControlPlane::builder()
        .user(User::new("ann"))
        .controllers([])
        .start()?;
    let list = ["get", "configmaps", "--namespace", "default", "-o", "name"];

    let refusal = cluster.kubectl_with("ann", &list, "").unwrap_err();
    assert!(refusal.to_string().contains("Forbidden"), "{refusal}");

    let role = "create clusterrole reader --verb=list --resource=configmaps";
    let binding = "create clusterrolebinding ann --clusterrole=reader --user=ann";
    for command in [role, binding] {
        let arguments: Vec<_> = command.split(' ').collect();
        cluster.kubectl(&arguments)?;
    }
    eventually("the grant is seen", || {
        cluster.kubectl_with("ann", &list, "")
    })?;

    let unknown = cluster.kubectl_with("bob", &list, "").unwrap_err();
    assert!(
        unknown.to_string().contains("without a user bob"),
        "{unknown}"
    );
    Ok(())
}

#[test]
fn data_survives_an_outage_of_the_api_server() -> Result<()> {
    let mut cluster = ControlPlane::builder().controllers([]).start()?;
    cluster.kubectl(&["create", "namespace", "ann"])?;

    cluster.stop_api_server();
    let failure = cluster.kubectl(&["get", "namespace", "ann"]).unwrap_err();
    assert!(failure.to_string().contains("refused"), "{failure}");

    cluster.start_api_server()?;
    cluster.kubectl(&["get", "namespace", "ann"])?;
    Ok(())
}

/// Found by the data folder, which is on the command line of each server.
fn processes_using(folder: &str) -> Result<usize> {
    let output = Command::new("ps").args(["-eo", "args"]).output()?;
    let listing = String::from_utf8(output.stdout).context("ps")?;
    Ok(listing.lines().filter(|line| line.contains(folder)).count())
}

fn expect_processes(folder: &str, expected: usize) -> Result<()> {
    let found = processes_using(folder)?;
    ensure!(found == expected, "{found} processes, not {expected}");
    Ok(())
}

#[test]
fn nothing_stays_behind() -> Result<()> {
    let cluster = ControlPlane::start()?;
    let folder = cluster.folder().to_owned();
    let name = folder.to_string_lossy().into_owned();
    // Three servers and a proxy, each under its supervisor. Nobody waits for the last of
    // them.
    eventually("the servers run", || expect_processes(&name, 8))?;

    drop(cluster);
    assert_eq!(processes_using(&name)?, 0);
    assert!(!folder.exists());
    Ok(())
}

/// Set in the process that is there to be killed.
const VICTIM: &str = "REEVE_REAL_VICTIM";

#[test]
fn servers_of_a_killed_test_end() -> Result<()> {
    if std::env::var_os(VICTIM).is_some() {
        let cluster = ControlPlane::builder().controllers([]).start()?;
        println!("\nfolder {}", cluster.folder().display());
        sleep(Duration::from_secs(600));
        bail!("nobody killed this process");
    }

    let mut victim = Command::new(std::env::current_exe()?)
        .args(["--exact", "--nocapture", "servers_of_a_killed_test_end"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(victim.stdout.take().context("no output")?);
    let folder = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("folder ").map(str::to_owned))
        .context("the victim did not start its servers")?;
    expect_processes(&folder, 6)?;

    victim.kill()?;
    victim.wait()?;
    eventually("the servers have ended", || expect_processes(&folder, 0))?;
    // Nobody was left to do this.
    fs::remove_dir_all(folder)?;
    Ok(())
}

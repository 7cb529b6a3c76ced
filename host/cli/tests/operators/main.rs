//! The commands of operators, as they are typed, against an embedded cluster with
//! real components.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod explain;
mod grants;
mod model;
mod operate;
mod outside;
mod pack;
mod plan;
mod record;
mod undo;
mod unreachable;
mod upgrade;
mod wildcards;

use reeve_it::{NAMESPACE, World};
use reeve_sim::{Identity, Serving};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

/// A cluster that `reeve` can be pointed at.
struct Desk {
    world: World,
    serving: Serving,
    folder: tempfile::TempDir,
}

/// What a command said, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Desk {
    async fn new() -> Self {
        let world = World::new().await;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = world.server.serve(address).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        serving.write_kubeconfig(&kubeconfig, NAMESPACE).unwrap();
        Self {
            world,
            serving,
            folder,
        }
    }

    /// A file in the folder in which commands run.
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// From now on commands run as this user, who has no rights but those of everybody.
    fn log_in(&self, user: &str) {
        let identity = Identity::user(user, ["system:authenticated"]);
        let kubeconfig = self
            .serving
            .kubeconfig_for(&self.world.server.token(identity));
        self.file("kubeconfig", kubeconfig.as_bytes());
    }

    /// Where commands keep compiled components.
    fn cache(&self) -> PathBuf {
        let shared = reeve_test_cache::compiled();
        shared.unwrap_or_else(|| self.folder.path().join("cache"))
    }

    /// Runs `reeve` with these arguments. Digests of components are replaced: they
    /// change with each compiler.
    async fn reeve(&self, arguments: &str) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reeve"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("RUST_LOG")
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env("REEVE_CACHE", self.cache());
        let ran = tokio::task::spawn_blocking(move || command.output());
        let output = ran.await.unwrap().unwrap();
        Said {
            code: output.status.code(),
            out: without_digests(&String::from_utf8(output.stdout).unwrap()),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `reeve` and reads its answer as JSON.
    async fn json(&self, arguments: &str) -> (Option<i32>, Value) {
        let said = self.reeve(&format!("{arguments} -o json")).await;
        let value = serde_json::from_str(&said.out);
        let value = value.unwrap_or_else(|error| panic!("{error} in {said:?}"));
        (said.code, value)
    }
}

/// `sha256:` and what follows it as `sha256:…`.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("sha256:…");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

impl Said {
    /// Checks output and exit code, and that nothing was complained about.
    #[track_caller]
    fn is(&self, code: i32, out: &str) {
        assert_eq!(self.err, "", "{self:?}");
        assert_eq!(self.out, out, "\n{}", self.out);
        assert_eq!(self.code, Some(code));
    }

    /// Checks that there was an error, and nothing else.
    #[track_caller]
    fn fails(&self, code: i32, err: &str) {
        assert_eq!(self.err, format!("error: {err}\n"));
        assert_eq!((self.out.as_str(), self.code), ("", Some(code)));
    }
}

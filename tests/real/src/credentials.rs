//! Who may talk to a test's API server, and with what.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

/// The user that a test itself acts as: a member of `system:masters`, to whom
/// nothing is forbidden.
pub const ADMIN: &str = "admin";

/// A user known to the API server by a static token.
#[derive(Clone, Debug)]
pub struct User {
    /// The name that RBAC subjects refer to.
    pub name: String,
    /// The groups it is a member of.
    pub groups: Vec<String>,
}

impl User {
    /// A user in no group but those that every authenticated user is in.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: Vec::new(),
        }
    }

    pub(crate) fn admin() -> Self {
        Self {
            name: ADMIN.to_owned(),
            groups: vec!["system:masters".to_owned()],
        }
    }

    /// Guards nothing: the server listens on the loopback address for the length
    /// of a test.
    fn token(&self) -> String {
        format!("token-of-{}", self.name)
    }

    /// The line of this user in the file for `--token-auth-file`.
    fn csv(&self) -> String {
        let groups = self.groups.join(",");
        format!(
            "{},{name},{name},\"{groups}\"\n",
            self.token(),
            name = self.name
        )
    }
}

pub(crate) fn write_token_file(path: &Path, users: &[User]) -> Result<()> {
    let lines: String = users.iter().map(User::csv).collect();
    fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a kubeconfig file with one context, in which `user` talks to `server`.
pub(crate) fn write_kubeconfig(
    path: &Path,
    server: &str,
    certificate: &Path,
    user: &User,
) -> Result<()> {
    write_token_kubeconfig(path, server, certificate, &user.token())
}

/// Writes a kubeconfig file with one context, in which whoever has `token` talks to
/// `server`.
pub(crate) fn write_token_kubeconfig(
    path: &Path,
    server: &str,
    certificate: &Path,
    token: &str,
) -> Result<()> {
    // JSON is YAML, and every kubeconfig reader takes it.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{
            "name": "test",
            "cluster": { "server": server, "certificate-authority": certificate },
        }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{
            "name": "test",
            "context": { "cluster": "test", "user": "test" },
        }],
    });
    fs::write(path, serde_json::to_vec_pretty(&config)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_one_quoted_column() {
        let mut user = User::new("ann");
        assert_eq!(user.csv(), "token-of-ann,ann,ann,\"\"\n");
        user.groups = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(user.csv(), "token-of-ann,ann,ann,\"a,b\"\n");
    }
}

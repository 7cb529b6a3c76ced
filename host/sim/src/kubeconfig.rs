//! Kubeconfig files.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The name of cluster, user and context in the kubeconfig of an embedded cluster.
pub const NAME: &str = "reeve";

/// A kubeconfig with one context, in YAML.
pub(crate) fn text(url: &str, certificate: &str, token: &str, namespace: &str) -> String {
    let ca = STANDARD.encode(certificate);
    format!(
        "apiVersion: v1
kind: Config
current-context: {NAME}
clusters:
- name: {NAME}
  cluster:
    server: {url}
    certificate-authority-data: {ca}
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    namespace: {namespace}
    user: {NAME}
users:
- name: {NAME}
  user:
    token: {token}
"
    )
}

/// Writes a file that only its owner can read, all at once: a reader sees the
/// old file or the new one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&fresh)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        // What is left of the attempt; it may not even be there.
        let _ = std::fs::remove_file(&fresh);
    }
    written
}

//! What each crate may know.
//!
//! The rules follow the map of crates: deciding is pure, the engine knows
//! wasmtime, the cluster knows Kubernetes, and only the agent knows both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The crates of this workspace that each of them may depend on. Tests may use
/// more: development dependencies are free.
const MAY_USE: &[(&str, &[&str])] = &[
    ("reeve-ssa", &[]),
    ("reeve-core", &["reeve-ssa"]),
    ("reeve-api", &[]),
    ("reeve-engine", &["reeve-core"]),
    ("reeve-cluster", &["reeve-api", "reeve-core", "reeve-ssa"]),
    ("reeve-sim", &["reeve-ssa"]),
    (
        "reeve-agent",
        &[
            "reeve-api",
            "reeve-cluster",
            "reeve-core",
            "reeve-engine",
            "reeve-outside",
        ],
    ),
    ("reeve-outside", &["reeve-core"]),
    (
        "reeve-harness",
        &[
            "reeve-agent",
            "reeve-api",
            "reeve-build",
            "reeve-core",
            "reeve-engine",
            "reeve-sim",
        ],
    ),
    (
        "reeve-cli",
        &[
            "reeve-agent",
            "reeve-api",
            "reeve-build",
            "reeve-cluster",
            "reeve-core",
            "reeve-engine",
            "reeve-harness",
            "reeve-outside",
            "reeve-sim",
        ],
    ),
    ("reeve-build", &[]),
    ("reeve-sdk", &["reeve-sdk-macros"]),
    ("reeve-sdk-macros", &[]),
    ("reeve-test-cache", &[]),
    ("reeve-test-support", &[]),
    (
        "reeve-fuzz",
        &[
            "reeve-agent",
            "reeve-core",
            "reeve-engine",
            "reeve-sim",
            "reeve-ssa",
            "reeve-test-support",
        ],
    ),
    ("reeve-real", &["reeve-test-cache", "reeve-test-support"]),
    ("reeve-test-platform", &["reeve-real", "reeve-test-support"]),
    ("reeve-tidy", &[]),
    ("xtask", &["reeve-build", "reeve-real"]),
    (
        "reeve-it",
        &[
            "reeve-agent",
            "reeve-api",
            "reeve-cluster",
            "reeve-core",
            "reeve-engine",
            "reeve-sim",
            "reeve-test-cache",
            "reeve-test-support",
        ],
    ),
    (
        "reeve-bench",
        &[
            "reeve-agent",
            "reeve-api",
            "reeve-cluster",
            "reeve-core",
            "reeve-engine",
            "reeve-outside",
            "reeve-real",
            "reeve-sim",
            "reeve-ssa",
            "reeve-test-platform",
            "reeve-test-support",
        ],
    ),
];

/// What a component may depend on: plugins, and the guests of the tests.
const COMPONENTS_MAY_USE: &[&str] = &["reeve-sdk"];

/// Crates from outside that must not be reached from a crate of ours, however
/// many steps away.
const MUST_NOT_REACH: &[(&str, &[&str])] = &[
    ("reeve-ssa", &["kube", "wasmtime", "tokio"]),
    ("reeve-core", &["kube", "wasmtime", "tokio"]),
    ("reeve-api", &["wasmtime"]),
    ("reeve-engine", &["kube"]),
    ("reeve-cluster", &["wasmtime"]),
    ("reeve-outside", &["kube", "wasmtime"]),
    ("reeve-sim", &["wasmtime"]),
    ("reeve-sdk", &["kube", "wasmtime", "tokio"]),
];

/// The crates that the design builds on, where, and in which version.
const MUST_USE: &[(&str, &str, &str)] = &[
    ("reeve-engine", "wasmtime", "48."),
    ("reeve-engine", "wasmtime-wasi", "48."),
    ("reeve-cluster", "kube", "5."),
    ("reeve-sim", "kube-cel", "0.8."),
    ("reeve-api", "k8s-openapi", "0.29."),
    ("reeve-sdk", "wit-bindgen", "0.60."),
    ("reeve-build", "wit-component", "0.254."),
    ("reeve-cli", "clap", "4."),
    ("reeve-cli", "serde-saphyr", "2."),
];

/// Of these one version only: two parsers of the contract could disagree on it.
const ONE_VERSION: &[&str] = &["wit-parser", "wasmtime", "kube", "k8s-openapi"];

/// The packages of the workspace and everything below them.
#[derive(Debug, Default)]
pub struct Graph {
    packages: BTreeMap<String, Package>,
}

#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    /// The folder in this workspace; none for a crate from outside.
    folder: Option<String>,
    /// Ids of the packages that its library or program is built with.
    uses: Vec<String>,
}

impl Graph {
    /// Asks cargo, for the platform that this runs on and the one of components.
    ///
    /// # Errors
    ///
    /// When cargo fails, or answers in another form than it documents.
    pub fn of_workspace(root: &Path) -> Result<Self> {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1"])
            .args(["--filter-platform", &host_platform()?])
            .args(["--filter-platform", "wasm32-unknown-unknown"])
            .current_dir(root)
            .output()
            .context("cannot start cargo")?;
        if !output.status.success() {
            bail!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Self::from_metadata(&serde_json::from_slice(&output.stdout)?)
    }

    fn from_metadata(metadata: &Value) -> Result<Self> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let members: BTreeSet<_> = list(&metadata["workspace_members"])
            .iter()
            .filter_map(text)
            .collect();
        let root = text(&metadata["workspace_root"]).context("no workspace root")?;

        let mut graph = Self::default();
        for package in list(&metadata["packages"]) {
            let id = text(&package["id"]).context("a package without id")?;
            let manifest = text(&package["manifest_path"]).context("a package without path")?;
            let folder = Path::new(&manifest)
                .strip_prefix(&root)
                .ok()
                .and_then(Path::parent)
                .map(|folder| folder.to_string_lossy().into_owned());
            let package = Package {
                name: text(&package["name"]).context("a package without name")?,
                version: text(&package["version"]).context("a package without version")?,
                folder: folder.filter(|_| members.contains(&id)),
                uses: Vec::new(),
            };
            graph.packages.insert(id, package);
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let uses = list(&node["deps"])
                .iter()
                .filter(|dependency| {
                    list(&dependency["dep_kinds"])
                        .iter()
                        .any(|kind| kind["kind"] != "dev")
                })
                .filter_map(|dependency| text(&dependency["pkg"]))
                .collect();
            if let Some(package) = text(&node["id"]).and_then(|id| graph.packages.get_mut(&id)) {
                package.uses = uses;
            }
        }
        Ok(graph)
    }

    fn ours(&self) -> impl Iterator<Item = (&Package, &str)> {
        self.packages
            .values()
            .filter_map(|package| Some((package, package.folder.as_deref()?)))
    }

    fn used_by<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        package.uses.iter().filter_map(|id| self.packages.get(id))
    }

    fn ours_named(&self, name: &str) -> Option<&Package> {
        self.ours()
            .map(|(package, _)| package)
            .find(|package| package.name == name)
    }

    /// Names of everything that is reached from `package`.
    fn reached_from<'a>(&'a self, package: &'a Package) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&Package> = self.used_by(package).collect();
        while let Some(next) = open.pop() {
            if reached.insert(next.name.as_str()) {
                open.extend(self.used_by(next));
            }
        }
        reached
    }
}

/// The platform that the compiler builds for when nothing else is said.
fn host_platform() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    String::from_utf8(output.stdout)?
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc does not name its platform")
}

/// Dependencies among our crates that the map of crates does not have.
pub fn against_the_direction(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for (package, folder) in graph.ours() {
        let is_component = folder.starts_with("plugins/") || folder.starts_with("tests/guests/");
        let listed = MAY_USE.iter().find(|(name, _)| *name == package.name);
        let allowed = match listed {
            _ if is_component => COMPONENTS_MAY_USE,
            Some((_, allowed)) => allowed,
            None => {
                findings.push(format!(
                    "{}: not in the map of crates; add it to MAY_USE in tests/tidy",
                    package.name
                ));
                continue;
            }
        };
        for used in graph.used_by(package) {
            if used.folder.is_some() && !allowed.contains(&used.name.as_str()) {
                findings.push(format!("{} must not use {}", package.name, used.name));
            }
        }
    }
    findings
}

/// Crates from outside in places where they must not be known.
pub fn out_of_place(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, forbidden) in MUST_NOT_REACH {
        let Some(package) = graph.ours_named(name) else {
            findings.push(format!("{name}: there is no such crate"));
            continue;
        };
        let reached = graph.reached_from(package);
        for outside in forbidden.iter().filter(|name| reached.contains(*name)) {
            findings.push(format!("{name} must not know {outside}"));
        }
    }
    findings
}

/// Crates that the design builds on and that are absent, or there twice.
pub fn missing_or_doubled(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, wanted, version) in MUST_USE {
        let there = graph.ours_named(name).is_some_and(|package| {
            graph
                .used_by(package)
                .any(|used| used.name == *wanted && used.version.starts_with(version))
        });
        if !there {
            findings.push(format!("{name} is to use {wanted} {version}x"));
        }
    }
    for name in ONE_VERSION {
        let versions: Vec<_> = graph
            .packages
            .values()
            .filter(|package| package.name == *name)
            .map(|package| package.version.as_str())
            .collect();
        if versions.len() != 1 {
            findings.push(format!("{name}: versions {versions:?} instead of one"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A workspace from `name@folder -> used names`; a folder of `-` is outside.
    fn graph(packages: &[(&str, &str, &[&str])]) -> Graph {
        let path = |folder: &str| match folder {
            "-" => "/elsewhere/Cargo.toml".to_owned(),
            folder => format!("/src/{folder}/Cargo.toml"),
        };
        let listed: Vec<_> = packages
            .iter()
            .map(|(name, folder, _)| {
                json!({"id": name, "name": name, "version": "1.0.0", "manifest_path": path(folder)})
            })
            .collect();
        let nodes: Vec<_> = packages
            .iter()
            .map(|(name, _, uses)| {
                let deps: Vec<_> = uses
                    .iter()
                    .map(|used| {
                        let (used, kind) = match used.strip_prefix("dev:") {
                            Some(used) => (used, json!("dev")),
                            None => (*used, Value::Null),
                        };
                        json!({"pkg": used, "dep_kinds": [{"kind": kind}]})
                    })
                    .collect();
                json!({"id": name, "deps": deps})
            })
            .collect();
        let members: Vec<_> = packages
            .iter()
            .filter(|(_, folder, _)| *folder != "-")
            .map(|(name, _, _)| name)
            .collect();
        Graph::from_metadata(&json!({
            "workspace_root": "/src",
            "workspace_members": members,
            "packages": listed,
            "resolve": { "nodes": nodes },
        }))
        .unwrap()
    }

    #[test]
    fn a_step_against_the_direction_is_found() {
        let sim = ("reeve-sim", "host/sim", &[][..]);
        for (package, finding) in [
            (
                ("reeve-core", "host/core", &["reeve-sim"][..]),
                Some("reeve-core must not use reeve-sim"),
            ),
            (("reeve-core", "host/core", &["dev:reeve-sim"]), None),
            (("reeve-cli", "host/cli", &["reeve-sim"]), None),
            (
                ("any", "plugins/any", &["reeve-sim"]),
                Some("any must not use reeve-sim"),
            ),
            (
                ("new", "host/new", &[]),
                Some("new: not in the map of crates; add it to MAY_USE in tests/tidy"),
            ),
        ] {
            let found = against_the_direction(&graph(&[sim, package]));
            assert_eq!(found, Vec::from_iter(finding), "{package:?}");
        }
    }

    #[test]
    fn a_forbidden_crate_is_found_behind_another() {
        let found = out_of_place(&graph(&[
            ("reeve-core", "host/core", &["harmless"]),
            ("harmless", "-", &["tokio"]),
            ("tokio", "-", &[]),
        ]));
        assert!(
            found.contains(&"reeve-core must not know tokio".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn an_absent_crate_of_the_design_is_found() {
        let found = missing_or_doubled(&graph(&[("reeve-engine", "host/engine", &[])]));
        assert!(
            found.contains(&"reeve-engine is to use wasmtime 48.x".to_owned()),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|line| line.starts_with("wit-parser: versions []"))
        );
    }
}

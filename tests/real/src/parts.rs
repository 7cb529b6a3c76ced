//! The real programs: how they are built, and where they are kept.
//!
//! Each part is a small Go module under `parts/`, or a package of npm, which pins
//! versions and checksums, and becomes one folder of programs:
//!
//! ```text
//! ${XDG_CACHE_HOME:-~/.cache}/reeve/parts/<name>-<version>-<hash of the recipe>/<program>
//! ```
//!
//! The hash covers everything that decides what is built, so a changed recipe
//! never meets old programs, and a folder that exists is complete.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// The recipe of one part.
#[derive(Debug)]
pub struct Part {
    /// Its name, and that of its module under `parts/`.
    pub name: &'static str,
    /// The version it is built from.
    pub version: &'static str,
    /// What builds it.
    pub tool: Tool,
    /// The programs, each with the package of its `main`.
    programs: &'static [(&'static str, &'static str)],
    /// What the linker writes into variables.
    variables: &'static [(&'static str, &'static str)],
    /// What it is built without or with, as Go's build tags.
    tags: &'static [&'static str],
}

/// What builds a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Go, from a module.
    Go,
    /// npm, from a list of packages with their checksums.
    Npm,
}

impl Tool {
    /// Its command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Npm => "npm",
        }
    }

    /// What to do where it is not installed.
    fn absence(self) -> &'static str {
        match self {
            Self::Go => {
                "Go is not installed; the real servers are built with Go 1.26 or newer \
                 (https://go.dev/dl)"
            }
            Self::Npm => {
                "npm is not installed; Azurite is installed with it and runs on Node.js 20 or \
                 newer (https://nodejs.org)"
            }
        }
    }
}

/// The store below the API server.
pub const ETCD: Part = Part {
    name: "etcd",
    version: "3.6.8",
    tool: Tool::Go,
    programs: &[("etcd", ".")],
    variables: &[],
    tags: &[],
};

/// kube-apiserver, kube-controller-manager and kubectl.
pub const KUBERNETES: Part = Part {
    name: "kubernetes",
    version: "1.36.3",
    tool: Tool::Go,
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    // The release builds set these; without them the server calls itself v0.0.0.
    variables: &[
        ("k8s.io/component-base/version.gitVersion", "v1.36.3"),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "36"),
        ("k8s.io/client-go/pkg/version.gitVersion", "v1.36.3"),
    ],
    tags: &[],
};

/// The same of the oldest release that Reeve runs on, which the chart names as well. It is
/// built when it is asked for; see [`kubernetes`].
pub const OLDEST_KUBERNETES: Part = Part {
    name: "kubernetes-oldest",
    version: "1.30.14",
    tool: Tool::Go,
    programs: KUBERNETES.programs,
    variables: &[
        ("k8s.io/component-base/version.gitVersion", "v1.30.14"),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "30"),
        ("k8s.io/client-go/pkg/version.gitVersion", "v1.30.14"),
    ],
    tags: &[],
};

/// Says on which Kubernetes tests run: `oldest` stands for [`OLDEST_KUBERNETES`], and
/// nothing for [`KUBERNETES`].
pub const WHICH: &str = "REEVE_KUBERNETES";

/// The Kubernetes that tests run on.
///
/// # Errors
///
/// When [`WHICH`] says something else.
pub fn kubernetes() -> Result<&'static Part> {
    match env::var(WHICH).as_deref() {
        Err(_) | Ok("") => Ok(&KUBERNETES),
        Ok("oldest") => Ok(&OLDEST_KUBERNETES),
        Ok(other) => bail!("{WHICH} is `{other}`; set it to `oldest`, or not at all"),
    }
}

/// The newest kubectl, which is newer than the servers.
pub const NEWEST_KUBECTL: Part = Part {
    name: "kubectl-newest",
    version: "1.37.2",
    tool: Tool::Go,
    programs: &[("kubectl", ".")],
    variables: &[
        ("k8s.io/component-base/version.gitVersion", "v1.37.2"),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "37"),
        ("k8s.io/client-go/pkg/version.gitVersion", "v1.37.2"),
    ],
    tags: &[],
};

/// What the tests need around the servers; see the programs' own comments.
pub const HELPERS: Part = Part {
    name: "helpers",
    version: "1",
    tool: Tool::Go,
    programs: &[
        ("supervise", "./supervise"),
        ("signing-key", "./signing-key"),
    ],
    variables: &[],
    tags: &[],
};

/// The libraries with which a server merges objects, as programs that tests ask; see
/// the programs' own comments.
pub const SSA: Part = Part {
    name: "ssa",
    version: "0.36.3",
    tool: Tool::Go,
    programs: &[("oracle", "./oracle"), ("shapes", "./shapes")],
    variables: &[],
    tags: &[],
};

/// Clients as controllers use them, in a program that checks a server with them; see
/// the program's own comment.
pub const CLIENTS: Part = Part {
    name: "clients",
    version: "0.36.3",
    tool: Tool::Go,
    programs: &[("clients", ".")],
    variables: &[],
    tags: &[],
};

/// Helm, which installs the chart.
pub const HELM: Part = Part {
    name: "helm",
    version: "4.3.1",
    tool: Tool::Go,
    programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
    variables: &[],
    tags: &[],
};

/// kwok, which plays nodes.
pub const KWOK: Part = Part {
    name: "kwok",
    version: "0.8.0",
    tool: Tool::Go,
    programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
    variables: &[],
    tags: &[],
};

/// The controller of Flux that installs charts. It is built by the test that has it, which
/// not everybody can run.
pub const FLUX: Part = Part {
    name: "flux",
    version: "1.6.3",
    tool: Tool::Go,
    programs: &[("helm-controller", "github.com/fluxcd/helm-controller")],
    variables: &[],
    tags: &[],
};

/// The registry of the CNCF, in which artifacts are.
pub const REGISTRY: Part = Part {
    name: "registry",
    version: "3.1.2",
    tool: Tool::Go,
    programs: &[("registry", ".")],
    variables: &[],
    tags: &[],
};

/// Open Policy Agent, which describes buckets.
pub const OPA: Part = Part {
    name: "opa",
    version: "1.22.2",
    tool: Tool::Go,
    programs: &[("opa", "github.com/open-policy-agent/opa")],
    variables: &[],
    tags: &[],
};

/// Buildah, which builds images without an engine.
pub const BUILDAH: Part = Part {
    name: "buildah",
    version: "1.44.1",
    tool: Tool::Go,
    programs: &[("buildah", "go.podman.io/buildah/cmd/buildah")],
    variables: &[],
    // Signatures are read in Go, so that no C library is needed.
    tags: &["containers_image_openpgp"],
};

/// Azure's storage service, as Microsoft gives it to developers.
pub const AZURITE: Part = Part {
    name: "azurite",
    version: "3.37.0",
    tool: Tool::Npm,
    programs: &[],
    variables: &[],
    tags: &[],
};

/// Every part that is built with Go and that all need, in the order in which `cargo xtask
/// parts` builds them.
pub const ALL: &[&Part] = &[
    &HELPERS,
    &ETCD,
    &KUBERNETES,
    &NEWEST_KUBECTL,
    &SSA,
    &CLIENTS,
    &HELM,
    &KWOK,
    &REGISTRY,
    &BUILDAH,
    &OPA,
];

/// The parts that the tests of the outside need besides.
pub const OUTSIDE: &[&Part] = &[&AZURITE];

impl Part {
    /// Whether the part has been built, by anybody, with this recipe.
    pub fn is_built(&self) -> Result<bool> {
        Ok(self.folder()?.is_dir())
    }

    /// The folder with the programs, which are built when they are absent. That
    /// can take minutes and shows progress on stderr.
    ///
    /// # Errors
    ///
    /// When Go is missing or a build fails.
    pub fn get(&self) -> Result<PathBuf> {
        let folder = self.folder()?;
        if folder.is_dir() {
            return Ok(folder);
        }
        let cache = cache_folder()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let _lock = self.lock(&cache)?;
        // Whoever held the lock may have built what is wanted here.
        if !folder.is_dir() {
            self.build(&cache, &folder)?;
        }
        Ok(folder)
    }

    fn folder(&self) -> Result<PathBuf> {
        let hash = self.recipe_hash()?;
        let name = format!("{}-{}-{hash}", self.name, self.version);
        Ok(cache_folder()?.join(name))
    }

    /// Held while building; the system releases it however the process ends.
    fn lock(&self, cache: &Path) -> Result<File> {
        let path = cache.join(format!("{}.lock", self.name));
        let lock = File::create(&path)
            .with_context(|| format!("cannot make the lock {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another process that builds {}", self.name);
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(lock)
    }

    fn build(&self, cache: &Path, folder: &Path) -> Result<()> {
        let beside = tempfile::Builder::new()
            .prefix(&format!(".{}-", self.name))
            .tempdir_in(cache)?;
        if self.tool == Tool::Npm {
            self.install_packages(beside.path())?;
        }
        for (program, package) in self.programs {
            eprintln!(
                "building {program} {} from its Go module, once",
                self.version
            );
            let started = Instant::now();
            self.build_program(package, &beside.path().join(program))
                .with_context(|| format!("cannot build {program}"))?;
            eprintln!("built {program} in {} s", started.elapsed().as_secs());
        }
        // The name of a part appears when all of its programs are there.
        fs::rename(beside.keep(), folder)
            .with_context(|| format!("cannot make {}", folder.display()))
    }

    fn build_program(&self, package: &str, output: &Path) -> Result<()> {
        let mut go = Command::new("go");
        go.arg("build")
            .args(FLAGS)
            .args(["-ldflags", &self.linker_flags()])
            .args(["-tags", &self.tags.join(",")])
            .arg("-o")
            .arg(output)
            .arg(package)
            .current_dir(self.module())
            // Static, so that no C compiler is needed; alone, so that no
            // workspace of the user's is drawn in.
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .stdin(Stdio::null());
        self.run(go)
    }

    /// Installs exactly the packages that the lock file names, and runs none of their
    /// scripts.
    fn install_packages(&self, folder: &Path) -> Result<()> {
        eprintln!("installing {} {} with npm, once", self.name, self.version);
        for file in ["package.json", "package-lock.json"] {
            let from = self.module().join(file);
            fs::copy(&from, folder.join(file))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--omit=dev"])
            // It says of each package for which version of Node.js it was made.
            .args(["--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(folder)
            .stdin(Stdio::null())
            // What it says to itself is no result of `cargo xtask parts`.
            .stdout(Stdio::null());
        self.run(npm)
    }

    fn run(&self, mut command: Command) -> Result<()> {
        let mut build = match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(self.tool.absence()),
            started => started?,
        };
        let started = Instant::now();
        let mut next_sign = SIGN_OF_LIFE;
        loop {
            if let Some(status) = build.try_wait()? {
                if status.success() {
                    return Ok(());
                }
                let tool = self.tool.command();
                bail!("`{tool}` ended with {status}; its message is above");
            }
            if started.elapsed() >= next_sign {
                eprintln!("  still building after {} s", next_sign.as_secs());
                next_sign += SIGN_OF_LIFE;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn module(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("parts")
            .join(self.name)
    }

    fn linker_flags(&self) -> String {
        let mut flags = "-s -w".to_owned();
        for (variable, value) in self.variables {
            flags.push_str(&format!(" -X {variable}={value}"));
        }
        flags
    }

    /// The digest of the module's files and of how they are built.
    fn recipe_hash(&self) -> Result<String> {
        let module = self.module();
        let mut files = Vec::new();
        collect_files(&module, &mut files)
            .with_context(|| format!("cannot read {}", module.display()))?;
        files.sort();

        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        };
        for path in files {
            let relative = path.strip_prefix(&module)?;
            add(relative.to_string_lossy().as_bytes());
            add(&fs::read(&path)?);
        }
        for (program, package) in self.programs {
            add(program.as_bytes());
            add(package.as_bytes());
        }
        add(FLAGS.join(" ").as_bytes());
        add(self.linker_flags().as_bytes());
        for tag in self.tags {
            add(tag.as_bytes());
        }
        let digest = digest.finalize();
        Ok(digest[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

/// `readonly`: exactly what go.mod and go.sum say, or an error.
const FLAGS: &[&str] = &["-mod=readonly", "-trimpath", "-buildvcs=false"];

/// Go says nothing while it compiles; a line now and then shows that it does.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(crate) fn cache_folder() -> Result<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => env::home_dir()
            .context("no home folder to keep the built servers in; set XDG_CACHE_HOME")?
            .join(".cache"),
    };
    Ok(cache.join("reeve").join("parts"))
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_decides_the_folder() {
        let changed = Part {
            variables: &[("main.version", "1")],
            ..HELPERS
        };
        let hash = HELPERS.recipe_hash().unwrap();
        assert_eq!(hash, HELPERS.recipe_hash().unwrap());
        assert_ne!(hash, changed.recipe_hash().unwrap());
        let folder = HELPERS.folder().unwrap();
        assert!(folder.ends_with(format!("reeve/parts/helpers-1-{hash}")));
    }

    #[test]
    fn the_chart_names_the_oldest_release() {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/reeve/Chart.yaml");
        let chart = fs::read_to_string(chart).unwrap();
        let (major_minor, _) = OLDEST_KUBERNETES.version.rsplit_once('.').unwrap();
        let line = format!("kubeVersion: \">={major_minor}.0-0\"");
        assert!(chart.contains(&line), "no {line} in {chart}");
    }

    #[test]
    fn modules_pin_the_versions_that_the_recipes_name() {
        for (part, module) in [
            (ETCD, "go.etcd.io/etcd/server/v3"),
            (KUBERNETES, "k8s.io/kubernetes"),
            (OLDEST_KUBERNETES, "k8s.io/kubernetes"),
            (SSA, "k8s.io/apimachinery"),
            (CLIENTS, "k8s.io/client-go"),
            (HELM, "helm.sh/helm/v4"),
            (KWOK, "sigs.k8s.io/kwok"),
            (REGISTRY, "github.com/distribution/distribution/v3"),
            (BUILDAH, "go.podman.io/buildah"),
            (OPA, "github.com/open-policy-agent/opa"),
        ] {
            let requirement = format!("{module} v{}", part.version);
            let manifest = fs::read_to_string(part.module().join("go.mod")).unwrap();
            assert!(manifest.contains(&requirement), "{requirement}");
        }
        let requirement = format!("\"azurite\": \"{}\"", AZURITE.version);
        let manifest = fs::read_to_string(AZURITE.module().join("package.json")).unwrap();
        assert!(manifest.contains(&requirement), "{requirement}");
    }
}

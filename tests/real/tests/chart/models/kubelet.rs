//! Runs the containers of a pod as a kubelet does: with their commands, their environment
//! and their volumes at the paths that the pod says, and its termination message.
//!
//! Other than there, a container has the programs of this system and what [`Image`] adds, in
//! the place of its image, and the network of this system. What a seccomp or an AppArmor
//! profile would keep from it is not kept from it.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::Container;
use reeve_test_support::skipped;
use serde_json::Value;
use tempfile::TempDir;

use super::install::MODELS;
use crate::stage::Stage;

/// Makes folder $0 the root of a container, with devices of its own. Up to `--`, of three
/// arguments the second is a path that is mounted at the third, as the first says. Then it
/// becomes the rest in there.
const ENTER: &str = r#"
set -e
root=$0
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
while [ "$1" != -- ]; do
    if [ -d "$2" ]; then
        mkdir -p "$root$3"
    else
        mkdir -p "$(dirname "$root$3")"
        touch "$root$3"
    fi
    mount --bind "$2" "$root$3"
    mount -o "remount,bind,$1" "$root$3"
    shift 3
done
shift
exec chroot "$root" "$@"
"#;

/// Where a container leaves its last word, unless it says otherwise.
const MESSAGE: &str = "/dev/termination-log";

/// What a container finds first.
const PATH: &str = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Folders of this system in which its programs are. Some may be links to others.
const PROGRAMS: [&str; 5] = ["usr", "bin", "sbin", "lib", "lib64"];

/// Bytes of a log that stand for a message.
const LOG: usize = 2048;

/// What is in the place of an image.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Whom it says its program runs as.
    pub(super) user: u32,
    /// Files of it, with their contents. One that is empty may be run.
    pub(super) files: Vec<(&'static str, String)>,
    /// A program of it that this system does not have, and its path.
    pub(super) program: Option<(PathBuf, &'static str)>,
}

/// A pod, with its volumes.
pub(super) struct Pod<'a> {
    stage: &'a Stage,
    spec: Value,
    uid: Value,
    folder: TempDir,
}

/// How a container ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: i32,
    /// Its termination message.
    pub(super) message: String,
    pub(super) log: String,
}

impl<'a> Pod<'a> {
    /// Whether this system has what containers are run with; says so, loudly, where it has
    /// not.
    pub(super) fn possible() -> Result<bool> {
        let has = |program: &&str| {
            let tried = Command::new(program).arg("--version").output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        let programs = ["setpriv", "curl", "sha256sum"].iter().all(has);
        if programs && Container::possible() {
            return Ok(true);
        }
        skipped("models are not built for real, without curl, setpriv and mounts of their own");
        Ok(false)
    }

    /// Makes the volumes of a pod of the models.
    pub(super) fn new(stage: &'a Stage, pod: &Value) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("reeve-pod-").tempdir()?;
        // Whoever runs in a container has to come by.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let this = Self {
            stage,
            spec: pod["spec"].clone(),
            uid: pod["metadata"]["uid"].clone(),
            folder,
        };
        for volume in this.spec["volumes"].as_array().into_iter().flatten() {
            this.make_volume(volume)
                .with_context(|| volume.to_string())?;
        }
        Ok(this)
    }

    /// Where a volume is.
    pub(super) fn volume(&self, name: &str) -> PathBuf {
        self.folder.path().join("volumes").join(name)
    }

    /// Runs one of its containers to its end.
    pub(super) fn run(&self, name: &str, image: &Image) -> Result<Ended> {
        let both = ["initContainers", "containers"].map(|list| self.spec[list].as_array());
        let mut all = both.into_iter().flatten().flatten();
        let container = all.find(|container| container["name"] == name);
        let container = container.with_context(|| format!("no container {name}"))?;
        let root = self.folder.path().join(name);
        make_root(&root, image)?;
        let message = self.folder.path().join(format!("{name}.message"));
        fs::write(&message, "")?;
        fs::set_permissions(&message, Permissions::from_mode(0o666))?;
        let log = self.folder.path().join(format!("{name}.log"));
        let output = File::create(&log)?;

        let mut mounts = vec![("rw", message.clone(), MESSAGE.to_owned())];
        for folder in PROGRAMS {
            let path = Path::new("/").join(folder);
            if path.is_dir() && !path.is_symlink() {
                mounts.push(("ro", path, format!("/{folder}")));
            }
        }
        if let Some((program, path)) = &image.program {
            mounts.push(("ro", program.clone(), (*path).to_owned()));
        }
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let how = match mount["readOnly"] == true {
                true => "ro",
                false => "rw",
            };
            let volume = self.volume(text(&mount["name"])?);
            mounts.push((how, volume, text(&mount["mountPath"])?.to_owned()));
        }
        let environment = self.environment(container)?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", ENTER])
            .arg(&root)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/root")
            .envs(&environment)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        for (how, from, to) in mounts {
            command.arg(how).arg(from).arg(to);
        }
        command.arg("--").args(as_user(container, image.user)?);
        for list in ["command", "args"] {
            for word in container[list].as_array().into_iter().flatten() {
                command.arg(expanded(text(word)?, &environment));
            }
        }
        let code = command.status()?.code().context("it was killed")?;
        let log = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let mut message = fs::read_to_string(&message)?;
        let falls_back = container["terminationMessagePolicy"] == "FallbackToLogsOnError";
        if message.is_empty() && code != 0 && falls_back {
            let start = log.floor_char_boundary(log.len().saturating_sub(LOG));
            message = log[start..].to_owned();
        }
        Ok(Ended { code, message, log })
    }

    fn make_volume(&self, volume: &Value) -> Result<()> {
        let folder = self.volume(text(&volume["name"])?);
        fs::create_dir_all(&folder)?;
        if volume["emptyDir"].is_object() {
            fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
            return Ok(());
        }
        let secret = &volume["secret"];
        ensure!(secret.is_object(), "no volume that is known here");
        let name = text(&secret["secretName"])?;
        for item in secret["items"].as_array().into_iter().flatten() {
            let content = self.secret(name, text(&item["key"])?)?;
            fs::write(folder.join(text(&item["path"])?), content)?;
        }
        Ok(())
    }

    fn secret(&self, name: &str, key: &str) -> Result<String> {
        let secret = self.stage.get("secret", MODELS, name)?;
        let secret = secret.with_context(|| format!("no Secret {name}"))?;
        let bytes = STANDARD.decode(text(&secret["data"][key])?)?;
        Ok(String::from_utf8(bytes)?)
    }

    fn environment(&self, container: &Value) -> Result<BTreeMap<String, String>> {
        // As every container finds it, and may name it.
        let server = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let server = (server.0.to_owned(), server.1.to_owned());
        let mut environment = BTreeMap::from([server]);
        for variable in container["env"].as_array().into_iter().flatten() {
            let from = &variable["valueFrom"];
            let reference = &from["secretKeyRef"];
            let value = if reference.is_object() {
                self.secret(text(&reference["name"])?, text(&reference["key"])?)?
            } else if from["fieldRef"]["fieldPath"] == "metadata.uid" {
                text(&self.uid)?.to_owned()
            } else {
                ensure!(from.is_null(), "{from} is not known here");
                // An empty one is not stored.
                expanded(variable["value"].as_str().unwrap_or_default(), &environment)
            };
            environment.insert(text(&variable["name"])?.to_owned(), value);
        }
        Ok(environment)
    }
}

/// What Kubernetes makes of a text: `$(NAME)` is the variable, if there is one, and `$$` is
/// `$`.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        found.push_str(before);
        let name = after
            .strip_prefix('(')
            .and_then(|name| name.split_once(')'));
        let known = name.and_then(|(name, behind)| Some((variables.get(name)?, behind)));
        if let Some(behind) = after.strip_prefix('$') {
            found.push('$');
            rest = behind;
        } else if let Some((value, behind)) = known {
            found.push_str(value);
            rest = behind;
        } else {
            found.push('$');
            rest = after;
        }
    }
    found + rest
}

/// What becomes the user of a container, with as little as it asks for.
fn as_user(container: &Value, user: u32) -> Result<Vec<String>> {
    let context = &container["securityContext"];
    let mut command = vec![
        "setpriv".to_owned(),
        format!("--reuid={user}"),
        format!("--regid={user}"),
        "--clear-groups".to_owned(),
    ];
    if context["allowPrivilegeEscalation"] == false {
        command.push("--no-new-privs".to_owned());
    }
    for capability in context["capabilities"]["drop"]
        .as_array()
        .into_iter()
        .flatten()
    {
        ensure!(capability == "ALL", "{capability} is not dropped here");
        command.extend(["--inh-caps=-all", "--bounding-set=-all"].map(str::to_owned));
    }
    Ok(command)
}

fn make_root(root: &Path, image: &Image) -> Result<()> {
    for folder in ["proc", "dev", "etc", "run", "root", "tmp", "var/tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for folder in ["tmp", "var/tmp"] {
        fs::set_permissions(root.join(folder), Permissions::from_mode(0o1777))?;
    }
    for folder in PROGRAMS {
        let path = Path::new("/").join(folder);
        if path.is_symlink() {
            symlink(fs::read_link(&path)?, root.join(folder))?;
        }
    }
    let hosts = ("/etc/hosts", "127.0.0.1 localhost\n".to_owned());
    let users = ("/etc/passwd", "root:x:0:0::/root:/bin/sh\n".to_owned());
    for (path, content) in [hosts, users].iter().chain(&image.files) {
        let path = root.join(path.trim_start_matches('/'));
        let folder = path.parent().context("no folder")?;
        fs::create_dir_all(folder)?;
        fs::write(&path, content)?;
        let mode = if content.is_empty() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => bail!("{value} is no text"),
    }
}

#[test]
fn variables_are_expanded_as_in_a_pod() {
    let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    for (text, expected) in [
        ("$(A)b$(A)", "1b1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)$", "$1$"),
        ("$(B) $A $(A", "$(B) $A $(A"),
    ] {
        assert_eq!(expanded(text, &variables), expected, "{text}");
    }
}

//! Finding the cluster, as kubectl does.

use crate::client;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

/// An API server that does not accept a connection within this time is taken for
/// absent, so that whoever waits learns of it and tries again.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which cluster to connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// A kubeconfig; none looks in the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; none takes its current one.
    pub context: Option<String>,
}

/// Why there is no client, or none that is of use.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No configuration anywhere.
    #[error(
        "found no cluster to connect to; looked for {looked}; \
         name a kubeconfig with --kubeconfig or KUBECONFIG"
    )]
    NothingFound {
        /// Where was looked, in order.
        looked: String,
    },
    /// A kubeconfig could not be read.
    #[error(
        "cannot read the kubeconfig {}; name another with --kubeconfig or KUBECONFIG",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no kubeconfig.
    #[error("{} is no kubeconfig: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why, with line and column.
        reason: String,
    },
    /// The kubeconfig names no usable cluster, user or context.
    #[error("cannot use {context} of the kubeconfig from {origin}")]
    Select {
        /// Which context was wanted.
        context: String,
        /// Which files were read.
        origin: String,
        /// Why.
        source: KubeconfigError,
    },
    /// A context was demanded where there are none.
    #[error("no kubeconfig was found in which to look up context {context}; looked for {looked}")]
    NoContext {
        /// The context.
        context: String,
        /// Where was looked, in order.
        looked: String,
    },
    /// This looks like a pod, but its ServiceAccount cannot be used.
    #[error("cannot use this pod's ServiceAccount; is its token mounted?")]
    InCluster(#[source] InClusterError),
    /// The configuration makes no client: broken certificates, for instance.
    #[error("cannot make a client from {origin}")]
    Client {
        /// Where the configuration came from.
        origin: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// The API server does not answer.
    #[error(
        "cannot reach the API server at {server}, which {origin} names; does it run, and is it \
         the one that is meant (--kubeconfig, --context)?"
    )]
    Unreachable {
        /// Its URL.
        server: String,
        /// Where the configuration came from.
        origin: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It does not know who asks.
    #[error(
        "the API server at {server} does not accept the credentials in {origin}: they are wrong, \
         or no longer valid; name others with --kubeconfig or --context"
    )]
    Unauthorized {
        /// Its URL.
        server: String,
        /// Where the configuration came from.
        origin: String,
    },
}

/// A client of the cluster that kubectl would use, and the default namespace.
///
/// It looks at `--kubeconfig`, then the files that `KUBECONFIG` lists, merged, then
/// `~/.kube/config`, then the ServiceAccount of the pod it runs in. Connecting is
/// bounded by [`CONNECT_TIMEOUT`]; reading is not, for the sake of watches;
/// nothing limits the rate of requests or repeats them. Nothing is sent yet: an API server
/// that is not there is found out later. Must be called within a tokio runtime.
pub async fn connect(options: &ConnectOptions) -> Result<(Client, String), ConnectError> {
    let (config, origin) = configuration(options).await?;
    let namespace = config.default_namespace.clone();
    Ok((client(config, origin)?, namespace))
}

/// As [`connect`], and asks the API server whether it answers this user at all, for
/// programs that have nothing to wait for.
pub async fn connect_now(options: &ConnectOptions) -> Result<Client, ConnectError> {
    let (config, origin) = configuration(options).await?;
    let server = config.cluster_url.to_string();
    let client = client(config, origin.clone())?;
    let unreachable = |source| ConnectError::Unreachable {
        server: server.clone(),
        origin: origin.clone(),
        source,
    };
    let asked = tokio::time::timeout(CONNECT_TIMEOUT, client.apiserver_version());
    let Ok(answer) = asked.await else {
        let seconds = CONNECT_TIMEOUT.as_secs();
        return Err(unreachable(format!("no answer within {seconds} s").into()));
    };
    // Whoever may not even ask for the version may do what they came for.
    match answer {
        Ok(_) => Ok(client),
        Err(kube::Error::Api(status)) if status.code == 401 => {
            Err(ConnectError::Unauthorized { server, origin })
        }
        Err(kube::Error::Api(_) | kube::Error::SerdeError(_)) => Ok(client),
        Err(source) => Err(unreachable(Box::new(source))),
    }
}

async fn configuration(options: &ConnectOptions) -> Result<(Config, String), ConnectError> {
    let places = Places::from_environment();
    let (mut config, origin) = match places.find(options)? {
        Found::Files(paths) => from_files(&paths, options.context.as_deref()).await?,
        Found::Pod => {
            let config = Config::incluster().map_err(ConnectError::InCluster)?;
            (config, "this pod's ServiceAccount".to_owned())
        }
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    Ok((config, origin))
}

fn client(config: Config, origin: String) -> Result<Client, ConnectError> {
    client::client(config).map_err(|source| ConnectError::Client {
        origin,
        source: Box::new(source),
    })
}

/// Where a configuration may be.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The value of `KUBECONFIG`.
    listed: Option<OsString>,
    home: Option<PathBuf>,
    /// Whether Kubernetes runs this process.
    pod: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Files(Vec<PathBuf>),
    Pod,
}

impl Places {
    fn from_environment() -> Self {
        Self {
            listed: std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()),
            home: std::env::home_dir(),
            pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }

    fn find(&self, options: &ConnectOptions) -> Result<Found, ConnectError> {
        if let Some(path) = &options.kubeconfig {
            return Ok(Found::Files(vec![path.clone()]));
        }
        let files = self.files();
        let existing: Vec<_> = files.iter().filter(|file| file.exists()).collect();
        if !existing.is_empty() {
            return Ok(Found::Files(existing.into_iter().cloned().collect()));
        }
        let mut looked: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
        if !self.pod {
            looked.push("a pod's ServiceAccount".to_owned());
        }
        let looked = looked.join(", ");
        match &options.context {
            Some(context) => Err(ConnectError::NoContext {
                context: context.clone(),
                looked,
            }),
            None if self.pod => Ok(Found::Pod),
            None => Err(ConnectError::NothingFound { looked }),
        }
    }

    /// The files to merge. Those that do not exist are left out, as kubectl does.
    fn files(&self) -> Vec<PathBuf> {
        match (&self.listed, &self.home) {
            (Some(listed), _) => std::env::split_paths(listed)
                .filter(|path| !path.as_os_str().is_empty())
                .collect(),
            (None, Some(home)) => vec![home.join(".kube").join("config")],
            (None, None) => Vec::new(),
        }
    }
}

async fn from_files(
    paths: &[PathBuf],
    context: Option<&str>,
) -> Result<(Config, String), ConnectError> {
    let shown: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    let origin = shown.join(", ");
    let select = |source| ConnectError::Select {
        context: context.map_or_else(
            || "the current context".to_owned(),
            |context| format!("context {context}"),
        ),
        origin: origin.clone(),
        source,
    };
    let mut merged = Kubeconfig::default();
    for path in paths {
        merged = merged.merge(read(path)?).map_err(select)?;
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(merged, &options)
        .await
        .map_err(select)?;
    Ok((config, origin))
}

fn read(path: &Path) -> Result<Kubeconfig, ConnectError> {
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(source, path) => ConnectError::Read { path, source },
        KubeconfigError::Parse(error) => ConnectError::Parse {
            path: path.to_owned(),
            reason: first_line(&error),
        },
        error => ConnectError::Parse {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    })
}

/// What a YAML error says before it shows the text, which would be to say it twice.
fn first_line(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn kubeconfig(cluster: &str, context: Option<&str>) -> String {
        let current = context.map_or(String::new(), |c| format!("current-context: {c}\n"));
        format!(
            "apiVersion: v1\nkind: Config\n{current}\
             clusters: [{{name: {cluster}, cluster: {{server: 'https://{cluster}.test'}}}}]\n\
             users: [{{name: u, user: {{token: t}}}}]\n\
             contexts: [{{name: {cluster}-context, context: {{cluster: {cluster}, user: u, namespace: {cluster}-ns}}}}]\n"
        )
    }

    fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn places_are_tried_in_kubectls_order() {
        let folder = folder(&[
            ("a", String::new()),
            ("b", String::new()),
            (".kube/config", String::new()),
        ]);
        let at = |name: &str| folder.path().join(name);
        let listed =
            |names: &[&str]| Some(std::env::join_paths(names.iter().map(|n| at(n))).unwrap());
        let home = Some(folder.path().to_owned());
        let no_home = Some(at("nobody"));
        let explicit = Some(at("missing"));
        for (kubeconfig, listed, home, pod, expected) in [
            (
                explicit.clone(),
                listed(&["a"]),
                &home,
                true,
                Ok(vec!["missing"]),
            ),
            (
                None,
                listed(&["a", "missing", "b"]),
                &home,
                true,
                Ok(vec!["a", "b"]),
            ),
            (None, None, &home, true, Ok(vec![".kube/config"])),
            (None, None, &no_home, true, Ok(vec![])),
            (None, listed(&["missing"]), &home, true, Ok(vec![])),
            (
                None,
                listed(&["missing"]),
                &home,
                false,
                Err("/missing, a pod's ServiceAccount;"),
            ),
            (
                None,
                None,
                &no_home,
                false,
                Err("/nobody/.kube/config, a pod's ServiceAccount;"),
            ),
        ] {
            let places = Places {
                listed,
                home: home.clone(),
                pod,
            };
            let options = ConnectOptions {
                kubeconfig,
                context: None,
            };
            match (places.find(&options), expected) {
                (Ok(Found::Pod), Ok(names)) => assert!(names.is_empty()),
                (Ok(Found::Files(files)), Ok(names)) => {
                    assert_eq!(files, names.into_iter().map(at).collect::<Vec<_>>());
                }
                (Err(error), Err(text)) => {
                    assert!(error.to_string().contains(text), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_context_needs_a_kubeconfig() {
        let places = Places {
            pod: true,
            ..Places::default()
        };
        let options = ConnectOptions {
            kubeconfig: None,
            context: Some("c".into()),
        };
        let error = places.find(&options).unwrap_err();
        assert!(matches!(error, ConnectError::NoContext { .. }), "{error}");
    }

    #[tokio::test]
    async fn files_are_merged_and_the_first_context_wins() {
        let folder = folder(&[
            ("a", kubeconfig("one", Some("one-context"))),
            ("b", kubeconfig("two", Some("two-context"))),
            ("bare", kubeconfig("three", None)),
            ("broken", "clusters: {".to_owned()),
        ]);
        let at = |name: &str| folder.path().join(name);
        for (files, context, expected) in [
            (vec!["a", "b"], None, Ok("one-ns")),
            (vec!["a", "b"], Some("two-context"), Ok("two-ns")),
            (vec!["bare"], Some("three-context"), Ok("three-ns")),
            (
                vec!["bare"],
                None,
                Err("cannot use the current context of the kubeconfig from "),
            ),
            (
                vec!["a"],
                Some("none"),
                Err("cannot use context none of the kubeconfig from "),
            ),
            (
                vec!["broken"],
                None,
                Err("/broken is no kubeconfig: line 1 column 11: "),
            ),
            (vec!["missing"], None, Err("cannot read the kubeconfig ")),
        ] {
            let files: Vec<_> = files.into_iter().map(at).collect();
            match (from_files(&files, context).await, expected) {
                (Ok((config, _)), Ok(namespace)) => assert_eq!(config.default_namespace, namespace),
                (Err(error), Err(text)) => {
                    assert!(error.to_string().contains(text), "{error}");
                }
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_client_is_made_without_a_server() {
        let folder = folder(&[("a", kubeconfig("one", Some("one-context")))]);
        let options = ConnectOptions {
            kubeconfig: Some(folder.path().join("a")),
            context: None,
        };
        let (_, namespace) = connect(&options).await.unwrap();
        assert_eq!(namespace, "one-ns");
    }
}

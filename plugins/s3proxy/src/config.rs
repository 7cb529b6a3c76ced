//! The configuration.

use reeve_sdk::names::{check_dns_label, check_dns_subdomain, check_label_key};
use reeve_sdk::prelude::*;

/// From where the proxy is deployed, and where people find it.
#[config]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// Whether a proxy stays when its Profile no longer asks for it. The preset
    /// main says so, readme does not.
    keep_on_opt_out: Option<bool>,
    /// The label of a Profile that asks for a proxy.
    pub(crate) enabled_label: String,
    /// The namespace of Argo CD, profiles-argocd-system unless set.
    pub(crate) argocd_namespace: String,
    /// The project of Argo CD that Applications belong to, default unless set.
    pub(crate) project: String,
    /// From where Argo CD deploys.
    pub(crate) source: Source,
    /// The URL of Kubeflow's dashboard, such as https://kubeflow.example.com.
    root_url: String,
    /// The first part of the path below which the proxy is found, s3 unless set.
    pub(crate) prefix: String,
    /// Namespaces, beside that of the Profile, that see the routes: those of
    /// Istio's gateways.
    pub(crate) gateway_namespaces: Vec<String>,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default, PartialEq)]
enum Preset {
    /// Its README, which does not speak of it: what is withdrawn goes.
    #[default]
    Readme,
    /// Its code.
    Main,
}

/// A folder in a repository.
#[config]
pub(crate) struct Source {
    /// URL of the repository.
    repo_url: String,
    /// Branch, tag or commit, HEAD unless set.
    pub(crate) target_revision: String,
    /// Folder in it.
    path: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            keep_on_opt_out: None,
            enabled_label: "s3.statcan.gc.ca/enabled".to_owned(),
            argocd_namespace: "profiles-argocd-system".to_owned(),
            project: "default".to_owned(),
            source: Source::default(),
            root_url: String::new(),
            prefix: "s3".to_owned(),
            gateway_namespaces: vec![
                "istio-system".to_owned(),
                "ingress-general-system".to_owned(),
            ],
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self {
            repo_url: String::new(),
            target_revision: "HEAD".to_owned(),
            path: String::new(),
        }
    }
}

impl Config {
    pub(crate) fn keeps_on_opt_out(&self) -> bool {
        self.keep_on_opt_out.unwrap_or(self.preset == Preset::Main)
    }

    /// What the API server, Istio or Argo CD would refuse is refused here, where it
    /// has a path. What is not set at all is wanted only by Profiles that ask for a
    /// proxy; see [`Complete`].
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut names = vec![
            (
                "/enabledLabel".to_owned(),
                check_label_key(&self.enabled_label),
            ),
            (
                "/argocdNamespace".to_owned(),
                check_dns_label(&self.argocd_namespace),
            ),
            ("/project".to_owned(), check_dns_subdomain(&self.project)),
            ("/prefix".to_owned(), check_dns_label(&self.prefix)),
        ];
        for (index, namespace) in self.gateway_namespaces.iter().enumerate() {
            let path = format!("/gatewayNamespaces/{index}");
            names.push((path, check_dns_label(namespace)));
        }
        for (path, checked) in names {
            checked.map_err(|error| ConfigError::new(path, error.to_string()))?;
        }
        if self.source.target_revision.is_empty() {
            let problem = "empty; name a branch, tag or commit, or leave it out for HEAD";
            return Err(ConfigError::new("/source/targetRevision", problem));
        }
        if !self.root_url.is_empty() && host(&self.root_url).is_none() {
            return Err(ConfigError::new(
                "/rootUrl",
                "expected a URL with just a host, and perhaps a port, such as \
                 https://kubeflow.example.com",
            ));
        }
        Ok(())
    }
}

/// The host of a URL that has nothing but one, and perhaps a port.
fn host(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let host = match rest.split_once(':') {
        Some((host, port)) => {
            port.parse::<u16>().ok()?;
            host
        }
        None => rest,
    };
    check_dns_subdomain(host).is_ok().then_some(host)
}

/// A configuration in which nothing is missing.
pub(crate) struct Complete<'a> {
    pub(crate) config: &'a Config,
    pub(crate) repo_url: &'a str,
    pub(crate) path: &'a str,
    pub(crate) root_url: &'a str,
    /// The host in the root URL.
    pub(crate) host: &'a str,
}

impl<'a> Complete<'a> {
    /// Checks that there is all that a proxy needs.
    pub(crate) fn of(config: &'a Config) -> Result<Self, String> {
        let missing: Vec<&str> = [
            ("/source/repoUrl", &config.source.repo_url),
            ("/source/path", &config.source.path),
            ("/rootUrl", &config.root_url),
        ]
        .into_iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(path, _)| path)
        .collect();
        if !missing.is_empty() {
            return Err(format!(
                "the configuration does not say {}; set it in config.yaml",
                missing.join(", ")
            ));
        }
        Ok(Self {
            config,
            repo_url: &config.source.repo_url,
            path: &config.source.path,
            root_url: &config.root_url,
            host: host(&config.root_url).unwrap_or_default(),
        })
    }
}

//! The configuration.

use reeve_sdk::names::{BadName, check_dns_label, check_dns_subdomain, check_label_key};
use reeve_sdk::prelude::*;

/// From where Gitea is deployed, where its data is, and where people find it. One
/// instance of the plugin is for one classification.
#[config]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// unclassified, unless set, or protected-b.
    pub(crate) classification: String,
    /// The label of a Profile that asks for Gitea.
    pub(crate) enabled_label: String,
    /// Whether every Profile has the routes, and not only who asks for Gitea. The
    /// preset main says so, readme does not.
    routes_for_all: Option<bool>,
    /// Whether Gitea goes when its Profile no longer asks for it. Its database stays, and
    /// so does the Secret with the login.
    pub(crate) remove_on_opt_out: bool,
    /// Whether role and database are dropped, with all data, when Gitea is removed or
    /// the Profile is deleted.
    pub(crate) drop_database: bool,
    /// Where the data is.
    pub(crate) postgres: Postgres,
    /// The Service of Gitea in the namespace of the Profile.
    service: Service,
    /// The first part of the path below which Gitea is found,
    /// gitea-CLASSIFICATION unless set.
    url_prefix: String,
    /// Name of the ConfigMap with the banner, gitea-banner-CLASSIFICATION unless
    /// set.
    banner_config_map: String,
    /// What people are told of how to log in for the first time, in the banner.
    pub(crate) login_hint: String,
    /// The namespace of Argo CD, profiles-argocd-system unless set.
    pub(crate) argocd_namespace: String,
    /// The project of Argo CD that Applications belong to, default unless set.
    pub(crate) project: String,
    /// From where Argo CD deploys.
    pub(crate) source: Source,
    /// The URL of Kubeflow's dashboard, such as https://kubeflow.example.com.
    pub(crate) root_url: String,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default, PartialEq)]
enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

/// A PostgreSQL server.
#[config]
pub(crate) struct Postgres {
    /// Its host, as Gitea reaches it.
    pub(crate) host: String,
    /// Its port, 5432 unless set.
    pub(crate) port: u16,
    /// The SQL connection by which databases are made, as the operator has named
    /// it: gitea-CLASSIFICATION unless set.
    connection: String,
    /// Whether users log in as USER@HOST, as with Azure's Single Server.
    pub(crate) user_at_host: bool,
    /// Collation and character type of databases, en-US unless set.
    pub(crate) locale: String,
}

/// A Service.
#[config]
#[derive(Default)]
struct Service {
    /// Its name, gitea-CLASSIFICATION-http unless set.
    name: String,
    /// Its port, 80 unless set.
    port: Option<u16>,
}

/// A folder in a repository.
#[config]
pub(crate) struct Source {
    /// URL of the repository.
    pub(crate) repo_url: String,
    /// Branch, tag or commit, HEAD unless set.
    pub(crate) target_revision: String,
    /// Folder in it.
    pub(crate) path: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            classification: UNCLASSIFIED.to_owned(),
            enabled_label: "sourcecontrol.statcan.gc.ca/enabled".to_owned(),
            routes_for_all: None,
            remove_on_opt_out: false,
            drop_database: false,
            postgres: Postgres::default(),
            service: Service::default(),
            url_prefix: String::new(),
            banner_config_map: String::new(),
            login_hint: String::new(),
            argocd_namespace: "profiles-argocd-system".to_owned(),
            project: "default".to_owned(),
            source: Source::default(),
            root_url: String::new(),
        }
    }
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: 5432,
            connection: String::new(),
            user_at_host: true,
            locale: "en-US".to_owned(),
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

/// The classification whose Gitea is reached through the dashboard.
pub(crate) const UNCLASSIFIED: &str = "unclassified";
const PROTECTED_B: &str = "protected-b";

impl Config {
    /// Whether Gitea is a part of the dashboard. That of protected-b is reached only
    /// from protected-b pods.
    pub(crate) fn has_routes(&self) -> bool {
        self.classification == UNCLASSIFIED
    }

    pub(crate) fn routes_for_all(&self) -> bool {
        self.routes_for_all.unwrap_or(self.preset == Preset::Main)
    }

    pub(crate) fn connection(&self) -> String {
        self.or_of_class(&self.postgres.connection, "gitea-", "")
    }

    pub(crate) fn service(&self) -> String {
        self.or_of_class(&self.service.name, "gitea-", "-http")
    }

    pub(crate) fn service_port(&self) -> u16 {
        self.service.port.unwrap_or(80)
    }

    pub(crate) fn url_prefix(&self) -> String {
        self.or_of_class(&self.url_prefix, "gitea-", "")
    }

    pub(crate) fn banner_config_map(&self) -> String {
        self.or_of_class(&self.banner_config_map, "gitea-banner-", "")
    }

    fn or_of_class(&self, set: &str, before: &str, after: &str) -> String {
        match set {
            "" => format!("{before}{}{after}", self.classification),
            set => set.to_owned(),
        }
    }

    /// What the API server, Istio, Argo CD or PostgreSQL would refuse is refused
    /// here, where it has a path. What is not set at all is wanted only by Profiles
    /// that ask; see [`Config::missing`].
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if ![UNCLASSIFIED, PROTECTED_B].contains(&&*self.classification) {
            return Err(ConfigError::new(
                "/classification",
                format!(
                    "{:?}: expected unclassified or protected-b",
                    self.classification
                ),
            ));
        }
        for (path, checked) in [
            ("/enabledLabel", check_label_key(&self.enabled_label)),
            ("/argocdNamespace", check_dns_label(&self.argocd_namespace)),
            ("/project", check_dns_subdomain(&self.project)),
            ("/urlPrefix", check_dns_label(&self.url_prefix())),
            (
                "/bannerConfigMap",
                check_dns_subdomain(&self.banner_config_map()),
            ),
            ("/service/name", check_dns_label(&self.service())),
            ("/postgres/connection", check_dns_label(&self.connection())),
            ("/postgres/host", unless_empty(&self.postgres.host)),
        ] {
            checked.map_err(|error| ConfigError::new(path, error.to_string()))?;
        }
        for (path, port) in [
            ("/postgres/port", self.postgres.port),
            ("/service/port", self.service_port()),
        ] {
            if port == 0 {
                return Err(ConfigError::new(path, "0; expected a port, 1 to 65535"));
            }
        }
        if self.postgres.locale.is_empty() {
            let problem = "empty; name a locale of the server, such as en-US, C or en_US.utf8";
            return Err(ConfigError::new("/postgres/locale", problem));
        }
        if self.source.target_revision.is_empty() {
            let problem = "empty; name a branch, tag or commit, or leave it out for HEAD";
            return Err(ConfigError::new("/source/targetRevision", problem));
        }
        if !self.root_url.is_empty() && !is_root(&self.root_url) {
            return Err(ConfigError::new(
                "/rootUrl",
                "expected a URL with just a host, and perhaps a port, such as \
                 https://kubeflow.example.com",
            ));
        }
        Ok(())
    }

    /// The settings that a Profile that asks needs and that are not there.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let needed = [
            ("/postgres/host", &self.postgres.host),
            ("/source/repoUrl", &self.source.repo_url),
            ("/source/path", &self.source.path),
            ("/rootUrl", &self.root_url),
        ];
        let missing = needed
            .into_iter()
            .filter(|(path, value)| value.is_empty() && (self.has_routes() || *path != "/rootUrl"));
        missing.map(|(path, _)| path).collect()
    }
}

fn unless_empty(host: &str) -> Result<(), BadName> {
    if host.is_empty() {
        Ok(())
    } else {
        check_dns_subdomain(host)
    }
}

/// Whether a URL has nothing but a host, and perhaps a port.
fn is_root(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return false;
    };
    let host = match rest.split_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        Some(_) => return false,
        None => rest,
    };
    check_dns_subdomain(host).is_ok()
}

//! The configuration of an instance of the plugin.

use reeve_sdk::names::{BadName, check_dns_label, check_dns_subdomain};
use reeve_sdk::prelude::*;

/// Which part an instance plays, and where it finds the documents.
#[config]
pub(crate) struct Config {
    /// Which part this instance plays.
    pub(crate) role: Role,
    /// Where system-manager-config.json is: without this in the Secret
    /// system-manager-config.
    pub(crate) configuration: Place,
    /// Where desired-state.json is: without this in the Secret desired-state.
    pub(crate) desired_state: Place,
    /// Where the manifests of Flux are: YAML, such as that of `flux install --export`, or a
    /// JSON List. Without this Flux is installed by somebody else.
    pub(crate) flux_manifests: Place,
    /// A Secret of type kubernetes.io/dockerconfigjson in flux-system with which charts
    /// are pulled. Without this the cloud's own identity is used.
    pub(crate) pull_secret: String,
    /// Whether the front door is bound to a target group of AWS, whose definition has to
    /// be there.
    pub(crate) target_group_binding: bool,
    /// Whether a namespace that a pack has made goes with it. Unless this is false, it
    /// does, with all that is in it.
    pub(crate) remove_namespaces: bool,
}

/// The parts.
#[config]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Releases, and what belongs to them.
    #[default]
    Releases,
    /// What leads to the platform from outside, once Istio is there.
    FrontDoor,
    /// Flux.
    Flux,
    /// The Packs that the desired state names.
    DesiredState,
}

/// Where a document is: in a Secret, a ConfigMap, a file, or at a URL.
#[config]
#[derive(Default)]
pub(crate) struct Place {
    /// Namespace of the Secret or ConfigMap, sgp-system-manager unless set.
    namespace: String,
    /// Name of the Secret.
    secret: String,
    /// Name of the ConfigMap.
    config_map: String,
    /// The file, by its absolute path in the agent's pod. It has to be granted.
    file: String,
    /// The http or https URL, for the manifests of Flux alone. It has to be granted, and
    /// wherever it redirects to. It is no secret: whoever sees this configuration sees it.
    url: String,
    /// SHA-256 of the document in hexadecimal, for the manifests of Flux alone. What has
    /// another is not used.
    pub(crate) sha256: String,
    /// The entry of the Secret or ConfigMap; the document's own name unless set.
    key: String,
}

/// A place in which nothing is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Located<'a> {
    Secret(Entry<'a>),
    ConfigMap(Entry<'a>),
    File(&'a str),
    Url(&'a str),
}

/// An entry of a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) key: &'a str,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            role: Role::default(),
            configuration: Place::default(),
            desired_state: Place::default(),
            flux_manifests: Place::default(),
            pull_secret: String::new(),
            target_group_binding: false,
            remove_namespaces: true,
        }
    }
}

impl Config {
    pub(crate) fn configuration(&self) -> Located<'_> {
        self.configuration
            .located("system-manager-config", crate::configuration::DOCUMENT)
    }

    pub(crate) fn desired_state(&self) -> Located<'_> {
        self.desired_state
            .located("desired-state", crate::desired_state::DOCUMENT)
    }

    pub(crate) fn flux_manifests(&self) -> Option<Located<'_>> {
        let place = &self.flux_manifests;
        (!place.is_unset()).then(|| place.located("flux-manifests", "flux.json"))
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (path, place) in [
            ("/configuration", &self.configuration),
            ("/desiredState", &self.desired_state),
        ] {
            for (field, text) in [("url", &place.url), ("sha256", &place.sha256)] {
                if !text.is_empty() {
                    let problem = "only for the manifests of Flux; take it out";
                    return Err(ConfigError::new(format!("{path}/{field}"), problem));
                }
            }
            place.check(path)?;
        }
        self.flux_manifests.check("/fluxManifests")?;
        if self.pull_secret.is_empty() {
            return Ok(());
        }
        named("/pullSecret", check_dns_subdomain(&self.pull_secret))
    }
}

impl Place {
    fn is_unset(&self) -> bool {
        self.named().all(str::is_empty)
    }

    fn named(&self) -> impl Iterator<Item = &str> {
        let all = [&self.secret, &self.config_map, &self.file, &self.url];
        all.into_iter().map(String::as_str)
    }

    fn check(&self, path: &str) -> Result<(), ConfigError> {
        if self.named().filter(|name| !name.is_empty()).count() > 1 {
            let problem = "more than one of secret, configMap, file and url; leave one";
            return Err(ConfigError::new(path, problem));
        }
        for (field, name) in [("secret", &self.secret), ("configMap", &self.config_map)] {
            if !name.is_empty() {
                named(&format!("{path}/{field}"), check_dns_subdomain(name))?;
            }
        }
        if !self.namespace.is_empty() {
            named(
                &format!("{path}/namespace"),
                check_dns_label(&self.namespace),
            )?;
        }
        if !self.file.is_empty() && !self.file.starts_with('/') {
            let problem = "expected an absolute path";
            return Err(ConfigError::new(format!("{path}/file"), problem));
        }
        let scheme = ["http://", "https://"].iter();
        let mut rest = scheme.filter_map(|scheme| self.url.strip_prefix(scheme));
        let authority = rest
            .next()
            .and_then(|rest| rest.split(['/', '?', '#']).next());
        let login = authority.is_none_or(|authority| authority.contains('@'));
        if !self.url.is_empty() && login {
            let problem = "expected an http or https URL without a login";
            return Err(ConfigError::new(format!("{path}/url"), problem));
        }
        let is_digest = |text: &str| {
            let mut bytes = text.bytes();
            text.len() == 64 && bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !self.sha256.is_empty() && !is_digest(&self.sha256) {
            let problem = "expected a SHA-256: 64 digits and letters from a to f";
            return Err(ConfigError::new(format!("{path}/sha256"), problem));
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !self.key.bytes().all(fits) {
            let problem = "expected letters, digits, `-`, `_` and `.`";
            return Err(ConfigError::new(format!("{path}/key"), problem));
        }
        Ok(())
    }

    fn located<'a>(&'a self, secret: &'a str, key: &'a str) -> Located<'a> {
        fn or<'a>(set: &'a str, usual: &'a str) -> &'a str {
            if set.is_empty() { usual } else { set }
        }
        let entry = |name: &'a str| Entry {
            namespace: or(&self.namespace, "sgp-system-manager"),
            name,
            key: or(&self.key, key),
        };
        if !self.file.is_empty() {
            Located::File(&self.file)
        } else if !self.url.is_empty() {
            Located::Url(&self.url)
        } else if !self.config_map.is_empty() {
            Located::ConfigMap(entry(&self.config_map))
        } else {
            Located::Secret(entry(or(&self.secret, secret)))
        }
    }
}

fn named(path: &str, checked: Result<(), BadName>) -> Result<(), ConfigError> {
    checked.map_err(|error| ConfigError::new(path, error.to_string()))
}

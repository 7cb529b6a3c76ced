//! The configuration.

use std::collections::BTreeMap;

use reeve_sdk::names::{BadName, check_dns_label, check_dns_subdomain};
use reeve_sdk::prelude::*;

/// Where a Secret is looked for whose namespace is not said.
const SECRET_NAMESPACE: &str = "azure-blob-csi-system";

/// Which volumes each Profile gets, and where the buckets that it may use are
/// described.
#[config]
#[derive(Default)]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// The volumes that every Profile gets: a container of its own in each storage
    /// account. Without this none with the preset readme, and with main those of the
    /// installation that the original was written for.
    instances: Option<Vec<Instance>>,
    /// Buckets of others, for the Profiles that may read them.
    pub(crate) fdi: Fdi,
    /// Whether pods that mount a claim which is withdrawn are deleted, whoever made
    /// them; the claim stays for as long as they run. The preset main does so,
    /// readme does not.
    delete_pods: Option<bool>,
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

/// A storage account in which every Profile has a container.
#[config]
#[derive(Clone)]
pub(crate) struct Instance {
    /// Name of the claim, and last part of the volume's.
    pub(crate) name: String,
    /// unclassified or protected-b.
    pub(crate) classification: String,
    /// The Secret with the account's name and key, as name/namespace; without a
    /// namespace it is in azure-blob-csi-system.
    secret_ref: String,
    /// Size that the volume says to have, in terabytes of 1000 gigabytes.
    pub(crate) capacity: u32,
    /// Whether the volume can only be read.
    pub(crate) read_only: bool,
    /// URL of the account's blob service, such as
    /// https://ACCOUNT.blob.core.windows.net. With it, containers are made; without,
    /// somebody else makes them.
    blob_endpoint: String,
}

/// Where buckets of others are described, and how they are mounted.
#[config]
pub(crate) struct Fdi {
    /// opa or configmap. Without this, configmap with the preset main; with readme, opa
    /// unless there are only storage accounts of the ConfigMap.
    source: Option<Source>,
    /// Seconds between two questions to OPA gateways, 2 unless set.
    pub(crate) poll_seconds: u32,
    /// The ConfigMap that describes them.
    pub(crate) config_map: ConfigMapRef,
    /// Tenant of the service principals.
    pub(crate) tenant_id: String,
    /// Client ids of the service principals that buckets name.
    pub(crate) client_ids: BTreeMap<String, String>,
    /// Those that are unclassified.
    pub(crate) unclassified: Buckets,
    /// Those that are protected-b.
    pub(crate) protected_b: Buckets,
}

/// What describes buckets.
#[config(lowercase)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Source {
    /// The data of OPA gateways.
    Opa,
    /// A ConfigMap.
    ConfigMap,
}

/// Names a ConfigMap.
#[config]
pub(crate) struct ConfigMapRef {
    /// Its namespace, daaas-system unless set.
    pub(crate) namespace: String,
    /// Its name, fdi-aaw-configuration unless set.
    pub(crate) name: String,
}

/// Buckets of one classification. Without a storage account there are none.
#[config]
pub(crate) struct Buckets {
    /// URL of the data of the OPA gateway.
    pub(crate) opa_endpoint: String,
    /// Storage account of the buckets that OPA describes.
    pub(crate) storage_account: String,
    /// Storage account of the internal buckets of the ConfigMap.
    pub(crate) internal_storage_account: String,
    /// Storage account of the external buckets of the ConfigMap.
    pub(crate) external_storage_account: String,
    /// Resource group of the storage accounts.
    pub(crate) resource_group: String,
    /// How volumes are logged in to: spn, the only one there is.
    pub(crate) auth_type: String,
    /// Namespace of the Secrets of the service principals.
    pub(crate) secret_namespace: String,
    /// Size that volumes say to have, in terabytes of 1000 gigabytes.
    pub(crate) capacity: u32,
    /// Whether an answer that names no bucket at all withdraws all volumes that came of
    /// the ones before. Without this they stay, as if there were no answer.
    pub(crate) allow_empty_answer: bool,
    /// The service principal of buckets that name none.
    pub(crate) principal: Principal,
}

/// A service principal.
#[config]
#[derive(Default)]
pub(crate) struct Principal {
    /// Name of the Secret with azurestoragespnclientsecret.
    pub(crate) secret_name: String,
    /// Its client id.
    pub(crate) client_id: String,
    /// Its tenant, that of fdi unless set.
    pub(crate) tenant_id: String,
    /// The endpoint of its directory.
    pub(crate) aad_endpoint: String,
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecretRef {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// How sensitive data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Unclassified,
    ProtectedB,
}

impl Class {
    pub(crate) const ALL: [Self; 2] = [Self::Unclassified, Self::ProtectedB];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unclassified => "unclassified",
            Self::ProtectedB => "protected-b",
        }
    }

    /// The class of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The setting with the buckets of this class.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Unclassified => "/fdi/unclassified",
            Self::ProtectedB => "/fdi/protectedB",
        }
    }
}

impl Default for Instance {
    fn default() -> Self {
        Self {
            name: String::new(),
            classification: String::new(),
            secret_ref: String::new(),
            capacity: 10,
            read_only: false,
            blob_endpoint: String::new(),
        }
    }
}

impl Default for Fdi {
    fn default() -> Self {
        Self {
            source: None,
            poll_seconds: 2,
            config_map: ConfigMapRef::default(),
            tenant_id: String::new(),
            client_ids: BTreeMap::new(),
            unclassified: Buckets::default(),
            protected_b: Buckets::default(),
        }
    }
}

impl Default for ConfigMapRef {
    fn default() -> Self {
        Self {
            namespace: "daaas-system".to_owned(),
            name: "fdi-aaw-configuration".to_owned(),
        }
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            opa_endpoint: String::new(),
            storage_account: String::new(),
            internal_storage_account: String::new(),
            external_storage_account: String::new(),
            resource_group: String::new(),
            auth_type: "spn".to_owned(),
            secret_namespace: SECRET_NAMESPACE.to_owned(),
            capacity: 10,
            allow_empty_answer: false,
            principal: Principal::default(),
        }
    }
}

impl Config {
    pub(crate) fn deletes_pods(&self) -> bool {
        self.delete_pods.unwrap_or(self.preset == Preset::Main)
    }

    pub(crate) fn source(&self) -> Source {
        let classes = || Class::ALL.into_iter().map(|class| self.fdi.of(class));
        let asks = || classes().any(|class| !class.opa_endpoint.is_empty());
        let reads = || classes().any(Buckets::are_in_config_map);
        self.fdi.source.unwrap_or(match self.preset {
            Preset::Readme if asks() || !reads() => Source::Opa,
            Preset::Readme | Preset::Main => Source::ConfigMap,
        })
    }

    /// The volumes that every Profile gets.
    pub(crate) fn instances(&self) -> Vec<Instance> {
        let instance = |name: &str, classification: &str, secret: &str, read_only| Instance {
            name: name.to_owned(),
            classification: classification.to_owned(),
            secret_ref: secret.to_owned(),
            read_only,
            ..Instance::default()
        };
        match (&self.instances, &self.preset) {
            (Some(instances), _) => instances.clone(),
            (None, Preset::Readme) => Vec::new(),
            (None, Preset::Main) => vec![
                instance("standard", "unclassified", "azure-secret", false),
                instance("aaw-unclassified-ro", "protected-b", "azure-secret", true),
                instance(
                    "aaw-protected-b",
                    "protected-b",
                    "aawdevcc00samgprotb",
                    false,
                ),
            ],
        }
    }

    /// What the API server or Azure would refuse is refused here, where it has a
    /// path.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let instances = self.instances();
        for (index, instance) in instances.iter().enumerate() {
            below(&format!("/instances/{index}"), instance.check())?;
            let name = &instance.name;
            let mut earlier = instances.iter().take(index);
            if earlier.any(|other| other.name == *name) {
                return Err(ConfigError::new(
                    format!("/instances/{index}/name"),
                    format!("{name} is the name of an instance before it; give it another"),
                ));
            }
        }
        if !(1..=86_400).contains(&self.fdi.poll_seconds) {
            let problem = "expected 1 to 86400 seconds";
            return Err(ConfigError::new("/fdi/pollSeconds", problem));
        }
        let map = &self.fdi.config_map;
        named("/fdi/configMap/namespace", check_dns_label(&map.namespace))?;
        named("/fdi/configMap/name", check_dns_subdomain(&map.name))?;
        for class in Class::ALL {
            below(class.path(), self.fdi.of(class).check())?;
        }
        Ok(())
    }
}

impl Instance {
    fn check(&self) -> Result<(), ConfigError> {
        named("/name", check_dns_subdomain(&self.name))?;
        if Class::named(&self.classification).is_none() {
            return Err(ConfigError::new(
                "/classification",
                format!(
                    "{:?}: expected unclassified or protected-b",
                    self.classification
                ),
            ));
        }
        let secret = self.secret();
        named("/secretRef", check_dns_subdomain(&secret.name))?;
        named("/secretRef", check_dns_label(&secret.namespace))?;
        if !self.blob_endpoint.is_empty() && !is_endpoint(&self.blob_endpoint) {
            return Err(ConfigError::new(
                "/blobEndpoint",
                "expected a URL without a query, such as https://account.blob.core.windows.net",
            ));
        }
        check_capacity(self.capacity)
    }

    /// The URL below which containers are, without a slash at the end.
    pub(crate) fn endpoint(&self) -> &str {
        self.blob_endpoint.trim_end_matches('/')
    }

    pub(crate) fn secret(&self) -> SecretRef {
        let (name, namespace) = match self.secret_ref.split_once('/') {
            Some((name, namespace)) => (name, namespace),
            None => (self.secret_ref.as_str(), SECRET_NAMESPACE),
        };
        SecretRef {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }
}

impl Fdi {
    pub(crate) fn of(&self, class: Class) -> &Buckets {
        match class {
            Class::Unclassified => &self.unclassified,
            Class::ProtectedB => &self.protected_b,
        }
    }
}

impl Buckets {
    /// Whether a storage account is named for buckets that the ConfigMap describes.
    fn are_in_config_map(&self) -> bool {
        !self.internal_storage_account.is_empty() || !self.external_storage_account.is_empty()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.auth_type != "spn" {
            return Err(ConfigError::new(
                "/authType",
                format!(
                    "{:?}: spn is the only one that is supported",
                    self.auth_type
                ),
            ));
        }
        named("/secretNamespace", check_dns_label(&self.secret_namespace))?;
        for (path, account) in [
            ("/storageAccount", &self.storage_account),
            ("/internalStorageAccount", &self.internal_storage_account),
            ("/externalStorageAccount", &self.external_storage_account),
        ] {
            if !account.is_empty() && !is_account(account) {
                return Err(ConfigError::new(
                    path,
                    format!("{account:?}: expected 3 to 24 lower-case letters and digits"),
                ));
            }
        }
        if !self.opa_endpoint.is_empty() && self.storage_account.is_empty() {
            return Err(ConfigError::new(
                "/storageAccount",
                "empty; name the storage account of the buckets that opaEndpoint describes",
            ));
        }
        let secret = &self.principal.secret_name;
        if !secret.is_empty() {
            named("/principal/secretName", check_dns_subdomain(secret))?;
        }
        check_capacity(self.capacity)
    }
}

/// Whether Azure has storage accounts of this name. They become part of a host name,
/// which is why they are so narrow.
fn is_account(name: &str) -> bool {
    (3..=24).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Whether containers can be below a URL.
fn is_endpoint(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let odd = |char: char| {
        char.is_whitespace() || char.is_control() || matches!(char, '?' | '#' | '@' | '\\')
    };
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(odd))
}

fn check_capacity(capacity: u32) -> Result<(), ConfigError> {
    if capacity == 0 {
        let problem = "0; a volume has a size, 1 or more";
        return Err(ConfigError::new("/capacity", problem));
    }
    Ok(())
}

fn named(path: &str, checked: Result<(), BadName>) -> Result<(), ConfigError> {
    checked.map_err(|error| ConfigError::new(path, error.to_string()))
}

/// The error of a part, seen from the whole.
fn below(path: &str, checked: Result<(), ConfigError>) -> Result<(), ConfigError> {
    checked.map_err(|mut error| {
        error.path.insert_str(0, path);
        error
    })
}

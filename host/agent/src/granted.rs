//! What a `Plugin` grants of the outside, in the form in which it is used.

use crate::problem::{Problem, chain};
use crate::secrets::Secrets;
use futures::future::BoxFuture;
use http::Method;
use parking_lot::Mutex;
use reeve_api::{Capabilities, HttpGrant, KeyGrant, KeyType, Reason, SecretReference, SqlGrant};
use reeve_core::Digest;
use reeve_core::manifest::is_dns_label;
use reeve_outside::sign::Scheme;
use reeve_outside::{
    Database, Http, HttpLimits, KeyError, Keys, Networks, Roots, Rule, Settings, Signer, SqlLimits,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What one plugin may reach.
pub(crate) struct Granted {
    pub(crate) http: Http,
    pub(crate) files: Vec<PathBuf>,
    databases: BTreeMap<String, GrantedDatabase>,
    secrets: Secrets,
    /// Equal for equal grants.
    pub(crate) digest: Digest,
}

struct GrantedDatabase {
    secret: SecretReference,
    networks: Networks,
    /// As it was reached last; another when the Secret has changed.
    known: Mutex<Option<Database>>,
}

impl Granted {
    /// Reads the grants of a policy.
    pub(crate) fn read(
        capabilities: Option<&Capabilities>,
        secrets: &Secrets,
    ) -> Result<Self, Problem> {
        let none = Capabilities::default();
        let capabilities = capabilities.unwrap_or(&none);
        let problem = |field: String, text: String| {
            let message = format!("spec.capabilities.{field} of the Plugin: {text}");
            Problem::lasting(Reason::PolicyInvalid, message)
        };
        let mut keys = BTreeMap::new();
        for (index, key) in capabilities.keys.iter().enumerate() {
            let field = |name: &str| format!("keys[{index}]{name}");
            check_name(&key.name).map_err(|text| problem(field(".name"), text))?;
            let scheme = scheme(key).map_err(|text| problem(field(""), text))?;
            if keys
                .insert(key.name.clone(), (scheme, key.secret.clone()))
                .is_some()
            {
                let text = format!("`{}` is granted twice", key.name);
                return Err(problem(field(".name"), text));
            }
        }
        let mut rules = Vec::with_capacity(capabilities.http.len());
        for (index, grant) in capabilities.http.iter().enumerate() {
            let rule = rule(grant, |key| keys.contains_key(key));
            let named =
                |(field, text): (&str, String)| problem(format!("http[{index}].{field}"), text);
            rules.push(rule.map_err(named)?);
        }
        for (index, folder) in capabilities.files.iter().enumerate() {
            if !folder.starts_with('/') {
                let text = format!("`{folder}` is no absolute path");
                return Err(problem(format!("files[{index}]"), text));
            }
        }
        let mut databases = BTreeMap::new();
        for (index, grant) in capabilities.sql.iter().enumerate() {
            let field = |name: &str| format!("sql[{index}].{name}");
            let SqlGrant {
                name,
                secret,
                addresses,
            } = grant;
            check_name(name).map_err(|text| problem(field("name"), text))?;
            let networks = networks(addresses).map_err(|text| problem(field("addresses"), text))?;
            let database = GrantedDatabase {
                secret: secret.clone(),
                networks,
                known: Mutex::default(),
            };
            if databases.insert(name.clone(), database).is_some() {
                return Err(problem(field("name"), format!("`{name}` is granted twice")));
            }
        }
        let ring = KeyRing {
            keys,
            secrets: secrets.clone(),
        };
        // Serialising our own type cannot fail; an empty text would only mean that
        // documents are fetched anew.
        let text = serde_json::to_vec(capabilities).unwrap_or_default();
        Ok(Self {
            http: Http::new(rules, Arc::new(ring), HttpLimits::default()),
            files: capabilities.files.iter().map(PathBuf::from).collect(),
            databases,
            secrets: secrets.clone(),
            digest: Digest::of(&text),
        })
    }

    /// The database of a name, as its Secret says now.
    pub(crate) async fn database(&self, name: &str) -> Result<Database, DatabaseProblem> {
        let Some(granted) = self.databases.get(name) else {
            return Err(DatabaseProblem::NotGranted(format!(
                "connection `{name}` is not granted; grant it in Plugin spec.capabilities.sql"
            )));
        };
        let unusable =
            |text: String| DatabaseProblem::Unusable(format!("connection `{name}`: {text}"));
        let entries = self
            .secrets
            .entries(&granted.secret)
            .await
            .map_err(unusable)?;
        let settings = Settings::read(&entries, granted.networks.clone()).map_err(|error| {
            let place = self.secrets.place(&granted.secret);
            unusable(format!("Secret {place}: {error}"))
        })?;
        let mut known = granted.known.lock();
        if let Some(database) = known.as_ref().filter(|database| database.has(&settings)) {
            return Ok(database.clone());
        }
        let database = Database::new(settings, SqlLimits::default());
        *known = Some(database.clone());
        Ok(database)
    }
}

/// Why there is no database of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseProblem {
    /// The operator has not granted it.
    NotGranted(String),
    /// Its Secret cannot be used.
    Unusable(String),
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted")
            .field("http", &self.http)
            .field("files", &self.files)
            .field("databases", &self.databases.keys())
            .finish_non_exhaustive()
    }
}

/// The keys of one plugin.
struct KeyRing {
    keys: BTreeMap<String, (Scheme, SecretReference)>,
    secrets: Secrets,
}

impl Keys for KeyRing {
    fn signer<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Signer>, KeyError>> {
        Box::pin(async move {
            let Some((scheme, secret)) = self.keys.get(name) else {
                return Err(KeyError::NotGranted(name.to_owned()));
            };
            let entries = self.secrets.entries(secret).await;
            let entries = entries.map_err(|problem| KeyError::Unreadable {
                key: name.to_owned(),
                problem,
            })?;
            let signer = scheme.signer(name, &entries).map_err(|error| match error {
                KeyError::Entry {
                    key,
                    entry,
                    problem,
                } => KeyError::Unreadable {
                    key,
                    problem: format!(
                        "entry `{entry}` of Secret {} {problem}; put there what it is to be",
                        self.secrets.place(secret)
                    ),
                },
                other => other,
            });
            signer.map(Arc::new)
        })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    match is_dns_label(name) {
        true => Ok(()),
        false => Err(format!("`{name}` is no DNS-1123 label such as `main`")),
    }
}

fn scheme(key: &KeyGrant) -> Result<Scheme, String> {
    let needed = |value: &Option<String>, name: &str| {
        let value = value.clone().filter(|value| !value.is_empty());
        value.ok_or(format!("type AwsSigV4 needs `{name}`"))
    };
    if key.entry.is_some() && key.kind != KeyType::Bearer {
        return Err(format!(
            "`entry` is for type Bearer; the entries of type {:?} have names of their own",
            key.kind
        ));
    }
    Ok(match key.kind {
        KeyType::Bearer => Scheme::Bearer {
            entry: match key.entry.as_deref() {
                None => Scheme::TOKEN.to_owned(),
                Some("") => return Err("`entry` is empty".to_owned()),
                Some(entry) => entry.to_owned(),
            },
        },
        KeyType::AzureSharedKey => Scheme::AzureSharedKey,
        KeyType::AwsSigV4 => Scheme::AwsSigV4 {
            region: needed(&key.region, "region")?,
            service: needed(&key.service, "service")?,
        },
    })
}

fn rule(grant: &HttpGrant, has_key: impl Fn(&str) -> bool) -> Result<Rule, (&'static str, String)> {
    let mut rule = Rule::new(&grant.url).map_err(|error| ("url", chain(&error)))?;
    for method in &grant.methods {
        let upper = method.bytes().all(|byte| byte.is_ascii_uppercase());
        let parsed = Method::from_bytes(method.as_bytes());
        let parsed = parsed.ok().filter(|_| upper && !method.is_empty());
        let refused = || ("methods", format!("`{method}` is no method such as `GET`"));
        rule.methods.push(parsed.ok_or_else(refused)?);
    }
    rule.networks = networks(&grant.addresses).map_err(|text| ("addresses", text))?;
    if let Some(bundle) = &grant.ca_bundle {
        rule.roots = Roots::Only(bundle.clone());
        rule.roots
            .client()
            .map_err(|error| ("caBundle", error.to_string()))?;
    }
    if let Some(key) = &grant.key {
        if !has_key(key) {
            return Err((
                "key",
                format!("`{key}` is not among spec.capabilities.keys"),
            ));
        }
        rule.key = Some(key.clone());
    }
    Ok(rule)
}

fn networks(addresses: &[String]) -> Result<Networks, String> {
    let parsed = addresses.iter().map(|text| text.parse());
    let parsed: Result<Vec<_>, reeve_outside::address::NotANetwork> = parsed.collect();
    parsed.map(Networks::new).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(capabilities: Value, expected: &str) {
        // Reading grants asks nobody.
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        let secrets = Secrets::new(reeve_cluster::Cluster::new(client), "reeve-system".into());
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let found = match Granted::read(Some(&capabilities), &secrets) {
            Ok(_) => "ok".to_owned(),
            Err(problem) => problem.message,
        };
        let found = found.trim_start_matches("spec.capabilities.");
        assert!(
            found.starts_with(expected),
            "{found}\nshould start with\n{expected}"
        );
    }

    #[tokio::test]
    async fn each_bad_grant_is_named() {
        let key = json!({"name": "k", "type": "Bearer", "secret": {"name": "s"}});
        let sql = json!({"name": "main", "secret": {"name": "s"}});
        check(
            json!({
                "http": [{"url": "https://a.example/v1/", "methods": ["GET"], "key": "k",
                    "addresses": ["10.0.0.0/8"]}],
                "files": ["/etc/documents"],
                "sql": [sql],
                "keys": [key],
            }),
            "ok",
        );
        for (capabilities, expected) in [
            (
                json!({"http": [{"url": "a.example"}]}),
                "http[0].url of the Plugin: `",
            ),
            (
                json!({"http": [{"url": "https://a.example", "methods": ["get"]}]}),
                "http[0].methods of the Plugin: `get` is no method",
            ),
            (
                json!({"http": [{"url": "https://a.example", "addresses": ["all"]}]}),
                "http[0].addresses of the Plugin: `all` is no network",
            ),
            (
                json!({"http": [{"url": "https://a.example", "caBundle": "x"}]}),
                "http[0].caBundle of the Plugin: no certificate",
            ),
            (
                json!({"http": [{"url": "https://a.example", "key": "other"}], "keys": [key]}),
                "http[0].key of the Plugin: `other` is not among",
            ),
            (
                json!({"files": ["documents"]}),
                "files[0] of the Plugin: `documents`",
            ),
            (
                json!({"sql": [sql, sql]}),
                "sql[1].name of the Plugin: `main` is granted twice",
            ),
            (
                json!({"keys": [key, key]}),
                "keys[1].name of the Plugin: `k` is granted twice",
            ),
            (
                json!({"keys": [{"name": "K", "type": "Bearer", "secret": {"name": "s"}}]}),
                "keys[0].name of the Plugin: `K` is no DNS-1123 label",
            ),
            (
                json!({"keys": [{"name": "k", "type": "AwsSigV4", "secret": {"name": "s"}}]}),
                "keys[0] of the Plugin: type AwsSigV4 needs `region`",
            ),
            (
                json!({"keys": [{"name": "k", "type": "Bearer", "secret": {"name": "s"}, "entry": "secret"}]}),
                "ok",
            ),
            (
                json!({"keys": [{"name": "k", "type": "Bearer", "secret": {"name": "s"}, "entry": ""}]}),
                "keys[0] of the Plugin: `entry` is empty",
            ),
            (
                json!({"keys": [{"name": "k", "type": "AzureSharedKey", "secret": {"name": "s"}, "entry": "e"}]}),
                "keys[0] of the Plugin: `entry` is for type Bearer",
            ),
        ] {
            check(capabilities, expected);
        }
    }
}

//! What a plugin needs of the outside, and what of it its policy grants: for whoever
//! is to grant it.

use http::{Method, Uri};
use reeve_api::{Capabilities, HttpGrant, SecretReference};
use reeve_core::manifest::{Manifest, Origin, without_query};
use reeve_outside::Rule;
use reeve_outside::file::is_written_below;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// One thing outside of the cluster that a plugin needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Who needs it, such as `source notes` or `action database`.
    pub who: String,
    /// What that is, in the plugin's own words; may be empty.
    pub description: String,
    /// What it is, such as `fetch https://example.com/notes`.
    pub what: String,
    /// How much of it is granted.
    pub standing: Granting,
    /// What grants it, in words.
    pub by: Vec<String>,
    /// Which list of `spec.capabilities` an entry would grant it in.
    list: &'static str,
    /// That entry.
    entry: Value,
}

/// How much is granted of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granting {
    /// All of it.
    Whole,
    /// Some of it: requests to some paths below a URL, or with some methods.
    Part,
    /// Nothing.
    Nothing,
}

impl Granting {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "granted",
            Self::Part => "granted in part",
            Self::Nothing => "not granted",
        }
    }
}

/// What a manifest needs, one thing after another. `namespace` is the agent's. Grants
/// that are malformed grant nothing; the `Plugin` says what is wrong with them.
pub fn needs(manifest: &Manifest, capabilities: &Capabilities, namespace: &str) -> Vec<Need> {
    let granted = Granted {
        capabilities,
        namespace,
    };
    let mut needs = Vec::new();
    for source in &manifest.sources {
        let who = format!("source {}", source.name);
        let found = match &source.origin {
            Origin::Url(url) => granted.document(url),
            Origin::File(path) => granted.file(path),
            // The right to read it is the account's, not the operator's to add here.
            Origin::ConfigMap(_) => continue,
        };
        needs.push(found.of(&who, &source.description));
    }
    for action in &manifest.actions {
        let who = format!("action {}", action.name);
        let requests = action.http.iter().map(|url| granted.requests(url));
        let databases = action.sql.iter().map(|name| granted.database(name));
        needs.extend(
            requests
                .chain(databases)
                .map(|found| found.of(&who, &action.description)),
        );
    }
    needs
}

/// What `spec.capabilities` would have to have besides: an entry for all that is not
/// granted, or not wholly. Names of Secrets are the operator's to fill in. None when
/// nothing is missing.
pub fn missing(needs: &[Need]) -> Option<Value> {
    let mut lists = json!({});
    for need in needs {
        if need.standing == Granting::Whole {
            continue;
        }
        let list = &mut lists[need.list];
        if list.is_null() {
            *list = json!([]);
        }
        if let Some(list) = list.as_array_mut()
            && !list.contains(&need.entry)
        {
            list.push(need.entry.clone());
        }
    }
    lists
        .as_object()
        .is_some_and(|lists| !lists.is_empty())
        .then_some(lists)
}

/// Secrets that the agent reads for what is granted, as namespace and name.
/// `namespace` is the agent's.
pub fn secrets(capabilities: &Capabilities, namespace: &str) -> BTreeSet<(String, String)> {
    let databases = capabilities.sql.iter().map(|grant| &grant.secret);
    let keys = capabilities.keys.iter().map(|grant| &grant.secret);
    databases
        .chain(keys)
        .map(|secret| place(secret, namespace))
        .collect()
}

/// What an operator puts the name of a Secret for.
const SECRET: &str = "NAME-OF-A-SECRET";

/// What was found out about one thing.
struct Found {
    what: String,
    standing: Granting,
    by: Vec<String>,
    list: &'static str,
    entry: Value,
}

impl Found {
    fn of(self, who: &str, description: &str) -> Need {
        let Self {
            what,
            standing,
            by,
            list,
            entry,
        } = self;
        Need {
            who: who.to_owned(),
            description: description.to_owned(),
            what,
            standing,
            by,
            list,
            entry,
        }
    }
}

struct Granted<'a> {
    capabilities: &'a Capabilities,
    namespace: &'a str,
}

impl Granted<'_> {
    fn document(&self, url: &str) -> Found {
        let bare = without_query(url);
        let uri: Option<Uri> = url.parse().ok();
        let by: Vec<String> = self
            .rules()
            .filter(|(_, rule)| {
                let covers = |uri| rule.covers(&Method::GET, uri).unwrap_or(false);
                uri.as_ref().is_some_and(covers)
            })
            .map(|(grant, _)| self.http_in_words(grant))
            .collect();
        Found {
            what: format!("fetch {bare}"),
            standing: whole_if(!by.is_empty()),
            by,
            list: "http",
            entry: with_addresses(json!({"url": bare, "methods": ["GET"]}), url),
        }
    }

    fn requests(&self, url: &str) -> Found {
        let declared = Rule::new(url).ok();
        let mut standing = Granting::Nothing;
        let mut by = Vec::new();
        for (grant, rule) in self.rules() {
            let Some(declared) = &declared else { continue };
            let whole = rule.covers_all_below(declared) && rule.methods.is_empty();
            let part = rule.covers_all_below(declared) || declared.covers_all_below(&rule);
            if part {
                by.push(self.http_in_words(grant));
            }
            standing = match (standing, whole, part) {
                (Granting::Whole, _, _) | (_, true, _) => Granting::Whole,
                (Granting::Part, _, _) | (_, _, true) => Granting::Part,
                _ => Granting::Nothing,
            };
        }
        Found {
            what: format!("send requests to {url}"),
            standing,
            by,
            list: "http",
            entry: with_addresses(json!({"url": url}), url),
        }
    }

    fn file(&self, path: &str) -> Found {
        let folders = self.capabilities.files.iter();
        let by: Vec<String> = folders
            .filter(|folder| is_written_below(Path::new(path), Path::new(folder)))
            .map(|folder| format!("files: {folder}"))
            .collect();
        let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
        Found {
            what: format!("read file {path}"),
            standing: whole_if(!by.is_empty()),
            by,
            list: "files",
            entry: json!(folder.to_string_lossy()),
        }
    }

    fn database(&self, name: &str) -> Found {
        let grants = self.capabilities.sql.iter();
        let by: Vec<String> = grants
            .filter(|grant| grant.name == name)
            .map(|grant| {
                let (namespace, secret) = place(&grant.secret, self.namespace);
                let networks = in_networks(&grant.addresses);
                format!("sql: {name} as Secret {namespace}/{secret} says{networks}")
            })
            .collect();
        Found {
            what: format!("use database {name}"),
            standing: whole_if(!by.is_empty()),
            by,
            list: "sql",
            entry: json!({"name": name, "secret": {"name": SECRET}}),
        }
    }

    /// The grants of requests, each as it is used.
    fn rules(&self) -> impl Iterator<Item = (&HttpGrant, Rule)> {
        self.capabilities.http.iter().filter_map(|grant| {
            let mut rule = Rule::new(&grant.url).ok()?;
            let methods = grant.methods.iter().map(|text| text.parse());
            rule.methods = methods.collect::<Result<_, _>>().ok()?;
            Some((grant, rule))
        })
    }

    fn http_in_words(&self, grant: &HttpGrant) -> String {
        let mut text = format!("http: {}", grant.url);
        if !grant.methods.is_empty() {
            text.push_str(&format!(" with {}", grant.methods.join(", ")));
        }
        text.push_str(&in_networks(&grant.addresses));
        let keys = self.capabilities.keys.iter();
        let key = keys.filter(|key| grant.key.as_ref() == Some(&key.name));
        for key in key {
            let (namespace, secret) = place(&key.secret, self.namespace);
            text.push_str(&format!(
                ", signed with key {} ({:?}, Secret {namespace}/{secret})",
                key.name, key.kind
            ));
        }
        text
    }
}

/// A name for this machine has only addresses that a grant has to name.
fn with_addresses(mut entry: Value, url: &str) -> Value {
    let rule = Rule::new(without_query(url)).ok();
    let host = rule.as_ref().map(Rule::host).unwrap_or_default();
    if host == "localhost" || host.ends_with(".localhost") {
        entry["addresses"] = json!(["127.0.0.0/8", "::1/128"]);
    }
    entry
}

fn whole_if(granted: bool) -> Granting {
    match granted {
        true => Granting::Whole,
        false => Granting::Nothing,
    }
}

fn place(secret: &SecretReference, namespace: &str) -> (String, String) {
    let namespace = secret.namespace.as_deref().unwrap_or(namespace);
    (namespace.to_owned(), secret.name.clone())
}

fn in_networks(addresses: &[String]) -> String {
    match addresses {
        [] => String::new(),
        addresses => format!(" in {}", addresses.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use reeve_core::manifest::{ActionRule, RawManifest, RawPrimary, RawSource};

    fn manifest() -> Manifest {
        let source = |name: &str, origin| RawSource {
            name: name.to_owned(),
            description: String::new(),
            origin,
            interval_seconds: 60,
        };
        Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![],
            sources: vec![
                source("notes", Origin::Url("https://a.example/notes?sig=x".into())),
                source("list", Origin::File("/etc/documents/list".into())),
            ],
            actions: vec![ActionRule {
                name: "store".into(),
                description: "a container".into(),
                http: vec!["https://b.example/v1/".into()],
                sql: vec!["main".into()],
                secrets: vec![],
            }],
        })
        .unwrap()
    }

    fn check(capabilities: Value, expected: [&str; 4], lacking: &Value) {
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let needs = needs(&manifest(), &capabilities, "reeve-system");
        let lines: Vec<String> = needs
            .iter()
            .map(|need| {
                let Need { who, what, by, .. } = need;
                let by = by.join(" and ");
                format!("{who}: {what}: {} {by}", need.standing.as_str())
            })
            .collect();
        for (line, expected) in lines.iter().zip(expected) {
            assert_eq!(line.trim_end(), expected);
        }
        assert_eq!(&missing(&needs).unwrap_or_default(), lacking);
    }

    #[test]
    fn each_need_has_its_grant_or_lacks_it() {
        check(
            json!({}),
            [
                "source notes: fetch https://a.example/notes: not granted",
                "source list: read file /etc/documents/list: not granted",
                "action store: send requests to https://b.example/v1/: not granted",
                "action store: use database main: not granted",
            ],
            &json!({
                "http": [
                    {"url": "https://a.example/notes", "methods": ["GET"]},
                    {"url": "https://b.example/v1/"},
                ],
                "files": ["/etc/documents"],
                "sql": [{"name": "main", "secret": {"name": SECRET}}],
            }),
        );
        check(
            json!({
                "http": [
                    {"url": "https://a.example/", "methods": ["GET"]},
                    {"url": "https://b.example/v1/x", "key": "k", "addresses": ["10.0.0.0/8"]},
                    {"url": "b.example"},
                ],
                "files": ["/etc/documents", "/etc/doc"],
                "sql": [{"name": "main", "secret": {"name": "admin", "namespace": "db"}}],
                "keys": [{"name": "k", "type": "Bearer", "secret": {"name": "token"}}],
            }),
            [
                "source notes: fetch https://a.example/notes: granted \
                 http: https://a.example/ with GET",
                "source list: read file /etc/documents/list: granted files: /etc/documents",
                "action store: send requests to https://b.example/v1/: granted in part \
                 http: https://b.example/v1/x in 10.0.0.0/8, signed with key k (Bearer, Secret \
                 reeve-system/token)",
                "action store: use database main: granted sql: main as Secret db/admin says",
            ],
            &json!({"http": [{"url": "https://b.example/v1/"}]}),
        );
        // Some methods are a part, too.
        let some = json!([{"url": "https://b.example/", "methods": ["PUT"]}]);
        let capabilities = serde_json::from_value(json!({"http": some})).unwrap();
        let needs = needs(&manifest(), &capabilities, "reeve-system");
        assert_eq!(needs[2].standing, Granting::Part);
    }

    #[test]
    fn secrets_are_those_of_databases_and_keys() {
        let capabilities = json!({
            "sql": [{"name": "main", "secret": {"name": "admin", "namespace": "db"}}],
            "keys": [{"name": "k", "type": "Bearer", "secret": {"name": "token"}}],
        });
        let found = secrets(
            &serde_json::from_value(capabilities).unwrap(),
            "reeve-system",
        );
        let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let expected = [pair("db", "admin"), pair("reeve-system", "token")];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}

//! Secrets that the agent itself uses on behalf of plugins: of databases and keys.
//!
//! They are read by name, with the agent's own rights, when they are needed, so that
//! a rotated one is used within seconds; nothing of them is written anywhere.

use crate::problem::chain;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use reeve_api::SecretReference;
use reeve_cluster::{Cluster, Object, Resource};
use reeve_core::manifest::secret_kind;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// For how long an answer is believed: a burst of actions reads a Secret once, and
/// who rotates one waits a moment anyway.
const BELIEVED: Duration = Duration::from_secs(10);

/// The decoded entries of a Secret.
pub(crate) type Entries = Arc<BTreeMap<String, Vec<u8>>>;

/// Reads Secrets. Clones share what was read.
#[derive(Clone)]
pub(crate) struct Secrets {
    cluster: Cluster,
    namespace: Arc<str>,
    known: Arc<Mutex<HashMap<SecretKey, (Instant, Entries)>>>,
}

type SecretKey = (String, String);

impl Secrets {
    pub(crate) fn new(cluster: Cluster, namespace: Arc<str>) -> Self {
        Self {
            cluster,
            namespace,
            known: Arc::default(),
        }
    }

    /// Where a Secret is, as messages name it.
    pub(crate) fn place(&self, reference: &SecretReference) -> String {
        let namespace = reference.namespace.as_deref().unwrap_or(&self.namespace);
        format!("{namespace}/{}", reference.name)
    }

    /// The entries of a Secret. An error names the Secret, never what is in it.
    pub(crate) async fn entries(&self, reference: &SecretReference) -> Result<Entries, String> {
        let namespace = reference.namespace.as_deref().unwrap_or(&self.namespace);
        let name = &reference.name;
        let key = (namespace.to_owned(), name.clone());
        {
            let mut known = self.known.lock();
            // Those of others go when the next one is asked for, not by themselves.
            known.retain(|_, (since, _)| since.elapsed() < BELIEVED);
            if let Some((_, entries)) = known.get(&key) {
                return Ok(entries.clone());
            }
        }
        let found = self.cluster.get(&resource(), Some(namespace), name).await;
        let found = found.map_err(|error| chain(&error))?;
        let Some(found) = found else {
            self.known.lock().remove(&key);
            let place = self.place(reference);
            return Err(format!("Secret {place} does not exist; create it"));
        };
        let entries = Arc::new(entries_of(&found));
        let read = (Instant::now(), entries.clone());
        self.known.lock().insert(key, read);
        Ok(entries)
    }
}

/// The resource of Secrets, which needs no discovery.
pub(crate) fn resource() -> Resource {
    Resource {
        kind: secret_kind().clone(),
        plural: "secrets".into(),
        namespaced: true,
    }
}

/// The decoded entries of a Secret as the API server gives it.
pub(crate) fn entries_of(secret: &Object) -> BTreeMap<String, Vec<u8>> {
    let value = secret.value();
    let data = value.get("data").and_then(serde_json::Value::as_object);
    data.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)))
        .collect()
}

//! Plugins that are artifacts in OCI registries: what is pulled, and what is known when
//! a registry is away.
//!
//! What was pulled last is known under the name by which it was asked for, from one start
//! to the next: the component itself is in the artifact cache and, only where there is
//! none, in memory. A registry that does not answer,
//! refuses or has lost it costs the plugin nothing but the news: the load goes on with
//! what is known, and says so. What a registry does give and is no plugin, or not what
//! its digest says, is a new version that cannot be loaded.

use crate::delivery::{MAX_COMPONENT_BYTES, Package, Proof};
use crate::load::{Purpose, Turn, Turns};
use crate::problem::{Problem, chain};
use crate::secrets::Secrets;
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_api::{ArtifactSource, ArtifactStatus, Reason, SecretReference};
use reeve_core::Digest;
use reeve_core::backoff::Backoff;
use reeve_engine::Engine;
use reeve_outside::registry::{Manifest, ManifestError, Wanted};
use reeve_outside::{ImageReference, Login, Registry, RegistryError, RegistrySettings, Roots};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a tag is looked up where the policy does not say.
const INTERVAL: Duration = Duration::from_secs(300);

/// Delays after failures of a registry: it is many people's, and what is wrong with it
/// rarely passes within seconds.
pub(crate) const FAILING: Backoff = Backoff {
    base: Duration::from_secs(5),
    cap: Duration::from_secs(300),
};

/// The entry of a Secret of type `kubernetes.io/dockerconfigjson`.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// What was pulled, and knows itself in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pulled {
    /// The name by which it was asked for.
    image: String,
    /// The manifest.
    pub(crate) manifest: Digest,
    /// The component.
    pub(crate) component: Bytes,
    /// What may prove whose it is.
    pub(crate) proofs: Vec<Proof>,
}

/// What is known of what was pulled last.
#[derive(Clone, Debug)]
struct Known {
    image: String,
    manifest: Digest,
    proofs: Vec<Proof>,
    /// The component, where the cache does not keep it.
    component: Option<Bytes>,
}

impl Known {
    fn of(pulled: &Pulled, cached: bool) -> Self {
        Self {
            image: pulled.image.clone(),
            manifest: pulled.manifest,
            proofs: pulled.proofs.clone(),
            component: (!cached).then(|| pulled.component.clone()),
        }
    }

    fn is(&self, pulled: &Pulled) -> bool {
        (&self.image, self.manifest, &self.proofs)
            == (&pulled.image, pulled.manifest, &pulled.proofs)
    }
}

/// What is there of an artifact.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What was pulled, as it is reported; none if nothing ever was.
    pub(crate) status: Option<ArtifactStatus>,
    /// Why the registry does not say whether that is the newest.
    pub(crate) stale: Option<Problem>,
}

/// What a look at a tag has found.
#[derive(Clone, Debug)]
pub(crate) enum Looked {
    /// It names what it named when it was last pulled.
    Same,
    /// It names something else, or nothing was pulled yet.
    Other,
    /// The registry does not say.
    Unknown(Problem),
}

/// Pulls artifacts. Clones share what was pulled.
#[derive(Clone)]
pub(crate) struct Artifacts {
    engine: Engine,
    secrets: Secrets,
    namespace: Arc<str>,
    known: Arc<Mutex<HashMap<Arc<str>, Arc<Known>>>>,
}

impl Artifacts {
    pub(crate) fn new(engine: &Engine, secrets: &Secrets, namespace: &Arc<str>) -> Self {
        Self {
            engine: engine.clone(),
            secrets: secrets.clone(),
            namespace: namespace.clone(),
            known: Arc::default(),
        }
    }

    /// The artifact of a plugin, with the signatures of it where they are wanted; or
    /// what is known of it, with the reason why it is not known whether that is the
    /// newest. With the room that it has; none where it is in memory for good.
    ///
    /// # Errors
    ///
    /// When there is none, or a new one that is none.
    pub(crate) async fn pull(
        &self,
        plugin: &Arc<str>,
        source: &ArtifactSource,
        signed: bool,
        turns: &Turns,
    ) -> Result<(Pulled, Turn, Option<Problem>), Problem> {
        let reference = reference(source)?;
        let known = self.known(plugin, &source.image, turns).await;
        if let (Some(known), Wanted::Digest(wanted)) = (&known, reference.wanted())
            && known.manifest == wanted
            && !(signed && known.proofs.is_empty())
            && let Some((pulled, room)) = self.whole(plugin, known, turns).await
            && known.is(&pulled)
        {
            return Ok((pulled, room, None));
        }
        let known = known.as_deref();
        let asked = self.ask(plugin, &reference, source, known, signed, turns);
        match asked.await {
            Ok((pulled, room, is_new)) => {
                if is_new || !known.is_some_and(|known| known.is(&pulled)) {
                    self.remember(plugin, &pulled).await;
                }
                Ok((pulled, room, None))
            }
            Err(problem) => {
                let known = known.filter(|_| says_nothing(&problem));
                let whole = match known {
                    Some(known) => self.whole(plugin, known, turns).await,
                    None => None,
                };
                match whole {
                    Some((pulled, room)) => Ok((pulled, room, Some(problem))),
                    None => Err(problem),
                }
            }
        }
    }

    /// What was pulled last, if it is still there; nobody is asked.
    pub(crate) async fn pulled(
        &self,
        plugin: &Arc<str>,
        source: &ArtifactSource,
        turns: &Turns,
    ) -> Option<(Pulled, Turn)> {
        let known = self.known(plugin, &source.image, turns).await?;
        self.whole(plugin, &known, turns).await
    }

    /// Whether a tag still names what it named when it was last pulled.
    pub(crate) async fn look(
        &self,
        plugin: &Arc<str>,
        source: &ArtifactSource,
        turns: &Turns,
    ) -> Looked {
        let Some(known) = self.known(plugin, &source.image, turns).await else {
            return Looked::Other;
        };
        let looked = async {
            let reference = reference(source)?;
            let registry = self.registry(&reference, source).await?;
            self.manifest(&registry, &reference).await
        };
        match looked.await {
            Ok(manifest) if manifest.digest == known.manifest => Looked::Same,
            Ok(_) => Looked::Other,
            Err(problem) if says_nothing(&problem) => Looked::Unknown(problem),
            // The load says what is wrong with it.
            Err(_) => Looked::Other,
        }
    }

    /// Forgets what a plugin was that is none any more, or no artifact.
    pub(crate) fn forget(&self, plugin: &str) {
        self.known.lock().remove(plugin);
    }

    /// Returns with it whether it was not here before.
    async fn ask(
        &self,
        plugin: &Arc<str>,
        reference: &ImageReference,
        source: &ArtifactSource,
        known: Option<&Known>,
        signed: bool,
        turns: &Turns,
    ) -> Result<(Pulled, Turn, bool), Problem> {
        let registry = self.registry(reference, source).await?;
        let manifest = self.manifest(&registry, reference).await?;
        let same = known.filter(|known| known.manifest == manifest.digest);
        // Before there is any room for it: whoever takes some is not to wait for a registry
        // with it, but for its bytes.
        let proofs = match signed {
            true => {
                let found = registry.signatures(&manifest.digest).await;
                let found = found.map_err(|error| problem_of(&error))?;
                let proof = |signed: reeve_outside::registry::SignedImage| Proof::Manifest {
                    manifest: manifest.bytes.clone(),
                    payload: signed.payload,
                    signature: signed.signature,
                };
                found.into_iter().map(proof).collect()
            }
            false => same.map(|same| same.proofs.clone()).unwrap_or_default(),
        };
        let whole = match same {
            Some(same) => self.whole(plugin, same, turns).await,
            None => None,
        };
        let whole = whole.filter(|(whole, _)| whole.manifest == manifest.digest);
        let is_new = whole.is_none();
        let (component, room) = match whole {
            Some((whole, room)) => (whole.component, room),
            None => {
                let most = MAX_COMPONENT_BYTES as u64;
                let size = registry.component_size(&manifest, most);
                let size = size.map_err(|error| problem_of(&error))?;
                let size = usize::try_from(size).unwrap_or(MAX_COMPONENT_BYTES);
                let room = turns.room(Purpose::Pulled, size).await;
                let found = registry.component(&manifest, most).await;
                (found.map_err(|error| problem_of(&error))?, room)
            }
        };
        let pulled = Pulled {
            image: source.image.clone(),
            manifest: manifest.digest,
            component,
            proofs,
        };
        Ok((pulled, room, is_new))
    }

    async fn manifest(
        &self,
        registry: &Registry,
        reference: &ImageReference,
    ) -> Result<Manifest, Problem> {
        let found = registry.manifest(&reference.wanted()).await;
        found.map_err(|error| problem_of(&error))
    }

    async fn registry(
        &self,
        reference: &ImageReference,
        source: &ArtifactSource,
    ) -> Result<Registry, Problem> {
        let settings = RegistrySettings {
            roots: match &source.ca_bundle {
                Some(bundle) => Roots::Only(bundle.clone()),
                None => Roots::System,
            },
            plain_http: source.plain_http,
            login: self.login(reference, source).await?,
        };
        Registry::new(reference, settings).map_err(|error| problem_of(&error))
    }

    /// Who asks. The Secret is in the agent's own namespace, always.
    async fn login(
        &self,
        reference: &ImageReference,
        source: &ArtifactSource,
    ) -> Result<Option<Login>, Problem> {
        let Some(name) = &source.pull_secret_name else {
            return Ok(None);
        };
        let denied = |problem: String| {
            let message = format!(
                "the login for {reference} cannot be had: spec.artifact.pullSecretName of the \
                 Plugin: {problem}"
            );
            Problem::passing(Reason::RegistryDenied, message)
        };
        let secret = SecretReference {
            name: name.clone(),
            namespace: None,
        };
        let entries = self.secrets.entries(&secret).await.map_err(denied)?;
        let namespace = &self.namespace;
        let Some(config) = entries.get(DOCKER_CONFIG) else {
            return Err(denied(format!(
                "Secret {namespace}/{name} has no entry `{DOCKER_CONFIG}`; make it with `kubectl \
                 create secret docker-registry`"
            )));
        };
        Login::from_docker_config(config, reference.host(), reference.repository())
            .map(Some)
            .map_err(|error| denied(format!("Secret {namespace}/{name}: {error}")))
    }

    async fn known(&self, plugin: &Arc<str>, image: &str, turns: &Turns) -> Option<Arc<Known>> {
        let known = self.known.lock().get(plugin).cloned();
        if let Some(known) = known.filter(|known| known.image == image) {
            return Some(known);
        }
        let (found, _room) = self.cached(plugin, turns).await?;
        let found = Arc::new(Known::of(&found, true));
        let found = Some(found).filter(|found| found.image == image)?;
        self.known.lock().insert(plugin.clone(), found.clone());
        Some(found)
    }

    /// All of what was pulled last under this name, if it is still there. Where a load was
    /// given up while it was kept, that is newer than what is known.
    async fn whole(
        &self,
        plugin: &Arc<str>,
        known: &Known,
        turns: &Turns,
    ) -> Option<(Pulled, Turn)> {
        if let Some(component) = &known.component {
            let pulled = Pulled {
                image: known.image.clone(),
                manifest: known.manifest,
                component: component.clone(),
                proofs: known.proofs.clone(),
            };
            return Some((pulled, None));
        }
        let cached = self.cached(plugin, turns).await;
        let (cached, room) = cached.filter(|(cached, _)| cached.image == known.image)?;
        if !known.is(&cached) {
            let known = Arc::new(Known::of(&cached, true));
            self.known.lock().insert(plugin.clone(), known);
        }
        Some((cached, room))
    }

    async fn cached(&self, plugin: &Arc<str>, turns: &Turns) -> Option<(Pulled, Turn)> {
        if !self.engine.has_cache() {
            return None;
        }
        // How large it is nobody knows before.
        let room = turns.room(Purpose::Cached, MAX_COMPONENT_BYTES).await;
        let (engine, key) = (self.engine.clone(), key(&self.namespace, plugin));
        let found = tokio::task::spawn_blocking(move || engine.kept(key)).await;
        let found = Pulled::read(&Bytes::from(found.ok().flatten()?))?;
        let room = Turns::fit(room, found.component.len());
        Some((found, room))
    }

    async fn remember(&self, plugin: &Arc<str>, pulled: &Pulled) {
        let (engine, key) = (self.engine.clone(), key(&self.namespace, plugin));
        let kept = {
            let pulled = pulled.clone();
            move || engine.keep(key, &pulled.head(), &pulled.component)
        };
        // Not to be kept is a line in the log.
        let kept = tokio::task::spawn_blocking(kept).await.unwrap_or(false);
        let known = Arc::new(Known::of(pulled, kept));
        self.known.lock().insert(plugin.clone(), known);
    }
}

impl Pulled {
    pub(crate) fn status(&self) -> ArtifactStatus {
        ArtifactStatus {
            image: self.image.clone(),
            digest: self.manifest.to_string(),
        }
    }

    /// It as a package, under a configuration.
    pub(crate) fn package(&self, config: Bytes) -> Package {
        Package {
            digest: Digest::of(&self.component),
            component: self.component.clone(),
            config,
            proofs: self.proofs.clone(),
            place: format!("image {}", self.image),
        }
    }

    /// What stands before the component in the cache: a line each for its name, with
    /// its manifest, and its proofs.
    fn head(&self) -> Vec<u8> {
        let proofs = Proof::write_all(&self.proofs);
        let component = Digest::of(&self.component);
        format!("{} {component} {}\n{proofs}\n", self.manifest, self.image).into_bytes()
    }

    fn read(entry: &Bytes) -> Option<Self> {
        let mut lines = entry.splitn(3, |byte| *byte == b'\n');
        let (head, proofs, component) = (lines.next()?, lines.next()?, lines.next()?);
        let mut words = std::str::from_utf8(head).ok()?.splitn(3, ' ');
        let (manifest, _, image) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            image: image.to_owned(),
            manifest: manifest.parse().ok()?,
            component: entry.slice_ref(component),
            proofs: Proof::read_all(proofs),
        })
    }
}

/// One entry for each plugin of each agent that shares the folder.
fn key(namespace: &str, plugin: &str) -> Digest {
    Digest::of_parts(["pulled artifact", namespace, plugin].map(str::as_bytes))
}

/// The name of an artifact.
pub(crate) fn reference(source: &ArtifactSource) -> Result<ImageReference, Problem> {
    source.image.parse().map_err(|error| {
        let message = format!("spec.artifact.image of the Plugin: {error}");
        Problem::lasting(Reason::PolicyInvalid, message)
    })
}

/// When a tag is looked up again after so many failures; never for what is pinned.
pub(crate) fn pause(source: &ArtifactSource, failures: u32, jitter: f64) -> Option<Duration> {
    if reference(source).ok()?.is_pinned() {
        return None;
    }
    let seconds = source.interval_seconds.map(u64::from);
    let interval = seconds.map_or(INTERVAL, Duration::from_secs);
    Some(interval.max(FAILING.delay(failures, jitter)))
}

/// Whether a problem is one of the registry, and says nothing of the artifact.
fn says_nothing(problem: &Problem) -> bool {
    matches!(
        problem.reason,
        Reason::RegistryUnreachable | Reason::RegistryDenied | Reason::ArtifactAbsent
    )
}

/// Whether a problem is of the registry or of what it gives.
pub(crate) fn is_of_registry(problem: &Problem) -> bool {
    let of_artifact = matches!(
        problem.reason,
        Reason::ArtifactInvalid
            | Reason::ArtifactCorrupt
            | Reason::TooLarge
            | Reason::Unsigned
            | Reason::SignatureInvalid
    );
    of_artifact || says_nothing(problem)
}

fn problem_of(error: &RegistryError) -> Problem {
    let (reason, what_to_do) = match error {
        RegistryError::Unreachable { .. } => (Reason::RegistryUnreachable, "it is asked again"),
        RegistryError::Setup { .. } => (
            Reason::RegistryUnreachable,
            "mend spec.artifact of the Plugin",
        ),
        RegistryError::Denied { .. } => (
            Reason::RegistryDenied,
            "name a Secret with a login that may pull in spec.artifact.pullSecretName of the Plugin",
        ),
        RegistryError::Absent { .. } => (
            Reason::ArtifactAbsent,
            "push it with `reeve plugin push`, or mend spec.artifact.image of the Plugin",
        ),
        RegistryError::Manifest {
            problem: ManifestError::TooLarge { .. },
            ..
        }
        | RegistryError::TooLarge { .. } => (Reason::TooLarge, "push a smaller one"),
        RegistryError::Manifest { .. } => (
            Reason::ArtifactInvalid,
            "push a plugin under that name, or name another",
        ),
        RegistryError::OtherDigest { .. } | RegistryError::Protocol { .. } => (
            Reason::ArtifactCorrupt,
            "look at the registry and what is before it",
        ),
    };
    Problem::passing(reason, format!("{}; {what_to_do}", chain(error)))
}

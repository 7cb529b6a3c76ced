//! What becomes of what a plugin has, once it was removed.
//!
//! Its component is gone, so nothing here asks it: what it has is found by label in
//! the places that its status names, and in which order it goes stands on the objects.
//! A restart goes on where it was, for nothing is remembered.

use crate::execute::{resumed, write_problem};
use crate::journal::{Deed, Journal};
use crate::left::Place;
use crate::metrics::{Metrics, Verb, WriteResult};
use crate::problem::{Problem, chain};
use crate::run::FINALIZER_MANAGER;
use crate::secrets;
use reeve_api::{DeletionPolicy, Operation, Reason};
use reeve_cluster::{
    Apply, Cluster, Delete, Identity, List, ListError, Object, Preconditions, ReadError,
    ResolveError, Resource, SetFinalizers, WriteError,
};
use reeve_core::ownership::{
    Owner, PLUGIN_LABEL, PRIMARY_ANNOTATION, contributor_prefix, field_manager, finalizers,
    plugin_label, plugin_selector,
};
use reeve_core::plan::{Ending, Observed, Owned, Step, is_precious};
use reeve_core::waves::{FLUX_PRUNE, Propagation, Removal};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

/// Objects asked for at once, as many as client-go's pager asks for.
const PAGE: u32 = 500;

/// More than these objects are counted, not named.
const MAX_NAMED: usize = 5;

/// A plugin that was removed.
#[derive(Clone)]
pub(crate) struct Remover {
    pub(crate) cluster: Cluster,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
    pub(crate) plugin: Arc<str>,
    /// As whom it wrote.
    pub(crate) identity: Identity,
    pub(crate) policy: DeletionPolicy,
    /// Where it may have objects.
    pub(crate) places: BTreeSet<Place>,
    /// Secrets that it may have, which nobody may list.
    pub(crate) secrets: BTreeSet<ObjectReference>,
    /// Kinds to whose objects it may have contributed.
    pub(crate) contributes: BTreeSet<GroupVersionKind>,
    /// For which objects it ran; none when that is not known.
    pub(crate) primary_kind: Option<GroupVersionKind>,
}

/// How far a removal is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Objects that are still to go.
    pub(crate) left: usize,
    /// Objects that stay, since deleting them takes a person's word.
    pub(crate) kept: BTreeSet<ObjectReference>,
}

impl Removed {
    /// What there is to say about it.
    pub(crate) fn describe(&self, policy: DeletionPolicy) -> String {
        match (policy, self.left, self.kept.is_empty()) {
            (DeletionPolicy::Retain, ..) => "its objects stay".to_owned(),
            (DeletionPolicy::Delete, 0, true) => {
                "its objects are deleted, as spec.deletionPolicy says".to_owned()
            }
            (DeletionPolicy::Delete, 0, false) => {
                let named = self.kept.iter().take(MAX_NAMED).map(ToString::to_string);
                let mut names = named.collect::<Vec<_>>().join(", ");
                let more = self.kept.len().saturating_sub(MAX_NAMED);
                if more > 0 {
                    names.push_str(&format!(" and {more} more"));
                }
                format!(
                    "its objects are deleted, as spec.deletionPolicy says, but for {names}, whose \
                     deletion takes a person's word: delete them yourself, or permit it with \
                     `reeve.dev/prune: allow` on them"
                )
            }
            (DeletionPolicy::Delete, left, _) => {
                format!("its objects are being deleted, as spec.deletionPolicy says; {left} left")
            }
        }
    }
}

impl Remover {
    /// Does what can be done now.
    pub(crate) async fn advance(self) -> Result<Removed, Problem> {
        let mut removed = Removed::default();
        if self.policy == DeletionPolicy::Delete {
            let mut units: BTreeMap<String, Vec<(Object, Observed)>> = BTreeMap::new();
            for place in &self.places {
                for object in self.owned_in(place).await? {
                    let unit = object.annotation(PRIMARY_ANNOTATION).unwrap_or_default();
                    let observed = self.observed(&object);
                    units.entry(unit).or_default().push((object, observed));
                }
            }
            for (id, objects) in &units {
                self.remove(id, objects, &mut removed).await?;
            }
        }
        if removed.left == 0 {
            let given_up = match self.policy {
                DeletionPolicy::Delete => self.give_up_contributions().await,
                DeletionPolicy::Retain => Ok(()),
            };
            // No primary waits for fields of an object that is not its unit's.
            self.let_primaries_go().await?;
            given_up?;
        }
        Ok(removed)
    }

    fn observed(&self, object: &Object) -> Observed {
        Observed {
            reference: object.reference(),
            uid: object.uid().to_owned(),
            annotations: object.annotations(),
            flux_prune: object.label(FLUX_PRUNE).map(str::to_owned),
            owned_fields: object
                .manager_fields(&field_manager(&self.plugin))
                .map(Owned::Fields),
            generation: None,
            deleting: object.is_deleting(),
            owners: Vec::new(),
        }
    }

    /// Deletes the next of what is left of one unit.
    async fn remove(
        &self,
        id: &str,
        objects: &[(Object, Observed)],
        removed: &mut Removed,
    ) -> Result<(), Problem> {
        let primary = primary_of(id, self.primary_kind.as_ref());
        let unit = UnitKey::new(self.plugin.clone(), primary);
        let owner = Owner {
            unit: unit.clone(),
            uid: String::new(),
        };
        let mut going: Vec<Observed> = Vec::new();
        for (_, observed) in objects {
            match self.says(observed) {
                Removal::Permitted => going.push(observed.clone()),
                _ => {
                    removed.kept.insert(observed.reference.clone());
                }
            }
        }
        removed.left += going.len();
        let plan = reeve_core::plan::removal(&owner, &going, Ending::Deleted);
        for step in plan.steps() {
            let Step::Delete { object, uid, .. } = step else {
                continue;
            };
            let found = objects.iter().find(|(one, _)| one.uid() == uid);
            if let Some((listed, _)) = found {
                self.delete(&unit, listed, object).await?;
            }
        }
        Ok(())
    }

    /// Whether an object may go. Nobody looks at each of them here, so what loses data
    /// takes a word of its own, as where a plugin withdraws it.
    fn says(&self, observed: &Observed) -> Removal {
        let options = observed.options();
        let said = [options.prune, options.delete];
        if said.contains(&Removal::Never) || options.delete == Removal::Confirm {
            return Removal::Confirm;
        }
        if is_precious(&observed.reference.kind) && !said.contains(&Removal::Permitted) {
            return Removal::Confirm;
        }
        Removal::Permitted
    }

    async fn delete(
        &self,
        unit: &UnitKey,
        listed: &Object,
        reference: &ObjectReference,
    ) -> Result<(), Problem> {
        let namespace = reference.namespace.as_deref();
        let resource = listed.resource();
        let live = self.live(resource, reference).await?;
        let Some(live) = live.filter(|live| self.is_ours(live) && live.uid() == listed.uid())
        else {
            return Ok(());
        };
        self.journal
            .write(&Deed {
                operation: Operation::Delete,
                unit,
                object: &live,
                reason: "its plugin was removed, and spec.deletionPolicy says Delete",
            })
            .await?;
        let request = Delete {
            resource,
            namespace,
            name: &reference.name,
            uid: Some(live.uid()),
            resource_version: Some(live.resource_version()),
            propagation: Propagation::of(&live.value()),
            dry_run: false,
            identity: Some(&self.identity),
        };
        let request = resumed(&self.cluster, &self.identity, &live, request).await;
        let request = request.map_err(|error| write_problem(reference, &error))?;
        let began = Instant::now();
        let deleted = self.cluster.delete(request).await;
        self.count(Verb::Delete, began, deleted.as_ref().err());
        deleted.map_err(|error| write_problem(reference, &error))?;
        tracing::info!(plugin = %self.plugin, object = %reference, "deleted, its plugin was removed");
        Ok(())
    }

    fn count(&self, verb: Verb, began: Instant, error: Option<&WriteError>) {
        let result = error.map_or(WriteResult::Success, WriteResult::of);
        self.metrics
            .wrote(&self.plugin, verb, result, began.elapsed());
    }

    /// Labels can be forged; only an apply of the plugin makes an object its own.
    fn is_ours(&self, object: &Object) -> bool {
        object.label(PLUGIN_LABEL) == Some(plugin_label(&self.plugin).as_str())
            && object
                .manager_fields(&field_manager(&self.plugin))
                .is_some()
    }

    /// An object as it is now.
    async fn live(
        &self,
        resource: &Resource,
        reference: &ObjectReference,
    ) -> Result<Option<Object>, Problem> {
        // Who wrote a Secret may see it; the agent itself may see none.
        let reader = reference.kind.is_secret().then_some(&self.identity);
        let (namespace, name) = (reference.namespace.as_deref(), &reference.name);
        let live = self.cluster.get_as(resource, namespace, name, reader);
        live.await.map_err(|error| {
            let reason = match error {
                ReadError::Forbidden { .. } => Reason::Forbidden,
                _ => Reason::ApplyFailed,
            };
            let message = format!("{reference} cannot be read: {}", chain(&error));
            Problem::passing(reason, message)
        })
    }

    async fn owned_in(&self, place: &Place) -> Result<Vec<Object>, Problem> {
        let selector = plugin_selector(&self.plugin).to_string();
        let (kind, namespace) = place.parts();
        let mut found = Vec::new();
        if kind.is_secret() {
            let secrets = self.secrets.iter().filter(|secret| place.holds(secret));
            for secret in secrets {
                found.extend(self.live(&secrets::resource(), secret).await?);
            }
        } else {
            found = self.list(kind, namespace, &selector).await?;
        }
        found.retain(|object| self.is_ours(object));
        Ok(found)
    }

    /// The namespaces in which the plugin may have contributed to objects of a kind: its
    /// account may see no others. None stands for all.
    fn contributed_in(&self, kind: &GroupVersionKind) -> BTreeSet<Option<String>> {
        let mut namespaces = BTreeSet::new();
        for place in &self.places {
            let (written, namespace) = place.parts();
            if written.same_kind(kind) {
                namespaces.insert(namespace.map(str::to_owned));
            }
        }
        match namespaces.is_empty() || namespaces.contains(&None) {
            true => BTreeSet::from([None]),
            false => namespaces,
        }
    }

    /// Gives up what the plugin has contributed to objects of others.
    async fn give_up_contributions(&self) -> Result<(), Problem> {
        let prefix = contributor_prefix(&self.plugin);
        let mut objects = Vec::new();
        for kind in &self.contributes {
            for namespace in self.contributed_in(kind) {
                objects.extend(self.list(kind, namespace.as_deref(), "").await?);
            }
        }
        for object in objects {
            let managers = object.managers().into_iter();
            let ours = managers
                .filter(|one| one.operation == "Apply" && one.manager.starts_with(prefix.as_str()));
            for manager in ours.map(|one| one.manager).collect::<BTreeSet<_>>() {
                self.give_up(&object, &manager).await?;
            }
        }
        Ok(())
    }

    /// Applying nothing removes what only this manager owns.
    async fn give_up(&self, object: &Object, manager: &str) -> Result<(), Problem> {
        let reference = object.reference();
        let mut metadata = json!({"name": reference.name});
        if let Some(namespace) = &reference.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let nothing: Value = json!({
            "apiVersion": reference.kind.api_version(),
            "kind": reference.kind.kind,
            "metadata": metadata,
        });
        let began = Instant::now();
        let applied = self
            .cluster
            .apply(Apply {
                resource: object.resource(),
                namespace: reference.namespace.as_deref(),
                name: &reference.name,
                body: (&nothing).into(),
                onto: Preconditions {
                    uid: Some(object.uid()),
                    resource_version: None,
                },
                manager,
                force: false,
                strict: true,
                dry_run: false,
                identity: Some(&self.identity),
            })
            .await;
        self.count(Verb::Apply, began, applied.as_ref().err());
        applied
            .map(drop)
            .map_err(|error| write_problem(&reference, &error))
    }

    /// Takes the plugin's finalizers off its primaries: nobody is there any more for
    /// whom they could wait.
    async fn let_primaries_go(&self) -> Result<(), Problem> {
        let Some(kind) = &self.primary_kind else {
            return Ok(());
        };
        let ours = finalizers(&self.plugin);
        for primary in self.list(kind, None, "").await? {
            let all = primary.finalizers();
            let mut left = all.clone();
            left.retain(|one| !ours.contains(one));
            if left == all {
                continue;
            }
            let request = SetFinalizers {
                live: &primary,
                finalizers: &left,
                manager: FINALIZER_MANAGER,
                identity: Some(&self.identity),
            };
            let written = self.cluster.set_finalizers(request).await;
            written.map_err(|error| write_problem(&primary.reference(), &error))?;
        }
        Ok(())
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Object>, Problem> {
        let problem = |reason, error: &dyn std::error::Error| {
            let message = format!(
                "what plugin {} has left of {kind} cannot be seen: {}",
                self.plugin,
                chain(error)
            );
            Problem::passing(reason, message)
        };
        let resource: Resource = match self.cluster.resolve_in_any_version(kind).await {
            Ok(resource) => resource,
            // Its objects went with it.
            Err(ResolveError::NotServed { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(problem(Reason::Unreachable, &error)),
        };
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let list = List {
                resource: &resource,
                namespace,
                selector,
                limit: PAGE,
                after: &after,
            };
            let page = match self.cluster.list_metadata(list).await {
                Ok(page) => page,
                Err(ListError::NotServed { .. }) => return Ok(Vec::new()),
                Err(error @ ListError::Forbidden { .. }) => {
                    return Err(problem(Reason::Forbidden, &error));
                }
                Err(error) => return Err(problem(Reason::Unreachable, &error)),
            };
            all.extend(page.objects);
            match page.next {
                Some(token) => after = token,
                None => return Ok(all),
            }
        }
    }
}

/// The primary that an annotation names, as far as it says.
fn primary_of(id: &str, known: Option<&GroupVersionKind>) -> ObjectReference {
    let mut parts = id.splitn(3, '/');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (kind_and_group, namespace, name) = (next(), next(), next());
    let (kind, group) = kind_and_group
        .split_once('.')
        .unwrap_or((&kind_and_group, ""));
    // The version is not part of a unit's identity.
    let named = GroupVersionKind::new(group, "", kind);
    let kind = known.filter(|known| known.same_kind(&named));
    let kind = kind.cloned().unwrap_or(named);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    ObjectReference::new(kind, namespace, name)
}

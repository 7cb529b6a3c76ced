//! Whether a version may do what it asks for: whether its account agrees, and what that
//! is granted.

use super::Loader;
use crate::problem::{Problem, chain};
use futures::{StreamExt, TryStreamExt};
use reeve_api::{Reason, with_list};
use reeve_cluster::{AccessCheck, Cluster, Identity, ReadError, Resource};
use reeve_core::grant::{self, ACCOUNT_ANNOTATION, Served};
use reeve_core::manifest::secret_kind;
use reeve_core::{GroupVersionKind, Manifest};
use std::collections::{BTreeSet, HashMap};

/// Questions about rights that are asked at once, for one plugin.
const REVIEWS_AT_ONCE: usize = 16;

/// Whose rights are asked about, and for what.
#[derive(Clone, Copy)]
pub(super) struct Asks<'a> {
    pub(super) identity: &'a Identity,
    pub(super) manifest: &'a Manifest,
    pub(super) resources: &'a HashMap<GroupVersionKind, Resource>,
}

impl Loader {
    /// The account must exist and must agree: without the annotation, whoever may
    /// write a ConfigMap here could act as any account of the namespace.
    ///
    /// # Errors
    ///
    /// [`Reason::ServiceAccountUnusable`] when it does not, or the agent may not see
    /// whether it does; [`Reason::Unreachable`] when nobody answers, of which nothing
    /// follows.
    pub(crate) async fn check_account(&self, plugin: &str, account: &str) -> Result<(), Problem> {
        let problem = |text: String| Problem::passing(Reason::ServiceAccountUnusable, text);
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ServiceAccount"),
            plural: "serviceaccounts".into(),
            namespaced: true,
        };
        let namespace = &*self.namespace;
        let found = self
            .cluster
            .get(&resource, Some(namespace), account)
            .await
            .map_err(|error| {
                // Only a refusal says something about the account, or about who may use
                // it; an API server that does not answer says nothing.
                let reason = match error {
                    ReadError::Forbidden { .. } => Reason::ServiceAccountUnusable,
                    _ => Reason::Unreachable,
                };
                let error = chain(&error);
                let text = format!("ServiceAccount {namespace}/{account} cannot be read: {error}");
                Problem::passing(reason, text)
            })?;
        let Some(found) = found else {
            return Err(problem(format!(
                "ServiceAccount {namespace}/{account} does not exist; create it with the annotation {ACCOUNT_ANNOTATION}: {plugin}, for example with {}, or name another in Plugin spec.serviceAccountName",
                self.grant_command(plugin)
            )));
        };
        match found.annotation(ACCOUNT_ANNOTATION) {
            Some(named) if named == plugin => Ok(()),
            Some(named) => Err(problem(format!(
                "ServiceAccount {namespace}/{account} is for plugin {named}; annotate it {ACCOUNT_ANNOTATION}: {plugin}, or name another in Plugin spec.serviceAccountName"
            ))),
            None => Err(problem(format!(
                "ServiceAccount {namespace}/{account} does not agree to be used; annotate it {ACCOUNT_ANNOTATION}: {plugin}"
            ))),
        }
    }

    /// That the account agrees, and is not the agent's own.
    pub(crate) async fn check_consent(&self, plugin: &str, account: &str) -> Result<(), Problem> {
        // What could never be used is not asked to agree.
        self.check_not_own(account).await?;
        self.check_account(plugin, account).await
    }

    /// The agent's own account is nobody's: a plugin that acted as it could give
    /// itself every right that the agent has, among them those to act as others.
    async fn check_not_own(&self, account: &str) -> Result<(), Problem> {
        let own = self.cluster.own_user().await;
        let own = own.map_err(|error| Problem::passing(Reason::Unreachable, chain(&error)))?;
        if own != Identity::service_account(&self.namespace, account).user {
            return Ok(());
        }
        Err(Problem::passing(
            Reason::ServiceAccountUnusable,
            format!(
                "ServiceAccount {}/{account} is the agent's own and can be no plugin's; name another in Plugin spec.serviceAccountName",
                self.namespace
            ),
        ))
    }

    /// Asks the API server for every rule that the manifest needs. What is needed
    /// in known places must be granted there; what is needed in namespaces that
    /// follow from primaries may be granted in each of them, which only the writes
    /// themselves can tell.
    pub(super) async fn check_rules(
        &self,
        plugin: &str,
        asks: Asks<'_>,
    ) -> Result<Vec<String>, Problem> {
        let Asks {
            identity,
            manifest,
            resources,
        } = asks;
        let served = |kind: &GroupVersionKind| {
            resources
                .get(kind)
                .map_or_else(Served::default, |resource| Served {
                    plural: resource.plural.to_string(),
                    namespaced: resource.namespaced,
                })
        };
        let local = local_resources(manifest, resources);
        let mut missing = BTreeSet::new();
        let mut unsure = BTreeSet::new();
        let rules = grant::account_rules(manifest, served);
        let reviews = rules.into_iter().map(async |rule| {
            let of_rule = |r: &&Resource| r.kind.group == rule.group && *r.plural == *rule.resource;
            let Some(resource) = resources.values().find(of_rule) else {
                return Ok((rule, true));
            };
            let check = AccessCheck {
                verb: rule.verb,
                resource,
                subresource: None,
                namespace: rule.namespace.as_deref(),
                name: rule.name.as_deref(),
            };
            let allowed = self.cluster.allowed(identity, check).await;
            let allowed =
                allowed.map_err(|error| Problem::passing(Reason::Unreachable, chain(&error)))?;
            Ok((rule, allowed))
        });
        // A manifest may have a thousand places, each with several verbs.
        let reviews = futures::stream::iter(reviews).buffer_unordered(REVIEWS_AT_ONCE);
        let answers: Vec<_> = reviews.try_collect().await?;
        for (rule, allowed) in answers {
            if allowed {
                continue;
            }
            // Only writes, and what finds out what was written: a list that is partly
            // granted is not granted, and neither is what is read by its name.
            let verbs: &[&str] = match rule.resource.as_str() {
                "secrets" if rule.group.is_empty() => &grant::WRITE_SECRET_VERBS,
                _ => &grant::WRITE_VERBS,
            };
            let may_be_local = rule.namespace.is_none()
                && rule.name.is_none()
                && verbs.contains(&rule.verb)
                && local.contains(&(rule.group.clone(), rule.resource.clone()));
            if may_be_local {
                unsure.insert(rule);
            } else {
                missing.insert(rule);
            }
        }
        if missing.is_empty() {
            return Ok(grant::in_words(&unsure));
        }
        missing.extend(unsure);
        Err(Problem::passing(
            Reason::Forbidden,
            with_list(
                &format!("{identity} is not granted: "),
                &grant::in_words(&missing),
                &format!("; grant it with {}", self.grant_command(plugin)),
            ),
        ))
    }

    /// Why nothing can be written for a plugin, whatever its account is granted: the agent
    /// may not act as that.
    pub(super) async fn powerless(
        &self,
        plugin: &str,
        account: &str,
    ) -> Result<Option<String>, Problem> {
        let namespace = &*self.namespace;
        let may = self.cluster.may_impersonate(namespace, account).await;
        let may = may.map_err(|error| Problem::passing(Reason::Unreachable, chain(&error)))?;
        Ok((!may).then(|| {
            format!(
                "the agent may not impersonate ServiceAccount {namespace}/{account}, as which it writes for the plugin; grant it with {}",
                self.grant_command(plugin)
            )
        }))
    }

    /// What grants a plugin everything that it asks for.
    pub(crate) fn grant_command(&self, plugin: &str) -> String {
        grant_command(&self.cluster, &self.namespace, plugin)
    }
}

/// What grants a plugin of an agent everything that it asks for, to be pasted.
pub(crate) fn grant_command(cluster: &Cluster, namespace: &str, plugin: &str) -> String {
    let agent = cluster.known_own_user();
    grant::command(plugin, namespace, agent.as_deref())
}

/// Resources that a manifest writes only in namespaces that follow from primaries.
fn local_resources(
    manifest: &Manifest,
    resources: &HashMap<GroupVersionKind, Resource>,
) -> BTreeSet<(String, String)> {
    use reeve_core::manifest::Scope;
    let places = || {
        let writes = manifest.writes.iter().map(|rule| (&rule.kind, &rule.scope));
        let secrets = manifest.actions.iter().flat_map(|action| &action.secrets);
        writes.chain(secrets.map(|scope| (secret_kind(), scope)))
    };
    let written = |local: bool| {
        let rules = places().filter(move |(_, scope)| {
            let follows = matches!(
                scope,
                Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary
            );
            follows == local && !matches!(scope, Scope::Namespaces(_))
        });
        let resources = rules.filter_map(|(kind, _)| resources.get(kind));
        resources.map(|resource| (resource.kind.group.clone(), resource.plural.to_string()))
    };
    let everywhere: BTreeSet<_> = written(false).collect();
    written(true)
        .filter(|resource| !everywhere.contains(resource))
        .collect()
}

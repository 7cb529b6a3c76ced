//! What earlier versions of a plugin wrote where the running one does not look.
//!
//! A version that declares fewer kinds than the one before it neither sees nor
//! deletes objects of the others, and has no right to. So the places in which a
//! plugin may have objects are remembered in its status, and those that the
//! running version does not cover are looked into from time to time: what is
//! there is named, until somebody has deleted it.

use crate::active::Active;
use crate::load::Loader;
use crate::problem::chain;
use crate::secret_names::{self, Remembered};
use crate::secrets;
use reeve_api::{Reason, WrittenKind};
use reeve_cluster::object::Manager;
use reeve_cluster::{List, ListError, Object, ResolveError, Resource};
use reeve_core::manifest::Scope;
use reeve_core::ownership::{field_manager, plugin_selector};
use reeve_core::{GroupVersionKind, Manifest, ObjectReference};
use std::collections::BTreeSet;

/// Objects asked for at once. Nobody reads as many names, so one page will do
/// unless nothing on it is ours.
const PAGE: u32 = 100;

/// More than these objects of a place are counted, not named.
const MAX_NAMED: usize = 5;

/// A kind that a plugin writes, and the namespace, where it is just one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    kind: GroupVersionKind,
    namespace: Option<String>,
}

impl Place {
    /// Where a manifest lets its plugin write.
    pub(crate) fn of(manifest: &Manifest) -> BTreeSet<Self> {
        let mut places = BTreeSet::new();
        for rule in &manifest.writes {
            let namespaces = match &rule.scope {
                Scope::Namespaces(names) => names.iter().cloned().map(Some).collect(),
                // All over the cluster, as primaries come and go.
                Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary | Scope::Cluster => {
                    vec![None]
                }
            };
            places.extend(namespaces.into_iter().map(|namespace| Self {
                kind: rule.kind.clone(),
                namespace,
            }));
        }
        places
    }

    pub(crate) fn from_status(status: &WrittenKind) -> Option<Self> {
        Some(Self {
            kind: GroupVersionKind::from_fields(&status.api_version, &status.kind)?,
            namespace: status.namespace.clone(),
        })
    }

    /// Its kind, and the namespace where it is just one.
    pub(crate) fn parts(&self) -> (&GroupVersionKind, Option<&str>) {
        (&self.kind, self.namespace.as_deref())
    }

    pub(crate) fn to_status(&self) -> WrittenKind {
        WrittenKind {
            api_version: self.kind.api_version(),
            kind: self.kind.kind.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// Whether whoever sees this place sees all of the other, too.
    fn covers(&self, other: &Self) -> bool {
        self.kind.same_kind(&other.kind)
            && (self.namespace.is_none() || self.namespace == other.namespace)
    }

    /// Whether an object is in this place.
    pub(crate) fn holds(&self, object: &ObjectReference) -> bool {
        self.kind.same_kind(&object.kind)
            && (self.namespace.is_none() || self.namespace == object.namespace)
    }
}

/// A place that the running version does not cover, and in which something is, or
/// may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) place: Place,
    resource: Resource,
    found: Found,
}

#[derive(Clone, Debug, PartialEq)]
enum Found {
    /// Objects of the plugin, and whether there are more.
    Objects(Vec<ObjectReference>, bool),
    /// Nobody knows, for this reason.
    Unseen(String),
}

/// Status, reason and message of the condition that says what is left.
/// `strangers` is what there is to say of those that it sees and does not own.
pub(crate) fn condition(
    plugin: &str,
    left: &[Left],
    strangers: Option<String>,
) -> (&'static str, Reason, String) {
    let objects = |left: &Left| matches!(left.found, Found::Objects(..));
    let (status, reason) = if strangers.is_some() || left.iter().any(objects) {
        ("False", Reason::ObjectsLeft)
    } else if left.is_empty() {
        ("True", Reason::NothingLeft)
    } else {
        ("Unknown", Reason::Forbidden)
    };
    let left = left.iter().map(|left| left.describe(plugin));
    let texts: Vec<String> = left.chain(strangers).collect();
    if texts.is_empty() {
        let message = "the running version sees all objects that the plugin ever wrote";
        return (status, reason, message.to_owned());
    }
    (status, reason, texts.join("; "))
}

impl Left {
    fn describe(&self, plugin: &str) -> String {
        let resource = &self.resource;
        let (place, flag) = match &self.place.namespace {
            Some(namespace) => (
                format!(" in namespace {namespace}"),
                format!(" -n {namespace}"),
            ),
            None if resource.namespaced => (String::new(), " -A".to_owned()),
            None => (String::new(), String::new()),
        };
        let command = format!(
            "kubectl get {resource}{flag} -l {}",
            plugin_selector(plugin)
        );
        match &self.found {
            Found::Objects(objects, more) => {
                let named = objects.iter().take(MAX_NAMED).map(ToString::to_string);
                let mut names = named.collect::<Vec<_>>().join(", ");
                let unnamed = objects.len().saturating_sub(MAX_NAMED);
                if unnamed > 0 || *more {
                    let least = if *more { "at least " } else { "" };
                    names.push_str(&format!(" and {least}{unnamed} more"));
                }
                format!(
                    "earlier versions made {names}, and the running one does not declare to write {resource}{place}: nobody maintains or deletes them. Delete what is not needed; `{command}` lists them"
                )
            }
            Found::Unseen(why) => format!(
                "earlier versions wrote {resource}{place}, and the running one does not; whether any are left the agent cannot see: {why}. See with `{command}`, or let the agent list them"
            ),
        }
    }
}

impl Loader {
    /// Looks into the places that a manifest no longer covers. Those with nothing
    /// in them are left out.
    pub(crate) async fn left(
        &self,
        plugin: &str,
        active: &Active,
        places: &BTreeSet<Place>,
    ) -> Vec<Left> {
        let covered = Place::of(&active.manifest);
        let mut left = Vec::new();
        for place in places {
            if covered.iter().any(|wider| wider.covers(place)) {
                continue;
            }
            left.extend(match place.kind.is_secret() {
                true => self.secrets_left_in(active, place, &covered).await,
                false => self.left_in(plugin, place, &covered).await,
            });
        }
        left
    }

    /// Nobody may list Secrets; those that units remember are looked for one by one, with
    /// what the plugin's account is still granted. One that cannot be seen may be there.
    async fn secrets_left_in(
        &self,
        active: &Active,
        place: &Place,
        covered: &BTreeSet<Place>,
    ) -> Option<Left> {
        let resource = secrets::resource();
        let manager = field_manager(&active.plugin);
        let remembered = secret_names::of_plugin(&self.store, &self.namespace, &active.plugin);
        let secrets = remembered.iter().flat_map(Remembered::references);
        let secrets = secrets.filter(|secret| {
            place.holds(secret) && !covered.iter().any(|wider| wider.holds(secret))
        });
        let (mut objects, mut more) = (Vec::new(), false);
        for secret in secrets {
            if objects.len() > MAX_NAMED {
                more = true;
                break;
            }
            let namespace = secret.namespace.as_deref();
            let reader = Some(&active.identity);
            let live = self
                .cluster
                .get_as(&resource, namespace, &secret.name, reader);
            let may_be_ours = match live.await {
                Ok(live) => live.is_some_and(|live| live.manager_fields(&manager).is_some()),
                Err(_) => true,
            };
            objects.extend(may_be_ours.then_some(secret));
        }
        (!objects.is_empty()).then(|| Left {
            place: place.clone(),
            resource,
            found: Found::Objects(objects, more),
        })
    }

    async fn left_in(
        &self,
        plugin: &str,
        place: &Place,
        covered: &BTreeSet<Place>,
    ) -> Option<Left> {
        let (resource, found) = match self.cluster.resolve_in_any_version(&place.kind).await {
            Ok(resource) => {
                let found = self.look(plugin, place, &resource, covered).await?;
                (resource, found)
            }
            // Its objects went with it.
            Err(ResolveError::NotServed { .. }) => return None,
            Err(error) => {
                let resource = Resource {
                    kind: place.kind.clone(),
                    plural: place.kind.kind.to_lowercase().into(),
                    namespaced: true,
                };
                (resource, Found::Unseen(chain(&error)))
            }
        };
        Some(Left {
            place: place.clone(),
            resource,
            found,
        })
    }

    /// None when there is nothing.
    async fn look(
        &self,
        plugin: &str,
        place: &Place,
        resource: &Resource,
        covered: &BTreeSet<Place>,
    ) -> Option<Found> {
        let manager = field_manager(plugin);
        let selector = plugin_selector(plugin).to_string();
        let mut after = String::new();
        loop {
            let list = List {
                resource,
                namespace: place.namespace.as_deref(),
                selector: &selector,
                limit: PAGE,
                after: &after,
            };
            let page = match self.cluster.list_metadata(list).await {
                Ok(page) => page,
                Err(ListError::NotServed { .. }) => {
                    self.cluster.forget(&resource.kind);
                    return None;
                }
                Err(error) => return Some(Found::Unseen(chain(&error))),
            };
            // Labels can be forged; only an apply of ours makes it ours.
            let applied = |entry: Manager| entry.manager == manager && entry.operation == "Apply";
            let ours = page.objects.iter().filter(|object| {
                object.managers().into_iter().any(applied)
                    && !covered.iter().any(|wider| wider.holds(&object.reference()))
            });
            let ours: Vec<ObjectReference> = ours.map(Object::reference).collect();
            let more = page.next;
            match (ours.is_empty(), more) {
                (true, None) => return None,
                (true, Some(token)) => after = token,
                (false, more) => return Some(Found::Objects(ours, more.is_some())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::manifest::{RawManifest, RawPrimary, WriteRule};

    fn kind(name: &str) -> GroupVersionKind {
        GroupVersionKind::new("", "v1", name)
    }

    fn place(kind_name: &str, namespace: Option<&str>) -> Place {
        Place {
            kind: kind(kind_name),
            namespace: namespace.map(Into::into),
        }
    }

    #[test]
    fn places_are_as_wide_as_the_scopes() {
        let write = |name: &str, scope| WriteRule {
            kind: kind(name),
            scope,
        };
        let manifest = Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: kind("Namespace"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![
                write("ConfigMap", Scope::Namespaces(vec!["a".into(), "b".into()])),
                write("Secret", Scope::NamespaceNamedLikePrimary),
            ],
            sources: vec![],
            actions: vec![],
        })
        .unwrap();
        let expected = [
            place("ConfigMap", Some("a")),
            place("ConfigMap", Some("b")),
            place("Secret", None),
        ];
        assert_eq!(Place::of(&manifest), expected.clone().into());
        for place in expected {
            assert_eq!(Place::from_status(&place.to_status()), Some(place));
        }
    }

    #[test]
    fn a_place_is_covered_by_itself_and_by_wider_ones() {
        let all = place("ConfigMap", None);
        let mut newer = all.clone();
        newer.kind.version = "v2".into();
        for (wider, narrower, expected) in [
            (all.clone(), all.clone(), true),
            (newer, all.clone(), true),
            (all.clone(), place("ConfigMap", Some("a")), true),
            (place("ConfigMap", Some("a")), all.clone(), false),
            (
                place("ConfigMap", Some("a")),
                place("ConfigMap", Some("b")),
                false,
            ),
            (all, place("Secret", None), false),
        ] {
            assert_eq!(wider.covers(&narrower), expected, "{wider:?} {narrower:?}");
        }
    }

    #[test]
    fn the_condition_names_what_is_left_and_where_to_look() {
        let left = |namespace: Option<&str>, found| Left {
            place: place("ConfigMap", namespace),
            resource: Resource {
                kind: kind("ConfigMap"),
                plural: "configmaps".into(),
                namespaced: true,
            },
            found,
        };
        let objects = |count: usize| -> Vec<ObjectReference> {
            (0..count)
                .map(|n| ObjectReference::new(kind("ConfigMap"), Some("a".into()), n.to_string()))
                .collect()
        };
        let unseen = || Found::Unseen("not for you".into());
        for (left, status, reason, texts) in [
            (vec![], "True", Reason::NothingLeft, &[][..]),
            (
                vec![left(None, Found::Objects(objects(1), false))],
                "False",
                Reason::ObjectsLeft,
                &[
                    "made ConfigMap a/0, ",
                    "`kubectl get configmaps -A -l reeve.dev/plugin=p`",
                ],
            ),
            (
                vec![left(Some("a"), Found::Objects(objects(7), true))],
                "False",
                Reason::ObjectsLeft,
                &[
                    "ConfigMap a/4 and at least 2 more",
                    "kubectl get configmaps -n a -l",
                ],
            ),
            (
                vec![left(Some("a"), unseen())],
                "Unknown",
                Reason::Forbidden,
                &["wrote configmaps in namespace a", "not for you"],
            ),
            (
                vec![
                    left(Some("b"), unseen()),
                    left(None, Found::Objects(objects(2), false)),
                ],
                "False",
                Reason::ObjectsLeft,
                &["not for you", "ConfigMap a/0, ConfigMap a/1"],
            ),
        ] {
            let (found_status, found_reason, message) = condition("p", &left, None);
            assert_eq!((found_status, found_reason), (status, reason), "{message}");
            for text in texts {
                assert!(message.contains(text), "`{text}` is not in {message}");
            }
        }
    }
}

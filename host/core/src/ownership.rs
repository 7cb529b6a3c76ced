//! How ownership is written on the objects themselves.
//!
//! Labels find what a unit owns, annotations say it in words, and the field
//! manager proves it: labels can be forged by anyone who may edit an object, an
//! `Apply` entry of our manager comes only from an apply of ours.

use crate::digest::Digest;
use crate::kind::ObjectReference;
use crate::selector::{Selector, is_qualified_part};
use crate::text::{ObjectText, Written};
use crate::unit::{LABEL_LENGTH, UnitKey};
use serde_json::{Map, Value, json};

/// Label: the plugin that owns the object. Its name, or a shortened form with a
/// hash where the name is longer than a label value may be.
pub const PLUGIN_LABEL: &str = "reeve.dev/plugin";
/// Label: hash of the unit that owns the object.
pub const UNIT_LABEL: &str = "reeve.dev/unit";
/// Annotation: the unit's primary, in words.
pub const PRIMARY_ANNOTATION: &str = "reeve.dev/primary";
/// Annotation: uid of the unit's primary.
pub const PRIMARY_UID_ANNOTATION: &str = "reeve.dev/primary-uid";
/// Annotation: digest of what was last sent, without this annotation.
pub const APPLIED_ANNOTATION: &str = "reeve.dev/applied";
/// Annotation of a hook: the revision, shortened, of whose sync it is.
pub const SYNC_ANNOTATION: &str = "reeve.dev/sync";
/// Annotation of a generated Secret: for what it was generated.
pub const GENERATED_FOR_ANNOTATION: &str = "reeve.dev/generated-for";
/// Annotation of a generated Secret: the plugin for which it was generated.
pub const GENERATED_BY_ANNOTATION: &str = "reeve.dev/generated-by";
/// Annotation of a generated Secret: `true` where its value was somebody else's, and was
/// taken over.
pub const ADOPTED_VALUE_ANNOTATION: &str = "reeve.dev/adopted-value";
/// Annotation, set by a plugin or a person: `allow` permits pruning an object of
/// a kind whose deletion otherwise waits for a person.
pub const PRUNE_ANNOTATION: &str = "reeve.dev/prune";

/// Names in our domain that only the host writes; a plugin that sets one would
/// steer the engine.
pub const HOST_OWNED: [&str; 9] = [
    PLUGIN_LABEL,
    UNIT_LABEL,
    PRIMARY_ANNOTATION,
    PRIMARY_UID_ANNOTATION,
    APPLIED_ANNOTATION,
    SYNC_ANNOTATION,
    GENERATED_FOR_ANNOTATION,
    GENERATED_BY_ANNOTATION,
    ADOPTED_VALUE_ANNOTATION,
];

/// Annotations by which people tell the agent something about a primary or a plugin.
/// No plugin sets them, on whatever it writes: it might be the primary of another.
pub const PEOPLE_OWNED: [&str; 11] = [
    "reeve.dev/approve-asks",
    "reeve.dev/approve-deletion",
    "reeve.dev/approve-plan",
    "reeve.dev/approve-upgrade",
    "reeve.dev/forget-effects",
    "reeve.dev/reconcile-at",
    "reeve.dev/release",
    "reeve.dev/retry-at",
    "reeve.dev/roll-back",
    "reeve.dev/suspend",
    "reeve.dev/sync-at",
];

/// The domain of names of ours. Labels of it, and finalizers of it or below it, are
/// the host's alone; annotations are options of objects too, so those are told one by
/// one.
pub(crate) const OUR_DOMAIN: &str = "reeve.dev";

/// The API server's limit on the name of a field manager.
const MAX_FIELD_MANAGER: usize = 128;

/// What the field managers of all plugins begin with.
const FIELD_MANAGER_PREFIX: &str = "reeve/";

/// Whether this is the field manager of some plugin.
pub fn is_field_manager(manager: &str) -> bool {
    manager.starts_with(FIELD_MANAGER_PREFIX)
}

/// Field manager of a plugin: `reeve/<plugin>`, shortened with a hash within the
/// server's limit of 128 characters.
pub fn field_manager(plugin: &str) -> String {
    let name = [FIELD_MANAGER_PREFIX, plugin].concat();
    if name.len() <= MAX_FIELD_MANAGER {
        return name;
    }
    let hash = Digest::of(plugin.as_bytes()).short();
    let kept = floor_char_boundary(&name, MAX_FIELD_MANAGER - hash.len() - 1);
    format!("{}-{hash}", &name[..kept])
}

/// Finalizer that keeps a primary until the plugin has deleted what it has of it, in
/// order.
pub fn finalizer(plugin: &str) -> String {
    format!("reeve.dev/{}", plugin_label(plugin).to_lowercase())
}

/// As [`finalizer`], of a primary whose plugin has to be asked for hooks before.
pub fn hook_finalizer(plugin: &str) -> String {
    format!("hooks.reeve.dev/{}", plugin_label(plugin).to_lowercase())
}

/// All finalizers of a plugin.
pub fn finalizers(plugin: &str) -> [String; 2] {
    [finalizer(plugin), hook_finalizer(plugin)]
}

/// Field manager of what a unit contributes to objects of others:
/// `reeve/<plugin>:<unit label>`. Each unit has its own, since an apply gives up
/// what its manager owned and the apply does not mention.
pub fn contributor(unit: &UnitKey) -> String {
    let mut name = contributor_prefix(&unit.plugin);
    name.push_str(unit_label(unit));
    name
}

/// What the [`contributor`] of every unit of a plugin begins with; the unit's label
/// follows.
pub fn contributor_prefix(plugin: &str) -> String {
    let mut name = field_manager(plugin);
    if name.len() + 1 + LABEL_LENGTH > MAX_FIELD_MANAGER {
        let hash = Digest::of(plugin.as_bytes()).short();
        let room = MAX_FIELD_MANAGER - LABEL_LENGTH - 1 - hash.len() - 1;
        name.truncate(floor_char_boundary(&name, room));
        name = format!("{name}-{hash}");
    }
    name.push(':');
    name
}

/// Whether a field manager is a [`contributor`]'s.
pub fn is_contributor(manager: &str) -> bool {
    managed_plugin(manager)
        .and_then(|name| name.rsplit_once(':'))
        .is_some_and(|(_, unit)| unit.len() == LABEL_LENGTH)
}

/// The plugin of a field manager of ours, perhaps shortened, with the unit of a
/// contributor behind it.
pub fn managed_plugin(manager: &str) -> Option<&str> {
    manager.strip_prefix(FIELD_MANAGER_PREFIX)
}

/// Value of [`PLUGIN_LABEL`] for a plugin.
pub fn plugin_label(plugin: &str) -> String {
    if is_qualified_part(plugin) {
        return plugin.to_owned();
    }
    let hash = Digest::of(plugin.as_bytes()).short();
    let kept: String = plugin
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .take(40)
        .collect();
    // It is also the beginning of a name, in which no dot and no dash stands before
    // another.
    let kept = kept.trim_end_matches(['-', '.']);
    format!("p{kept}-{hash}")
}

/// Value of [`UNIT_LABEL`] for a unit: 80 bits of a hash. Should two units of a
/// plugin ever meet in it, [`PRIMARY_ANNOTATION`] still tells them apart.
pub fn unit_label(unit: &UnitKey) -> &str {
    unit.label()
}

/// Selector of all that a plugin owns.
pub fn plugin_selector(plugin: &str) -> Selector {
    Selector::label(PLUGIN_LABEL, &plugin_label(plugin))
}

/// The primary as far as ownership needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The unit.
    pub unit: UnitKey,
    /// Uid of the primary.
    pub uid: String,
}

/// A desired object as it is sent: with marks of ownership, and the digest of
/// the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// The object.
    pub reference: ObjectReference,
    /// Value of its [`APPLIED_ANNOTATION`].
    pub applied: String,
    written: Written,
}

impl Stamped {
    /// Writes the digest of the whole on a body that has all other marks.
    pub(crate) fn sealed(reference: ObjectReference, mut body: Value) -> Self {
        if let Some(annotations) = body
            .pointer_mut("/metadata/annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(APPLIED_ANNOTATION);
        }
        let mut text = ObjectText::of(&body);
        let applied = String::from(Digest::of(text.bytes()));
        let annotated = text.annotate(APPLIED_ANNOTATION, &applied);
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            object_field(metadata, "annotations").insert(APPLIED_ANNOTATION.into(), json!(applied));
            if !annotated {
                text = ObjectText::of(&body);
            }
        }
        Self {
            reference,
            applied,
            written: Written::new(text, body),
        }
    }

    /// What is applied.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Its value.
    pub fn body(&self) -> &Value {
        self.written.value()
    }

    /// Its value, to go on with.
    pub fn into_body(self) -> Value {
        self.written.into_value()
    }

    /// Its value, for what takes the place of this.
    pub(crate) fn take_body(&mut self) -> Value {
        self.written.take_value()
    }

    /// Lets go of the value, where it is likely that nobody asks for it any more.
    pub fn let_go(&mut self) {
        self.written.let_go();
    }
}

impl Owner {
    /// Marks an object as this unit's.
    ///
    /// It gets an ownerReference to the primary where garbage collection can
    /// follow one: the primary is cluster-scoped, or both are in one namespace.
    pub fn stamp(&self, reference: ObjectReference, body: Value) -> Stamped {
        self.stamp_as(reference, body, true)
    }

    /// As [`Owner::stamp`]; one that is not `tied` gets no ownerReference, so that it
    /// is deleted by us and nobody else.
    pub fn stamp_as(&self, reference: ObjectReference, mut body: Value, tied: bool) -> Stamped {
        let in_reach = tied && self.in_reach(&reference);
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            let labels = object_field(metadata, "labels");
            labels.insert(PLUGIN_LABEL.into(), json!(plugin_label(&self.unit.plugin)));
            labels.insert(UNIT_LABEL.into(), json!(unit_label(&self.unit)));
            let annotations = object_field(metadata, "annotations");
            annotations.insert(PRIMARY_ANNOTATION.into(), json!(self.unit.id()));
            annotations.insert(PRIMARY_UID_ANNOTATION.into(), json!(self.uid));
            if in_reach {
                metadata.insert("ownerReferences".into(), json!([self.reference()]));
            }
        }
        Stamped::sealed(reference, body)
    }

    /// What is sent of a contribution to somebody's object: the fields alone. It
    /// carries no mark of ours, and no annotation that speaks to us.
    pub fn contribute(&self, reference: ObjectReference, mut body: Value) -> Stamped {
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(annotations) = metadata
                .get_mut("annotations")
                .and_then(Value::as_object_mut)
        {
            annotations.retain(|key, _| !key.starts_with("reeve.dev/"));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let text = ObjectText::of(&body);
        let applied = String::from(Digest::of(text.bytes()));
        Stamped {
            reference,
            applied,
            written: Written::new(text, body),
        }
    }

    /// Whether garbage collection deletes this object with the primary.
    pub fn in_reach(&self, object: &ObjectReference) -> bool {
        let primary = &self.unit.primary;
        primary.namespace.is_none() || primary.namespace == object.namespace
    }

    fn reference(&self) -> Value {
        let primary = &self.unit.primary;
        json!({
            "apiVersion": primary.kind.api_version(),
            "kind": primary.kind.kind,
            "name": primary.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

fn object_field<'a>(parent: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let slot = parent
        .entry(field)
        .or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object above"),
    }
}

fn floor_char_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::manifest::is_dns_subdomain;

    fn owner(namespace: Option<&str>) -> Owner {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        Owner {
            unit: UnitKey::new(
                "quotas",
                ObjectReference::new(kind, namespace.map(Into::into), "alice"),
            ),
            uid: "u-1".into(),
        }
    }

    fn quota(namespace: &str) -> (ObjectReference, Value) {
        let kind = GroupVersionKind::new("", "v1", "ResourceQuota");
        (
            ObjectReference::new(kind, Some(namespace.into()), "quotas"),
            json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "quotas", "namespace": namespace, "labels": {"a": "b"}}}),
        )
    }

    #[test]
    fn a_stamp_keeps_what_the_plugin_set() {
        let (reference, body) = quota("alice");
        let stamped = owner(None).stamp(reference, body);
        assert_eq!(stamped.body()["metadata"]["labels"]["a"], "b");
        assert_eq!(stamped.body()["metadata"]["labels"][PLUGIN_LABEL], "quotas");
        let owner_reference = &stamped.body()["metadata"]["ownerReferences"][0];
        assert_eq!(owner_reference["uid"], "u-1");
        assert_eq!(owner_reference["apiVersion"], "kubeflow.org/v1");
        assert_eq!(
            stamped.body()["metadata"]["annotations"][APPLIED_ANNOTATION],
            json!(stamped.applied)
        );
    }

    #[test]
    fn what_is_not_tied_has_no_owner_reference() {
        let (reference, body) = quota("alice");
        let tied = owner(None).stamp_as(reference.clone(), body.clone(), true);
        let free = owner(None).stamp_as(reference, body, false);
        assert_eq!(free.body()["metadata"].get("ownerReferences"), None);
        assert_ne!(tied.applied, free.applied);
        let again = Stamped::sealed(free.reference.clone(), free.body().clone());
        assert_eq!(again, free);
    }

    #[test]
    fn the_digest_follows_the_content() {
        let (reference, body) = quota("alice");
        let mut changed = body.clone();
        changed["metadata"]["labels"]["a"] = json!("c");
        let stamp = |body| owner(None).stamp(reference.clone(), body).applied;
        assert_eq!(stamp(body.clone()), stamp(body.clone()));
        assert_ne!(stamp(body), stamp(changed));
    }

    #[test]
    fn a_contribution_carries_no_mark() {
        let (reference, mut body) = quota("alice");
        body["metadata"]["annotations"] = json!({"reeve.dev/apply": "Contribute"});
        let mut sent = body.clone();
        sent["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
        let contribution = owner(None).contribute(reference.clone(), body.clone());
        assert_eq!(*contribution.body(), sent);
        body["metadata"]["annotations"]["theirs"] = json!("x");
        sent["metadata"]["annotations"] = json!({"theirs": "x"});
        let contribution = owner(None).contribute(reference, body);
        assert_eq!(*contribution.body(), sent);
    }

    #[test]
    fn no_owner_reference_across_namespaces() {
        for (primary, object, expected) in [
            (None, "alice", true),
            (Some("alice"), "alice", true),
            (Some("other"), "alice", false),
        ] {
            let (reference, body) = quota(object);
            let stamped = owner(primary).stamp(reference, body);
            let found = stamped.body()["metadata"].get("ownerReferences").is_some();
            assert_eq!(found, expected, "{primary:?} {object}");
        }
    }

    #[test]
    fn long_names_stay_within_the_limits_and_distinct() {
        let long = |last: char| format!("{}{last}", "a".repeat(250));
        for name in [field_manager(&long('x')), plugin_label(&long('x'))] {
            assert!(name.len() <= 128);
        }
        assert!(is_qualified_part(&plugin_label(&long('x'))));
        for cut in ['.', '-'] {
            let label = plugin_label(&format!("{}{cut}{}", "a".repeat(39), "b".repeat(60)));
            assert!(is_dns_subdomain(&format!("{label}-0")), "{label}");
        }
        assert_ne!(plugin_label(&long('x')), plugin_label(&long('y')));
        assert_ne!(field_manager(&long('x')), field_manager(&long('y')));
        let contributor = |plugin: &str| {
            let primary = ObjectReference::clone(&owner(None).unit.primary);
            super::contributor(&UnitKey::new(plugin, primary))
        };
        for plugin in ["quotas", &"a".repeat(120), &long('x')] {
            let name = contributor(plugin);
            assert!(name.len() <= 128 && is_contributor(&name), "{name}");
            assert!(name.starts_with(&contributor_prefix(plugin)), "{name}");
            assert!(!is_contributor(&field_manager(plugin)), "{plugin}");
        }
        assert_ne!(contributor(&long('x')), contributor(&long('y')));
        assert_eq!(field_manager("quotas"), "reeve/quotas");
        for name in [finalizer(&long('x')), hook_finalizer(&long('x'))] {
            let (_, name) = name.split_once('/').unwrap();
            assert!(is_qualified_part(name), "{name}");
        }
        for (manager, expected) in [
            (field_manager(&long('x')).as_str(), true),
            ("reeve/quotas", true),
            ("reeve", false),
            ("kubectl", false),
        ] {
            assert_eq!(is_field_manager(manager), expected, "{manager}");
        }
    }
}

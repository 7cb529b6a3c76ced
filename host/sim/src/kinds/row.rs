//! A row of the table of kinds, and what the server does with its objects.

use serde_json::{Value, json};

use super::edit;
use super::encoding;
use super::gated;
use super::hollow::Hollow;
use super::late::Late;
use super::meta::{self, ObjectMetaRules};
use super::quantities::{self, DecodeError};
use super::stored::Stored;
use super::verbs::{Scale, Subresource, Verbs};
use crate::field::Errors;
use crate::names::{self, Validator};
use crate::selector::FieldLabels;

/// When `metadata.generation` grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationRule {
    /// The kind has none; what a client sends on creation stays.
    None,
    /// 1 on creation, and one more when one of these fields changes; a dotted
    /// name reaches into the object.
    Fields(&'static [&'static str]),
    /// As `Fields`, but none on creation.
    OnUpdate(&'static [&'static str]),
}

/// In which order an update is checked, which shows when several things are
/// wrong: the order of the causes, and the metadata's complaints once or twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateOrder {
    /// The change of the metadata, the rest of the object, immutable fields.
    Usual,
    /// The change of the metadata, immutable fields, the whole object.
    ImmutableFirst,
    /// The change of the metadata, the whole object, immutable fields.
    WholeObject,
    /// The whole object, the change of the metadata, immutable fields.
    WholeObjectFirst,
    /// The change of the metadata, immutable fields, the rest of the object.
    ChangeFirst,
}

/// What of the metadata somebody else than a controller writes.
pub(crate) const METADATA_OF_CLIENTS: [&str; 4] =
    ["labels", "annotations", "finalizers", "ownerReferences"];

/// Sets what was left out, on the object as decoded.
pub(super) type Default = fn(&mut Value);
/// Says what is wrong with an object, its metadata aside.
pub(super) type Validate = fn(&Value, &mut Errors);
/// Says what is wrong with a change, its metadata aside.
pub(super) type ValidateUpdate = fn(&Value, &Value, &mut Errors);
/// Puts back what a client cannot write, from the stored object.
pub(super) type Restore = fn(&mut Value, &Value);

/// Puts back what the path of a part does not take: the part, the object, the stored one.
pub(super) type RestorePart = fn(&str, &mut Value, &Value);
/// Says what is wrong with a change that came by the path of a part.
pub(super) type ValidatePart = fn(&str, &Value, &Value, &mut Errors);

/// A built-in kind. Made by the constructors, refined by the methods that take
/// and return it, so that a row reads as a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version in the group.
    pub version: &'static str,
    /// Kind, as in manifests.
    pub kind: &'static str,
    /// Name of the resource, as in paths.
    pub plural: &'static str,
    /// What kubectl also understands.
    pub short_names: &'static [&'static str],
    /// Groups of resources, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Verbs,
    /// Its subresources.
    pub subresources: &'static [Subresource],
    /// Its scale, if it has one.
    pub scale: Option<Scale>,
    /// When the generation grows.
    pub generation: GenerationRule,
    /// The fields it can be selected by.
    pub fields: &'static FieldLabels,
    /// Whether replacing an object that is not there makes it.
    pub created_on_update: bool,
    /// What callers are told who use it nevertheless.
    pub deprecation: Option<&'static str>,
    /// Whether the dependents of a deleted object stay, where the caller does not
    /// say.
    pub orphans: bool,
    /// Whether a deletion is answered with the object that is gone.
    pub returns_deleted: bool,
    /// Whether only who has read an object may replace it.
    pub conditional: bool,
    pub(super) stored: Option<Stored>,
    name_rule: Validator,
    pub(super) quantities: &'static [&'static str],
    pub(super) atomic_quantities: &'static [&'static str],
    restless_quantities: &'static [&'static str],
    default: Default,
    admit: Default,
    prepare_create: Default,
    prepare_update: Restore,
    /// Makes the status of a new object where it depends on the object.
    prepare_status: Default,
    validate: Validate,
    validate_create: Validate,
    validate_update: ValidateUpdate,
    update_order: UpdateOrder,
    /// The status of a new object, as JSON; `None` for kinds without one.
    initial_status: Option<&'static str>,
    keeps_client_status: bool,
    restore_status: Restore,
    validate_status: ValidateUpdate,
    status_keeps: &'static [&'static str],
    gated: &'static [&'static str],
    pub(super) hollow: Hollow,
    pub(super) late: Late,
    prepare_part: RestorePart,
    /// None where a change by any path is a change of the whole.
    validate_part: Option<ValidatePart>,
}

static ONLY_METADATA: FieldLabels = FieldLabels::METADATA;

impl Kind {
    /// A cluster-scoped kind that is only stored, under a DNS name.
    pub(super) const fn cluster(
        (group, version): (&'static str, &'static str),
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Kind {
            group,
            version,
            kind,
            plural,
            short_names: &[],
            categories: &[],
            namespaced: false,
            verbs: Verbs::All,
            subresources: &[],
            scale: None,
            generation: GenerationRule::None,
            fields: &ONLY_METADATA,
            created_on_update: false,
            deprecation: None,
            orphans: false,
            returns_deleted: false,
            conditional: false,
            stored: None,
            name_rule: names::dns1123_subdomain,
            quantities: &[],
            atomic_quantities: &[],
            restless_quantities: &[],
            default: |_| {},
            admit: |_| {},
            prepare_create: |_| {},
            prepare_update: |_, _| {},
            prepare_status: |_| {},
            validate: |_, _| {},
            validate_create: |_, _| {},
            validate_update: |_, _, _| {},
            update_order: UpdateOrder::Usual,
            initial_status: None,
            keeps_client_status: false,
            restore_status: |_, _| {},
            validate_status: |_, _, _| {},
            status_keeps: &[],
            gated: &[],
            hollow: Hollow::NOWHERE,
            late: Late::NOTHING,
            prepare_part: |_, _, _| {},
            validate_part: None,
        }
    }

    /// A namespaced kind that is only stored, under a DNS name.
    pub(super) const fn namespaced(
        group_version: (&'static str, &'static str),
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        let mut row = Kind::cluster(group_version, kind, plural);
        row.namespaced = true;
        row
    }

    pub(super) const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    pub(super) const fn categories(mut self, categories: &'static [&'static str]) -> Self {
        self.categories = categories;
        self
    }

    pub(super) const fn verbs(mut self, verbs: Verbs) -> Self {
        self.verbs = verbs;
        self
    }

    pub(super) const fn subresources(mut self, subresources: &'static [Subresource]) -> Self {
        self.subresources = subresources;
        self
    }

    pub(super) const fn scale(mut self, scale: Scale) -> Self {
        self.scale = Some(scale);
        self
    }

    pub(super) const fn generation(mut self, rule: GenerationRule) -> Self {
        self.generation = rule;
        self
    }

    /// The usual generation, which counts changes of `spec`.
    pub(super) const fn generation_of_spec(self) -> Self {
        self.generation(GenerationRule::Fields(&["spec"]))
    }

    pub(super) const fn fields(mut self, fields: &'static FieldLabels) -> Self {
        self.fields = fields;
        self
    }

    pub(super) const fn created_on_update(mut self) -> Self {
        self.created_on_update = true;
        self
    }

    pub(super) const fn deprecated(mut self, warning: &'static str) -> Self {
        self.deprecation = Some(warning);
        self
    }

    pub(super) const fn returned_when_deleted(mut self) -> Self {
        self.returns_deleted = true;
        self
    }

    pub(super) const fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// A write of the status does not change these fields of the metadata.
    pub(super) const fn status_keeps(mut self, fields: &'static [&'static str]) -> Self {
        self.status_keeps = fields;
        self
    }

    pub(super) const fn orphaning(mut self) -> Self {
        self.orphans = true;
        self
    }

    pub(super) const fn named(mut self, rule: Validator) -> Self {
        self.name_rule = rule;
        self
    }

    /// Where quantities are: dotted paths, `[]` for items, `{}` for entries, `*` for those
    /// of a list of resources. A test knows all from the types.
    pub(super) const fn quantities(mut self, paths: &'static [&'static str]) -> Self {
        self.quantities = paths;
        self
    }

    /// As [`Kind::quantities`], for those in lists that are owned as a whole: who
    /// writes one in another form owns the list, though the same is stored.
    pub(super) const fn atomic_quantities(mut self, paths: &'static [&'static str]) -> Self {
        self.atomic_quantities = paths;
        self
    }

    /// Where quantities with a binary suffix never compare as equal: each update owns
    /// the list that they are in, whatever it is about. With the real server it is so
    /// nearly always, and depends on what it has in its cache.
    pub(super) const fn restless_quantities(mut self, paths: &'static [&'static str]) -> Self {
        self.restless_quantities = paths;
        self
    }

    /// Fields of features that are off: dotted paths, `[]` for items.
    pub(super) const fn gated(mut self, paths: &'static [&'static str]) -> Self {
        self.gated = paths;
        self
    }

    pub(super) const fn defaulted(mut self, default: Default) -> Self {
        self.default = default;
        self
    }

    pub(super) const fn admitted(mut self, admit: Default) -> Self {
        self.admit = admit;
        self
    }

    pub(super) const fn prepared(mut self, create: Default, update: Restore) -> Self {
        self.prepare_create = create;
        self.prepare_update = update;
        self
    }

    pub(super) const fn validated(mut self, validate: Validate) -> Self {
        self.validate = validate;
        self
    }

    /// What is looked at besides when an object is made.
    pub(super) const fn create_validated(mut self, validate: Validate) -> Self {
        self.validate_create = validate;
        self
    }

    pub(super) const fn update_validated(mut self, validate: ValidateUpdate) -> Self {
        self.validate_update = validate;
        self
    }

    /// What the paths of parts take, and what is looked at then.
    pub(super) const fn parts(mut self, prepare: RestorePart, validate: ValidatePart) -> Self {
        self.prepare_part = prepare;
        self.validate_part = Some(validate);
        self
    }

    pub(super) const fn update_order(mut self, order: UpdateOrder) -> Self {
        self.update_order = order;
        self
    }

    /// A status that clients write only through its subresource; `initial` is
    /// that of a new object, as JSON.
    pub(super) const fn status(mut self, initial: &'static str) -> Self {
        self.initial_status = Some(initial);
        self
    }

    /// A status that a creation may carry.
    pub(super) const fn client_status(mut self) -> Self {
        self.keeps_client_status = true;
        self
    }

    pub(super) const fn status_prepared(mut self, prepare: Default) -> Self {
        self.prepare_status = prepare;
        self
    }

    /// What a write of the status gets back from the stored one.
    pub(super) const fn status_restored(mut self, restore: Restore) -> Self {
        self.restore_status = restore;
        self
    }

    pub(super) const fn status_validated(mut self, validate: ValidateUpdate) -> Self {
        self.validate_status = validate;
        self
    }

    /// The name of one object of the resource, as discovery gives it.
    pub fn singular(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// The `kind` of a list of objects.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The `apiVersion` of objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind as messages name it: `Deployment.apps`, `Pod`.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Rewrites quantities into the form that is stored, as decoding does. Those in
    /// lists that are owned as a whole are checked, and left to [`Kind::settle`].
    ///
    /// # Errors
    ///
    /// When a text is no quantity; the server answers `BadRequest`.
    pub fn normalize(&self, object: &mut Value) -> Result<(), DecodeError> {
        encoding::drop_unset(object);
        let mut paths = self.atomic_quantities.iter();
        paths.try_for_each(|path| quantities::check(object, path))?;
        rewrite(self.quantities, object)
    }

    /// Rewrites the quantities that wait until it is known who owns them.
    ///
    /// # Errors
    ///
    /// As [`Kind::normalize`], which comes before.
    pub fn settle(&self, object: &mut Value) -> Result<(), DecodeError> {
        rewrite(self.atomic_quantities, object)
    }

    /// Sets what was left out. Idempotent.
    pub fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    /// What the server's built-in admission adds to a new object.
    pub fn admit(&self, object: &mut Value) {
        (self.admit)(object);
    }

    /// Removes what a creation cannot set: the status, the generation, what is off.
    pub fn prepare_create(&self, object: &mut Value) {
        if let Some(stored) = &self.stored {
            return stored.change(object, Kind::prepare_create);
        }
        gated::drop(object, None, self.gated);
        if matches!(self.generation, GenerationRule::Fields(_)) {
            set_generation(object, 1);
        }
        (self.prepare_create)(object);
        if let Some(initial) = self.initial_status
            && !(self.keeps_client_status && object.get("status").is_some())
            && let Some(fields) = object.as_object_mut()
        {
            let status = serde_json::from_str(initial).unwrap_or_else(|_| json!({}));
            fields.insert("status".to_owned(), status);
        }
        (self.prepare_status)(object);
    }

    /// Puts back what an update cannot change, and counts the generation.
    pub fn prepare_update(&self, object: &mut Value, old: &Value) {
        if let Some(stored) = &self.stored {
            let old = (stored.there)(old);
            return stored.change(object, |kind, object| kind.prepare_update(object, &old));
        }
        gated::drop(object, Some(old), self.gated);
        if self.initial_status.is_some() {
            edit::copy(object, old, "status");
        }
        (self.prepare_update)(object, old);
        let generation = old
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let changed = match self.generation {
            GenerationRule::None => false,
            GenerationRule::Fields(fields) | GenerationRule::OnUpdate(fields) => {
                self.has_changed(fields, object, old)
            }
        };
        let generation = generation + i64::from(changed);
        if generation != 0 {
            set_generation(object, generation);
        } else if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("generation");
        }
    }

    /// Whether one of these fields says something else than before. How a quantity is
    /// written says nothing.
    fn has_changed(&self, fields: &[&str], object: &Value, old: &Value) -> bool {
        let differ = |one: &Value, other: &Value| {
            fields
                .iter()
                .any(|field| at(one, field) != at(other, field))
        };
        let has_quantities = !self.quantities.is_empty() || !self.atomic_quantities.is_empty();
        if !differ(object, old) || !has_quantities {
            return differ(object, old);
        }
        let amounts =
            |object: &Value| quantities::amounts((self.group, self.version), self.kind, object);
        differ(&amounts(object), &amounts(old))
    }

    /// The stored object as an update is compared with it, where that is another one.
    pub fn as_compared(&self, live: &Value) -> Option<Value> {
        if self.restless_quantities.is_empty() {
            return None;
        }
        let mut compared = live.clone();
        for path in self.restless_quantities {
            quantities::unsettle(&mut compared, path);
        }
        Some(compared)
    }

    /// Puts back everything that a write of the status cannot change.
    pub fn prepare_status(&self, object: &mut Value, old: &Value) {
        if let Some(stored) = &self.stored {
            let old = (stored.there)(old);
            return stored.change(object, |kind, object| kind.prepare_status(object, &old));
        }
        edit::copy(object, old, "spec");
        if let Some(metadata) = object.get_mut("metadata") {
            for field in self.status_keeps {
                edit::copy(metadata, &old["metadata"], field);
            }
        }
        if let Some(generation) = old.pointer("/metadata/generation").and_then(Value::as_i64) {
            set_generation(object, generation);
        }
        (self.restore_status)(object, old);
    }

    /// What is wrong with a new object.
    pub fn validate_create(&self, object: &Value) -> Errors {
        if let Some(Stored { kind, there, .. }) = self.stored {
            return kind.validate_create(&there(object));
        }
        let mut errors = Errors::new();
        meta::validate_meta(object, &self.meta_rules(), &mut errors);
        meta::validate_kube_finalizers(object, &mut errors);
        (self.validate)(object, &mut errors);
        (self.validate_create)(object, &mut errors);
        errors
    }

    /// What is wrong with a change. The server looks at the metadata twice: once for
    /// all kinds alike, and once for each.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Errors {
        if let Some(Stored { kind, there, .. }) = self.stored {
            return kind.validate_update(&there(object), &there(old));
        }
        let mut errors = Errors::new();
        self.validate_common(object, old, &mut errors);
        meta::validate_kube_finalizers(object, &mut errors);
        let errors_ref = &mut errors;
        let whole = |errors: &mut Errors| {
            meta::validate_meta(object, &self.meta_rules(), errors);
            (self.validate)(object, errors);
        };
        match self.update_order {
            UpdateOrder::Usual => {
                meta::validate_meta_update(object, old, errors_ref);
                (self.validate)(object, errors_ref);
                (self.validate_update)(object, old, errors_ref);
            }
            UpdateOrder::ImmutableFirst => {
                meta::validate_meta_update(object, old, errors_ref);
                (self.validate_update)(object, old, errors_ref);
                whole(errors_ref);
            }
            UpdateOrder::WholeObject => {
                meta::validate_meta_update(object, old, errors_ref);
                whole(errors_ref);
                (self.validate_update)(object, old, errors_ref);
            }
            UpdateOrder::ChangeFirst => {
                meta::validate_meta_update(object, old, errors_ref);
                (self.validate_update)(object, old, errors_ref);
                (self.validate)(object, errors_ref);
            }
            UpdateOrder::WholeObjectFirst => {
                whole(errors_ref);
                meta::validate_meta_update(object, old, errors_ref);
                (self.validate_update)(object, old, errors_ref);
            }
        }
        errors
    }

    /// Puts back what the path of a part does not take, where it takes a part only.
    pub fn prepare_part(&self, part: &str, object: &mut Value, old: &Value) {
        (self.prepare_part)(part, object, old);
    }

    /// What is wrong with a change that came by the path of a part.
    pub fn validate_part_update(&self, part: &str, object: &Value, old: &Value) -> Errors {
        let Some(validate_part) = self.validate_part else {
            return self.validate_update(object, old);
        };
        let mut errors = Errors::new();
        self.validate_common(object, old, &mut errors);
        meta::validate_meta_update(object, old, &mut errors);
        validate_part(part, object, old, &mut errors);
        errors
    }

    /// What is wrong with a change of the status.
    pub fn validate_status_update(&self, object: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        self.validate_common(object, old, &mut errors);
        meta::validate_meta_update(object, old, &mut errors);
        (self.validate_status)(object, old, &mut errors);
        errors
    }

    fn validate_common(&self, object: &Value, old: &Value, errors: &mut Errors) {
        let rules = ObjectMetaRules {
            namespaced: self.namespaced,
            name: names::path_segment,
        };
        meta::validate_meta(object, &rules, errors);
        meta::validate_meta_update(object, old, errors);
    }

    fn meta_rules(&self) -> ObjectMetaRules {
        ObjectMetaRules {
            namespaced: self.namespaced,
            name: self.name_rule,
        }
    }
}

/// Two absent, null or empty values are the same to the server.
fn at<'a>(object: &'a Value, dotted: &str) -> Option<&'a Value> {
    let value = dotted
        .split('.')
        .try_fold(object, |value, field| value.get(field))?;
    let empty = match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    (!empty).then_some(value)
}

pub(super) fn set_generation(object: &mut Value, generation: i64) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("generation".to_owned(), json!(generation));
    }
}

fn rewrite(paths: &[&str], object: &mut Value) -> Result<(), DecodeError> {
    let mut paths = paths.iter();
    paths.try_for_each(|path| quantities::canonicalize(object, path))
}

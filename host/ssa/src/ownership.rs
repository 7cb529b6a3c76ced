//! The core of server-side apply: how ownership follows from a change.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

use crate::conflict::Conflicts;
use crate::identity;
use crate::managed::{ManagedFields, ManagerId, Owned};
use crate::path::PathElement;
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{
    Comparison, Duplicates, TypeErrors, compare, field_set, merge, reconcile, remove, validate,
    with_named_fields,
};

/// Another version in which the same object is served.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// Its `apiVersion`.
    pub api_version: &'a str,
    /// Its schema.
    pub schema: &'a Schema,
    /// How objects come there; none where versions differ in nothing but their name and
    /// what their schemas allow.
    pub conversion: Option<Conversion<'a>>,
}

/// How an object of the request's version becomes one of another version, and back.
#[derive(Clone, Copy)]
pub enum Conversion<'a> {
    /// By functions.
    Known {
        /// From the request's version.
        there: fn(&Value) -> Value,
        /// To the request's version.
        back: fn(&Value) -> Value,
    },
    /// By somebody who is asked for an object in the version of a name, and may fail to
    /// answer.
    Asked(&'a (dyn Fn(&Value, &str) -> Result<Value, String> + Sync)),
}

impl fmt::Debug for Conversion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conversion::Known { .. } => "Known",
            Conversion::Asked(_) => "Asked",
        })
    }
}

/// What an operation knows besides the objects.
pub(crate) struct Scope<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) api_version: &'a str,
    pub(crate) versions: &'a [Version<'a>],
    pub(crate) reset: &'a FieldSet,
}

/// Why ownership could not be worked out.
#[derive(Debug)]
pub(crate) enum Failure {
    Conflict(Conflicts),
    Type(TypeErrors),
    /// The live object does not fit the version in which somebody owns fields.
    Reconcile(TypeErrors),
    /// The new object does not fit the version in which somebody owns fields.
    Convert(TypeErrors),
    /// What the manager applied last time cannot be told from what is left, since an
    /// object does not fit the version in which somebody owns fields.
    Prune {
        /// What was being done, as the server says it.
        step: String,
        errors: TypeErrors,
    },
    /// Who was asked for an object in another version has none: what was being done, and
    /// why.
    Unconverted(String),
}

impl From<TypeErrors> for Failure {
    fn from(errors: TypeErrors) -> Self {
        Self::Type(errors)
    }
}

impl<'a> Scope<'a> {
    /// The schema of a version; none when it is not served any more.
    fn schema_of(&self, api_version: &str) -> Option<&'a Schema> {
        if api_version == self.api_version {
            return Some(self.schema);
        }
        self.versions
            .iter()
            .find(|version| version.api_version == api_version)
            .map(|version| version.schema)
    }

    /// An object in another version, where the two differ in their fields, or why there is
    /// none.
    fn form<'v>(
        &self,
        object: Cow<'v, Value>,
        from: &str,
        to: &str,
    ) -> Result<Cow<'v, Value>, String> {
        let conversion = |name: &str| {
            let known = self.versions.iter().filter(|_| name != self.api_version);
            let mut known = known.filter(|version| version.api_version == name);
            known.next()?.conversion
        };
        let (back, there) = match (conversion(from), conversion(to)) {
            _ if from == to => return Ok(object),
            (None, None) => return Ok(object),
            both => both,
        };
        let mut object = object.into_owned();
        match back {
            Some(Conversion::Known { back, .. }) => object = back(&object),
            Some(Conversion::Asked(ask)) => object = ask(&object, self.api_version)?,
            None => {}
        }
        match there {
            Some(Conversion::Known { there, .. }) => object = there(&object),
            Some(Conversion::Asked(ask)) => object = ask(&object, to)?,
            None => {}
        }
        if let Some(schema) = self.schema_of(to) {
            schema.normalize(&mut object);
        }
        Ok(Cow::Owned(object))
    }

    /// An object of the request's version in another one.
    ///
    /// # Errors
    ///
    /// `step` and why there is none.
    fn at<'v>(
        &self,
        object: &'v Value,
        version: &str,
        step: &str,
    ) -> Result<Cow<'v, Value>, Failure> {
        let found = self.form(Cow::Borrowed(object), self.api_version, version);
        found.map_err(|why| Failure::Unconverted(format!("{step}{why}")))
    }

    /// Sets as of today's schema; managers of versions that are gone are gone. The live
    /// object is converted to each version for that, which is strict, also about what
    /// the request's version allows.
    fn reconcile(&self, live: &Value, managers: &mut ManagedFields) -> Result<(), Failure> {
        let mut fits = BTreeMap::from([(self.api_version.to_owned(), Ok(()))]);
        managers.0.retain(|_, owned| {
            let Some(schema) = self.schema_of(&owned.api_version) else {
                return false;
            };
            let version = fits.entry(owned.api_version.clone());
            version.or_insert_with(|| {
                let live = self.at(live, &owned.api_version, "")?;
                validate(schema, &live, Duplicates::Refused).map_err(Failure::Reconcile)
            });
            reconcile(schema, &mut owned.set);
            true
        });
        fits.into_values().collect()
    }

    /// Takes from all managers (but `id`) what the change touched. Without
    /// `force`, touching what they own is a conflict, unless it goes away.
    fn take(
        &self,
        live: &Value,
        new: &Value,
        managers: &mut ManagedFields,
        id: Option<&ManagerId>,
        force: bool,
    ) -> Result<Comparison, Failure> {
        let own = compare(self.schema, live, new)?.less(self.reset);
        let mut by_version: BTreeMap<String, Comparison> = BTreeMap::new();
        let mut conflicts = BTreeMap::new();
        for (manager, owned) in &managers.0 {
            if Some(manager) == id {
                continue;
            }
            let is_own = owned.api_version == self.api_version;
            if !is_own && !by_version.contains_key(&owned.api_version) {
                let Some(schema) = self.schema_of(&owned.api_version) else {
                    continue;
                };
                // Conversion is strict, also about what the request's version allows.
                let version = owned.api_version.as_str();
                let live = self.at(live, version, "failed to convert old object: ")?;
                let new = self.at(new, version, "failed to convert new object: ")?;
                validate(schema, &new, Duplicates::Refused).map_err(Failure::Convert)?;
                let comparison = compare(schema, &live, &new)
                    .map_err(Failure::Convert)?
                    .less(self.reset);
                by_version.insert(owned.api_version.clone(), comparison);
            }
            let comparison = if is_own {
                &own
            } else if let Some(comparison) = by_version.get(&owned.api_version) {
                comparison
            } else {
                continue;
            };
            let [modified, added] = [&comparison.modified, &comparison.added]
                .map(|changed| owned.set.intersection(changed));
            let touched = modified.joined(added);
            if !touched.is_empty() {
                conflicts.insert(manager.clone(), touched);
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(Failure::Conflict(Conflicts::from_sets(&conflicts)));
        }
        managers.0.retain(|manager, owned| {
            if let Some(lost) = conflicts.get(manager) {
                owned.set.subtract(lost);
            }
            let comparison = match owned.api_version == self.api_version {
                true => Some(&own),
                false => by_version.get(&owned.api_version),
            };
            if let Some(comparison) = comparison.filter(|_| Some(manager) != id) {
                owned.set.subtract(&comparison.removed);
            }
            !owned.set.is_empty()
        });
        Ok(own)
    }

    /// The fields that a create, update or patch gives to its manager, after
    /// taking them from the others. `None` when it touched nothing.
    pub(crate) fn update(
        &self,
        live: &Value,
        new: &Value,
        managers: &mut ManagedFields,
    ) -> Result<Option<FieldSet>, Failure> {
        self.reconcile(live, managers)?;
        // The manager's own entry is treated like any other: it loses what
        // changed and gets it back, so that its time changes only then.
        let comparison = self.take(live, new, managers, None, true)?;
        let set = strip(comparison.modified.joined(comparison.added));
        Ok((!set.is_empty()).then_some(set))
    }

    /// The merged object; `managers` becomes what they own afterwards.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: &mut ManagedFields,
        id: &ManagerId,
        force: bool,
    ) -> Result<Value, Failure> {
        self.reconcile(live, managers)?;
        let merged = merge(self.schema, live, config)?;
        let last = managers.0.remove(id);
        let set = field_set(self.schema, config).less(self.reset);
        managers.0.insert(
            id.clone(),
            Owned {
                set,
                api_version: self.api_version.to_owned(),
                time: last.as_ref().and_then(|last| last.time.clone()),
            },
        );
        let new = if self.gives_up_nothing(config, &merged, managers, last.as_ref(), id) {
            merged
        } else {
            self.prune(merged, managers, last.as_ref())?
        };
        self.take(live, &new, managers, Some(id), force)?;
        if let Some(owned) = managers.0.get_mut(id) {
            owned.set = strip(std::mem::take(&mut owned.set));
            if owned.set.is_empty() {
                managers.0.remove(id);
            }
        }
        Ok(new)
    }

    /// Whether [`Scope::prune`] would leave `merged` as it is, which can be seen at once
    /// where the manager keeps everything that it had: what is taken out of an object to
    /// see who else wants it is then put back, since the manager itself does. That goes
    /// for what is empty only if nobody else has filled it, and is not looked into where
    /// objects have to be converted.
    fn gives_up_nothing(
        &self,
        config: &Value,
        merged: &Value,
        managers: &ManagedFields,
        last: Option<&Owned>,
        id: &ManagerId,
    ) -> bool {
        let (Some(last), Some(now)) = (last, managers.0.get(id)) else {
            return false;
        };
        let map = self.schema.atom(self.schema.root).map.as_ref();
        map.is_some_and(|map| !map.atomic)
            && merged.as_object().is_some_and(|merged| !merged.is_empty())
            && last.api_version == self.api_version
            && managers
                .0
                .values()
                .all(|owned| owned.api_version == self.api_version)
            && last.set.is_subset(&now.set)
            && stays_empty(config, merged)
    }

    /// Removes what the manager applied last time, did not apply this time,
    /// and nobody else owns.
    fn prune(
        &self,
        merged: Value,
        managers: &ManagedFields,
        last: Option<&Owned>,
    ) -> Result<Value, Failure> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else {
            return Ok(merged);
        };
        let Some(schema) = self.schema_of(&last.api_version) else {
            return Ok(merged);
        };
        let version = last.api_version.as_str();
        let merged = self.convert(Cow::Owned(merged), self.api_version, version, || {
            "failed to convert merged object to last applied version: ".to_owned()
        })?;
        let last_set = with_named_fields(schema, &last.set);
        let mut pruned = Cow::Owned(remove(schema, &merged, &last_set));

        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for other in managers.0.values() {
            let all = owned.entry(&other.api_version).or_default();
            *all = all.union(&other.set);
        }
        let first = owned.remove_entry(version);
        let mut from = version;
        let mut all = Cow::Borrowed(&*merged);
        for (version, owned) in first.into_iter().chain(owned) {
            let Some(schema) = self.schema_of(version) else {
                continue;
            };
            let step = |called: &str| {
                format!(
                    "failed add back owned items: failed to convert {called} object at \
                     version {version}: "
                )
            };
            all = self.convert(all, from, version, || step("merged"))?;
            pruned = self.convert(pruned, from, version, || step("pruned"))?;
            pruned = Cow::Owned(put_back_owned(schema, &all, &pruned, &owned));
            from = version;
        }
        let pruned = self.convert(pruned, from, version, || {
            "failed add back dangling items: failed to convert pruned object to last applied \
             version: "
                .to_owned()
        })?;

        // What is missing now although the manager never had it: unowned
        // things that went with a parent. They come back.
        let gone = named_fields_of(schema, &merged).difference(&named_fields_of(schema, &pruned));
        let pruned = remove(schema, &merged, &gone.intersection(&last_set));
        let pruned = self.convert(Cow::Owned(pruned), version, self.api_version, String::new)?;
        Ok(pruned.into_owned())
    }

    /// An object of one version as one of another. Conversion is strict, also about what
    /// the version before allows.
    fn convert<'v>(
        &self,
        object: Cow<'v, Value>,
        from: &str,
        to: &str,
        step: impl FnOnce() -> String,
    ) -> Result<Cow<'v, Value>, Failure> {
        let Some(schema) = self.schema_of(to).filter(|_| from != to) else {
            return Ok(object);
        };
        let object = match self.form(object, from, to) {
            Ok(object) => object,
            Err(why) => {
                let step = step();
                let why = format!("failed to prune fields: {step}{why}");
                return Err(Failure::Unconverted(why));
            }
        };
        match validate(schema, &object, Duplicates::Refused) {
            Ok(()) => Ok(object),
            Err(errors) => Err(Failure::Prune {
                step: step(),
                errors,
            }),
        }
    }
}

/// Whether what is empty in `config` still is in what was made of it. Items of lists, of
/// which it would have to be seen which is which, are to have nothing empty in them.
fn stays_empty(config: &Value, merged: &Value) -> bool {
    match config {
        Value::Null => merged.is_null(),
        Value::Object(fields) if fields.is_empty() => merged == config,
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let merged = merged.get(name);
            merged.is_some_and(|merged| stays_empty(value, merged))
        }),
        Value::Array(items) => items.iter().all(|item| !has_empty(item)),
        _ => true,
    }
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty() || fields.values().any(has_empty),
        Value::Array(items) => items.iter().any(has_empty),
        _ => false,
    }
}

/// Undoes removals of what managers of a version own.
fn put_back_owned(schema: &Schema, merged: &Value, pruned: &Value, owned: &FieldSet) -> Value {
    let keep = named_fields_of(schema, pruned).union(&with_named_fields(schema, owned));
    remove(
        schema,
        merged,
        &named_fields_of(schema, merged).difference(&keep),
    )
}

fn named_fields_of(schema: &Schema, object: &Value) -> FieldSet {
    with_named_fields(schema, &field_set(schema, object))
}

/// The set without the fields that nobody owns.
pub(crate) fn strip(mut set: FieldSet) -> FieldSet {
    static OBJECT: LazyLock<Vec<PathElement>> =
        LazyLock::new(|| identity::OBJECT.map(PathElement::field).into());
    static METADATA: LazyLock<Vec<PathElement>> =
        LazyLock::new(|| identity::METADATA.map(PathElement::field).into());
    static HOLDER: LazyLock<PathElement> = LazyLock::new(|| PathElement::field("metadata"));
    for field in OBJECT.iter().chain([&*HOLDER]) {
        set.members.remove(field);
    }
    if let Some(metadata) = set.children.get_mut(&*HOLDER) {
        for field in METADATA.iter() {
            metadata.members.remove(field);
        }
        if metadata.is_empty() {
            set.children.remove(&*HOLDER);
        }
    }
    set
}

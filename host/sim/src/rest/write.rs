//! The one path of all writes: decode, own, restore, validate, store.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::patch::language::refused;
use super::precondition::Versioned;
use super::{kept, manage, meta, stamp};
use crate::access;
use crate::admission::{self, policy::Operation};
use crate::decode;
use crate::definitions;
use crate::depth;
use crate::field::quoted;
use crate::identity::Identity;
use crate::quotas::{self, Charge, Charged};
use crate::resource::Resource;
use crate::server::Shared;
use crate::services;
use crate::status::ApiError;
use crate::store::{Object, Refused};

/// How often a write whose caller named no version is tried again when another
/// one came in between.
const ATTEMPTS: usize = 50;

/// When owners were named twice that are so still after admission, as warnings say it.
const AFTER_ADMISSION: &str = " after mutating admission happens";

/// Which part of an object a write is to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where that has a path of its own.
    Whole,
    /// The status.
    Status,
    /// The whole by way of another subresource, which is noted with the owner.
    Other(String),
}

impl Part {
    /// The part that a subresource means.
    pub(crate) fn of(subresource: Option<&str>) -> Self {
        match subresource {
            None => Part::Whole,
            Some("status") => Part::Status,
            Some(other) => Part::Other(other.to_owned()),
        }
    }

    /// The subresource, as `managedFields` name it.
    pub(crate) fn subresource(&self) -> Option<&str> {
        match self {
            Part::Whole => None,
            Part::Status => Some("status"),
            Part::Other(other) => Some(other),
        }
    }
}

/// Writes objects of one resource for one caller.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    /// The server.
    pub(crate) server: &'a Arc<Shared>,
    /// The resource.
    pub(crate) resource: &'a Resource,
    /// The part that is written.
    pub(crate) part: Part,
    /// Who writes, where rights have to be looked at; the server itself has none
    /// to lack.
    pub(crate) user: Option<&'a Identity>,
    /// Who owns what is written.
    pub(crate) manager: &'a str,
    /// What the caller is told besides.
    pub(crate) warnings: Option<&'a Mutex<Vec<String>>>,
    /// Whether a part of the object is sent, and not the whole.
    pub(crate) patches: bool,
    /// Whether nothing is stored.
    pub(crate) dry_run: bool,
    /// What unknown fields mean.
    pub(crate) unknown_fields: UnknownFields,
}

/// What it means that a caller sends fields that the schema does not know: they
/// are not stored in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum UnknownFields {
    /// Nothing.
    Ignored,
    /// A warning.
    #[default]
    Warned,
    /// A refusal.
    Refused,
}

/// An object that is to replace the live one.
#[derive(Debug, Default)]
pub(crate) struct Proposal {
    /// The object.
    pub(crate) object: Value,
    /// What its version means.
    pub(crate) version: Versioned,
    /// Whether its `managedFields` already account for the change.
    pub(crate) owned: bool,
    /// What was left out of it when it was read, or came twice.
    pub(crate) complaints: Vec<String>,
    /// Where it came with empty lists or maps that are not there any more: dotted paths.
    pub(crate) hollow: BTreeSet<String>,
    /// Where null stood for bytes: a field, and a key in it.
    pub(crate) blank: Vec<(String, String)>,
    /// The parts of its metadata that are stored otherwise than they are read again: of a
    /// custom resource, the empty and null ones that an apply has left. Null where there are
    /// none.
    pub(crate) odd: Value,
    /// The object as a patch made it, where a refusal of its fields is to show it.
    pub(crate) shown: Option<Box<str>>,
}

/// What is to be stored, and what nobody else gets until it is.
struct Next<'a> {
    after: Value,
    /// See [`Object::mark`].
    mark: Option<u64>,
    claim: Option<services::Claim<'a>>,
    charge: Option<Charge<'a>>,
}

/// What a write left behind.
#[derive(Debug)]
pub(crate) struct Written {
    /// The object.
    pub(crate) object: Arc<Object>,
}

impl<'a> Writer<'a> {
    /// The server's own writes to `part` as `manager`: with no rights to lack, nobody to
    /// warn, and never a dry run.
    pub(crate) fn of_server(
        server: &'a Arc<Shared>,
        resource: &'a Resource,
        part: Part,
        manager: &'a str,
    ) -> Self {
        Self {
            server,
            resource,
            part,
            user: None,
            manager,
            warnings: None,
            patches: false,
            dry_run: false,
            unknown_fields: UnknownFields::Ignored,
        }
    }

    /// Changes the live object in place, again where another write came in between. One
    /// that is gone needs no change. Who owns its fields is nothing to change, and not there.
    pub(crate) fn amend(
        &self,
        key: &str,
        mut change: impl FnMut(&mut Value) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let written = self.update(key, |live| {
            let mut object = reeve_ssa::managed::unmanaged(live);
            meta::of_mut(&mut object).remove("resourceVersion");
            change(&mut object)?;
            Ok(Proposal {
                object,
                ..Proposal::default()
            })
        });
        match written {
            Err(error) if error.code() != 404 => Err(error),
            _ => Ok(()),
        }
    }

    /// Stores a new object in `namespace`. An object made by apply brings its
    /// ownership; for others it is the caller's.
    pub(crate) fn create(&self, namespace: &str, proposal: Proposal) -> Result<Written, ApiError> {
        self.create_as(namespace, proposal, None::<fn() -> _>)
    }

    /// As [`Writer::create`], where the request is one that changes what is there, and says
    /// nothing of the right to create: `allowed` is asked for it once the object is known to
    /// be valid, which is when the real server asks. A version in the object counts for
    /// nothing.
    pub(crate) fn create_if(
        &self,
        namespace: &str,
        proposal: Proposal,
        allowed: impl FnOnce() -> Result<(), ApiError>,
    ) -> Result<Written, ApiError> {
        self.create_as(namespace, proposal, Some(allowed))
    }

    fn create_as(
        &self,
        namespace: &str,
        proposal: Proposal,
        allowed: Option<impl FnOnce() -> Result<(), ApiError>>,
    ) -> Result<Written, ApiError> {
        let Proposal {
            mut object,
            owned,
            complaints,
            blank,
            odd,
            ..
        } = proposal;
        let resource = self.resource;
        meta::place(&mut object, resource, namespace)?;
        let shares = resource.shares(&object);
        self.decode(&mut object, complaints, owned)?;
        meta::birth(&mut object, self.server);
        self.check_namespace(namespace, meta::text(&object, "name"))?;
        if !self.patches {
            self.drop_owners_named_twice(&mut object, "");
        }
        if !owned {
            object = manage::update(self, None, object)?;
        }
        resource.settle(&mut object)?;
        // What admission adds belongs to nobody.
        admission::mutate(self.server, resource, &mut object)?;
        resource.admit(&mut object);
        let is_changed = self.change_by_admission(Operation::Create, &mut object, None)?;
        if is_changed {
            // Nobody else says where an object is, and when it was made.
            meta::place(&mut object, resource, namespace)?;
            meta::birth(&mut object, self.server);
            // What follows from others may follow for more of it now.
            admission::mutate(self.server, resource, &mut object)?;
            resource.admit(&mut object);
        }
        if is_changed || self.patches {
            self.drop_owners_named_twice(&mut object, AFTER_ADMISSION);
        }
        if allowed.is_some() {
            // There is nothing that it could be of.
            meta::version(&object)?;
            meta::of_mut(&mut object).remove("resourceVersion");
        }
        // Before anything is said of what is wrong with a role.
        if let Some(user) = self.user {
            access::check_escalation(self.server, user, resource, &object, None)?;
        }
        resource.prepare_create(&mut object);
        if shares {
            resource.share(&mut object);
        }
        if let Some(user) = self.user {
            stamp::requested(resource, &mut object, user);
        }
        stamp::created(resource, &mut object, &self.server.clock.timestamp());
        let asks = admission::may_ask(self.server);
        let unallocated = asks.then(|| object.clone());
        let mut claim = services::allocate(self.server, resource, &mut object, None, self.dry_run)?;
        let errors = resource.validate_create(&object);
        let name = meta::text(&object, "name").to_owned();
        if !errors.is_empty() {
            return Err(ApiError::invalid(resource.about_kind(&name), &errors));
        }
        if let Some(allowed) = allowed {
            allowed()?;
        }
        admission::validate(self.server, resource, &object, None)?;
        self.check_security(&object, None)?;
        // Addresses keep nobody waiting while others are asked, who may ask back. They are
        // looked at again afterwards, for somebody may have them by then; then there are
        // others, unless it asks for these.
        if asks {
            drop(claim.take());
        }
        self.ask_admission(Operation::Create, Some(&object), None)?;
        if let Some(unallocated) = unallocated {
            let again = services::allocate(self.server, resource, &mut object, None, self.dry_run);
            claim = match again {
                Ok(claim) => claim,
                Err(_) => {
                    object = unallocated;
                    services::allocate(self.server, resource, &mut object, None, self.dry_run)?
                }
            };
        }
        // The store takes none, which a dry run does not ask.
        let has_version = meta::version(&object).is_ok_and(|version| version > 0);
        let given = meta::of_mut(&mut object).remove("resourceVersion");
        let key = resource.key(namespace, &name);
        let exists = || {
            let live = self.server.store.get(&resource.table, &key);
            let ending = live.is_some_and(|live| live.is_terminating());
            ApiError::already_exists(resource.about(&name), ending)
        };
        // Where somebody is asked for what is to be stored, that is before anything is said
        // of what is there.
        let stored = match resource.has_converter() {
            true => {
                let mut stored = object.clone();
                resource.encode(&mut stored)?;
                Some(stored)
            }
            false => None,
        };
        // What is there already is not charged first: to take that back would tell everybody
        // who waits for room.
        let is_there = || self.server.store.get(&resource.table, &key).is_some();
        if !self.dry_run && !has_version && is_there() {
            return Err(exists());
        }
        let bounded = quotas::bounds_any(self.server, namespace);
        let charge = self.charge(&object, None)?;
        self.warn_of_finalizers(&object, None);
        self.warn_of_tokens(&object, None);
        self.warn_of_no_effect(&object);
        self.warn_of_conversion(&object);
        definitions::check_open(self.server, resource, &name)?;
        match stored {
            Some(stored) => object = stored,
            None => resource.encode(&mut object)?,
        }
        let mark = kept::mark(resource, &mut object, &odd, &blank);
        depth::check(&object)?;
        if self.dry_run {
            if self.server.store.get(&resource.table, &key).is_some() {
                return Err(exists());
            }
            if let Some(given) = given {
                meta::of_mut(&mut object).insert("resourceVersion".to_owned(), given);
            }
            let object = Arc::new(Object::unstored(&key, &object));
            return Ok(Written { object });
        }
        if has_version {
            return Err(ApiError::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let store = &self.server.store;
        let created = store.create_as(&resource.table, &key, object, mark);
        let object = created.map_err(|refused| match refused {
            Refused::Unkept => ApiError::unkept(),
            _ => exists(),
        })?;
        if let Some(claim) = claim {
            claim.keep(&object);
        }
        if let Some(charge) = charge {
            charge.keep();
        }
        if !bounded && quotas::bounds_any(self.server, namespace) {
            // One came in between, and may have been counted before.
            self.server.controllers.count_again(namespace);
            self.server.store.nudge();
        }
        self.server.committed(resource, &object, false);
        Ok(Written { object })
    }

    /// An object before it is written, as `show` shows it to clients. The server itself asks
    /// nobody, and writes it in the version that it is stored in.
    ///
    /// # Errors
    ///
    /// As [`Resource::shown_now`], and where it could not be stored as it is.
    pub(super) fn before(
        &self,
        live: &Arc<Object>,
        show: impl Fn(&Resource, Arc<Object>) -> Result<Arc<Object>, ApiError>,
    ) -> Result<Value, ApiError> {
        let resource = self.resource;
        if self.user.is_none() && resource.has_converter() {
            return Ok(live.value());
        }
        let before = show(resource, live.clone())?.value_as(resource);
        resource.check_storable(&before)?;
        Ok(before)
    }

    /// Replaces the object of `key` by what `propose` makes of it.
    pub(crate) fn update(
        &self,
        key: &str,
        mut propose: impl FnMut(&Value) -> Result<Proposal, ApiError>,
    ) -> Result<Written, ApiError> {
        let resource = self.resource;
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        for _ in 0..ATTEMPTS {
            let live = self.server.store.get(&resource.table, key);
            let live = live.ok_or_else(|| ApiError::not_found(resource.about(name)))?;
            let before = self.before(&live, Resource::shown_now)?;
            let proposal = propose(&before)?;
            let is_named = !matches!(meta::text(&proposal.object, "resourceVersion"), "" | "0");
            let conditional = is_named && proposal.version != Versioned::OfLive;
            let Next {
                after,
                mark,
                claim,
                charge,
            } = self.next(&before, &live, proposal)?;
            if kept::is_kept(resource, &live, &before, &after, mark) {
                return Ok(Written { object: live });
            }
            if self.dry_run {
                let object = Arc::new(Object::unstored(key, &after));
                return Ok(Written { object });
            }
            let ends = meta::is_terminating(&after) && meta::may_end(resource, &after);
            let store = &self.server.store;
            let last = ends.then(|| Arc::new(Object::unstored(key, &after)));
            let written = if ends {
                store.remove(&resource.table, key, live.version())
            } else {
                store.replace_as(&resource.table, key, live.version(), after, mark)
            };
            match written {
                Ok(object) => {
                    match claim {
                        Some(claim) if !ends => claim.keep(&object),
                        claim => drop(claim),
                    }
                    if let Some(charge) = charge {
                        charge.keep();
                    }
                    self.server.committed(resource, &object, ends);
                    // The caller sees what it wrote, though that was never stored.
                    let object = last.unwrap_or(object);
                    return Ok(Written { object });
                }
                Err(Refused::Changed) if !conditional => {}
                Err(Refused::Missing) => return Err(ApiError::not_found(resource.about(name))),
                Err(Refused::Unkept) => return Err(ApiError::unkept()),
                Err(_) => return Err(ApiError::modified(resource.about(name))),
            }
        }
        Err(ApiError::modified(resource.about(name)))
    }

    /// What is to be stored in place of `live`, and what must not be given to others
    /// until it is.
    fn next(
        &self,
        before: &Value,
        live: &Object,
        proposal: Proposal,
    ) -> Result<Next<'a>, ApiError> {
        let resource = self.resource;
        let Proposal {
            object: mut after,
            version,
            owned,
            complaints,
            hollow,
            blank,
            odd,
            shown,
        } = proposal;
        meta::place(&mut after, resource, live.namespace())?;
        self.decode_as(&mut after, complaints, owned, shown.as_deref())?;
        self.check_uid(&after, live)?;
        meta::preserve(&mut after, before);
        if !self.patches {
            self.drop_owners_named_twice(&mut after, "");
        }
        if !owned {
            // Null is another value than an empty text to who owns it.
            replace_at(&mut after, &blank, "", NULL);
            after = manage::update(self, Some(before), after)?;
            replace_at(&mut after, &blank, NULL, "");
        }
        resource.settle(&mut after)?;
        let is_changed = self.change_by_admission(Operation::Update, &mut after, Some(before))?;
        if is_changed {
            // Nobody else says where an object is, and what it has from the server.
            meta::place(&mut after, resource, live.namespace())?;
            meta::preserve(&mut after, before);
        }
        if is_changed || self.patches {
            self.drop_owners_named_twice(&mut after, AFTER_ADMISSION);
        }
        if let Some(user) = self.user {
            access::check_escalation(self.server, user, resource, &after, Some(before))?;
        }
        // Who is asked may have given it another one.
        self.check_version(version, &after, live)?;
        match self.part {
            Part::Status => {
                resource.prepare_status(&mut after, before);
                let now = self.server.clock.timestamp();
                stamp::status_written(resource, &mut after, before, &now);
            }
            Part::Whole => {
                resource.prepare_update(&mut after, before);
                resource.count_hollow(&mut after, before, &hollow);
            }
            Part::Other(ref other) => resource.prepare_other(other, &mut after, before),
        }
        if self.part != Part::Whole {
            let now = self.server.clock.timestamp();
            stamp::conditions_written(resource, &mut after, before, &now);
        }
        let version = live.version().to_string();
        meta::of_mut(&mut after).insert("resourceVersion".to_owned(), json!(version));
        let asks = admission::may_ask(self.server);
        let unallocated = asks.then(|| after.clone());
        let mut claim = self.allocate(&mut after, before)?;
        let errors = match &self.part {
            Part::Status => resource.validate_status_update(&after, before),
            Part::Whole => resource.validate_update(&after, before),
            Part::Other(other) => resource.validate_part_update(other, &after, before),
        };
        if !errors.is_empty() {
            let name = meta::text(&after, "name");
            return Err(ApiError::invalid(resource.about_kind(name), &errors));
        }
        if self.part == Part::Whole && !live.is_terminating() {
            admission::validate(self.server, resource, &after, Some(before))?;
        }
        self.check_security(&after, Some(before))?;
        if let Some(user) = self.user {
            let part = self.part.subresource();
            access::check_signer(self.server, user, resource, part, &after, before)?;
        }
        if asks {
            drop(claim.take());
        }
        self.ask_admission(Operation::Update, Some(&after), Some(before))?;
        if let Some(unallocated) = unallocated {
            claim = match self.allocate(&mut after, before) {
                Ok(claim) => claim,
                Err(_) => {
                    after = unallocated;
                    self.allocate(&mut after, before)?
                }
            };
        }
        let charge = match quotas::is_charged_again(resource, self.part.subresource()) {
            true => self.charge(&after, Some(before))?,
            false => None,
        };
        self.warn_of_finalizers(&after, Some(before));
        self.warn_of_tokens(&after, Some(before));
        self.warn_of_no_effect(&after);
        self.warn_of_conversion(&after);
        // What ends is not stored before.
        let ends = meta::is_terminating(&after) && meta::may_end(resource, &after);
        if !(ends && resource.storage().is_some()) {
            resource.encode(&mut after)?;
        }
        let mark = kept::mark(resource, &mut after, &odd, &blank);
        depth::check(&after)?;
        Ok(Next {
            after,
            mark,
            claim,
            charge,
        })
    }

    /// The addresses of a Service that is changed as a whole.
    fn allocate(
        &self,
        after: &mut Value,
        before: &Value,
    ) -> Result<Option<services::Claim<'a>>, ApiError> {
        match self.part {
            Part::Whole => {
                let (server, resource) = (self.server, self.resource);
                services::allocate(server, resource, after, Some(before), self.dry_run)
            }
            _ => Ok(None),
        }
    }

    fn charge(&self, object: &Value, old: Option<&Value>) -> Result<Option<Charge<'a>>, ApiError> {
        let charged = Charged {
            resource: self.resource,
            object,
            old,
            dry_run: self.dry_run,
        };
        quotas::charge(self.server, &charged)
    }

    /// Brings an object into the form that is stored. Fields that are unknown or
    /// came twice are refused or told of. An object with owners has been through
    /// this once and only lost what its type always has.
    pub(super) fn decode(
        &self,
        object: &mut Value,
        complaints: Vec<String>,
        owned: bool,
    ) -> Result<(), ApiError> {
        self.decode_as(object, complaints, owned, None)
    }

    /// As [`Writer::decode`], of a patched object where `shown` is what a refusal shows.
    fn decode_as(
        &self,
        object: &mut Value,
        mut complaints: Vec<String>,
        owned: bool,
        shown: Option<&str>,
    ) -> Result<(), ApiError> {
        let resource = self.resource;
        let unknown = resource.decode(object, owned)?;
        if owned && !resource.is_custom() {
            resource.schema().normalize(object);
        }
        let unknown = unknown.iter();
        complaints.extend(unknown.map(|path| format!("unknown field {}", quoted(path))));
        match self.unknown_fields {
            UnknownFields::Refused if !complaints.is_empty() => {
                let why = format!("strict decoding error: {}", complaints.join(", "));
                return Err(match shown {
                    Some(shown) => refused(shown, &why),
                    None => ApiError::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: {why}",
                        resource.kind, resource.version, resource.kind,
                    )),
                });
            }
            UnknownFields::Warned => {
                let complaints = complaints.iter();
                self.warn(complaints.flat_map(|all| decode::warnings(all)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses new objects where there is no namespace, or none for long.
    fn check_namespace(&self, namespace: &str, name: &str) -> Result<(), ApiError> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let Some(found) = self.server.store.get("namespaces", namespace) else {
            return Err(ApiError::not_found(crate::status::About {
                group: "",
                resource: "namespaces",
                name: namespace,
            }));
        };
        if found.is_terminating() {
            return Err(ApiError::namespace_terminating(
                self.resource.about(name),
                namespace,
            ));
        }
        Ok(())
    }
}

/// Stands for null where it is found out who owns what.
const NULL: &str = "\0";

/// Puts another text in place of one, where null came for it.
fn replace_at(object: &mut Value, places: &[(String, String)], text: &str, by: &str) {
    for (field, key) in places {
        let slot = object.get_mut(field).and_then(|map| map.get_mut(key));
        if let Some(slot) = slot.filter(|slot| **slot == text) {
            *slot = by.into();
        }
    }
}

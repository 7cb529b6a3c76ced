//! What the verbs do: one file each, over one write path.

mod admitted;
mod bind;
mod connect;
mod continuation;
mod create;
pub(crate) mod delete;
mod delete_collection;
mod evict;
mod get;
mod kept;
pub(crate) mod list;
pub(crate) mod manage;
pub(crate) mod meta;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod precondition;
mod scale;
mod sent;
mod stamp;
mod update;
mod warn;
pub(crate) mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::Value;

use crate::access;
use crate::decode::{self, Decoded};
use crate::http::negotiate::{self, Accepted, Encoding, Form};
use crate::http::query::Query;
use crate::http::response::{self, Answer};
use crate::http::route::{ResourcePath, Verb};
use crate::identity::Identity;
use crate::names;
use crate::render::Rendering;
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Object;
use crate::typed::Typed;

pub(crate) use list::Listed;
pub(crate) use write::{Part, UnknownFields, Writer};

/// One authorised request to a resource.
#[derive(Debug)]
pub(crate) struct Call {
    /// The server it was sent to.
    pub(crate) server: Arc<Shared>,
    /// The resource that the path names.
    pub(crate) resource: Arc<Resource>,
    /// The path.
    pub(crate) path: ResourcePath,
    /// The parameters.
    pub(crate) query: Query,
    /// What the request says besides its body.
    pub(crate) parts: Arc<Parts>,
    /// The body.
    pub(crate) body: Bytes,
    /// The caller.
    pub(crate) user: Arc<Identity>,
    /// The form of the answer.
    pub(crate) accepted: Accepted,
    /// Whether it is a patch.
    pub(crate) patches: bool,
    /// What the caller is told besides, whatever the answer.
    pub(crate) warnings: Mutex<Vec<String>>,
}

/// Does what was asked.
pub(crate) async fn dispatch(verb: Verb, call: &Call) -> Result<Answer, ApiError> {
    let checked = call.check_path(verb).and_then(|()| call.check_table());
    let is_warned = call.resource.is_custom() && call.path.subresource.is_some();
    let outcome = match checked {
        Ok(()) => carry_out(verb, call).await,
        // That a version is old is told also to who asks for what it does not have.
        Err(error) if is_warned => Err(error),
        Err(error) => return Err(error),
    };
    let refusal = |error| response::refusal_in(call.accepted.encoding, &error);
    let mut answer = outcome.unwrap_or_else(refusal);
    if let Some(warning) = call.resource.deprecation() {
        call.warn(warning);
    }
    response::warn(&mut answer, &call.warnings.lock());
    Ok(answer)
}

async fn carry_out(verb: Verb, call: &Call) -> Result<Answer, ApiError> {
    match verb {
        _ if connect::is_connection(call) => {
            call.check_connection()?;
            connect::connect(call)
        }
        Verb::Get => get::get(call).await,
        Verb::List => list::list(call).await,
        Verb::Watch => list::watch(call).await,
        Verb::Create => create::create(call),
        Verb::Update => update::update(call),
        Verb::Patch => patch::patch(call),
        Verb::Delete => delete::delete(call),
        Verb::DeleteCollection => delete_collection::delete_collection(call).await,
    }
}

impl Call {
    /// Refuses what no path of the resource allows.
    fn check_path(&self, verb: Verb) -> Result<(), ApiError> {
        let resource = &self.resource;
        if let Some(name) = &self.path.name
            && let Some(wrong) = names::path_segment(name).first()
        {
            return Err(ApiError::bad_request(format!(
                "Name parameter invalid: {name:?}: {wrong}"
            )));
        }
        if let Some(name) = &self.path.subresource {
            let sub = resource.subresource(name).ok_or_else(|| {
                if resource.is_custom() {
                    ApiError::not_found(resource.about(self.name()))
                } else {
                    ApiError::no_such_resource()
                }
            })?;
            if !sub.verbs.contains(&verb.as_str()) {
                return Err(ApiError::method_not_allowed());
            }
        } else if !resource.verbs.names().contains(&verb.as_str()) {
            return Err(ApiError::method_not_allowed());
        }
        // Namespaces are not inside of one another.
        let nested = resource.plural == "namespaces"
            && self.path.namespace.is_some()
            && self.path.namespace != self.path.name;
        if nested {
            return Err(ApiError::no_such_resource());
        }
        // All namespaces at once can be read, not written.
        let everywhere = resource.namespaced && self.path.namespace.is_none();
        if everywhere && self.path.name.is_some() {
            return Err(ApiError::no_such_resource());
        }
        if everywhere && !matches!(verb, Verb::List | Verb::Watch) {
            return Err(ApiError::method_not_allowed());
        }
        if self.path.name.is_none() && matches!(verb, Verb::Update | Verb::Patch) {
            return Err(ApiError::method_not_allowed());
        }
        // Nothing of the cluster lives under a namespace but the Namespace itself.
        let inside = !resource.namespaced && self.path.namespace.is_some();
        if inside && resource.plural != "namespaces" {
            return Err(ApiError::no_such_resource());
        }
        Ok(())
    }

    /// Refuses a table of rows that carry something unheard of.
    fn check_table(&self) -> Result<(), ApiError> {
        match self.query.get("includeObject") {
            None | Some("None" | "Metadata" | "Object") => Ok(()),
            Some(_) if self.accepted.form != Form::Table => Ok(()),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }

    /// Tells the caller something, once.
    pub(crate) fn warn(&self, warning: &str) {
        let mut warnings = self.warnings.lock();
        if !warnings.iter().any(|told| told == warning) {
            warnings.push(warning.to_owned());
        }
    }

    /// The namespace; empty for a resource of the cluster.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.namespaced {
            self.path.namespace.as_deref().unwrap_or_default()
        } else {
            ""
        }
    }

    /// The name in the path; empty where there is none.
    pub(crate) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    /// The key of the object that the path names.
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace(), self.name())
    }

    /// The subresource, where the path names one.
    pub(crate) fn subresource(&self) -> Option<&str> {
        self.path.subresource.as_deref()
    }

    /// Refuses a caller who may write to the object that the path names, but not make it.
    pub(crate) fn may_create(&self) -> Result<(), ApiError> {
        let asked = access::attributes(&self.path, Verb::Create, None);
        access::authorize(&self.server, &self.user, &asked)
    }

    /// The object that the path names.
    pub(crate) fn live(&self) -> Result<Arc<Object>, ApiError> {
        let found = self.server.store.get(&self.resource.table, &self.key());
        found.ok_or_else(|| ApiError::not_found(self.resource.about(self.name())))
    }

    /// The name under which the written fields are owned: the parameter, or the
    /// program that the caller says it is.
    pub(crate) fn manager(&self) -> &str {
        if let Some(manager) = self.query.get("fieldManager") {
            return manager;
        }
        let agent = self
            .parts
            .headers
            .get(http::header::USER_AGENT)
            .and_then(|v| v.to_str().ok());
        match agent.and_then(|agent| agent.split('/').next()) {
            Some(program) if !program.is_empty() => program,
            _ => "unknown",
        }
    }

    /// The write path for what this request names.
    pub(crate) fn writer(&self) -> Result<Writer<'_>, ApiError> {
        Ok(Writer {
            server: &self.server,
            resource: &self.resource,
            part: Part::of(self.subresource()),
            user: Some(&self.user),
            manager: self.manager(),
            warnings: Some(&self.warnings),
            patches: self.patches,
            dry_run: self.query.dry_run(),
            unknown_fields: self.unknown_fields(),
        })
    }

    /// The object in the body.
    pub(crate) fn read(&self) -> Result<Decoded, ApiError> {
        let kind = &self.resource.kind;
        let (document, repeated) = negotiate::document(&self.parts.headers, &self.body, kind)?;
        let mut decoded = self.resource.read(document, &self.body)?;
        decoded.complaints.splice(0..0, repeated);
        Ok(decoded)
    }

    /// The object in the body, of another built-in type than the resource's.
    /// Fields that the type does not have are refused or told of, as the caller asks.
    pub(crate) fn read_as(&self, typed: Typed<'_>) -> Result<Value, ApiError> {
        let (document, repeated) =
            negotiate::document(&self.parts.headers, &self.body, typed.kind)?;
        let mut decoded = typed.read(document)?;
        decoded.complaints.splice(0..0, repeated);
        self.complain(typed, &decoded.complaints)?;
        Ok(decoded.object)
    }

    /// Refuses or tells of fields that a type does not have or that came twice.
    pub(crate) fn complain(&self, typed: Typed<'_>, complaints: &[String]) -> Result<(), ApiError> {
        match self.unknown_fields() {
            UnknownFields::Refused if !complaints.is_empty() => {
                let why = format!("strict decoding error: {}", complaints.join(", "));
                return Err(typed.unreadable(&why));
            }
            UnknownFields::Warned => complaints
                .iter()
                .flat_map(|complaint| decode::warnings(complaint))
                .for_each(|warning| self.warn(warning)),
            _ => {}
        }
        Ok(())
    }

    /// What the caller asks of unknown fields.
    pub(crate) fn unknown_fields(&self) -> UnknownFields {
        match self.query.get("fieldValidation") {
            Some("Strict") => UnknownFields::Refused,
            Some("Ignore") => UnknownFields::Ignored,
            _ => UnknownFields::Warned,
        }
    }

    /// How objects of the resource are shown to this caller.
    pub(crate) fn rendering(&self) -> Rendering {
        Rendering::new(
            self.resource.clone(),
            self.accepted.form,
            &self.server.clock,
            &self.query,
        )
    }

    /// The answer that is one object, in the version that was asked for.
    ///
    /// # Errors
    ///
    /// 500 where a webhook is to bring it into that, and does not.
    pub(crate) fn answer(&self, code: StatusCode, object: Arc<Object>) -> Result<Answer, ApiError> {
        let object = match self.query.dry_run() {
            // What is only tried is not kept in place of what is there.
            true => self.resource.shown_anew_now(object)?,
            false => self.resource.shown_now(object)?,
        };
        let object = &*object;
        let plain = self.accepted.form == Form::Object && self.accepted.encoding == Encoding::Json;
        if plain {
            let json = object.json(&self.resource);
            return Ok(response::bytes(code, "application/json", json));
        }
        let value = self.rendering().one(object);
        Ok(response::encoded(code, self.accepted.encoding, &value))
    }
}

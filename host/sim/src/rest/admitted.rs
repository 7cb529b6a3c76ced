//! Writes are held to admission policies and webhooks, and changed by them, where clients
//! ask for them.

use serde_json::Value;

use super::Writer;
use crate::admission::policy::{Operation, Request};
use crate::admission::{self, security, webhooks};
use crate::decode::{self, Document};
use crate::kinds::edit;
use crate::status::ApiError;

/// The part that is seen as something else than the object.
const SCALE: &str = "scale";

impl Writer<'_> {
    /// Holds what is to be written to what its namespace says that pods may do.
    ///
    /// # Errors
    ///
    /// What it does not allow.
    pub(super) fn check_security(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let part = self.part.subresource().unwrap_or_default();
        let warn = |warning: &str| self.warn(std::iter::once(warning));
        security::check(self.server, self.resource, part, object, old, warn)
    }

    /// Asks policies and webhooks about what is to be written. What the server does by
    /// itself they are not asked about, nor about parts that are objects of other kinds.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(super) fn ask_admission(
        &self,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if self.part.subresource() == Some(SCALE)
            && let (Some(object), Some(old)) = (object, old)
        {
            return self.ask_about_scale(object, old);
        }
        let Some(request) = self.request(operation, object, old) else {
            return Ok(());
        };
        admission::ask(&request, |warning| self.warn(std::iter::once(warning)))
    }

    /// Has policies, and after them webhooks, change what is to be written, and says
    /// whether any did. What they make is settled as what is sent is, and belongs to nobody.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it, or cannot be carried out.
    pub(super) fn change_by_admission(
        &self,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, ApiError> {
        if !admission::may_change(self.server) {
            return Ok(false);
        }
        let Some(request) = self.request(operation, Some(object), old) else {
            return Ok(false);
        };
        let settle = |changed: &mut Value, strict| self.settle(changed, strict);
        let warn = |warning: &str| self.warn(std::iter::once(warning));
        let changed = admission::change(request, settle, warn)?;
        let Some(changed) = changed.filter(|changed| changed != object) else {
            return Ok(false);
        };
        *object = changed;
        Ok(true)
    }

    /// Asks those about a deletion who may change what is written: they may refuse it.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(super) fn tell_of_deletion(&self, before: &Value) -> Result<(), ApiError> {
        let Some(request) = self.request(Operation::Delete, None, Some(before)) else {
            return Ok(());
        };
        let warn = |warning: &str| self.warn(std::iter::once(warning));
        webhooks::mutate(&request, |_| Ok(()), warn).map(drop)
    }

    /// Brings what admission made into the form that objects have. It stays of its kind.
    /// Fields that the type does not have are refused where it is `strict`.
    fn settle(&self, changed: &mut Value, strict: bool) -> Result<(), ApiError> {
        let resource = self.resource;
        match edit::text(changed, "kind") {
            "" => edit::set(changed, "kind", resource.kind.as_str()),
            kind if kind != resource.kind => {
                let why = format!("admission made a {kind} of a {}", resource.kind);
                return Err(ApiError::internal_error(&why));
            }
            _ => {}
        }
        if !resource.is_custom() {
            let document = Document::from(std::mem::take(changed));
            let read = decode::builtin(&resource.api_version, &resource.kind, document);
            let read = read.map_err(|why| ApiError::internal_error(&why))?;
            if strict && !read.complaints.is_empty() {
                let why = format!("strict decoding error: {}", read.complaints.join(", "));
                return Err(ApiError::internal_error(&why));
            }
            *changed = read.object;
        }
        // What a custom resource does not have is left out, whatever the client wanted to
        // hear of what it sent itself.
        resource.decode(changed, true)?;
        if !resource.is_custom() {
            resource.schema().normalize(changed);
        }
        resource.settle(changed)
    }

    /// What policies and webhooks are told; none of what they are not asked about.
    fn request<'r>(
        &'r self,
        operation: Operation,
        object: Option<&'r Value>,
        old: Option<&'r Value>,
    ) -> Option<Request<'r>> {
        let user = self.user?;
        let subresource = self.part.subresource().unwrap_or_default();
        let mut parts = self.resource.subresources.iter();
        let is_of_another_kind = parts.any(|part| part.name == subresource && part.body.is_some());
        (!is_of_another_kind).then_some(Request {
            server: self.server,
            resource: self.resource,
            subresource,
            user,
            operation,
            object,
            old,
            dry_run: self.dry_run,
            sent: None,
        })
    }
}

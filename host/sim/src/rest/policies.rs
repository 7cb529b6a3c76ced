//! Writes are held to admission policies, and changed by them, where clients ask for them.

use serde_json::Value;

use super::Writer;
use crate::admission::policy::{self, Operation, Request};
use crate::decode::{self, Document};
use crate::status::ApiError;

impl Writer<'_> {
    /// Asks the policies about what is to be written. What the server does by itself
    /// they are not asked about, nor about parts that are objects of other kinds.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(super) fn ask_policies(
        &self,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let Some(request) = self.request(operation, object, old) else {
            return Ok(());
        };
        policy::check(&request, |warning| self.warn(std::iter::once(warning)))
    }

    /// Has the policies change what is to be written, and says whether any did. What they
    /// make is settled as what is sent is, and belongs to nobody.
    ///
    /// # Errors
    ///
    /// What the first says that cannot be carried out.
    pub(super) fn change_by_policies(
        &self,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, ApiError> {
        let Some(request) = self.request(operation, Some(object), old) else {
            return Ok(false);
        };
        let changed = policy::mutate(&request, |changed| {
            let resource = self.resource;
            if !resource.is_custom() {
                let document = Document::from(std::mem::take(changed));
                let read = decode::builtin(&resource.api_version, &resource.kind, document);
                let read = read.map_err(|why| ApiError::internal_error(&why))?;
                if !read.complaints.is_empty() {
                    let why = format!("strict decoding error: {}", read.complaints.join(", "));
                    return Err(ApiError::internal_error(&why));
                }
                *changed = read.object;
            }
            self.decode(changed, Vec::new(), true)?;
            resource.settle(changed)
        })?;
        Ok(match changed {
            Some(changed) => {
                *object = changed;
                true
            }
            None => false,
        })
    }

    /// What policies are told; none of what they are not asked about.
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
        })
    }
}

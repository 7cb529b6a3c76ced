//! Writes are held to admission policies where clients ask for them.

use serde_json::Value;

use super::Writer;
use crate::admission::policy::{self, Operation, Request};
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
        let Some(user) = self.user else {
            return Ok(());
        };
        let subresource = self.part.subresource().unwrap_or_default();
        let mut parts = self.resource.subresources.iter();
        if parts.any(|part| part.name == subresource && part.body.is_some()) {
            return Ok(());
        }
        let request = Request {
            server: self.server,
            resource: self.resource,
            subresource,
            user,
            operation,
            object,
            old,
            dry_run: self.dry_run,
        };
        policy::check(&request, |warning| self.warn(std::iter::once(warning)))
    }
}

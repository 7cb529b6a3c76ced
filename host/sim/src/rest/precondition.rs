//! What has to hold of the live object for it to be replaced.

use serde_json::Value;

use super::{Writer, meta};
use crate::field::{Errors, FieldError, Path};
use crate::status::ApiError;
use crate::store::Object;

/// What the version in an object means that is to replace the live one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Versioned {
    /// It is a condition, and need not be there.
    #[default]
    Perhaps,
    /// It is a condition, and has to be there for kinds that are changed only by who has
    /// read the object.
    ByCaller,
    /// It is that of the live object, and no condition: what is made of a later one has the
    /// version of that.
    OfLive,
}

impl Writer<'_> {
    /// Refuses another object of the same name.
    pub(super) fn check_uid(&self, after: &Value, live: &Object) -> Result<(), ApiError> {
        let uid = meta::text(after, "uid");
        // Of a patched object it is looked at as any other field.
        if self.patches || uid.is_empty() || uid == live.uid() {
            return Ok(());
        }
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            self.resource.plural,
            live.key(),
            live.uid()
        );
        Err(ApiError::conflict(self.resource.about(live.name()), &why))
    }

    /// Refuses an object that was made from another version than the live one, and one that
    /// names none where it has to.
    pub(super) fn check_version(
        &self,
        sent: Versioned,
        after: &Value,
        live: &Object,
    ) -> Result<(), ApiError> {
        let is_missing = matches!(meta::text(after, "resourceVersion"), "" | "0");
        if is_missing && sent != Versioned::Perhaps && self.resource.is_conditional() {
            let mut errors = Errors::new();
            let path = Path::new("metadata");
            let why = "must be specified for an update";
            errors.push(FieldError::invalid(
                &path.child("resourceVersion"),
                &0.into(),
                why,
            ));
            let about = self.resource.about(live.name());
            return Err(ApiError::invalid(about, &errors));
        }
        match meta::version(after)? {
            0 => Ok(()),
            version if version == live.version() => Ok(()),
            _ => Err(ApiError::modified(self.resource.about(live.name()))),
        }
    }
}

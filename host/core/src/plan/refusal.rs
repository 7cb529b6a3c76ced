//! What is not done, and why.

use crate::kind::ObjectReference;

/// Something that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The label of another unit of this plugin has the same hash.
    #[error("{object} belongs to {owner}, whose label has the same hash; it is left alone")]
    OtherUnit {
        /// The object.
        object: ObjectReference,
        /// What its annotation `reeve.dev/primary` says.
        owner: String,
    },
}

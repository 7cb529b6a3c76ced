//! Fields of objects as people look at them: what an apply would make of them,
//! what changes, and who owns them. Values of Secrets never get this far.

mod change;
mod owner;
mod preview;
mod shown;

pub use change::{FieldChange, changes};
pub use owner::{FieldOwner, OwnedField, owned_fields};
pub use preview::{Preview, PreviewError, Previewed, preview};
pub use shown::{Shown, is_bookkeeping, is_secret};

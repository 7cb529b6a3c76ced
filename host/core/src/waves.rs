//! In which order the objects of a unit are applied and deleted, and what waits
//! for what.
//!
//! Order is said with annotations on the objects, those of Argo CD and Helm among
//! them, so that manifests made for these behave here as they do there:
//!
//! 1. phases: hooks before the sync, the sync, hooks after it;
//! 2. waves within a phase, ascending, each complete before the next begins;
//! 3. dependencies (`reeve.dev/depends-on`), which refine waves;
//! 4. kinds within all that, in the order in which they need each other;
//! 5. names.
//!
//! [`order()`] makes a [`Sequence`] of that, [`deletion()`] its reverse. Both are
//! pure, and give the same result for the same objects in whatever order they are
//! given. Whether a step is done is for [`crate::health::gate()`] to say.

mod deletion;
mod dependency;
mod graph;
mod hook;
mod options;
mod order;
mod rank;
mod slots;
mod sync_options;
mod timeout;

#[cfg(test)]
mod platform_case;

pub use deletion::{Deletion, deletion};
pub use dependency::{Dependency, DependencyError, Place};
pub use hook::{Hook, HookDeletePolicy, HookState, Phase, hook_name};
pub use options::{ApplyMode, FLUX_PRUNE, Options, Removal, Role};
pub use order::{Mode, Notice, Open, OrderError, Sequence, order};
pub use slots::{Member, Step};
pub use sync_options::{CompareOptions, Propagation, SyncOptions};
pub use timeout::{WAVE_TIMEOUT_ANNOTATION, WaveWait};

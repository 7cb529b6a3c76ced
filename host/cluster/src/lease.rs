//! One leader among several replicas, by a Lease of `coordination.k8s.io`.
//!
//! The API server gives out no fencing tokens: it takes a write from whoever has
//! the right, holder of the Lease or not. Who holds it therefore has to keep
//! itself in check, and does so against a clock that goes on while the machine
//! sleeps or the process is stopped:
//!
//! ```text
//! renewed (when the request was sent)
//! │◀── renew deadline ──▶│◀─ writes end ─▶│◀ slack ▶│
//! ├──────────────────────┼────────────────┼─────────┤
//! │   writes may begin   │ no new writes; │ nothing │ others may take over
//! │                      │ those under    │ of ours │
//! │                      │ way are left   │ is under│
//! │                      │ to finish      │ way     │
//! ```
//!
//! - [`Fence`] is asked before a write is handed over, and once more by the task that
//!   writes it to the connection; it is what makes a stopped and resumed leader begin
//!   nothing.
//! - [`Elector`] gets, keeps and gives back the Lease.
//! - How the times hang together is in [`timing`]; who may take over when is a
//!   pure state machine in `election`, which is tested on arbitrary clocks.
//!
//! What remains is the time between the last question and the system call that sends
//! the request: some microseconds of one task that waits for nothing, unless the body is
//! larger than what the connection takes at once, some hundreds of KiB. And what the kernel
//! has taken it may send again, past the end of the lease, to an API server that was
//! cut off. Deletions carry the uid
//! and version of what they are meant for, and applies the uid, so that even then
//! nothing is written to an object that another leader has made anew.

pub mod clock;
mod election;
mod elector;
mod fence;
mod record;
pub mod timing;

pub use clock::{BootClock, Moment, SystemBootClock, TokioClock};
pub use elector::{Elector, ElectorSettings, LeaseName, Role, identity};
pub use fence::{Fence, NotLeader};
pub(crate) use fence::{LastLook, Passage};
pub use timing::{LeaseTiming, TimingError};

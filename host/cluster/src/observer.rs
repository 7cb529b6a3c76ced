//! Whoever counts what goes to the API server.

use crate::resource::Resource;
use http::Method;

/// Is told of requests. It is called on the way and must not take long.
pub trait Observer: Send + Sync {
    /// A request was answered with this status, or ended without an answer.
    fn request(&self, method: &Method, code: Option<u16>);

    /// A watch was interrupted, and lists anew or connects again.
    fn watch_restarted(&self, resource: &Resource);
}

/// Nobody counts.
impl Observer for () {
    fn request(&self, _: &Method, _: Option<u16>) {}

    fn watch_restarted(&self, _: &Resource) {}
}

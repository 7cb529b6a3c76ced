//! From a host name to addresses.

use futures::future::BoxFuture;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Finds the addresses of a host. Asked for each new connection, so its answers may
/// change.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses at this moment.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own: `/etc/hosts`, DNS, and whatever else it is set up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The resolver that is used unless another is given.
pub(crate) fn system() -> Arc<dyn Resolver> {
    Arc::new(SystemResolver)
}

/// Addresses for a port.
pub(crate) fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    let addresses = addresses.into_iter();
    addresses
        .map(|address| SocketAddr::new(address, port))
        .collect()
}

//! The addresses and node ports of Services.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::kinds::{self, ClusterIps};
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Range;

/// The table of Services.
const TABLE: &str = "services";
/// The range that kubeadm gives, too.
const ADDRESSES: ClusterIps = ClusterIps {
    network: Ipv4Addr::new(10, 96, 0, 0),
    prefix: 12,
};

/// Gives a Service the addresses and ports that it lacks; others are left alone.
pub(crate) fn allocate(
    shared: &Shared,
    resource: &Resource,
    object: &mut Value,
) -> Result<(), ApiError> {
    if *resource.table != *TABLE {
        return Ok(());
    }
    let page = shared.store.list(TABLE, &Range::default(), None);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    let others: Vec<Value> = objects.iter().map(|service| service.value()).collect();
    let has_ip = |ip: &str| others.iter().any(|other| other["spec"]["clusterIP"] == ip);
    let has_port = |port: i64| {
        let ports = others
            .iter()
            .filter_map(|other| other["spec"]["ports"].as_array());
        ports.flatten().any(|other| other["nodePort"] == port)
    };
    kinds::allocate_cluster_ip(object, ADDRESSES, &has_ip, &has_port).map_err(ApiError::internal)
}

//! The objects that are applied: from the mesh to the gateway, and from the
//! gateway to the host.

use reeve_sdk::prelude::*;

use crate::config::Config;
use crate::{DESTINATION_RULE, HOSTS, SERVICE_ENTRY, THROUGH_GATEWAY, VIRTUAL_SERVICE};

/// HTTPS, the one way through.
const PORT: u16 = 443;

/// Which way TLS connections to the host go.
pub(crate) fn virtual_service(namespace: &str, config: &Config) -> Object<Value> {
    let host = &config.host;
    let gateway = format!("{}/{}", config.gateway_namespace, config.gateway);
    let from = |gateway: &str| json!([{"gateways": [gateway], "port": PORT, "sniHosts": [host]}]);
    Object::new(
        VIRTUAL_SERVICE
            .object(THROUGH_GATEWAY)
            .in_namespace(namespace),
        json!({
            "hosts": [host],
            "gateways": ["mesh", gateway],
            "exportTo": export_to(namespace, config),
            "tls": [
                {
                    "match": from("mesh"),
                    "route": [{"destination": {
                        "host": service(config), "subset": HOSTS, "port": {"number": PORT},
                    }}],
                },
                {
                    "match": from(&gateway),
                    "route": [{
                        "destination": {"host": host, "port": {"number": PORT}}, "weight": 100,
                    }],
                },
            ],
        }),
    )
}

/// That the host exists.
pub(crate) fn service_entry(namespace: &str, config: &Config) -> Object<Value> {
    Object::new(
        SERVICE_ENTRY.object(HOSTS).in_namespace(namespace),
        json!({
            "hosts": [config.host],
            "ports": [{"number": PORT, "name": "tls", "protocol": "TLS"}],
            "resolution": "DNS",
            "exportTo": export_to(namespace, config),
        }),
    )
}

/// The part of the gateway that connections to the host use.
pub(crate) fn destination_rule(namespace: &str, config: &Config) -> Object<Value> {
    Object::new(
        DESTINATION_RULE
            .object(THROUGH_GATEWAY)
            .in_namespace(namespace),
        json!({
            "host": service(config),
            "subsets": [{"name": HOSTS}],
            "exportTo": export_to(namespace, config),
        }),
    )
}

/// The gateway's Service.
fn service(config: &Config) -> String {
    format!(
        "{}.{}.svc.cluster.local",
        config.gateway, config.gateway_namespace
    )
}

/// Who sees the objects: the Profile's workloads, and the gateway.
fn export_to<'a>(namespace: &'a str, config: &'a Config) -> [&'a str; 2] {
    [namespace, &config.gateway_namespace]
}

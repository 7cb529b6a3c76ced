//! The addresses and node ports of Services: each is given to one at a time.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::kinds::{self, ClusterIps, Pool, Refusal};
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::status::{About, ApiError};
use crate::store::{Object, Range, Store};

/// The table of Services.
const TABLE: &str = "services";
/// The range that kubeadm gives, too.
const ADDRESSES: ClusterIps = ClusterIps {
    network: Ipv4Addr::new(10, 96, 0, 0),
    prefix: 12,
};
/// What stands for no address on purpose.
const NONE: &str = "None";

/// What the Services of one server have; read from the store when it is first asked.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<Option<Taken>>);

/// Which Service, by UID, has an address or port.
#[derive(Debug, Default)]
struct Taken {
    ips: HashMap<String, Box<str>>,
    ports: HashMap<i64, Box<str>>,
    held: HashMap<Box<str>, Held>,
}

/// What one Service has.
#[derive(Debug, Default)]
struct Held {
    ips: Vec<String>,
    ports: Vec<i64>,
}

/// Addresses and ports that nobody else gets until the Service is stored, or is not.
#[must_use = "what is stored has to be kept"]
pub(crate) struct Claim<'a>(MutexGuard<'a, Option<Taken>>);

impl Claim<'_> {
    /// Notes what the stored Service has.
    pub(crate) fn keep(mut self, object: &Object) {
        if let Some(taken) = &mut *self.0 {
            taken.put(&object.value());
        }
    }
}

/// Gives a Service the addresses and ports that it lacks, before it is looked at; others
/// are left alone. `old` is what it replaces.
///
/// # Errors
///
/// 422 for an address or port that it cannot have, 500 when there are none left.
pub(crate) fn allocate<'a>(
    shared: &'a Shared,
    resource: &Resource,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Option<Claim<'a>>, ApiError> {
    if *resource.table != *TABLE {
        return Ok(None);
    }
    let mut claim = Claim(shared.addresses.0.lock());
    let taken = claim.0.get_or_insert_with(|| Taken::read(&shared.store));
    let own = meta::text(object, "uid").to_owned();
    let pool = Pool {
        ips: ADDRESSES,
        ip_used: &|ip| taken.has_ip(ip, &own),
        port_used: &|port| taken.has_port(port, &own),
        dry_run,
    };
    kinds::allocate_for_service(object, old, &pool).map_err(|refusal| refused(object, refusal))?;
    Ok(Some(claim))
}

/// Frees what a Service that is gone had.
pub(crate) fn committed(shared: &Shared, resource: &Resource, object: &Object, removed: bool) {
    if removed
        && *resource.table == *TABLE
        && let Some(taken) = &mut *shared.addresses.0.lock()
    {
        taken.free(object.uid());
    }
}

impl Taken {
    fn read(store: &Store) -> Self {
        let mut taken = Taken::default();
        let page = store.list(TABLE, &Range::default(), None);
        for service in page.map(|page| page.objects).unwrap_or_default() {
            taken.put(&service.value());
        }
        taken
    }

    fn has_ip(&self, ip: &str, own: &str) -> bool {
        self.ips.get(ip).is_some_and(|uid| **uid != *own)
    }

    fn has_port(&self, port: i64, own: &str) -> bool {
        self.ports.get(&port).is_some_and(|uid| **uid != *own)
    }

    fn put(&mut self, service: &Value) {
        let uid: Box<str> = meta::text(service, "uid").into();
        self.free(&uid);
        let held = Held::of(service);
        let ips = held.ips.iter().map(|ip| (ip.clone(), uid.clone()));
        self.ips.extend(ips);
        let ports = held.ports.iter().map(|port| (*port, uid.clone()));
        self.ports.extend(ports);
        self.held.insert(uid, held);
    }

    fn free(&mut self, uid: &str) {
        let Some(held) = self.held.remove(uid) else {
            return;
        };
        for ip in &held.ips {
            self.ips.remove(ip);
        }
        for port in &held.ports {
            self.ports.remove(port);
        }
    }
}

impl Held {
    fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Held::default();
        }
        let texts = spec["clusterIPs"].as_array().into_iter().flatten();
        let mut ips: Vec<&str> = texts.filter_map(Value::as_str).collect();
        ips.extend(spec["clusterIP"].as_str());
        ips.sort_unstable();
        ips.dedup();
        let ports = spec["ports"].as_array().into_iter().flatten();
        Held {
            ips: ips
                .into_iter()
                .filter(|ip| !ip.is_empty() && *ip != NONE)
                .map(str::to_owned)
                .collect(),
            ports: ports
                .map(|port| &port["nodePort"])
                .chain([&spec["healthCheckNodePort"]])
                .filter_map(Value::as_i64)
                .filter(|port| *port != 0)
                .collect(),
        }
    }
}

fn refused(service: &Value, refusal: Refusal) -> ApiError {
    let about = About {
        group: "",
        resource: "Service",
        name: meta::text(service, "name"),
    };
    match refusal {
        Refusal::Invalid(errors) => ApiError::invalid(about, &errors),
        Refusal::Failed(why) => ApiError::internal_error(&why),
        Refusal::Untyped(why) => ApiError::internal(why),
    }
}

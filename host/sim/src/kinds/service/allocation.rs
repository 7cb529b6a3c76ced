//! What the server gives to Services: cluster addresses and ports of nodes.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::ops::Range;

use serde_json::{Value, json};

use super::{
    NONE, families, has_address, has_node_ports, is_balanced, needs_health_check, node_ports,
};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, integer, items, items_mut, set, text};

const SPEC: Path<'static> = Path::new("spec");

/// The ports of nodes that Services get, where a cluster does not say otherwise.
const NODE_PORTS: Range<i64> = 30000..32768;

/// What there is to give, and what of it other Services have.
pub struct Pool<'a> {
    /// The addresses.
    pub ips: ClusterIps,
    /// Whether another Service has an address.
    pub ip_used: &'a dyn Fn(&str) -> bool,
    /// Whether another Service has a port.
    pub port_used: &'a dyn Fn(i64) -> bool,
    /// Whether nothing is stored. Then an address that is taken is no mistake.
    pub dry_run: bool,
}

/// Why a Service does not get what it asks for.
#[derive(Debug)]
pub enum Refusal {
    /// It asks for something that it cannot have.
    Invalid(Errors),
    /// There is nothing left, or what the server looks after for itself is taken.
    Failed(String),
    /// What the real server has no kind of error for.
    Untyped(String),
}

impl Refusal {
    fn invalid(error: FieldError) -> Self {
        let mut errors = Errors::new();
        errors.push(error);
        Refusal::Invalid(errors)
    }
}

/// The addresses that Services get: the usable ones of an IPv4 range.
#[derive(Debug, Clone, Copy)]
pub struct ClusterIps {
    /// The first address of the range, which is the network's own.
    pub network: Ipv4Addr,
    /// The bits of the network's prefix.
    pub prefix: u8,
}

impl ClusterIps {
    /// Whether an address is in the range.
    pub fn has(self, ip: Ipv4Addr) -> bool {
        let host_bits = 32_u32.saturating_sub(u32::from(self.prefix));
        let network = |ip: Ipv4Addr| u64::from(u32::from(ip)) >> host_bits;
        network(ip) == network(self.network)
    }

    /// The first and the last address that are given out: neither the network's own nor the
    /// broadcast address is.
    fn usable(self) -> (Ipv4Addr, Ipv4Addr) {
        let base = u32::from(self.network);
        let bits = 32_u32.saturating_sub(u32::from(self.prefix));
        let last = base | u32::try_from((1_u64 << bits) - 1).unwrap_or(u32::MAX);
        (base.saturating_add(1).into(), last.saturating_sub(1).into())
    }

    /// The first address for which `used` says no; none when all are taken.
    fn free(self, used: &dyn Fn(&str) -> bool) -> Option<String> {
        let (first, last) = self.usable();
        (u32::from(first)..=u32::from(last))
            .map(|ip| Ipv4Addr::from(ip).to_string())
            .find(|ip| !used(ip))
    }
}

/// Gives a Service what it lacks: its cluster address, its address families and ports of
/// nodes. As in the real server this comes before anything else is said about it; `old`
/// is what it replaces.
///
/// # Errors
///
/// A [`Refusal`].
pub fn allocate(service: &mut Value, old: Option<&Value>, pool: &Pool<'_>) -> Result<(), Refusal> {
    let name = text_of_name(service);
    let Some(spec) = service.get_mut("spec") else {
        return Ok(());
    };
    let old = old.and_then(|old| old.get("spec"));
    if !has_address(spec) {
        return Ok(());
    }
    let wrong = families::choose(spec, old);
    if !wrong.is_empty() {
        return Err(Refusal::Invalid(wrong));
    }
    give_address(spec, old, pool, &name)?;
    let mut ports = Ports::new(spec, old, pool);
    match old {
        None => ports.give(spec)?,
        Some(old) => ports.give_again(spec, old)?,
    }
    ports.give_check(spec, old)
}

fn text_of_name(service: &Value) -> String {
    let meta = service.get("metadata").unwrap_or(&Value::Null);
    text(meta, "name").to_owned()
}

/// Gives an address to a Service that had none; one that has another is refused later.
fn give_address(
    spec: &mut Value,
    old: Option<&Value>,
    pool: &Pool<'_>,
    name: &str,
) -> Result<(), Refusal> {
    let wanted = text(spec, "clusterIP").to_owned();
    if wanted.is_empty() {
        let ip = pool.ips.free(pool.ip_used).ok_or_else(|| {
            let why = format!("failed to allocate a serviceIP for Service {name:?}: range is full");
            Refusal::Failed(why)
        })?;
        set(spec, "clusterIPs", json!([ip]));
        set(spec, "clusterIP", ip);
        return Ok(());
    }
    if wanted == NONE || old.is_some_and(has_address) {
        return Ok(());
    }
    let wanted_ip: Option<Ipv4Addr> = wanted.parse().ok();
    let (first, last) = pool.ips.usable();
    let why = if !pool.dry_run && wanted_ip.is_some_and(|ip| !pool.ips.has(ip)) {
        "the provided network does not match the current range".to_owned()
    } else if wanted_ip.is_some_and(|ip| !(first..=last).contains(&ip)) {
        format!(
            "the provided IP ({wanted}) is not in the valid range. The range of valid IPs is \
             {}/{}",
            pool.ips.network, pool.ips.prefix
        )
    } else if !pool.dry_run && (pool.ip_used)(&wanted) {
        "provided IP is already allocated".to_owned()
    } else {
        return Ok(());
    };
    let listed = spec.get("clusterIPs").unwrap_or(&Value::Null);
    Err(Refusal::invalid(FieldError::invalid(
        &SPEC.child("clusterIPs"),
        listed,
        format!("failed to allocate IP {wanted}: {why}"),
    )))
}

/// The ports of nodes that are given to one Service.
struct Ports<'a> {
    is_used: &'a dyn Fn(i64) -> bool,
    /// What it has, also of what it gives back with this change.
    own: BTreeSet<i64>,
    /// What it asks for, which nothing else of it gets by chance.
    asked: BTreeSet<i64>,
}

impl<'a> Ports<'a> {
    fn new(spec: &Value, old: Option<&Value>, pool: &Pool<'a>) -> Self {
        let held = |spec: &Value| {
            let mut all = node_ports(spec);
            all.extend(health_check_port(spec));
            all
        };
        Ports {
            is_used: pool.port_used,
            own: old.map(held).unwrap_or_default(),
            asked: held(spec),
        }
    }

    /// Takes a port that is asked for.
    fn take(&mut self, number: i64) -> Result<(), String> {
        if !NODE_PORTS.contains(&number) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start,
                NODE_PORTS.end - 1
            ));
        }
        if (self.is_used)(number) || !self.own.insert(number) {
            return Err("provided port is already allocated".to_owned());
        }
        Ok(())
    }

    fn take_at(&mut self, index: usize, number: i64) -> Result<(), Refusal> {
        self.take(number).map_err(|why| {
            let list = SPEC.child("ports");
            let port = list.index(index);
            let path = port.child("nodePort");
            Refusal::invalid(FieldError::invalid(&path, &number.into(), why))
        })
    }

    fn any(&mut self) -> Result<i64, Refusal> {
        let is_free = |number: &i64| {
            let is_own = self.own.contains(number) || self.asked.contains(number);
            !is_own && !(self.is_used)(*number)
        };
        let free = NODE_PORTS.into_iter().find(is_free).ok_or_else(|| {
            Refusal::Failed("failed to allocate a nodePort: range is full".to_owned())
        })?;
        self.own.insert(free);
        Ok(free)
    }

    /// Gives ports to a new Service: one for each number of a port, whatever protocols
    /// it has.
    fn give(&mut self, spec: &mut Value) -> Result<(), Refusal> {
        let gives = gives_node_ports(spec);
        let mut asked = HashMap::new();
        for port in items(spec, "ports").filter(|_| has_node_ports(spec)) {
            if let Some(number) = node_port(port) {
                asked.entry(integer(port, "port")).or_insert(number);
            }
        }
        if asked.is_empty() && !gives {
            return Ok(());
        }
        let mut given: HashMap<Option<i64>, i64> = HashMap::new();
        for (index, port) in items_mut(spec, "ports").enumerate() {
            let wanted = node_port(port);
            if wanted.is_none() && !gives {
                continue;
            }
            let of = integer(port, "port");
            let number = match (given.get(&of), wanted) {
                (Some(shared), None) => *shared,
                (Some(shared), Some(wanted)) if *shared == wanted => wanted,
                (Some(_), Some(wanted)) => {
                    self.take_at(index, wanted)?;
                    wanted
                }
                (None, _) => {
                    let number = match asked.get(&of) {
                        Some(asked) => {
                            self.take_at(index, *asked)?;
                            *asked
                        }
                        None => self.any()?,
                    };
                    given.insert(of, number);
                    number
                }
            };
            set(port, "nodePort", number);
        }
        Ok(())
    }

    /// Gives ports to a Service that is there already: to each of its ports its own.
    fn give_again(&mut self, spec: &mut Value, old: &Value) -> Result<(), Refusal> {
        if !has_node_ports(spec) {
            return Ok(());
        }
        let gives = gives_node_ports(spec);
        let mut kept = node_ports(old);
        let mut seen = BTreeSet::new();
        for (index, port) in items_mut(spec, "ports").enumerate() {
            let number = match node_port(port) {
                None if !gives => continue,
                None => self.any()?,
                Some(number) => {
                    if kept.insert(number) {
                        self.take_at(index, number)?;
                    }
                    number
                }
            };
            set(port, "nodePort", number);
            let protocol = text(port, "protocol").to_owned();
            if !seen.insert((protocol.clone(), number)) {
                let why = format!("duplicate nodePort: {{{protocol} {number}}}");
                return Err(Refusal::Untyped(why));
            }
        }
        Ok(())
    }

    /// Gives a port for checks to a Service that did not need one before.
    fn give_check(&mut self, spec: &mut Value, old: Option<&Value>) -> Result<(), Refusal> {
        if !needs_health_check(spec) || old.is_some_and(needs_health_check) {
            return Ok(());
        }
        if let Some(number) = health_check_port(spec) {
            return self.take(number).map_err(|why| {
                let what = format!("failed to allocate requested HealthCheck NodePort {number}");
                Refusal::Failed(format!("{what}: {why}"))
            });
        }
        let number = self.any().map_err(|_| {
            let why = "failed to allocate a HealthCheck NodePort 0: range is full";
            Refusal::Failed(why.to_owned())
        })?;
        set(spec, "healthCheckNodePort", number);
        Ok(())
    }
}

/// Whether ports get node ports unasked.
fn gives_node_ports(spec: &Value) -> bool {
    has_node_ports(spec) && (!is_balanced(spec) || flag(spec, "allocateLoadBalancerNodePorts"))
}

fn node_port(port: &Value) -> Option<i64> {
    integer(port, "nodePort").filter(|number| *number != 0)
}

fn health_check_port(spec: &Value) -> Option<i64> {
    integer(spec, "healthCheckNodePort").filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPS: ClusterIps = ClusterIps {
        network: Ipv4Addr::new(10, 0, 0, 0),
        prefix: 30,
    };

    fn allocated(spec: &Value, old: Option<&Value>) -> Result<Value, Refusal> {
        let mut service = json!({ "spec": spec });
        let old = old.map(|spec| json!({ "spec": spec }));
        let pool = Pool {
            ips: IPS,
            ip_used: &|_| false,
            port_used: &|port| port == 30003,
            dry_run: false,
        };
        allocate(&mut service, old.as_ref(), &pool)?;
        Ok(service["spec"].take())
    }

    fn given(spec: &Value) -> Vec<Option<i64>> {
        items(spec, "ports").map(node_port).collect()
    }

    #[track_caller]
    fn check_ports(spec: &Value, old: Option<&Value>, expected: &[Option<i64>]) {
        assert_eq!(given(&allocated(spec, old).unwrap()), expected);
    }

    #[test]
    fn addresses_and_ports_are_given_once() {
        let mut service = json!({"spec": {"type": "NodePort", "ports": [
            {"port": 80, "protocol": "TCP"},
            {"port": 81, "protocol": "TCP", "nodePort": 30000},
        ]}});
        let pool = |ip_used| Pool {
            ips: IPS,
            ip_used,
            port_used: &|_| false,
            dry_run: false,
        };
        allocate(&mut service, None, &pool(&|ip| ip == "10.0.0.1")).unwrap();
        let spec = &service["spec"];
        assert_eq!(spec["clusterIP"], "10.0.0.2");
        assert_eq!(spec["clusterIPs"], json!(["10.0.0.2"]));
        assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
        assert_eq!(spec["ports"][0]["nodePort"], 30001);
        let once = service.clone();
        allocate(&mut service, Some(&once), &pool(&|_| false)).unwrap();
        assert_eq!(service, once);
        let mut other = json!({"spec": {"type": "ClusterIP"}});
        assert!(allocate(&mut other, None, &pool(&|_| true)).is_err());
    }

    #[test]
    fn only_usable_addresses_are_had_and_a_dry_run_takes_none() {
        let said = |ip: &str, dry_run: bool| {
            let mut service =
                json!({"spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip]}});
            let pool = Pool {
                ips: IPS,
                ip_used: &|ip| ip == "10.0.0.1",
                port_used: &|_| false,
                dry_run,
            };
            match allocate(&mut service, None, &pool) {
                Ok(()) => String::new(),
                Err(Refusal::Invalid(errors)) => errors.aggregate(),
                Err(Refusal::Failed(why) | Refusal::Untyped(why)) => why,
            }
        };
        let refused = |ip: &str, why: &str| {
            format!("spec.clusterIPs: Invalid value: [\"{ip}\"]: failed to allocate IP {ip}: {why}")
        };
        let outside = |ip: &str| {
            let why = "is not in the valid range. The range of valid IPs is 10.0.0.0/30";
            refused(ip, &format!("the provided IP ({ip}) {why}"))
        };
        for edge in ["10.0.0.0", "10.0.0.3"] {
            assert_eq!(said(edge, false), outside(edge));
        }
        let other = "the provided network does not match the current range";
        assert_eq!(said("10.0.1.1", false), refused("10.0.1.1", other));
        assert_eq!(said("10.0.1.1", true), outside("10.0.1.1"));
        let taken = "provided IP is already allocated";
        assert_eq!(said("10.0.0.1", false), refused("10.0.0.1", taken));
        assert_eq!(said("10.0.0.1", true), "");
        assert_eq!(said("10.0.0.2", false), "");
    }

    #[test]
    fn protocols_of_one_port_share_a_node_port() {
        let ports = json!([
            {"name": "a", "port": 53, "protocol": "TCP"},
            {"name": "b", "port": 53, "protocol": "UDP"},
            {"name": "c", "port": 54, "protocol": "TCP"},
            {"name": "d", "port": 54, "protocol": "UDP", "nodePort": 30100},
        ]);
        let spec = |kind: &str| json!({"type": kind, "ports": ports});
        let nodes = spec("NodePort");
        let shared = [Some(30000), Some(30000), Some(30100), Some(30100)];
        check_ports(&nodes, None, &shared);
        let each = [Some(30000), Some(30001), Some(30002), Some(30100)];
        check_ports(&nodes, Some(&spec("ClusterIP")), &each);
        // Not asked for: only what is named.
        let named = [None, None, None, Some(30100)];
        check_ports(&spec("LoadBalancer"), None, &named);
    }

    #[test]
    fn ports_that_cannot_be_had_are_refused() {
        let check = |ports: Value, old: Option<&Value>, expected: &str| {
            let spec = json!({"type": "NodePort", "ports": ports});
            let found = match allocated(&spec, old) {
                Err(Refusal::Invalid(errors)) => errors.aggregate(),
                Err(Refusal::Failed(why) | Refusal::Untyped(why)) => why,
                Ok(spec) => spec.to_string(),
            };
            assert_eq!(found, expected);
        };
        let taken = |index: usize, number: i64| {
            format!(
                "spec.ports[{index}].nodePort: Invalid value: {number}: provided port is already \
                 allocated"
            )
        };
        let port = |number: i64, node_port: i64| json!({"port": number, "protocol": "TCP", "nodePort": node_port});
        check(json!([port(80, 30003)]), None, &taken(0, 30003));
        check(
            json!([port(80, 30001), port(81, 30001)]),
            None,
            &taken(1, 30001),
        );
        check(
            json!([port(80, 80)]),
            None,
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. \
             The range of valid ports is 30000-32767",
        );
        let old = json!({"type": "NodePort", "ports": [port(80, 30001)]});
        check(
            json!([port(80, 30001), port(81, 30001)]),
            Some(&old),
            "duplicate nodePort: {TCP 30001}",
        );
    }

    #[test]
    fn local_traffic_gets_a_port_for_checks() {
        let balanced = |policy: &str| {
            json!({
                "type": "LoadBalancer", "externalTrafficPolicy": policy,
                "ports": [{"port": 80, "nodePort": 30000}],
            })
        };
        let made = allocated(&balanced("Local"), None).unwrap();
        assert_eq!(made["healthCheckNodePort"], 30001);
        let made = allocated(&balanced("Cluster"), None).unwrap();
        assert!(made.get("healthCheckNodePort").is_none());
        let made = allocated(&balanced("Local"), Some(&balanced("Cluster"))).unwrap();
        assert_eq!(made["healthCheckNodePort"], 30001);
        let mut asking = balanced("Local");
        asking["healthCheckNodePort"] = json!(30000);
        let Err(Refusal::Failed(why)) = allocated(&asking, None) else {
            panic!("taken by its own port");
        };
        assert_eq!(
            why,
            "failed to allocate requested HealthCheck NodePort 30000: provided port is already \
             allocated"
        );
    }
}

//! Services, endpoints, ingresses, network policies, and addresses.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE, UNSET};
use crate::kinds::edit::{integer, items, text};

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "",
        "Service",
        &[
            Column::NAME,
            Column::text("Type"),
            Column::text("Cluster-IP"),
            Column::text("External-IP"),
            Column::text("Port(s)"),
            Column::AGE,
            Column::wide("Selector"),
        ],
        |o| {
            vec![
                o.name(),
                json!(o.text("/spec/type")),
                json!(o.text_or("/spec/clusterIPs/0", NONE)),
                json!(external_ip(o)),
                json!(ports(o)),
                o.age(),
                json!(o.labels("/spec/selector")),
            ]
        },
    ),
    Layout::of(
        "",
        "Endpoints",
        &[Column::NAME, Column::text("Endpoints"), Column::AGE],
        |o| vec![o.name(), json!(endpoints(o)), o.age()],
    ),
    Layout::of(
        "networking.k8s.io",
        "Ingress",
        &[
            Column::NAME,
            Column::text("Class"),
            Column::text("Hosts"),
            Column::text("Address"),
            Column::text("Ports"),
            Column::AGE,
        ],
        |o| {
            let ports = if o.len("/spec/tls") > 0 {
                "80, 443"
            } else {
                "80"
            };
            vec![
                o.name(),
                json!(o.text_or("/spec/ingressClassName", NONE)),
                json!(hosts(o)),
                json!(balancer(o).join(",")),
                json!(ports),
                o.age(),
            ]
        },
    ),
    Layout::of(
        "networking.k8s.io",
        "NetworkPolicy",
        &[Column::NAME, Column::text("Pod-Selector"), Column::AGE],
        |o| vec![o.name(), json!(o.selector("/spec/podSelector")), o.age()],
    ),
    Layout::of(
        "networking.k8s.io",
        "IngressClass",
        &[
            Column::NAME,
            Column::text("Controller"),
            Column::text("Parameters"),
            Column::AGE,
        ],
        |o| {
            vec![
                o.name_or_default("ingressclass.kubernetes.io/is-default-class"),
                json!(o.text("/spec/controller")),
                json!(parameters(o)),
                o.age(),
            ]
        },
    ),
    Layout::of(
        "networking.k8s.io",
        "ServiceCIDR",
        &[Column::NAME, Column::text("CIDRs"), Column::AGE],
        |o| vec![o.name(), json!(o.texts("/spec/cidrs").join(",")), o.age()],
    ),
    // The server has one cell more than columns.
    Layout::of(
        "networking.k8s.io",
        "IPAddress",
        &[Column::NAME, Column::text("ParentRef")],
        |o| vec![o.name(), json!(parent(o)), o.age()],
    ),
    Layout::of(
        "discovery.k8s.io",
        "EndpointSlice",
        &[
            Column::NAME,
            Column::text("AddressType"),
            Column::text("Ports"),
            Column::text("Endpoints"),
            Column::AGE,
        ],
        |o| {
            let addresses = o.list("/endpoints");
            let addresses = addresses.flat_map(|endpoint| items(endpoint, "addresses"));
            let addresses = addresses.filter_map(|address| address.as_str().map(str::to_owned));
            vec![
                o.name(),
                json!(o.text("/addressType")),
                json!(first(o.list("/ports").map(port_of_slice))),
                json!(first(addresses)),
                o.age(),
            ]
        },
    ),
];

/// How many items of a list are shown in a cell.
const SHOWN: usize = 3;

/// The first items, and how many there are besides.
fn first(items: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = items.collect();
    match all.len() {
        n if n > SHOWN => format!("{} + {} more...", all[..SHOWN].join(","), n - SHOWN),
        _ if all.concat().is_empty() && all.len() < 2 => UNSET.to_owned(),
        _ => all.join(","),
    }
}

fn port_of_slice(port: &Value) -> String {
    match (integer(port, "port"), text(port, "name")) {
        (Some(number), _) => number.to_string(),
        (None, "") if port.get("name").is_none() => "*".to_owned(),
        (None, name) => name.to_owned(),
    }
}

/// Where the parameters of a class are.
fn parameters(o: &Cells<'_>) -> String {
    let Some(reference) = o.at("/spec/parameters").filter(|found| found.is_object()) else {
        return NONE.to_owned();
    };
    let (kind, name) = (text(reference, "kind"), text(reference, "name"));
    match reference.get("apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// What an address belongs to.
fn parent(o: &Cells<'_>) -> String {
    let Some(parent) = o.at("/spec/parentRef").filter(|found| found.is_object()) else {
        return NONE.to_owned();
    };
    let mut shown = text(parent, "resource").to_lowercase();
    for (separator, field) in [(".", "group"), ("/", "namespace")] {
        let value = text(parent, field);
        if !value.is_empty() {
            shown.push_str(separator);
            shown.push_str(&value.to_lowercase());
        }
    }
    format!("{shown}/{}", text(parent, "name"))
}

fn external_ip(o: &Cells<'_>) -> String {
    let own: Vec<&str> = o
        .list("/spec/externalIPs")
        .filter_map(Value::as_str)
        .collect();
    let shown = match o.text("/spec/type") {
        "ExternalName" => return o.text("/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let mut all = balancer(o);
            all.extend(own.iter().map(|&ip| ip.to_owned()));
            if all.is_empty() {
                return "<pending>".to_owned();
            }
            all.join(",")
        }
        "ClusterIP" | "NodePort" => own.join(","),
        _ => return "<unknown>".to_owned(),
    };
    if shown.is_empty() {
        NONE.to_owned()
    } else {
        shown
    }
}

/// The addresses of the load balancer.
fn balancer(o: &Cells<'_>) -> Vec<String> {
    let mut all: Vec<String> = o
        .list("/status/loadBalancer/ingress")
        .map(|ingress| match text(ingress, "ip") {
            "" => text(ingress, "hostname").to_owned(),
            ip => ip.to_owned(),
        })
        .filter(|address| !address.is_empty())
        .collect();
    all.sort();
    all.dedup();
    all
}

fn ports(o: &Cells<'_>) -> String {
    let ports: Vec<String> = o
        .list("/spec/ports")
        .map(|port| {
            let number = integer(port, "port").unwrap_or(0);
            let protocol = text(port, "protocol");
            match integer(port, "nodePort") {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() {
        return NONE.to_owned();
    }
    ports.join(",")
}

fn hosts(o: &Cells<'_>) -> String {
    let rules = o.len("/spec/rules");
    let hosts: Vec<&str> = o
        .list("/spec/rules")
        .map(|rule| text(rule, "host"))
        .filter(|host| !host.is_empty())
        .collect();
    if hosts.is_empty() {
        return "*".to_owned();
    }
    let shown = hosts.iter().take(SHOWN).copied().collect::<Vec<_>>();
    if hosts.len() > SHOWN {
        return format!("{} + {} more...", shown.join(","), rules - SHOWN);
    }
    shown.join(",")
}

fn endpoints(o: &Cells<'_>) -> String {
    if o.len("/subsets") == 0 {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in o.list("/subsets") {
        let addresses = || items(subset, "addresses").map(|address| text(address, "ip"));
        let mut ports = items(subset, "ports").peekable();
        if ports.peek().is_none() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = integer(port, "port").unwrap_or(0);
            all.extend(addresses().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    match all.len() {
        n if n > SHOWN => format!("{} + {} more...", all[..SHOWN].join(","), n - SHOWN),
        _ => all.join(","),
    }
}

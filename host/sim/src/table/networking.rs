//! Services, endpoints, ingresses and network policies.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE};
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
];

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
    const SHOWN: usize = 3;
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
    const SHOWN: usize = 3;
    let mut all = Vec::new();
    for subset in o.list("/subsets") {
        for address in items(subset, "addresses") {
            let ip = text(address, "ip");
            let mut ports = items(subset, "ports").peekable();
            if ports.peek().is_none() {
                all.push(ip.to_owned());
            }
            all.extend(ports.map(|port| format!("{ip}:{}", integer(port, "port").unwrap_or(0))));
        }
    }
    match all.len() {
        0 => NONE.to_owned(),
        n if n > SHOWN => format!("{} + {} more...", all[..SHOWN].join(","), n - SHOWN),
        _ => all.join(","),
    }
}

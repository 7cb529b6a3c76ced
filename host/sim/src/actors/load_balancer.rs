//! Services of type LoadBalancer: how they get an address.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::context::{Context, Kind, MANAGER};
use super::tables::SERVICES;
use crate::kinds::edit::{set, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// The first address that is given: of the range for tests of network devices,
/// which leads nowhere.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How many addresses there are.
const COUNT: u32 = (1 << 17) - 2;
const SOURCE: &str = "service-controller";
const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";

pub(super) fn reconcile(context: &mut Context<'_>, service: &Value) -> Result<(), ApiError> {
    let balanced = text_at(service, "/spec/type") == "LoadBalancer"
        && text_at(service, "/spec/loadBalancerClass").is_empty();
    let addressed = service.pointer("/status/loadBalancer/ingress").is_some();
    if !balanced || meta::is_terminating(service) {
        if addressed {
            context.change_status(SERVICES, service, MANAGER, |service| {
                set(&mut service["status"], "loadBalancer", json!({}));
            })?;
        }
        return hold(context, service, false);
    }
    context.complain(service);
    hold(context, service, true)?;
    if addressed {
        return Ok(());
    }
    let script = context.script(service, &[]);
    if script.stalled {
        return Ok(());
    }
    let since = context.since(
        service,
        "load balancer",
        meta::text(service, "creationTimestamp"),
    );
    let ready = since + script.ready_after;
    if ready > context.now() {
        context.wake_at(ready);
        return Ok(());
    }
    let address = free(context, service).to_string();
    context.change_status(SERVICES, service, MANAGER, |service| {
        let ingress = json!([{"ip": address, "ipMode": "VIP"}]);
        set(
            &mut service["status"],
            "loadBalancer",
            json!({"ingress": ingress}),
        );
    })?;
    context.event(
        SOURCE,
        service,
        Kind::Normal,
        "EnsuredLoadBalancer",
        "Ensured load balancer",
    );
    Ok(())
}

/// Holds a Service back as long as it has a load balancer, or lets it go.
fn hold(context: &Context<'_>, service: &Value, held: bool) -> Result<(), ApiError> {
    let finalizers = service
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    let is_held = finalizers
        .into_iter()
        .flatten()
        .any(|finalizer| finalizer == CLEANUP);
    if is_held == held {
        return Ok(());
    }
    context.change(SERVICES, service, MANAGER, |service| {
        let metadata = meta::of_mut(service);
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Value::Array(finalizers) = finalizers {
            finalizers.retain(|finalizer| finalizer != CLEANUP);
            if held {
                finalizers.push(json!(CLEANUP));
            }
            if finalizers.is_empty() {
                metadata.remove("finalizers");
            }
        }
    })
}

/// The address that is asked for, or the first that is free.
fn free(context: &Context<'_>, service: &Value) -> Ipv4Addr {
    if let Ok(wanted) = text_at(service, "/spec/loadBalancerIP").parse() {
        return wanted;
    }
    let taken: Vec<Ipv4Addr> = context
        .list(SERVICES, "")
        .iter()
        .filter_map(|other| {
            text_at(other, "/status/loadBalancer/ingress/0/ip")
                .parse()
                .ok()
        })
        .collect();
    let first = u32::from(FIRST);
    let mut all = (first..first + COUNT).map(Ipv4Addr::from);
    all.find(|address| !taken.contains(address))
        .unwrap_or(FIRST)
}

//! Services and Ingresses: whether to wait for an address.
//!
//! Argo CD waits for both. Many clusters never give an Ingress an address (Argo
//! CD issues 997, 1704, 14607, 28345), so there waiting is what one asks for; a
//! Service of type LoadBalancer without an address serves nobody, so there it is
//! what one waives. Both with `reeve.dev/await-address`.

use super::object::Object;
use super::{Context, Health};

pub(super) fn service(object: Object<'_>, context: &Context<'_>) -> Health {
    let balanced = object.text("/spec/type") == Some("LoadBalancer");
    address(
        object,
        balanced && context.overrides.await_address != Some(false),
    )
}

pub(super) fn ingress(object: Object<'_>, context: &Context<'_>) -> Health {
    address(object, context.overrides.await_address == Some(true))
}

fn address(object: Object<'_>, awaited: bool) -> Health {
    let has_one = object
        .items("/status/loadBalancer/ingress")
        .next()
        .is_some();
    if awaited && !has_one {
        return Health::progressing("it has no address yet");
    }
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check_in, context};
    use serde_json::json;

    #[test]
    fn addresses_are_awaited_where_they_matter() {
        let addressed = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
        let none = json!({"loadBalancer": {}});
        let waiting = (Progressing, "it has no address yet");
        let fine = (Healthy, "");
        for (api_version, kind, class, status, awaited, expected) in [
            ("v1", "Service", "ClusterIP", &none, None, fine),
            ("v1", "Service", "ClusterIP", &none, Some(true), fine),
            ("v1", "Service", "LoadBalancer", &none, None, waiting),
            ("v1", "Service", "LoadBalancer", &none, Some(true), waiting),
            ("v1", "Service", "LoadBalancer", &none, Some(false), fine),
            ("v1", "Service", "LoadBalancer", &addressed, None, fine),
            ("networking.k8s.io/v1", "Ingress", "", &none, None, fine),
            (
                "networking.k8s.io/v1",
                "Ingress",
                "",
                &none,
                Some(false),
                fine,
            ),
            (
                "networking.k8s.io/v1",
                "Ingress",
                "",
                &none,
                Some(true),
                waiting,
            ),
            (
                "networking.k8s.io/v1",
                "Ingress",
                "",
                &addressed,
                Some(true),
                fine,
            ),
            (
                "extensions/v1beta1",
                "Ingress",
                "",
                &none,
                Some(true),
                waiting,
            ),
            // A Service of Knative is another kind.
            (
                "serving.knative.dev/v1",
                "Service",
                "LoadBalancer",
                &none,
                None,
                fine,
            ),
        ] {
            let object = json!({"apiVersion": api_version, "kind": kind,
                "spec": {"type": class}, "status": status});
            let mut context = context();
            context.overrides.await_address = awaited;
            check_in(&object, &context, expected.0, expected.1);
        }
    }
}

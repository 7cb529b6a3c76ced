//! A guest for benchmarks: twelve NetworkPolicies for each Profile, in the namespace
//! of its name, each of about the size of an honest one.

use reeve_sdk::prelude::*;

const POLICIES: u16 = 12;
const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");

#[input]
struct Profile {
    metadata: Metadata,
}

#[config]
#[derive(Default)]
struct Config {}

fn manifest(_: &Config) -> Manifest {
    Manifest::controller(PROFILE)
        .projection(["/metadata/name"])
        .writes(NETWORK_POLICY, Scope::NamespaceNamedLikePrimary)
}

/// What may talk with one of the services of a profile.
#[output]
struct Spec {
    pod_selector: Selector,
    policy_types: [&'static str; 2],
    ingress: [Ingress; 1],
    egress: [Egress; 1],
}

#[output]
struct Selector {
    match_labels: Labels,
}

#[output]
struct Labels {
    #[serde(rename = "app.kubernetes.io/name")]
    name: Option<String>,
    #[serde(rename = "kubernetes.io/metadata.name")]
    namespace: Option<String>,
}

#[output]
struct Ingress {
    from: [Peer; 1],
    ports: [Port; 1],
}

#[output]
struct Egress {
    to: [Peer; 1],
    ports: [Port; 1],
}

#[output]
struct Peer {
    namespace_selector: Selector,
    pod_selector: Selector,
}

#[output]
struct Port {
    protocol: &'static str,
    port: u16,
}

impl Selector {
    fn app(name: String) -> Self {
        let (name, namespace) = (Some(name), None);
        Self {
            match_labels: Labels { name, namespace },
        }
    }

    fn namespace(name: &str) -> Self {
        let (name, namespace) = (None, Some(name.to_owned()));
        Self {
            match_labels: Labels { name, namespace },
        }
    }
}

impl Peer {
    fn new(namespace: &str, app: String) -> Self {
        Self {
            namespace_selector: Selector::namespace(namespace),
            pod_selector: Selector::app(app),
        }
    }
}

fn policy(profile: &str, number: u16) -> Object<Spec> {
    let port = |base| Port {
        protocol: "TCP",
        port: base + number,
    };
    let name = format!("warden-{number:02}");
    Object::new(
        NETWORK_POLICY.object(name).in_namespace(profile),
        Spec {
            pod_selector: Selector::app(format!("service-{number}")),
            policy_types: ["Ingress", "Egress"],
            ingress: [Ingress {
                from: [Peer::new("monitoring", format!("collector-{number}"))],
                ports: [port(8000)],
            }],
            egress: [Egress {
                to: [Peer::new("databases", format!("database-{number}"))],
                ports: [port(5000)],
            }],
        },
    )
}

fn reconcile(profile: Profile, _: &Config, _: &Context) -> Result<Outcome, Failure> {
    let profile = profile.metadata.name;
    Ok(Outcome::of(
        (0..POLICIES).map(|number| policy(&profile, number)),
    ))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_sdk::Plugin;

    #[test]
    fn each_profile_gets_policies_of_different_names() {
        let profile = br#"{"metadata": {"name": "alice"}}"#;
        let outcome = ReevePlugin::reconcile(profile, b"{}", &Context::test()).unwrap();
        let names: std::collections::BTreeSet<String> = outcome
            .objects_json()
            .iter()
            .map(|policy| policy["metadata"]["name"].to_string())
            .collect();
        assert_eq!(names.len(), usize::from(POLICIES));
    }
}

//! What a row of the table says, and the object that it stands for.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use crate::NETWORK_POLICY;
use crate::config::Config;
use crate::gates::Gate;

/// One policy.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// When it is there.
    pub(crate) gate: Gate,
    /// Whether the preset readme has it.
    pub(crate) readme: bool,
    /// Whether the preset main has it.
    pub(crate) main: bool,
    /// The pods that it is for.
    pub(crate) pods: Pods,
    pub(crate) ingress: &'static [Rule],
    pub(crate) egress: &'static [Rule],
}

/// Labels that things have.
pub(crate) type Labels = &'static [(&'static str, &'static str)];

/// Pods with these labels, of which these expressions hold.
pub(crate) struct Pods {
    pub(crate) labels: Labels,
    pub(crate) expressions: &'static [Expression],
}

/// A requirement on a label.
pub(crate) enum Expression {
    Exists(&'static str),
    In(&'static str, &'static [&'static str]),
    NotIn(&'static str, &'static [&'static str]),
}

/// Traffic with any of these peers on any of these ports, or on all.
pub(crate) struct Rule {
    pub(crate) peers: &'static [Peer],
    pub(crate) ports: &'static [Port],
}

/// The other end.
pub(crate) enum Peer {
    /// All of namespaces with these labels.
    Namespaces(Labels),
    /// Pods with these labels in namespaces with those.
    PodsIn(Labels, Labels),
    /// Pods of the policy's own namespace.
    Pods(Pods),
    /// All addresses but private ones.
    Public,
    /// All addresses.
    Anywhere,
    /// Where the configuration says that the database is.
    Postgres,
}

/// A TCP port.
pub(crate) enum Port {
    Number(u16),
    Named(&'static str),
}

impl Policy {
    /// The policy for one namespace.
    pub(crate) fn object(&self, namespace: &str, config: &Config) -> Object<Spec> {
        let mut policy_types = Vec::new();
        if !self.ingress.is_empty() {
            policy_types.push("Ingress");
        }
        if !self.egress.is_empty() {
            policy_types.push("Egress");
        }
        let ingress = self.ingress.iter().map(|rule| IngressRule {
            from: rule.peers(config),
            ports: rule.ports(),
        });
        let egress = self.egress.iter().map(|rule| EgressRule {
            to: rule.peers(config),
            ports: rule.ports(),
        });
        Object::new(
            NETWORK_POLICY.object(self.name).in_namespace(namespace),
            Spec {
                pod_selector: self.pods.selector(),
                policy_types,
                ingress: some(ingress),
                egress: some(egress),
            },
        )
    }
}

impl Rule {
    fn peers(&self, config: &Config) -> Vec<WrittenPeer> {
        self.peers
            .iter()
            .flat_map(|peer| peer.written(config))
            .collect()
    }

    fn ports(&self) -> Option<Vec<WrittenPort>> {
        some(self.ports.iter().map(|port| WrittenPort {
            protocol: "TCP",
            port: match port {
                Port::Number(number) => WrittenNumber::Number(*number),
                Port::Named(name) => WrittenNumber::Named(name),
            },
        }))
    }
}

impl Peer {
    /// One peer, or one for each configured block.
    fn written(&self, config: &Config) -> Vec<WrittenPeer> {
        let block = |cidr: &str, except| WrittenPeer {
            ip_block: Some(Block {
                cidr: cidr.to_owned(),
                except,
            }),
            ..WrittenPeer::default()
        };
        vec![match self {
            Self::Namespaces(labels) => WrittenPeer {
                namespace_selector: Some(Selector::of(labels)),
                ..WrittenPeer::default()
            },
            Self::PodsIn(pods, namespaces) => WrittenPeer {
                namespace_selector: Some(Selector::of(namespaces)),
                pod_selector: Some(Selector::of(pods)),
                ..WrittenPeer::default()
            },
            Self::Pods(pods) => WrittenPeer {
                pod_selector: Some(pods.selector()),
                ..WrittenPeer::default()
            },
            Self::Public => block(ANYWHERE, Some(&PRIVATE)),
            Self::Anywhere => block(ANYWHERE, None),
            Self::Postgres => {
                let blocks = config.postgres_blocks.iter();
                return blocks.map(|cidr| block(cidr, None)).collect();
            }
        }]
    }
}

impl Pods {
    fn selector(&self) -> Selector {
        let expressions = self.expressions.iter().map(|expression| {
            let (key, operator, values) = match expression {
                Expression::Exists(key) => (*key, "Exists", None),
                Expression::In(key, values) => (*key, "In", Some(*values)),
                Expression::NotIn(key, values) => (*key, "NotIn", Some(*values)),
            };
            Requirement {
                key,
                operator,
                values,
            }
        });
        Selector {
            match_expressions: some(expressions),
            ..Selector::of(self.labels)
        }
    }
}

/// A list, or none when it is empty: then the policy does not speak of it, rather
/// than of nothing.
fn some<T>(items: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let items: Vec<T> = items.collect();
    Some(items).filter(|items| !items.is_empty())
}

const ANYWHERE: &str = "0.0.0.0/0";
const PRIVATE: [&str; 3] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

/// The spec of a NetworkPolicy.
#[output]
pub(crate) struct Spec {
    pod_selector: Selector,
    policy_types: Vec<&'static str>,
    ingress: Option<Vec<IngressRule>>,
    egress: Option<Vec<EgressRule>>,
}

#[output]
struct IngressRule {
    from: Vec<WrittenPeer>,
    ports: Option<Vec<WrittenPort>>,
}

#[output]
struct EgressRule {
    to: Vec<WrittenPeer>,
    ports: Option<Vec<WrittenPort>>,
}

#[output]
#[derive(Default)]
struct WrittenPeer {
    ip_block: Option<Block>,
    namespace_selector: Option<Selector>,
    pod_selector: Option<Selector>,
}

#[output]
struct Block {
    cidr: String,
    except: Option<&'static [&'static str]>,
}

#[output]
struct Selector {
    match_labels: Option<BTreeMap<&'static str, &'static str>>,
    match_expressions: Option<Vec<Requirement>>,
}

impl Selector {
    fn of(labels: Labels) -> Self {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        Self {
            match_labels: Some(labels).filter(|labels| !labels.is_empty()),
            match_expressions: None,
        }
    }
}

#[output]
struct Requirement {
    key: &'static str,
    operator: &'static str,
    values: Option<&'static [&'static str]>,
}

#[output]
struct WrittenPort {
    port: WrittenNumber,
    protocol: &'static str,
}

/// A number or a name, as either is written.
#[output]
#[serde(untagged)]
enum WrittenNumber {
    Number(u16),
    Named(&'static str),
}

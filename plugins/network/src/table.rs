//! The policies, one row each.

use crate::gates::Gate;
use crate::policy::{Expression, Labels, Peer, Pods, Policy, Port, Rule};

const CLASSIFICATION: &str = "data.statcan.gc.ca/classification";
const PROTECTED_B: &[&str] = &["protected-b"];
const INSTANCE: &str = "app.kubernetes.io/instance";
const METADATA_NAME: &str = "kubernetes.io/metadata.name";

/// Namespaces of the system.
const SYSTEM: Labels = &[("namespace.statcan.gc.ca/purpose", "system")];
/// Namespaces of the platform's services.
const DAAAS: Labels = &[("namespace.statcan.gc.ca/purpose", "daaas")];
/// The namespace of Istio's gateways.
const ISTIO: Labels = &[
    ("install.operator.istio.io/owner-name", "istio"),
    ("namespace.statcan.gc.ca/purpose", "system"),
];
/// The namespaces of MinIO.
const MINIO: Labels = &[
    ("namespace.statcan.gc.ca/purpose", "daaas"),
    ("namespace.statcan.gc.ca/use", "minio"),
];

const IS_UNCLASSIFIED: Expression = Expression::NotIn(CLASSIFICATION, PROTECTED_B);
const IS_PROTECTED_B: Expression = Expression::In(CLASSIFICATION, PROTECTED_B);
const IS_NOTEBOOK: Expression = Expression::Exists("notebook-name");

const ALL: Pods = pods(&[], &[]);
/// Also pods that do not say what they are.
const UNCLASSIFIED: Pods = pods(&[], &[IS_UNCLASSIFIED]);
const NOTEBOOKS: Pods = pods(&[], &[IS_NOTEBOOK]);
const GITEA_PROTECTED_B: Pods = pods(&[("app", "gitea"), (INSTANCE, "gitea-protected-b")], &[]);

/// Everything within the platform that may reach a workload.
const PLATFORM: &[Peer] = &[Peer::Namespaces(SYSTEM), Peer::Namespaces(DAAAS)];

const fn pods(labels: Labels, expressions: &'static [Expression]) -> Pods {
    Pods {
        labels,
        expressions,
    }
}

const fn rule(peers: &'static [Peer], ports: &'static [Port]) -> Rule {
    Rule { peers, ports }
}

/// A policy of both presets for every Profile; rows say what differs.
const BASE: Policy = Policy {
    name: "",
    gate: Gate::Always,
    readme: true,
    main: true,
    pods: ALL,
    ingress: &[],
    egress: &[],
};

/// All policies, in the order in which they are returned.
pub(crate) static POLICIES: [Policy; 21] = [
    Policy {
        name: "notebooks-allow-system-to-notebook",
        pods: NOTEBOOKS,
        ingress: &[rule(PLATFORM, &[Port::Named("notebook-port")])],
        ..BASE
    },
    Policy {
        name: "allow-ingress-from-knative-serving",
        pods: pods(
            &[],
            &[
                Expression::Exists("serving.knative.dev/service"),
                IS_UNCLASSIFIED,
            ],
        ),
        ingress: &[rule(
            &[Peer::Namespaces(&[(
                "app.kubernetes.io/component",
                "knative-serving-install",
            )])],
            &[],
        )],
        ..BASE
    },
    Policy {
        name: "allow-egress-to-cluster-local-gateway",
        pods: UNCLASSIFIED,
        egress: &[rule(
            &[Peer::PodsIn(
                &[("istio", "ingressgateway-kfserving")],
                ISTIO,
            )],
            &[],
        )],
        ..BASE
    },
    Policy {
        name: "unclassified-allow-same-namespace",
        pods: UNCLASSIFIED,
        ingress: &[rule(&[Peer::Pods(UNCLASSIFIED)], &[])],
        egress: &[rule(&[Peer::Pods(UNCLASSIFIED)], &[])],
        ..BASE
    },
    Policy {
        name: "unclassified-allow-egress",
        pods: UNCLASSIFIED,
        egress: &[rule(&[Peer::Public], &[])],
        ..BASE
    },
    Policy {
        name: "unclassified-allow-egress-to-ingress-gateway",
        pods: UNCLASSIFIED,
        egress: &[rule(
            &[Peer::PodsIn(&[("istio", "ingressgateway")], ISTIO)],
            &[],
        )],
        ..BASE
    },
    Policy {
        name: "notebooks-protected-b-allow-https-egress",
        pods: pods(&[], &[IS_NOTEBOOK, IS_PROTECTED_B]),
        egress: &[rule(&[Peer::Public], &[Port::Number(443)])],
        ..BASE
    },
    Policy {
        name: "vault-egress",
        egress: &[rule(
            &[Peer::PodsIn(
                &[(INSTANCE, "vault"), ("component", "server")],
                DAAAS,
            )],
            &[Port::Number(8200)],
        )],
        ..BASE
    },
    Policy {
        name: "unclassified-elasticsearch-egress",
        pods: UNCLASSIFIED,
        egress: &[rule(
            &[Peer::PodsIn(
                &[("common.k8s.elastic.co/type", "elasticsearch")],
                DAAAS,
            )],
            &[Port::Number(9200)],
        )],
        ..BASE
    },
    Policy {
        name: "allow-jfrog-egress",
        egress: &[rule(
            &[Peer::PodsIn(&[("app", "artifactory")], DAAAS)],
            &[Port::Number(8081), Port::Number(8082)],
        )],
        ..BASE
    },
    Policy {
        name: "allow-gitea-to-postgres",
        gate: Gate::SourceControl,
        readme: false,
        // Gitea of either classification has a database.
        pods: pods(
            &[("app", "gitea")],
            &[Expression::In(
                INSTANCE,
                &["gitea-protected-b", "gitea-unclassified"],
            )],
        ),
        egress: &[rule(&[Peer::Postgres], &[Port::Number(5432)])],
        ..BASE
    },
    Policy {
        name: "gitea-allow-system-to-gitea",
        gate: Gate::SourceControl,
        pods: pods(&[("app", "gitea"), (INSTANCE, "gitea-unclassified")], &[]),
        ingress: &[rule(PLATFORM, &[Port::Named("http")])],
        ..BASE
    },
    Policy {
        name: "allow-gitea-http-egress-prot-b",
        gate: Gate::SourceControl,
        readme: false,
        pods: GITEA_PROTECTED_B,
        egress: &[rule(
            &[Peer::Anywhere],
            &[Port::Number(80), Port::Number(3000), Port::Number(22)],
        )],
        ..BASE
    },
    Policy {
        name: "allow-gitea-http-ingress-prot-b",
        gate: Gate::SourceControl,
        readme: false,
        pods: GITEA_PROTECTED_B,
        ingress: &[rule(
            &[Peer::Anywhere],
            &[Port::Number(3000), Port::Number(22)],
        )],
        ..BASE
    },
    Policy {
        name: "allow-employee-egress-to-cloud-main-system",
        gate: Gate::Employees,
        readme: false,
        pods: NOTEBOOKS,
        egress: &[rule(
            &[Peer::Namespaces(&[(METADATA_NAME, "cloud-main-system")])],
            &[Port::Number(443), Port::Number(8443), Port::Number(22)],
        )],
        ..BASE
    },
    Policy {
        name: "s3proxy-allow-ingress",
        gate: Gate::S3,
        readme: false,
        pods: pods(&[("app", "s3proxy")], &[]),
        ingress: &[rule(PLATFORM, &[Port::Named("http")])],
        ..BASE
    },
    Policy {
        name: "allow-egress-protb-notebook-to-trino-protb-system",
        readme: false,
        pods: pods(&[(CLASSIFICATION, "protected-b")], &[]),
        egress: &[rule(
            &[Peer::PodsIn(
                &[("component", "coordinator")],
                &[(METADATA_NAME, "trino-protb-system")],
            )],
            &[],
        )],
        ..BASE
    },
    Policy {
        name: "allow-egress-notebook-to-trino-system",
        readme: false,
        pods: NOTEBOOKS,
        egress: &[rule(
            &[Peer::PodsIn(
                &[("release", "trino")],
                &[(METADATA_NAME, "trino-system")],
            )],
            &[],
        )],
        ..BASE
    },
    // What the code of the original no longer has.
    Policy {
        name: "unclassified-pipelines-egress",
        main: false,
        pods: UNCLASSIFIED,
        egress: &[
            rule(
                &[Peer::PodsIn(
                    &[
                        ("app.kubernetes.io/name", "kubeflow-pipelines"),
                        ("app.kubernetes.io/component", "ml-pipeline"),
                    ],
                    DAAAS,
                )],
                &[Port::Number(8888), Port::Number(8887)],
            ),
            rule(
                &[Peer::PodsIn(
                    &[
                        ("app.kubernetes.io/name", "minio"),
                        ("app.kubernetes.io/component", "minio"),
                    ],
                    DAAAS,
                )],
                &[Port::Number(9000)],
            ),
        ],
        ..BASE
    },
    Policy {
        name: "unclassified-minio-egress",
        readme: false,
        main: false,
        pods: UNCLASSIFIED,
        egress: &[rule(
            &[Peer::Namespaces(MINIO)],
            &[Port::Number(9000), Port::Number(9001)],
        )],
        ..BASE
    },
    Policy {
        name: "protected-b-minio-egress",
        readme: false,
        main: false,
        pods: pods(&[], &[IS_PROTECTED_B]),
        egress: &[rule(&[Peer::Namespaces(MINIO)], &[])],
        ..BASE
    },
];

//! The kinds that packs are made of, and the marks on their objects.

use reeve_sdk::prelude::*;

pub(crate) const PACK: Kind = Kind::new("packs.reeve.dev/v1alpha1", "Pack");
pub(crate) const PACK_SET: Kind = Kind::new("packs.reeve.dev/v1alpha1", "PackSet");
pub(crate) const NAMESPACE: Kind = Kind::new("v1", "Namespace");
pub(crate) const SECRET: Kind = Kind::new("v1", "Secret");
pub(crate) const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
pub(crate) const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");
pub(crate) const SERVICE: Kind = Kind::new("v1", "Service");
pub(crate) const RESOURCE_QUOTA: Kind = Kind::new("v1", "ResourceQuota");
pub(crate) const DEPLOYMENT: Kind = Kind::new("apps/v1", "Deployment");
pub(crate) const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");
pub(crate) const CLUSTER_ROLE: Kind = Kind::new("rbac.authorization.k8s.io/v1", "ClusterRole");
pub(crate) const CLUSTER_ROLE_BINDING: Kind =
    Kind::new("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
pub(crate) const DEFINITION: Kind =
    Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
pub(crate) const HELM_RELEASE: Kind = Kind::new("helm.toolkit.fluxcd.io/v2", "HelmRelease");
pub(crate) const HELM_REPOSITORY: Kind = Kind::new("source.toolkit.fluxcd.io/v1", "HelmRepository");
pub(crate) const OCI_REPOSITORY: Kind = Kind::new("source.toolkit.fluxcd.io/v1", "OCIRepository");
pub(crate) const GATEWAY: Kind = Kind::new("networking.istio.io/v1", "Gateway");
pub(crate) const VIRTUAL_SERVICE: Kind = Kind::new("networking.istio.io/v1", "VirtualService");
pub(crate) const TARGET_GROUP_BINDING: Kind =
    Kind::new("elbv2.k8s.aws/v1beta1", "TargetGroupBinding");

/// The label with the pack that an object belongs to.
pub(crate) const PACK_LABEL: &str = "packs.reeve.dev/pack";
/// The annotation with the revision of the pack that an object was made of.
pub(crate) const REVISION: &str = "packs.reeve.dev/revision";
/// The annotation of a Pack with the document that asked for it.
pub(crate) const ORIGIN: &str = "packs.reeve.dev/origin";
/// The wave of an object within its unit.
pub(crate) const WAVE: &str = "reeve.dev/wave";

/// The namespace of Flux and of its sources.
pub(crate) const FLUX_NAMESPACE: &str = "flux-system";

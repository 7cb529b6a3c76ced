//! The types of built-in kinds, as OpenAPI documents describe them.
//!
//! `k8s-openapi` knows every type with its fields and descriptions; here they
//! are found by group, version and kind. What a request is decoded into is in
//! [`crate::decode`]; what documents say beyond that is in `further`.

mod further;

use std::sync::LazyLock;

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling_v1,
    autoscaling::v2 as autoscaling_v2, batch::v1 as batch, certificates::v1 as certificates,
    coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery,
    events::v1 as events, flowcontrol::v1 as flowcontrol, networking::v1 as networking,
    node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource,
    scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::version::Info;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as registration;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The type of a kind.
#[derive(Debug, Clone, Copy)]
struct Type {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// Adds its schema, and those it refers to, to the generator's definitions.
    add: fn(&mut SchemaGenerator),
    /// The name of its schema.
    name: fn() -> String,
}

impl Type {
    const fn of<T: Resource + JsonSchema>() -> Self {
        Type {
            group: T::GROUP,
            version: T::VERSION,
            kind: T::KIND,
            add: |generator| drop(generator.subschema_for::<T>()),
            name: || T::schema_name().into_owned(),
        }
    }
}

/// Every kind of the tables in [`crate::kinds`], and some of their subresources.
const TYPES: &[Type] = &[
    Type::of::<admission::MutatingAdmissionPolicy>(),
    Type::of::<admission::MutatingAdmissionPolicyBinding>(),
    Type::of::<admission::MutatingWebhookConfiguration>(),
    Type::of::<admission::ValidatingAdmissionPolicy>(),
    Type::of::<admission::ValidatingAdmissionPolicyBinding>(),
    Type::of::<admission::ValidatingWebhookConfiguration>(),
    Type::of::<apps::ControllerRevision>(),
    Type::of::<apps::DaemonSet>(),
    Type::of::<apps::Deployment>(),
    Type::of::<apps::ReplicaSet>(),
    Type::of::<apps::StatefulSet>(),
    Type::of::<authentication::SelfSubjectReview>(),
    Type::of::<authentication::TokenRequest>(),
    Type::of::<authentication::TokenReview>(),
    Type::of::<authorization::LocalSubjectAccessReview>(),
    Type::of::<authorization::SelfSubjectAccessReview>(),
    Type::of::<authorization::SelfSubjectRulesReview>(),
    Type::of::<authorization::SubjectAccessReview>(),
    Type::of::<autoscaling_v1::HorizontalPodAutoscaler>(),
    Type::of::<autoscaling_v1::Scale>(),
    Type::of::<autoscaling_v2::HorizontalPodAutoscaler>(),
    Type::of::<batch::CronJob>(),
    Type::of::<batch::Job>(),
    Type::of::<certificates::CertificateSigningRequest>(),
    Type::of::<coordination::Lease>(),
    Type::of::<core::Binding>(),
    Type::of::<core::ComponentStatus>(),
    Type::of::<core::ConfigMap>(),
    Type::of::<core::Endpoints>(),
    Type::of::<core::Event>(),
    Type::of::<core::LimitRange>(),
    Type::of::<core::Namespace>(),
    Type::of::<core::Node>(),
    Type::of::<core::PersistentVolume>(),
    Type::of::<core::PersistentVolumeClaim>(),
    Type::of::<core::Pod>(),
    Type::of::<core::PodTemplate>(),
    Type::of::<core::ReplicationController>(),
    Type::of::<core::ResourceQuota>(),
    Type::of::<core::Secret>(),
    Type::of::<core::Service>(),
    Type::of::<core::ServiceAccount>(),
    Type::of::<discovery::EndpointSlice>(),
    Type::of::<events::Event>(),
    Type::of::<extensions::CustomResourceDefinition>(),
    Type::of::<flowcontrol::FlowSchema>(),
    Type::of::<flowcontrol::PriorityLevelConfiguration>(),
    Type::of::<networking::IPAddress>(),
    Type::of::<networking::Ingress>(),
    Type::of::<networking::IngressClass>(),
    Type::of::<networking::NetworkPolicy>(),
    Type::of::<networking::ServiceCIDR>(),
    Type::of::<node::RuntimeClass>(),
    Type::of::<policy::Eviction>(),
    Type::of::<policy::PodDisruptionBudget>(),
    Type::of::<rbac::ClusterRole>(),
    Type::of::<rbac::ClusterRoleBinding>(),
    Type::of::<rbac::Role>(),
    Type::of::<rbac::RoleBinding>(),
    Type::of::<registration::APIService>(),
    Type::of::<resource::DeviceClass>(),
    Type::of::<resource::ResourceClaim>(),
    Type::of::<resource::ResourceClaimTemplate>(),
    Type::of::<resource::ResourceSlice>(),
    Type::of::<scheduling::PriorityClass>(),
    Type::of::<storage::CSIDriver>(),
    Type::of::<storage::CSINode>(),
    Type::of::<storage::CSIStorageCapacity>(),
    Type::of::<storage::StorageClass>(),
    Type::of::<storage::VolumeAttachment>(),
    Type::of::<storage::VolumeAttributesClass>(),
];

fn find(group: &str, version: &str, kind: &str) -> Option<&'static Type> {
    let mut types = TYPES.iter();
    types.find(|t| t.group == group && t.version == version && t.kind == kind)
}

/// The name of the schema of a built-in kind.
pub(crate) fn schema_name(group: &str, version: &str, kind: &str) -> Option<String> {
    find(group, version, kind).map(|found| (found.name)())
}

/// The schemas of these kinds, each a group, a version and a kind, and of what they
/// consist of, by name, as an OpenAPI 3 document has them under `components.schemas`;
/// and those of what requests and answers consist of besides.
pub(crate) fn schemas(kinds: &[(&str, &str, &str)]) -> Map<String, Value> {
    let mut schemas = definitions(|generator| {
        for (group, version, kind) in kinds {
            if let Some(found) = find(group, version, kind) {
                (found.add)(generator);
            }
        }
        drop(generator.subschema_for::<meta::DeleteOptions>());
        drop(generator.subschema_for::<meta::ListMeta>());
        drop(generator.subschema_for::<meta::Patch>());
        drop(generator.subschema_for::<meta::Status>());
        drop(generator.subschema_for::<meta::APIResourceList>());
        drop(generator.subschema_for::<meta::WatchEvent<core::Pod>>());
    });
    for known in TYPES {
        let name = (known.name)();
        set_kind(&mut schemas, &name, known.group, known.version, known.kind);
    }
    for kind in ["APIResourceList", "Status"] {
        set_kind(&mut schemas, &format!("{META}.{kind}"), "", "v1", kind);
    }
    let event = schemas.get_mut(&format!("{META}.WatchEvent"));
    if let Some(object) = event.and_then(|event| event.pointer_mut("/properties/object")) {
        *object = json!({
            "description": "The object as it is now, or was before it was deleted; or a Status.",
            "allOf": [object.take()],
        });
    }
    schemas
}

/// The schemas of what discovery answers.
pub(crate) fn discovery_schemas() -> Map<String, Value> {
    let mut schemas = definitions(|generator| {
        drop(generator.subschema_for::<meta::APIGroupList>());
        drop(generator.subschema_for::<meta::APIVersions>());
        drop(generator.subschema_for::<Info>());
    });
    for kind in ["APIGroup", "APIGroupList", "APIVersions"] {
        set_kind(&mut schemas, &format!("{META}.{kind}"), "", "v1", kind);
    }
    schemas
}

/// Where the types are that all groups share.
pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn set_kind(schemas: &mut Map<String, Value>, name: &str, group: &str, version: &str, kind: &str) {
    if let Some(schema) = schemas.get_mut(name) {
        let gvk = json!({"group": group, "version": version, "kind": kind});
        schema["x-kubernetes-group-version-kind"] = json!([gvk]);
    }
}

/// Which of the `fields` that somebody else says a struct has are none, in all
/// structs of a kind's own package.
#[cfg(test)]
pub(crate) fn strange_fields(
    group: &str,
    version: &str,
    kind: &str,
    fields: impl Fn(&str) -> Vec<&'static str>,
) -> Vec<String> {
    let found = find(group, version, kind).into_iter();
    let strange = found.flat_map(|found| {
        let name = (found.name)();
        let package = name.trim_end_matches(kind).to_owned();
        let schemas = definitions(found.add).into_iter();
        let own = schemas.filter_map(move |(name, schema)| {
            Some((name.strip_prefix(&package)?.to_owned(), schema))
        });
        own.flat_map(|(name, schema)| {
            let known = schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            let strange = fields(&name)
                .into_iter()
                .filter(move |field| !known.contains_key(*field));
            strange
                .map(move |field| format!("{name}.{field}"))
                .collect::<Vec<_>>()
        })
    });
    strange.collect()
}

/// The schema of `metadata`, with those that it refers to.
pub(crate) fn metadata_schemas() -> Map<String, Value> {
    definitions(|generator| drop(generator.subschema_for::<meta::ObjectMeta>()))
}

/// What the schema of every kind says of `apiVersion`, `kind` and `metadata`.
pub(crate) fn object_properties() -> Map<String, Value> {
    static KNOWN: LazyLock<Map<String, Value>> = LazyLock::new(|| {
        let name = core::ConfigMap::schema_name();
        let mut schemas =
            definitions(|generator| drop(generator.subschema_for::<core::ConfigMap>()));
        let schema = schemas.get_mut(name.as_ref()).map(Value::take);
        let properties = schema.and_then(|mut schema| match schema["properties"].take() {
            Value::Object(properties) => Some(properties),
            _ => None,
        });
        let mut properties = properties.unwrap_or_default();
        properties.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        properties
    });
    KNOWN.clone()
}

fn definitions(add: impl FnOnce(&mut SchemaGenerator)) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    add(&mut generator);
    let mut schemas = generator.take_definitions(true);
    for (name, schema) in &mut schemas {
        further::extend(name, schema);
    }
    for name in ANYTHING {
        if let Some(schema) = schemas.get_mut(*name).and_then(Value::as_object_mut) {
            schema.remove("oneOf");
        }
    }
    for (name, form) in OTHERWISE {
        if let Some(schema) = schemas.get_mut(*name)
            && let (Value::Object(schema), Ok(Value::Object(form))) =
                (schema, serde_json::from_str(form))
        {
            schema.remove("type");
            schema.remove("x-kubernetes-int-or-string");
            schema.extend(form);
        }
    }
    schemas
}

/// Types that the real server describes in another way: `k8s-openapi` writes
/// schemas for CustomResourceDefinitions, which know an extension for them.
const OTHERWISE: &[(&str, &str)] = &[
    (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        r#"{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}"#,
    ),
    (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        r#"{"oneOf":[{"type":"string"},{"type":"number"}]}"#,
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "{}",
    ),
];

/// Types whose form the real server leaves open.
const ANYTHING: &[&str] = &[
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_kind_has_a_type() {
        for kind in kinds::all() {
            let name = schema_name(kind.group, kind.version, kind.kind);
            assert!(name.is_some(), "{} {}", kind.api_version(), kind.kind);
        }
    }

    #[test]
    fn schemas_refer_to_schemas_that_are_there() {
        let schemas = schemas(&[("apps", "v1", "Deployment")]);
        let text = serde_json::to_string(&schemas).unwrap();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let name = reference.split('"').next().unwrap();
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
        let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
        assert_eq!(
            deployment["x-kubernetes-group-version-kind"][0]["kind"],
            "Deployment"
        );
        let surge = &schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
        assert_eq!(surge["format"], "int-or-string");
    }
}

//! Webhook configurations and admission policies.

mod policies;
mod rules;
mod webhooks;

use serde_json::Value;

use super::edit::{default_to, ensure_object, items_mut};
use super::row::{GenerationRule, Kind, METADATA_OF_CLIENTS, UpdateOrder};
use super::verbs::Subresource;

const V1: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const CATEGORIES: &[&str] = &["api-extensions"];
const WEBHOOKS: GenerationRule = GenerationRule::Fields(&["webhooks"]);

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(V1, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .conditional()
        .categories(CATEGORIES)
        .generation_of_spec()
        .defaulted(default_policy)
        .validated(policies::validate_mutating)
        .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        V1,
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
    )
    .conditional()
    .categories(CATEGORIES)
    .generation_of_spec()
    .defaulted(default_binding)
    .validated(policies::validate_mutating_binding)
    .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        V1,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    )
    .conditional()
    .categories(CATEGORIES)
    .generation(WEBHOOKS)
    .hollow("webhooks", &[])
    .defaulted(|config| {
        default_webhooks(config);
        for webhook in items_mut(config, "webhooks") {
            default_to(webhook, "reinvocationPolicy", "Never");
        }
    })
    .validated(webhooks::validate)
    .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        V1,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    )
    .conditional()
    .categories(CATEGORIES)
    .subresources(&[Subresource::STATUS])
    .status("{}")
    .status_keeps(&METADATA_OF_CLIENTS)
    .generation_of_spec()
    .defaulted(default_policy)
    .validated(policies::validate)
    .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        V1,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    )
    .conditional()
    .categories(CATEGORIES)
    .generation_of_spec()
    .defaulted(default_binding)
    .validated(policies::validate_binding)
    .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        V1,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    )
    .conditional()
    .categories(CATEGORIES)
    .generation(WEBHOOKS)
    .hollow("webhooks", &[])
    .defaulted(default_webhooks)
    .validated(webhooks::validate)
    .update_order(UpdateOrder::WholeObject),
];

fn default_webhooks(config: &mut Value) {
    for webhook in items_mut(config, "webhooks") {
        default_to(webhook, "failurePolicy", "Fail");
        default_to(webhook, "matchPolicy", "Equivalent");
        default_to(webhook, "timeoutSeconds", 10);
        ensure_object(webhook, "namespaceSelector");
        ensure_object(webhook, "objectSelector");
        default_rules(webhook, "rules");
        if let Some(service) = webhook
            .pointer_mut("/clientConfig/service")
            .filter(|service| service.is_object())
        {
            default_to(service, "port", 443);
        }
    }
}

fn default_policy(policy: &mut Value) {
    let Some(spec) = ensure_object(policy, "spec") else {
        return;
    };
    default_to(spec, "failurePolicy", "Fail");
    if let Some(constraints) = spec.get_mut("matchConstraints") {
        default_match(constraints);
    }
}

fn default_binding(binding: &mut Value) {
    if let Some(resources) = binding.pointer_mut("/spec/matchResources") {
        default_match(resources);
    }
}

fn default_match(resources: &mut Value) {
    if !resources.is_object() {
        return;
    }
    default_to(resources, "matchPolicy", "Equivalent");
    ensure_object(resources, "namespaceSelector");
    ensure_object(resources, "objectSelector");
    default_rules(resources, "resourceRules");
    default_rules(resources, "excludeResourceRules");
}

fn default_rules(value: &mut Value, field: &str) {
    for rule in items_mut(value, field) {
        default_to(rule, "scope", "*");
    }
}

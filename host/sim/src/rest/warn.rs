//! What writers are told besides the answer.

use serde_json::Value;

use super::{Writer, meta};
use crate::admission::webhooks;
use crate::definitions;
use crate::field::quoted;
use crate::kinds::edit::{items, text};
use crate::names;

impl Writer<'_> {
    /// Keeps one of owners that are the same, and tells the caller `when` they were. The real
    /// server does so before it looks at who owns which fields, but not of what is patched,
    /// and of everything after admission.
    pub(super) fn drop_owners_named_twice(&self, object: &mut Value, when: &str) {
        let twice = meta::drop_owners_named_twice(object);
        if twice.is_empty() {
            return;
        }
        let warning = format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        );
        self.warn(std::iter::once(warning.as_str()));
    }

    /// Tells the caller something besides the answer, once.
    pub(super) fn warn<'w>(&self, more: impl Iterator<Item = &'w str>) {
        let Some(warnings) = self.warnings else {
            return;
        };
        let mut warnings = warnings.lock();
        for warning in more {
            if !warnings.iter().any(|told| told == warning) {
                warnings.push(warning.to_owned());
            }
        }
    }

    /// Tells of new finalizers of a custom resource that may be those of somebody else.
    pub(super) fn warn_of_finalizers(&self, after: &Value, before: Option<&Value>) {
        if !self.resource.is_custom() {
            return;
        }
        let added = meta::finalizers(after);
        let had: Vec<&str> = before.into_iter().flat_map(meta::finalizers).collect();
        let mut added: Vec<&str> = added.filter(|name| !had.contains(name)).collect();
        added.sort_unstable();
        for name in added {
            let wrong = names::qualified_name(name);
            let path = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            let plain = (!names::is_known_finalizer(name)).then(|| {
                format!(
                    "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
                )
            });
            for why in wrong.into_iter().chain(plain) {
                let warning = format!("metadata.finalizers: {}: {why}", quoted(name));
                self.warn(std::iter::once(warning.as_str()));
            }
        }
    }

    /// Tells of a driver that gets tokens, and not where Secrets are.
    pub(super) fn warn_of_tokens(&self, after: &Value, before: Option<&Value>) {
        if self.resource.kind != "CSIDriver" || self.resource.is_custom() {
            return;
        }
        let spec = &after["spec"];
        let asks = items(spec, "tokenRequests").next().is_some();
        let is_new = before.is_none_or(|b| b["spec"]["tokenRequests"] != spec["tokenRequests"]);
        if asks && is_new && spec.get("serviceAccountTokenInSecrets").is_none() {
            let warning = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
            self.warn(std::iter::once(warning));
        }
    }

    /// Tells who writes webhooks which of them nobody asks here.
    pub(super) fn warn_of_no_effect(&self, configuration: &Value) {
        let resource = self.resource;
        let is_of_webhooks = resource.plural.ends_with("webhookconfigurations");
        if !self.server.warns_of_no_effect || !is_of_webhooks {
            return;
        }
        if !self.server.asks_webhooks {
            let warning = format!(
                "{} are stored by this server and never asked: they have no effect here",
                resource.plural
            );
            self.warn(std::iter::once(warning.as_str()));
            return;
        }
        for webhook in items(configuration, "webhooks") {
            let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
            if !webhooks::is_reachable(client) {
                let name = quoted(text(webhook, "name"));
                let warning = format!(
                    "webhook {name} is not at an https URL of the loopback: this server does not reach it, and its failurePolicy decides"
                );
                self.warn(std::iter::once(warning.as_str()));
            }
        }
    }

    /// Tells who writes a definition whose versions a webhook is to convert where it is not
    /// asked here.
    pub(super) fn warn_of_conversion(&self, definition: &Value) {
        let strategy = definition.pointer("/spec/conversion/strategy");
        if self.server.warns_of_no_effect
            && definitions::is_definition(self.resource)
            && strategy.and_then(Value::as_str) == Some("Webhook")
        {
            const OTHERWISE: &str =
                "a version is made of another by leaving out what it does not have";
            let client = definition.pointer("/spec/conversion/webhook/clientConfig");
            let client = client.unwrap_or(&Value::Null);
            let warning = if !self.server.asks_webhooks {
                format!("conversion webhooks are never asked by this server: {OTHERWISE}")
            } else if !webhooks::is_on_loopback(client) {
                format!(
                    "this conversion webhook is not at an https URL of the loopback, and is never asked by this server: {OTHERWISE}"
                )
            } else if !webhooks::is_reachable(client) {
                "this conversion webhook has no caBundle, and this server trusts nobody else: objects cannot be converted".to_owned()
            } else {
                return;
            };
            self.warn(std::iter::once(warning.as_str()));
        }
    }
}

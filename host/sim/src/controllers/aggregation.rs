//! ClusterRoles that are made of the rules of others.

use std::sync::Arc;

use serde_json::{Value, json};

use super::writer;
use crate::authz;
use crate::rest::write::{Proposal, Writer};
use crate::rest::{manage, meta};
use crate::selector::LabelSelector;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Object, Range};

/// The table of ClusterRoles.
pub(super) const TABLE: &str = "clusterroles.rbac.authorization.k8s.io";

/// Who owns the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Brings the rules of every aggregated role up to date.
pub(super) fn aggregate(shared: &Arc<Shared>) -> Result<(), ApiError> {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return Ok(());
    };
    let page = shared.store.list(TABLE, &Range::default(), None);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    // Most neither gather rules nor are gathered, which is known without reading them.
    let gathering: Vec<(&Arc<Object>, Value)> = objects
        .iter()
        .filter(|object| object.mentions("aggregationRule"))
        .map(|object| (object, object.value()))
        .collect();
    let selectors: Vec<LabelSelector> = gathering
        .iter()
        .flat_map(|(_, role)| authz::gathered(role))
        .collect();
    let roles: Vec<Value> = objects
        .iter()
        .filter(|role| {
            selectors
                .iter()
                .any(|one| one.selects(|key| role.label(key)))
        })
        .map(|object| object.value())
        .collect();
    for (role, value) in &gathering {
        let Some(rules) = authz::aggregate(value, &roles) else {
            continue;
        };
        let rules = json!(rules);
        let present = value.get("rules").filter(|rules| !rules.is_null());
        if *present.unwrap_or(&json!([])) == rules {
            continue;
        }
        let mut config = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": role.name()},
        });
        if rules != json!([]) {
            config["rules"] = rules;
        }
        let writer = Writer {
            manager: MANAGER,
            ..writer(shared, &resource)
        };
        writer.update(role.key(), |live| {
            let mut object = manage::apply(&writer, Some(live), &config, true)?;
            meta::of_mut(&mut object).remove("resourceVersion");
            Ok(Proposal {
                object,
                owned: true,
                ..Proposal::default()
            })
        })?;
    }
    Ok(())
}

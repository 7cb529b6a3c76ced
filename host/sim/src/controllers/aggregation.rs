//! ClusterRoles that are made of the rules of others.

use std::sync::Arc;

use serde_json::{Value, json};

use super::writer;
use crate::authz;
use crate::rest::meta;
use crate::rest::write::Proposal;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Range;

/// The table of ClusterRoles.
pub(super) const TABLE: &str = "clusterroles.rbac.authorization.k8s.io";

/// Brings the rules of every aggregated role up to date.
pub(super) fn aggregate(shared: &Arc<Shared>) -> Result<(), ApiError> {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return Ok(());
    };
    let page = shared.store.list(TABLE, &Range::default(), None);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    let roles: Vec<Value> = objects.iter().map(|object| object.value()).collect();
    for (role, value) in objects.iter().zip(&roles) {
        let Some(rules) = authz::aggregate(value, &roles) else {
            continue;
        };
        writer(shared, &resource).update(role.key(), |live| {
            let mut object = live.clone();
            meta::of_mut(&mut object).remove("resourceVersion");
            object["rules"] = json!(rules);
            Ok(Proposal {
                object,
                owned: false,
                ..Proposal::default()
            })
        })?;
    }
    Ok(())
}

//! ClusterRoles that are made of the rules of others.

use std::sync::Arc;

use serde_json::{Value, json};

use super::writer;
use crate::authz;
use crate::kinds::edit::{items, text_at};
use crate::resource::Resource;
use crate::rest::write::{Proposal, Writer};
use crate::rest::{manage, meta};
use crate::selector::LabelSelector;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Change, Object, Range};

/// The table of ClusterRoles.
pub(super) const TABLE: &str = "clusterroles.rbac.authorization.k8s.io";

/// Who owns the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Which changes of ClusterRoles are looked at: those of roles that gather, and of what they
/// may gather.
#[derive(Debug, Default, Clone)]
pub(super) struct Aggregation {
    is_due: bool,
    /// What was gathered when it was looked at last; none before that.
    selectors: Option<Arc<[LabelSelector]>>,
}

impl Aggregation {
    /// Takes in the change of a role.
    pub(super) fn note(&mut self, change: &Change) {
        let roles = change.before.iter().chain([&change.after]);
        self.is_due = self.is_due || { roles }.any(|role| self.concerns(role));
    }

    fn concerns(&self, role: &Object) -> bool {
        let selectors = self.selectors.as_deref();
        gathers(role) || selectors.is_none_or(|selectors| is_gathered(role, selectors))
    }

    /// Brings the rules of every aggregated role up to date, where they may not be. Roles that
    /// gather each other in a circle, and would hand their rules around it for ever, stay as
    /// they are.
    pub(super) fn go_on(&mut self, shared: &Arc<Shared>) -> Result<(), ApiError> {
        if !std::mem::take(&mut self.is_due) {
            return Ok(());
        }
        let done = self.aggregate(shared);
        // With the next change, whatever it is.
        self.is_due = done.is_err();
        done
    }

    fn aggregate(&mut self, shared: &Arc<Shared>) -> Result<(), ApiError> {
        let Some(resource) = shared.registry.find_table(TABLE) else {
            return Ok(());
        };
        let page = shared.store.list(TABLE, &Range::default(), None);
        let objects = page.map(|page| page.objects).unwrap_or_default();
        let gathering: Vec<(&Arc<Object>, Value)> = objects
            .iter()
            .filter(|object| gathers(object))
            .map(|object| (object, parts(object)))
            .collect();
        let selectors: Arc<[LabelSelector]> = gathering
            .iter()
            .flat_map(|(_, role)| authz::gathered(role))
            .collect();
        self.selectors = Some(selectors.clone());
        let roles = objects.iter();
        let roles = roles.filter(|role| is_gathered(role, &selectors));
        let roles = roles.map(|object| parts(object)).collect();
        write_down(shared, &resource, &gathering, roles)
    }
}

/// Whether a role may gather rules. Most neither gather rules nor are gathered, which is
/// known without reading them.
fn gathers(role: &Object) -> bool {
    role.mentions("aggregationRule")
}

fn is_gathered(role: &Object, selectors: &[LabelSelector]) -> bool {
    selectors
        .iter()
        .any(|one| one.selects(|key| role.label(key)))
}

fn write_down(
    shared: &Arc<Shared>,
    resource: &Resource,
    gathering: &[(&Arc<Object>, Value)],
    mut roles: Vec<Value>,
) -> Result<(), ApiError> {
    let settled = settled(gathering, &mut roles);
    for ((role, value), rules) in gathering.iter().zip(settled) {
        let Some(rules) = rules else {
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
            ..writer(shared, resource)
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

/// What of a role tells what it gathers, and what others gather of it.
fn parts(role: &Object) -> Value {
    role.fields(&["metadata", "aggregationRule", "rules"])
}

/// As many steps from role to role are followed. Twice as many show what has no end.
const STEPS: usize = 32;

/// The rules that the `gathering` roles come to have, in their order: what one gathers may
/// be gathered by another. None for those where that has no end. `roles` are those that are
/// gathered.
fn settled(gathering: &[(&Arc<Object>, Value)], roles: &mut [Value]) -> Vec<Option<Vec<Value>>> {
    let mut values: Vec<(Value, bool)> = gathering
        .iter()
        .map(|(_, value)| (value.clone(), true))
        .collect();
    for step in 0..2 * STEPS {
        let mut changed = false;
        for (value, settles) in &mut values {
            let Some(rules) = authz::aggregate(value, &*roles) else {
                continue;
            };
            changed = true;
            *settles &= step < STEPS;
            value["rules"] = json!(rules);
            let name = text_at(value, "/metadata/name");
            let own = roles
                .iter_mut()
                .find(|role| text_at(role, "/metadata/name") == name);
            if let Some(own) = own {
                own["rules"] = value["rules"].clone();
            }
        }
        if !changed {
            break;
        }
    }
    values
        .iter()
        .map(|(value, settles)| settles.then(|| items(value, "rules").cloned().collect()))
        .collect()
}

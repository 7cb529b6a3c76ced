//! A plan for programs.

use super::{Counts, PluginPlan};
use crate::looking::{field_in_json, reference};
use reeve_agent::planner::{Action, EffectAct, EffectPlan, ObjectPlan, Standing, UnitPlan};
use serde_json::{Value, json};

/// Plans in the form that docs/operations.md describes.
pub(super) fn of(plans: &[PluginPlan], counts: Counts) -> Value {
    let plugins: Vec<Value> = plans.iter().map(plugin).collect();
    json!({
        "plugins": plugins,
        "summary": {
            "create": counts.create,
            "change": counts.change,
            "delete": counts.delete,
            "waiting": counts.waiting,
            "held": counts.held,
            "refused": counts.refused,
            "unchanged": counts.unchanged,
            "effects": counts.effects,
            "failed": counts.failed,
        },
    })
}

fn plugin(plan: &PluginPlan) -> Value {
    let Some(loaded) = &plan.loaded else {
        return json!({"plugin": plan.plugin, "error": plan.error});
    };
    let units: Vec<Value> = loaded.units.iter().map(unit).collect();
    json!({
        "plugin": plan.plugin,
        "version": loaded.version,
        "digest": loaded.digest,
        "suspended": loaded.suspended,
        "mode": loaded.mode,
        "warnings": loaded.warnings,
        "units": units,
    })
}

fn unit(unit: &UnitPlan) -> Value {
    let problems: Vec<Value> = unit
        .problems
        .iter()
        .map(|problem| json!({"reason": problem.reason, "message": problem.message}))
        .collect();
    let changes: Vec<Value> = unit.changes.iter().map(change).collect();
    let effects: Vec<Value> = unit.effects.iter().map(effect).collect();
    json!({
        "primary": reference(&unit.primary),
        "planned": unit.planned,
        "unchanged": unit.unchanged,
        "approval": unit.approval,
        "notices": unit.notices,
        "problems": problems,
        "changes": changes,
        "effects": effects,
    })
}

fn effect(effect: &EffectPlan) -> Value {
    let secrets: Vec<Value> = effect
        .secrets
        .iter()
        .map(|(namespace, name)| json!({"namespace": namespace, "name": name}))
        .collect();
    json!({
        "action": effect.name,
        "key": effect.key,
        "act": match effect.act {
            EffectAct::Make => "make",
            EffectAct::Remake => "remake",
            EffectAct::TakeAway => "takeAway",
            EffectAct::Leave => "leave",
        },
        "input": serde_json::from_str::<Value>(&effect.input).unwrap_or_default(),
        "secrets": secrets,
        "reason": effect.reason,
    })
}

fn change(change: &ObjectPlan) -> Value {
    let fields: Vec<Value> = change.fields.iter().map(field_in_json).collect();
    json!({
        "object": reference(&change.object),
        "action": match change.action {
            Action::Create => "create",
            Action::Change => "change",
            Action::Contribute => "contribute",
            Action::Release => "release",
            Action::Delete => "delete",
        },
        "standing": match change.standing {
            Standing::Now => "now",
            Standing::Waiting => "waiting",
            Standing::Held => "held",
            Standing::Refused => "refused",
        },
        "step": change.step,
        "reason": change.reason,
        "fields": fields,
    })
}

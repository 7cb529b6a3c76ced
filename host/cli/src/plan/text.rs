//! A plan for people.

use super::{Counts, LoadedPlan, PluginPlan};
use crate::columns::counted;
use crate::looking::field_in_text;
use crate::style::{Painter, Style};
use reeve_agent::planner::{
    Action, EffectAct, EffectPlan, FieldChange, ObjectPlan, Standing, UnitPlan, is_bookkeeping,
};
use reeve_api::SyncMode;
use std::fmt::Write as _;

/// The text of plans. `verbose` adds what is as it should be, and the marks of
/// ownership on objects.
pub(super) fn of(plans: &[PluginPlan], counts: Counts, verbose: bool, painter: Painter) -> String {
    let mut text = Text {
        out: String::new(),
        verbose,
        painter,
    };
    for plan in plans {
        text.plugin(plan);
    }
    text.summary(counts, plans.is_empty());
    text.out
}

struct Text {
    out: String,
    verbose: bool,
    painter: Painter,
}

impl Text {
    fn line(&mut self, indent: usize, style: Option<Style>, line: &str) {
        self.painter.line(&mut self.out, indent, style, line);
    }

    fn plugin(&mut self, plan: &PluginPlan) {
        let Some(loaded) = &plan.loaded else {
            self.line(0, Some(Style::Heading), &plan.plugin);
            let error = plan.error.as_deref().unwrap_or_default();
            self.line(2, Some(Style::Removed), &format!("error: {error}"));
            self.out.push('\n');
            return;
        };
        let LoadedPlan {
            version,
            digest,
            suspended,
            mode,
            warnings,
            units,
        } = loaded;
        let differing = units.iter().filter(|unit| !is_settled(unit)).count();
        let heading = format!(
            "{} {version} ({}): {} of {} {}",
            plan.plugin,
            short(digest),
            differing,
            counted(units.len(), "unit"),
            if differing == 1 { "differs" } else { "differ" },
        );
        self.line(0, Some(Style::Heading), &heading);
        if *suspended {
            let name = &plan.plugin;
            let line = format!("suspended: nothing of this is done before `reeve resume {name}`");
            self.line(2, Some(Style::Warning), &line);
        }
        let line = match mode {
            SyncMode::Auto => None,
            SyncMode::OnRequest => Some("mode OnRequest: each plan is done when it is approved"),
            SyncMode::PlanOnly => Some("mode PlanOnly: nothing of this is done"),
        };
        if let Some(line) = line {
            self.line(2, Some(Style::Warning), line);
        }
        for warning in warnings {
            self.line(2, Some(Style::Warning), &format!("warning: {warning}"));
        }
        for unit in units {
            self.unit(unit);
            if let Some(id) = &unit.approval {
                let line = format!("approve with: reeve approve {} {id}", plan.plugin);
                self.line(4, Some(Style::Heading), &line);
            }
        }
        self.out.push('\n');
    }

    fn unit(&mut self, unit: &UnitPlan) {
        if is_settled(unit) && unit.problems.is_empty() && !self.verbose {
            return;
        }
        let mut heading = unit.primary.to_string();
        if is_settled(unit) && unit.problems.is_empty() {
            let _ = write!(
                heading,
                ": {} as they should be",
                counted(unit.unchanged, "object")
            );
        }
        self.line(2, Some(Style::Heading), &heading);
        for notice in &unit.notices {
            self.line(4, Some(Style::Faint), &format!("note: {notice}"));
        }
        for change in &unit.changes {
            self.change(change);
        }
        for effect in &unit.effects {
            self.effect(effect);
        }
        for problem in &unit.problems {
            // A refusal is told with its object.
            let told = unit
                .changes
                .iter()
                .any(|one| one.reason.as_ref() == Some(&problem.message));
            if !told {
                self.line(4, Some(Style::Warning), &format!("! {problem}"));
            }
        }
    }

    fn change(&mut self, change: &ObjectPlan) {
        let (sign, verb, style) = match change.action {
            Action::Create => ("+", "create", Style::Added),
            Action::Change => ("~", "change", Style::Changed),
            Action::Contribute => ("~", "contribute to", Style::Changed),
            Action::Release => ("~", "give up fields of", Style::Changed),
            Action::Delete => ("-", "delete", Style::Removed),
        };
        // A refusal names its object itself.
        if let (Standing::Refused, Some(reason)) = (change.standing, &change.reason) {
            return self.line(4, Some(Style::Removed), &format!("x refused: {reason}"));
        }
        let (sign, verb, style) = match change.standing {
            Standing::Held => ("?", format!("held: {verb}"), Style::Warning),
            _ => (sign, verb.to_owned(), style),
        };
        let mut line = format!("{sign} {verb} {}", change.object);
        if let Some(step) = &change.step {
            let _ = write!(line, " ({step})");
        }
        if change.standing == Standing::Waiting && change.reason.is_none() {
            line.push_str(", when what comes before it is there and healthy");
        } else if change.standing == Standing::Waiting {
            line.push_str(", later");
        }
        if let Some(reason) = &change.reason {
            let _ = write!(line, ": {reason}");
        }
        self.line(4, Some(style), &line);
        let mut marks = 0;
        for field in &change.fields {
            if is_bookkeeping(&field.path) && !self.verbose {
                marks += 1;
            } else {
                self.field(field);
            }
        }
        if marks > 0 && marks == change.fields.len() {
            let line = "only marks of ownership differ; --verbose shows them";
            self.line(8, Some(Style::Faint), line);
        }
    }

    fn effect(&mut self, effect: &EffectPlan) {
        let (sign, verb, style) = match effect.act {
            EffectAct::Make => ("+", "make", Style::Added),
            EffectAct::Remake => ("~", "make again", Style::Changed),
            EffectAct::TakeAway => ("-", "take away", Style::Removed),
            EffectAct::Leave => ("!", "leave", Style::Warning),
        };
        let EffectPlan {
            name, key, reason, ..
        } = effect;
        let line = format!("{sign} {verb} outside effect {name} ({key}): {reason}");
        self.line(4, Some(style), &line);
        if !matches!(effect.act, EffectAct::Make | EffectAct::Remake) {
            return;
        }
        for (namespace, name) in &effect.secrets {
            let line = format!("with the generated Secret {namespace}/{name}");
            self.line(8, Some(Style::Faint), &line);
        }
        if self.verbose {
            let line = format!("input: {}", effect.input);
            self.line(8, Some(Style::Faint), &line);
        }
    }

    fn field(&mut self, field: &FieldChange) {
        if let Some((style, line)) = field_in_text(field) {
            self.line(8, Some(style), &line);
        }
    }

    fn summary(&mut self, counts: Counts, empty: bool) {
        if empty {
            self.line(0, None, "no plugin is installed");
            return;
        }
        let Counts {
            create,
            change,
            delete,
            waiting,
            held,
            refused,
            unchanged,
            effects,
            failed,
        } = counts;
        let mut parts = Vec::new();
        for (count, what) in [
            (create, "to create"),
            (change, "to change"),
            (delete, "to delete"),
            (effects, "outside effects to make or take away"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        for (count, what) in [
            (waiting, "of these later"),
            (held, "held until a person approves"),
            (refused, "refused"),
            (failed, "without a plan"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if parts.is_empty() {
            parts.push("nothing to do".to_owned());
        }
        parts.push(format!(
            "{} as they should be",
            counted(unchanged, "object")
        ));
        self.line(0, None, &parts.join(", "));
    }
}

fn is_settled(unit: &UnitPlan) -> bool {
    unit.planned && unit.changes.is_empty() && unit.effects.is_empty()
}

/// `sha256:0123456789ab`.
fn short(digest: &str) -> &str {
    const SHOWN: usize = "sha256:".len() + 12;
    digest.get(..SHOWN).unwrap_or(digest)
}

//! Whether what a plan says may be written, or is only shown.

use super::{Ran, Run, Sync};
use crate::effects::word;
use crate::problem::Problem;
use reeve_api::{PlanEffect, PlanStatus, PlanStep, PrimaryReference, Reason, SyncMode};
use reeve_core::outcome::Verb;
use reeve_core::plan::{Act, Preview, PreviewEffect, PreviewStep};

/// Steps of a plan that the status names, and effects. People look through as many; how many there
/// are stands beside, and `reeve plan` shows all of them.
const STEPS_SHOWN: usize = 50;

/// What a person has approved, while it is being carried out.
///
/// While it lasts nothing can come to be deleted that was not in the plan: what is
/// surplus becomes so by another revision, or by an apply of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approved {
    /// The sync of the revision. It lasts until that is complete, so that waves and
    /// waits need no further word; what differs after that is another plan.
    Sync,
    /// The end of the unit.
    End,
}

impl Approved {
    /// As a `Unit` has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "Sync",
            Self::End => "End",
        }
    }

    /// What [`Approved::as_str`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Sync, Self::End]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}

/// Whether what `preview` shows may be carried out. If not, the run says what it would
/// do. What is approved stays so while `about` is being carried out, or for this run.
pub(super) fn may_write(
    run: &Run,
    about: Option<Approved>,
    preview: impl FnOnce(&Sync) -> Preview,
    sync: &mut Sync,
    ran: &mut Ran,
) -> bool {
    let approved = run.mode == SyncMode::OnRequest && about.is_some() && sync.approved == about;
    if run.mode == SyncMode::Auto || approved {
        return true;
    }
    let preview = preview(sync);
    let id = preview.id(sync.used_approval.as_deref());
    if run.mode == SyncMode::OnRequest && run.approved_plan.as_deref() == Some(&*id) {
        // What is over when this run is has nothing to outlast it.
        sync.approved = about.or(sync.approved);
        sync.used_approval = Some(id);
        ran.approved.extend(preview.effects);
        return true;
    }
    let plan = shown(&preview, id);
    let (reason, next) = match run.mode {
        SyncMode::PlanOnly => (
            Reason::PlanOnly,
            "nothing is written, since spec.mode of the Plugin is PlanOnly".to_owned(),
        ),
        _ => (
            Reason::AwaitingApproval,
            format!(
                "nothing is written before `reeve approve {} {}`",
                run.unit.plugin, plan.id
            ),
        ),
    };
    let (made, taken) = counts(&preview.effects);
    let effects = match made + taken {
        0 => String::new(),
        _ => format!(", {made} outside effects to make, {taken} to take away"),
    };
    let message = format!(
        "{} to create, {} to change, {} to delete{effects}, see status.plan of the Unit; {next}",
        plan.create, plan.change, plan.delete
    );
    ran.problems.insert(0, Problem::lasting(reason, message));
    ran.plan = Some(plan);
    false
}

/// As [`may_write`], of effects alone.
pub(super) fn may_effect(run: &Run, effects: Vec<PreviewEffect>, ran: &mut Ran) -> bool {
    let mut sync = ran.sync.take().unwrap_or_else(|| run.sync.clone());
    let preview = |_: &Sync| Preview::of_effects(effects);
    let may = may_write(run, None, preview, &mut sync, ran);
    ran.sync = Some(sync);
    may
}

/// How many are to be made, and to be taken away.
fn counts(effects: &[PreviewEffect]) -> (usize, usize) {
    let retired = effects.iter().filter(|effect| effect.verb == Verb::Retire);
    let retired = retired.count();
    (effects.len() - retired, retired)
}

fn shown(preview: &Preview, id: String) -> PlanStatus {
    let count = |acts: &[Act]| u32::try_from(preview.count(acts)).unwrap_or(u32::MAX);
    PlanStatus {
        id,
        create: count(&[Act::Create, Act::Run]),
        change: count(&[Act::Change, Act::Repair, Act::Contribute, Act::Release]),
        delete: count(&[Act::Delete]),
        steps: preview.steps.iter().take(STEPS_SHOWN).map(step).collect(),
        effects: preview
            .effects
            .iter()
            .take(STEPS_SHOWN)
            .map(effect)
            .collect(),
        effect_count: u32::try_from(preview.effects.len()).unwrap_or(u32::MAX),
    }
}

fn effect(effect: &PreviewEffect) -> PlanEffect {
    PlanEffect {
        verb: word(effect.verb).to_owned(),
        name: effect.name.clone(),
        key: effect.key.clone(),
    }
}

fn step(step: &PreviewStep) -> PlanStep {
    let PreviewStep { act, object, uid } = step;
    PlanStep {
        action: act.to_string(),
        object: PrimaryReference {
            api_version: object.kind.api_version(),
            kind: object.kind.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: uid.clone().unwrap_or_default(),
        },
    }
}

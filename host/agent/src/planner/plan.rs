//! What would be done for one unit.

use super::Opened;
use super::call::Call;
use crate::effects::Effect;
use crate::execute::{Foreseen, Work};
use crate::problem::{Problem, chain};
use crate::run::{Rehearsal, Rehearsed, Runner};
use reeve_api::Reason;
use reeve_cluster::Resource;
use reeve_core::fields::{FieldChange, Preview, Previewed, changes, preview};
use reeve_core::outcome::Verb;
use reeve_core::ownership::Stamped;
use reeve_core::plan::{ApplyReason, Step, Wanted, Withdrawal};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What would be done for a unit, and why not more.
#[derive(Clone, Debug)]
pub struct UnitPlan {
    /// The primary.
    pub primary: ObjectReference,
    /// Whether it came to a plan; if not, the problems say why.
    pub planned: bool,
    /// What would be written, in the order in which it would be.
    pub changes: Vec<ObjectPlan>,
    /// What would be done outside of the cluster, after that.
    pub effects: Vec<EffectPlan>,
    /// Desired objects that are as they should be.
    pub unchanged: usize,
    /// What of the order of the objects is not as it looks.
    pub notices: Vec<String>,
    /// What keeps the unit from being ready, the worst first.
    pub problems: Vec<ProblemReport>,
    /// What approves just this plan, where the mode of the plugin asks for that.
    pub approval: Option<String>,
    /// The call of the plugin; none when it was not called.
    pub call: Option<Call>,
}

/// What would be done to one object.
#[derive(Clone, Debug)]
pub struct ObjectPlan {
    /// The object.
    pub object: ObjectReference,
    /// What would be done.
    pub action: Action,
    /// Whether it would be done now.
    pub standing: Standing,
    /// Why it would be done, or why it is not.
    pub reason: Option<String>,
    /// Phase and wave, where the unit is applied in more than one step.
    pub step: Option<String>,
    /// What would change.
    pub fields: Vec<FieldChange>,
}

/// What would be done about one outside effect. None is made for a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectPlan {
    /// What would be done.
    pub act: EffectAct,
    /// Name of the action.
    pub name: String,
    /// Its key among those of the primary.
    pub key: String,
    /// What it needs to know, one JSON text.
    pub input: String,
    /// Secrets that are generated for it, as namespace and name.
    pub secrets: Vec<(String, String)>,
    /// Why.
    pub reason: String,
}

/// What would be done about an outside effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectAct {
    /// It would be made.
    Make,
    /// It was made, and would be made anew.
    Remake,
    /// It would be taken away.
    TakeAway,
    /// Nothing: it stays, and nobody looks after it any more.
    Leave,
}

/// What would be done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It would be made.
    Create,
    /// Fields of it would change.
    Change,
    /// Fields of it would be set; it is somebody else's.
    Contribute,
    /// Fields of it would be given up; it is somebody else's.
    Release,
    /// It would go.
    Delete,
}

/// Whether something would be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At once.
    Now,
    /// When what comes before it is there and healthy.
    Waiting,
    /// When a person has approved it.
    Held,
    /// Not at all.
    Refused,
}

/// What does not work, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemReport {
    /// The machine-readable half.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl fmt::Display for ProblemReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl From<Problem> for ProblemReport {
    fn from(problem: Problem) -> Self {
        Self {
            reason: problem.reason.to_string(),
            message: to_reader(&problem.message),
        }
    }
}

/// A message of the agent as it reads for whoever stands in its place here: what the
/// agent may not do is then what the reader may not.
pub(super) fn to_reader(message: &str) -> String {
    message.replace("the agent may not ", "you may not ")
}

impl EffectPlan {
    fn of(verb: Option<Verb>, effect: &Effect) -> Self {
        let (act, reason) = match (verb, &effect.done, &effect.message) {
            (None, _, _) => (
                EffectAct::Leave,
                "it is asked for no more, and to be taken away by hand".to_owned(),
            ),
            (Some(Verb::Retire), _, None) => {
                (EffectAct::TakeAway, "it is asked for no more".to_owned())
            }
            (Some(Verb::Retire), _, Some(message)) => (
                EffectAct::TakeAway,
                format!("it is asked for no more; the last attempt failed: {message}"),
            ),
            (Some(_), None, None) => (EffectAct::Make, "it is not in place yet".to_owned()),
            (Some(_), None, Some(message)) => (
                EffectAct::Make,
                format!("it is not in place yet; the last attempt failed: {message}"),
            ),
            (Some(_), Some(_), _) => (
                EffectAct::Remake,
                "something else is asked for than was carried out".to_owned(),
            ),
        };
        let action = &effect.action;
        let secrets = action.secrets.iter();
        Self {
            act,
            name: action.name.clone(),
            key: action.key.clone(),
            input: action.input.clone(),
            secrets: secrets
                .map(|secret| (secret.namespace.clone(), secret.secret.clone()))
                .collect(),
            reason,
        }
    }

    /// Whether anything would be done.
    pub fn is_due(&self) -> bool {
        self.act != EffectAct::Leave
    }
}

impl Opened<'_> {
    /// What would be done for a unit now. A primary that does not exist, and of
    /// which nothing is left, needs nothing.
    pub async fn plan(&self, primary: &ObjectReference) -> UnitPlan {
        let unit = self.state.unit(primary);
        let rehearsal = Arc::new(Rehearsal::default());
        let runner = Runner {
            rehearsal: Some(rehearsal.clone()),
            ..self.runner.clone()
        };
        let mut ran = runner.run(self.state.run(&unit, &self.active)).await;
        let taken = rehearsal.taken_down();
        let call = ran.reads.take().map(|reads| self.call(&unit, &reads));
        let changes = self.describe(&unit, &taken).await;
        let effects = taken.effects.iter();
        let effects: Vec<EffectPlan> = effects
            .map(|(verb, effect)| EffectPlan::of(*verb, effect))
            .collect();
        UnitPlan {
            primary: primary.clone(),
            planned: taken.planned || ran.problems.is_empty(),
            unchanged: taken.plan.unchanged,
            notices: taken.notices,
            approval: taken
                .approval
                .filter(|_| !changes.is_empty() || effects.iter().any(EffectPlan::is_due)),
            changes,
            effects,
            problems: ran.problems.into_iter().map(ProblemReport::from).collect(),
            call,
        }
    }

    async fn describe(&self, unit: &UnitKey, taken: &Rehearsed) -> Vec<ObjectPlan> {
        let steps = steps(taken);
        let mut applies: BTreeMap<usize, (Option<ApplyReason>, Standing)> = BTreeMap::new();
        for index in &taken.waiting {
            applies.insert(*index, (None, Standing::Waiting));
        }
        for step in taken.plan.steps() {
            match step {
                Step::Apply { wanted, reason, .. } => {
                    applies.insert(*wanted, (Some(*reason), Standing::Now));
                }
                Step::Contribute { .. } | Step::Delete { .. } | Step::Release { .. } => {}
            }
        }
        let place = |index: &usize| {
            let reference = &taken.wanted.get(*index)?.stamped.reference;
            taken.order.iter().position(|one| one.object == *reference)
        };
        let mut order: Vec<usize> = applies.keys().copied().collect();
        order.sort_by_key(|index| (place(index).unwrap_or(usize::MAX), *index));
        let mut all = Vec::new();
        for index in order {
            let (Some(one), Some((reason, standing))) =
                (taken.wanted.get(index), applies.get(&index))
            else {
                continue;
            };
            let mut plan = self.apply(one, *reason, *standing, taken).await;
            plan.step = steps.get(&one.stamped.reference).cloned();
            all.push(plan);
        }
        for step in taken.plan.steps() {
            match step {
                Step::Contribute { wanted, again, .. } => {
                    if let Some(one) = taken.wanted.get(*wanted) {
                        let mut plan = self.contribution(unit, one, *again).await;
                        plan.step = steps.get(&one.stamped.reference).cloned();
                        all.push(plan);
                    }
                }
                Step::Release { object, .. } => all.push(self.release(unit, object).await),
                Step::Apply { .. } | Step::Delete { .. } => {}
            }
        }
        for step in taken.plan.steps() {
            if let Step::Delete { object, reason, .. } = step {
                let why = match reason {
                    Withdrawal::Unwanted => "the plugin no longer returns it",
                    Withdrawal::UnitEnded => "its primary is gone",
                    Withdrawal::Deselected => "its primary is no longer selected",
                    Withdrawal::EarlierHook => "the hook of this sync takes its place",
                    Withdrawal::HookEnded => "the hook has ended, and its policy says so",
                };
                all.push(deletion(object, Standing::Now, why));
            }
        }
        let unwanted = "the plugin says that it must not exist";
        let absences = taken.absences.iter();
        all.extend(absences.map(|object| deletion(object, Standing::Now, unwanted)));
        let held = "a person has to approve it";
        all.extend(
            taken
                .held
                .iter()
                .map(|object| deletion(object, Standing::Held, held)),
        );
        all
    }

    /// What applying an object would make of it.
    async fn apply(
        &self,
        one: &Wanted,
        reason: Option<ApplyReason>,
        standing: Standing,
        taken: &Rehearsed,
    ) -> ObjectPlan {
        let stamped = &one.stamped;
        let mut plan = ObjectPlan {
            object: stamped.reference.clone(),
            action: Action::Create,
            standing,
            reason: None,
            step: None,
            fields: Vec::new(),
        };
        let Some(owner) = &taken.owner else {
            return plan;
        };
        let work = Work {
            active: &self.active,
            owner,
            recreations: None,
        };
        let foreseen = self.runner.executor.foresee(&work, one, reason).await;
        let previewed = match &foreseen {
            Ok(foreseen) => self.preview(stamped, foreseen).await,
            Err(problem) => Err(problem.clone()),
        };
        let (foreseen, previewed) = match (foreseen, previewed) {
            (Ok(foreseen), Ok(previewed)) => (foreseen, previewed),
            (_, Err(problem)) | (Err(problem), _) => {
                plan.standing = Standing::Refused;
                plan.reason = Some(to_reader(&problem.message));
                return plan;
            }
        };
        plan.fields = changes(previewed.before.as_ref(), Some(&previewed.after));
        if foreseen.live.is_some() {
            plan.action = Action::Change;
            plan.reason = Some(why(reason, &foreseen, &previewed));
        }
        if let Some(namespace) = self.missing_namespace(&stamped.reference, taken).await {
            plan.standing = Standing::Waiting;
            plan.reason = Some(format!("namespace {namespace} does not exist yet"));
        }
        plan
    }

    async fn preview(&self, stamped: &Stamped, foreseen: &Foreseen) -> Result<Previewed, Problem> {
        let reference = &stamped.reference;
        let cluster = &self.runner.executor.cluster;
        let version = match self.active.resource(&reference.kind) {
            Some(resource) => self.schemas.version(cluster, resource).await,
            None => None,
        };
        let previewed = preview(&Preview {
            kind: &reference.kind,
            version: version.as_deref(),
            live: foreseen.live.as_ref(),
            config: stamped.body(),
            manager: &self.active.field_manager,
            force: foreseen.force,
        });
        previewed.map_err(|error| {
            let message = format!("{reference}: {}", chain(&error));
            Problem::passing(Reason::ApplyFailed, message)
        })
    }

    /// The namespace of an object, if it neither exists nor is to be made before it.
    async fn missing_namespace(
        &self,
        reference: &ObjectReference,
        taken: &Rehearsed,
    ) -> Option<String> {
        let name = reference.namespace.as_deref()?;
        let namespaces = Resource {
            kind: GroupVersionKind::new("", "v1", "Namespace"),
            plural: "namespaces".into(),
            namespaced: false,
        };
        let made = taken.wanted.iter().any(|one| {
            let wanted = &one.stamped.reference;
            wanted.kind.same_kind(&namespaces.kind) && wanted.name == name
        });
        if made {
            return None;
        }
        // Who may not look at it is not told.
        let found = self.runner.executor.cluster.get(&namespaces, None, name);
        matches!(found.await, Ok(None)).then(|| name.to_owned())
    }
}

/// Phase and wave by object, where there is more than one step.
fn steps(taken: &Rehearsed) -> BTreeMap<ObjectReference, String> {
    let name = |place: &crate::run::Place| match place.wave {
        Some(wave) => format!("{} wave {wave}", place.phase),
        None => place.phase.to_string(),
    };
    let mut names = taken.order.iter().map(name);
    let first = names.next();
    if names.all(|name| Some(&name) == first.as_ref()) {
        return BTreeMap::new();
    }
    let places = taken.order.iter();
    places
        .map(|place| (place.object.clone(), name(place)))
        .collect()
}

fn why(reason: Option<ApplyReason>, foreseen: &Foreseen, previewed: &Previewed) -> String {
    if foreseen.adopted {
        return "it is taken over, as spec.adoption of the Plugin says".to_owned();
    }
    match (reason, previewed.taken_from.as_slice()) {
        (Some(ApplyReason::Drifted), []) => "fields of the plugin are no longer its own".to_owned(),
        (Some(ApplyReason::Drifted), others) => {
            format!("{} changed fields of the plugin", others.join(", "))
        }
        (_, []) => "the plugin wants something else than before".to_owned(),
        (_, others) => format!(
            "the plugin wants something else than before, and takes fields from {}",
            others.join(", ")
        ),
    }
}

fn deletion(object: &ObjectReference, standing: Standing, why: &str) -> ObjectPlan {
    ObjectPlan {
        object: object.clone(),
        action: Action::Delete,
        standing,
        reason: Some(why.to_owned()),
        step: None,
        fields: Vec::new(),
    }
}

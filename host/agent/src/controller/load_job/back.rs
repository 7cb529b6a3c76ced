//! Going back from a version on request, and forward again.
//!
//! What is left stays known: the annotation is taken away as easily as it was set, and
//! then what ran before it was set runs again, whatever the ConfigMap has by then.

use super::{Load, Loaded, Previous};
use crate::active::Active;
use crate::approval::Approval;
use crate::kept;
use crate::load::Standing;
use crate::problem::Problem;
use crate::version::{Artifact, VersionId};
use reeve_api::{ROLL_BACK_ANNOTATION, Reason};
use std::sync::Arc;

impl Load {
    /// What runs, if a person wants it no more.
    pub(super) fn unwanted(&self) -> Option<VersionId> {
        let running = self.running.as_ref()?;
        let running = VersionId::running(running);
        self.words.is_rolled_back(running).then_some(running)
    }

    /// Leaves what runs and is wanted no more for the version before it, where the
    /// newest is neither of them and does not load, for this reason.
    pub(super) async fn leave(
        &self,
        unwanted: VersionId,
        problem: Problem,
    ) -> Result<Loaded, Problem> {
        if matches!(problem.reason, Reason::RolledBack | Reason::RollbackFailed) {
            return Err(problem);
        }
        match self.roll_back(unwanted).await {
            Ok(Loaded::InPlaceOfNewest(active, standing, _)) => {
                let running = VersionId::running(&active);
                let problem = self.told_as_left(problem, unwanted, running);
                Ok(Loaded::InPlaceOfNewest(active, standing, problem))
            }
            Ok(_) => Err(problem),
            Err(failed) => Err(Problem {
                message: format!("{}; {}", problem.message, failed.message),
                ..problem
            }),
        }
    }

    /// The version that was left, if a person wants it again: it goes on while the newest
    /// one, which is another, does not load.
    pub(super) fn regained(
        &self,
        newest: Option<VersionId>,
        problem: &Problem,
    ) -> Option<VersionId> {
        // What says nothing about the newest version may be over in a moment, and what a
        // person has said of another one comes first.
        let tells = !matches!(
            problem.reason,
            Reason::Unreachable | Reason::Syncing | Reason::RolledBack | Reason::RollbackFailed
        );
        let running = self.running.as_ref().filter(|_| tells)?;
        let (left, newest) = (self.left.version?, newest?);
        let other = left != VersionId::running(running) && left != newest;
        (other && !self.words.is_rolled_back(left)).then_some(left)
    }

    /// Loads what was left, in place of the newest version that does not load, for this
    /// reason. Should that fail, what runs stays.
    pub(super) async fn go_forward(
        &self,
        regained: VersionId,
        problem: Problem,
    ) -> Result<Loaded, Problem> {
        match self.load_known(regained, &self.left).await {
            Ok((active, standing)) => Ok(Loaded::InPlaceOfNewest(active, standing, problem)),
            Err(why) => Err(Problem {
                message: format!(
                    "{}; {} was gone back from and is wanted again, and does not run: {}",
                    problem.message, regained.component, why.message
                ),
                retries: problem.retries || why.retries,
                ..problem
            }),
        }
    }

    /// What is said of the newest version while another one is gone back from.
    pub(super) fn told(&self, problem: Problem) -> Problem {
        let running = self.running.as_ref();
        let running = running.map(|running| VersionId::running(running));
        let left = self.left.version;
        match left.zip(running) {
            Some((left, running)) if self.words.is_rolled_back(left) && left != running => {
                self.told_as_left(problem, left, running)
            }
            _ => problem,
        }
    }

    fn told_as_left(&self, problem: Problem, left: VersionId, running: VersionId) -> Problem {
        if matches!(problem.reason, Reason::RolledBack | Reason::RollbackFailed) {
            return problem;
        }
        Problem {
            message: format!(
                "{}; meanwhile {} runs, rolled back to on request from {}, which {} returns to",
                problem.message,
                running.beside(left),
                left.beside(running),
                self.undo_command(),
            ),
            ..problem
        }
    }

    fn undo_command(&self) -> String {
        let (plugin, namespace) = (&self.plugin, &self.loader.namespace);
        format!("`reeve plugin rollback {plugin} --namespace {namespace} --undo`")
    }

    /// Loads the version before the one that a person wants no more, or leaves it
    /// running.
    pub(super) async fn roll_back(&self, newest: VersionId) -> Result<Loaded, Problem> {
        let running = self.running.as_ref();
        let running = running.map(|active| VersionId::running(active));
        let rolled_back = |to: VersionId| {
            Problem::lasting(
                Reason::RolledBack,
                format!(
                    "rolled back on request from {} to {}; {} goes forward again, which takes the \
                     annotation {ROLL_BACK_ANNOTATION} away, and a newer version takes over by \
                     itself",
                    newest.beside(to),
                    to.beside(newest),
                    self.undo_command(),
                ),
            )
        };
        if let Some(running) = running.filter(|running| *running != newest) {
            return Err(rolled_back(running));
        }
        // After a restart what ran last is what was gone back to.
        let last_good = self.last_good.filter(|_| running.is_none());
        let wanted = [last_good, self.previous.version].into_iter().flatten();
        let Some(wanted) = wanted.into_iter().find(|wanted| *wanted != newest) else {
            return Err(self.not_rolled_back("no version is known that ran before it"));
        };
        let (active, standing) =
            self.load_known(wanted, &self.previous)
                .await
                .map_err(|problem| Problem {
                    retries: problem.retries,
                    ..self.not_rolled_back(&format!(
                        "the version before it, {}, does not run: {}",
                        wanted.component, problem.message
                    ))
                })?;
        Ok(Loaded::InPlaceOfNewest(
            active,
            standing,
            rolled_back(wanted),
        ))
    }

    /// Loads a version that has run here, from the cache or, without one, from memory.
    async fn load_known(
        &self,
        wanted: VersionId,
        known: &Previous,
    ) -> Result<(Arc<Active>, Standing), Problem> {
        let (artifact, package) = match self.kept(wanted).await {
            Ok(package) => (Artifact::Delivered(package.clone()), Some(package)),
            Err(lost) => match known.compiled_as(wanted) {
                Some(compiled) => (compiled, None),
                None => return Err(lost_problem(lost)),
            },
        };
        // It has run with all that it asks for, and who may annotate the Plugin may
        // approve of that.
        let loaded = self.load(artifact, &Approval::given()).await?;
        if let Some(package) = package {
            self.keep(package).await;
        }
        Ok(loaded)
    }

    fn not_rolled_back(&self, why: &str) -> Problem {
        Problem::lasting(
            Reason::RollbackFailed,
            format!(
                "a version is to be rolled back from, as the annotation {ROLL_BACK_ANNOTATION} \
                 says, and cannot be: {why}; deliver the version that is to run, or give it up \
                 with {}",
                self.undo_command(),
            ),
        )
    }
}

pub(super) fn lost_problem(lost: kept::Lost) -> Problem {
    Problem::lasting(Reason::ComponentAbsent, lost.to_string())
}

impl Previous {
    fn compiled_as(&self, wanted: VersionId) -> Option<Artifact> {
        let compiled = self.compiled.clone();
        compiled.filter(|compiled| compiled.version() == wanted)
    }
}

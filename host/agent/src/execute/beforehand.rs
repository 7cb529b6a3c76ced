//! What the API server would refuse, found out without writing.

use super::apply::{Onto, is_sent_strictly};
use super::{Executor, WRITES_AT_ONCE, Work, write_problem};
use crate::problem::Problem;
use futures::{FutureExt as _, StreamExt as _};
use reeve_api::Reason;
use reeve_cluster::{Apply, WriteError};
use reeve_core::plan::{Recreation, Step, Wanted, recreation};
use reeve_core::waves::ApplyMode;

impl Executor {
    /// Asks for these applies, which are for later, whether they would be refused as
    /// they are: for what is wrong with the object itself, whenever it is sent.
    ///
    /// What depends on the rest of the cluster is not held against them, since what
    /// comes before them may change that: a namespace or a kind that is not there, a
    /// quota, a right, an object of somebody else, a webhook. Nor is having no answer.
    pub(crate) async fn would_be_refused(
        &self,
        work: &Work<'_>,
        wanted: &[Wanted],
        steps: &[Step],
    ) -> Vec<Problem> {
        let asked = steps.iter().filter_map(|step| match step {
            Step::Apply {
                wanted: index, uid, ..
            } => Some((wanted.get(*index)?, uid.as_deref())),
            _ => None,
        });
        let asked: Vec<_> = asked
            .map(|(one, uid)| self.would_be(work, one, uid).boxed())
            .collect();
        let answers = futures::stream::iter(asked).buffered(WRITES_AT_ONCE);
        // Not an async closure: this compiler cannot build the crate once more over one here.
        answers.filter_map(std::future::ready).collect().await
    }

    async fn would_be(&self, work: &Work<'_>, one: &Wanted, uid: Option<&str>) -> Option<Problem> {
        let active = work.active;
        let reference = &one.stamped.reference;
        let resource = active.resource(&reference.kind)?;
        let onto = uid.map_or(Onto::Nothing, Onto::Uid);
        let tried = self
            .cluster
            .apply(Apply {
                resource,
                namespace: reference.namespace.as_deref(),
                name: &reference.name,
                body: (&one.stamped).into(),
                onto: onto.preconditions(),
                manager: &active.field_manager,
                force: uid.is_some() && one.member.options.apply != ApplyMode::Merge,
                strict: is_sent_strictly(one),
                dry_run: true,
                identity: Some(&active.identity),
            })
            .await;
        let Err(error) = tried else {
            return None;
        };
        let WriteError::Invalid {
            causes, message, ..
        } = &error
        else {
            tracing::debug!(object = %reference, %error, "not known whether it would be refused");
            return None;
        };
        let mut problem = match recreation(one, &active.policy, &active.plugin, causes, message) {
            Recreation::Allowed { .. } => return None,
            Recreation::Unrelated => write_problem(reference, &error),
            Recreation::Refused(why) => Problem::lasting(Reason::FieldImmutable, why),
        };
        problem
            .message
            .push_str("; nothing is applied for this revision before all of it can be");
        Some(problem)
    }
}

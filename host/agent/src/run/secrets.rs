//! Secrets of a unit: read by their names, and remembered before they are made.
//!
//! A Secret that was made and whose name was not written down would never be found again,
//! so what a run is about to make is written down first. What was written down and not
//! made costs nothing but a question.

use super::{Run, Runner};
use crate::active::Active;
use crate::controller::unit_object_name;
use crate::problem::Problem;
use crate::secret_names::{kept_secret, object_name, unit_spec};
use reeve_api::{KeptSecret, Reason};
use reeve_core::ownership::unit_label;
use reeve_core::plan::{Plan, Step, Wanted};
use reeve_core::{ObjectReference, UnitKey};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

/// For how long a run waits for the API server about its Secrets. Then it says what it
/// waits for, and is made again.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

impl Runner {
    /// Has the Secrets among these objects read, if they have not been. Of those that
    /// could not be, the store says why.
    pub(super) async fn read_secrets(
        &self,
        active: &Active,
        unit: &UnitKey,
        objects: &BTreeSet<ObjectReference>,
    ) {
        let Some(watch) = active.secrets() else {
            return;
        };
        let secrets = objects.iter().filter(|object| object.kind.is_secret());
        let names: BTreeSet<_> = secrets.map(object_name).collect();
        if names.is_empty() {
            return;
        }
        let holder = unit_label(unit);
        let mut all = watch.names_of(holder);
        if !names.is_subset(&all) {
            all.extend(names.iter().cloned());
            watch.set_names(holder, &all);
        }
        // Whoever looks is told what is still missing.
        let _ = timeout(PATIENCE, watch.read_names(names)).await;
    }

    /// Has the Secrets that a unit has read anew, since a person asked. What cannot be read in
    /// time is as it was last seen, and is read later.
    pub(super) async fn look_at_secrets(&self, active: &Active, unit: &UnitKey) {
        let Some(watch) = active.secrets() else {
            return;
        };
        let _ = timeout(PATIENCE, watch.read_names_anew(unit_label(unit))).await;
    }

    /// Has the names of the Secrets that a plan applies written down, if they are not.
    pub(super) async fn remember_secrets(
        &self,
        run: &Run,
        uid: &str,
        wanted: &[Wanted],
        plan: &Plan,
    ) -> Result<(), Problem> {
        let applied = plan.steps().filter_map(|step| match step {
            Step::Apply { wanted: index, .. } => wanted.get(*index),
            _ => None,
        });
        let references = applied.map(|one| &one.stamped.reference);
        let secrets = references.filter(|object| object.kind.is_secret());
        let names: BTreeSet<KeptSecret> =
            secrets.map(|one| kept_secret(&object_name(one))).collect();
        if names.is_empty() {
            return Ok(());
        }
        let object = unit_object_name(&run.unit);
        let spec = unit_spec(&run.unit, Some(uid));
        let remembered = self.reports.remember(&object, &spec, &names);
        let why = match timeout(PATIENCE, remembered).await {
            Ok(true) => return Ok(()),
            Ok(false) => "this replica does not lead",
            Err(_) => "the agent's log says why",
        };
        let names = names
            .iter()
            .map(|one| format!("{}/{}", one.namespace, one.name));
        let names = names.collect::<Vec<_>>().join(", ");
        Err(Problem::passing(
            Reason::Unreachable,
            format!(
                "Unit {object} cannot be written, in which the names of the Secrets {names} are \
                 to be remembered ({why}); they are made when it is"
            ),
        ))
    }
}

//! Conformance: a plugin is a pure function. Asked twice about the same, it has to
//! answer the same; everything that follows from purity (that unchanged work is not
//! repeated, that plans are what is done) would fail with one that does not. And where it
//! reads what it makes, it has to come to rest: one that wants something else each time
//! that it sees its own work would write without end.

use super::Fleet;
use crate::active::Active;
use crate::problem::Problem;
use crate::run::Runner;
use std::sync::Arc;

/// Units that are asked about twice, spread over all. One that is not pure is not so for
/// a single unit.
const UNITS: usize = 16;

/// Asks a version twice about some of its units, and, if it has to be `at_rest`, about
/// what it has answered.
///
/// # Errors
///
/// When the two answers about one of them differ, though what it was given and read was
/// the same, and when it does not come to rest.
pub(super) async fn check(
    runner: &Runner,
    new: &Arc<Active>,
    fleet: &Fleet,
    at_rest: bool,
) -> Result<(), Problem> {
    let step = fleet.units.len().div_ceil(UNITS).max(1);
    for (unit, primary) in fleet.units.iter().step_by(step) {
        let facts = fleet.state.run(unit, new).effects.facts();
        runner
            .conforms(unit, new, &fleet.snapshot, primary, facts, at_rest)
            .await?;
    }
    Ok(())
}

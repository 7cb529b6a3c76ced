//! What the actors of the embedded server say of releases, held against what Flux's own
//! helm-controller says of them on a real API server.
//!
//! Both play the same scenarios: first the actors, on virtual time, and then the
//! controller, with charts that fail where a scenario says so. After each step the
//! controller must come to the status that the actors wrote, and all that they wrote on
//! the way it must have written, too, in that order.

mod embedded;
mod scenarios;
mod servers;
mod statuses;
mod truth;

use anyhow::{Result, ensure};

#[test]
fn releases_stand_as_with_helm_controller() -> Result<()> {
    let scenarios = scenarios::all();
    let folder = tempfile::tempdir()?;
    let chart = truth::package(folder.path())?;
    let played = embedded::play(&scenarios, &chart)?;
    ensure!(played.len() == scenarios.len(), "not all was played");
    let differences = truth::compare(&scenarios, &played, chart)?;
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

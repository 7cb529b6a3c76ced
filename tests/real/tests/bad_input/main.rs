//! Whatever is wrong is said where people look, in the words of whoever found it,
//! and nothing else stops: on a real API server, with the agent as a process.
//!
//! The chapters share one cluster and one agent. What they deliver they deliver
//! together, so that it is worked on together; cases are told apart by their names.

mod brought;
mod ground;
mod kinds;
mod outages;
mod packages;
#[path = "../story/stage.rs"]
#[expect(dead_code, reason = "the story uses the rest")]
mod stage;
mod units;

use anyhow::Result;

#[test]
fn what_is_wrong_is_said_and_nothing_else_stops() -> Result<()> {
    let mut stage = ground::honest()?;
    let units = units::deliver(&stage)?;
    let packages = packages::deliver(&stage)?;
    let units = units::turn(&stage, units)?;
    kinds::deliver(&stage)?;
    packages::check(&stage, &packages)?;
    units::check(&stage, &units)?;
    kinds::check(&stage)?;
    brought::check(&stage)?;
    ground::check_honest(&stage, "beside-the-rest")?;
    outages::check(&mut stage)
}

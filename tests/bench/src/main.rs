//! Benchmarks: each line a figure beside its limit.
//!
//! Machines differ and are shared, so what matters is measured as a ratio to
//! something that runs in the same minute on the same machine. The exit code is 1
//! when a figure is beyond its limit.

mod actions;
mod bare;
mod burdens;
mod call;
mod converge;
mod embedded;
mod endurance;
mod figure;
mod fleet;
mod impersonation;
mod isolation;
mod load;
mod memory;
mod packs;
mod postgres;
mod process;
mod readers;
mod replay;
mod scale;
mod scenarios;
mod setup;
mod swap;
mod wasm;
mod world;

use anyhow::Result;
use figure::Figures;
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let filter = arguments.next().unwrap_or_default();
    if filter == isolation::COMPILE {
        // Before anything starts a thread.
        return Ok(reeve_engine::compiler::serve(
            &arguments.next().unwrap_or_default(),
        ));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    if filter == bare::ARGUMENT {
        return runtime.block_on(bare::serve()).map(|()| ExitCode::SUCCESS);
    }
    if filter == isolation::HERE {
        return runtime
            .block_on(isolation::serve())
            .map(|()| ExitCode::SUCCESS);
    }
    let some = arguments.next().unwrap_or_default();
    runtime.block_on(measure(&filter, &some))
}

async fn measure(filter: &str, some: &str) -> Result<ExitCode> {
    let wanted = |name: &str| name.contains(filter);
    let mut figures = Figures::default();
    if wanted("call") {
        call::measure(&mut figures).await?;
    }
    if wanted("load") {
        load::measure(&mut figures).await?;
    }
    if wanted("isolation") {
        isolation::measure(&mut figures, some).await?;
    }
    if wanted("swap") {
        swap::measure(&mut figures)?;
    }
    if wanted("scenarios") {
        scenarios::measure(&mut figures)?;
    }
    if wanted("replay") {
        replay::measure(&mut figures).await?;
    }
    if wanted("embedded") {
        embedded::measure(&mut figures).await?;
    }
    if wanted("readers") {
        readers::measure(&mut figures).await?;
    }
    if wanted("endurance") {
        endurance::measure(&mut figures).await?;
    }
    if wanted("endurance-burdens") {
        burdens::measure(&mut figures).await?;
    }
    if wanted("memory") {
        memory::measure(&mut figures).await?;
    }
    if wanted("impersonation") {
        impersonation::measure(&mut figures).await?;
    }
    if wanted("converge") {
        converge::measure(&mut figures).await?;
    }
    if wanted("actions") {
        actions::measure(&mut figures).await?;
    }
    if wanted("fleet-thousand") {
        fleet::thousand::measure(&mut figures).await?;
    }
    if wanted("fleet-change") {
        fleet::change::measure(&mut figures).await?;
    }
    if wanted("packs") {
        packs::measure(&mut figures).await?;
    }
    if wanted("models") {
        fleet::models::measure(&mut figures).await?;
    }
    if wanted("fleet-restart") {
        fleet::restart::measure(&mut figures).await?;
    }
    if wanted("fleet-upgrade") {
        fleet::upgrade::measure(&mut figures).await?;
    }
    if wanted("fleet-platform") {
        fleet::platform::measure(&mut figures).await?;
    }
    Ok(figures.finish())
}

//! `reeve-ssa` against the Go libraries that a server uses, and its table of
//! built-in types, and those of `reeve-sim` of types and roles, against a live server.
//!
//! The comparison makes requests at random: applies, forced applies, updates and
//! edits of several managers, at several versions, to objects and to their status.
//! Object, owners (to the byte) and error must be the same. On a difference the
//! request is made as small as it gets and printed, with the seed of the run. The seed
//! is the same each time, so that a change is judged by what it changes; to look for
//! differences that nobody has met, run with others:
//!
//! ```sh
//! REEVE_ORACLE_SEED=$(date +%s) REEVE_ORACLE_REQUESTS=100000 \
//!     cargo test -p reeve-real --test oracle
//! ```
//!
//! | Variable | |
//! |---|---|
//! | `REEVE_ORACLE_REQUESTS` | how many requests each of the three comparisons makes |
//! | `REEVE_ORACLE_SEED` | the seed of what is made at random |
//! | `REEVE_UPDATE_TABLE` | write the tables instead of comparing them |

mod comparison;
mod documents;
mod further;
mod kinds;
mod oracle;
mod random;
mod reduce;
mod roles;
mod table;
mod types;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use reeve_real::ControlPlane;
use reeve_real::parts::SSA;
use reeve_ssa::builtin;

use self::comparison::compare;

/// Some fifteen seconds' worth on a small machine, without optimisation: a request
/// costs both sides together about 4 ms.
const REQUESTS: usize = 4_000;
/// Decides what is made at random where nothing else is said.
const SEED: u64 = 1;
/// How many definitions are made at random for a run.
const RANDOM_KINDS: usize = 100;

#[test]
fn custom_resources_are_written_as_by_the_server() -> Result<()> {
    compare(&kinds::custom()?, None, requests()?, seed()?)
}

/// The definitions are as random as the requests: what no schema that somebody thought of
/// has is in one of these.
#[test]
fn resources_of_random_definitions_are_written_as_by_the_server() -> Result<()> {
    let seed = seed()?;
    let mut random = random::Random::new(seed, serde_json::Map::new());
    let kinds = kinds::random(&mut random, RANDOM_KINDS)?;
    compare(&kinds, None, requests()?, seed)
}

#[test]
fn built_in_kinds_are_written_as_by_the_server() -> Result<()> {
    let folder = documents::folder()?;
    compare(
        &kinds::built_in(folder)?,
        Some(folder),
        requests()?,
        seed()?,
    )
}

#[test]
fn requests_are_read_into_the_types_of_the_server() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/sim/src/decode/types.txt");
    let table = fs::read_to_string(&path)?;
    let components = kinds::components(documents::folder()?)?;
    let (differences, compared) = types::differences(&table, &components);
    ensure!(
        differences.is_empty(),
        "{} is not that of the server (host/sim/examples/go_types.rs writes it anew):\n{}",
        path.display(),
        differences.join("\n")
    );
    ensure!(compared > 500, "only {compared} types were compared");
    Ok(())
}

#[test]
fn the_table_of_built_in_types_is_that_of_the_server() -> Result<()> {
    let shapes = Command::new(SSA.get()?.join("shapes")).output()?;
    ensure!(
        shapes.status.success(),
        "shapes ended with {}",
        shapes.status
    );
    let shapes = serde_json::from_slice(&shapes.stdout)?;
    // Another group is a decision; another kind of one of these is a difference.
    let versions: BTreeSet<&str> = builtin::kinds().map(|(version, _)| version).collect();
    let components = kinds::components(documents::folder()?)?;
    let rendered = table::render(&components, &shapes, &versions)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/ssa/src/builtin/table.txt");
    is_table(&path, &rendered).map(drop)
}

#[test]
fn schemas_say_of_values_and_lists_what_those_of_the_server_say() -> Result<()> {
    let mut components = kinds::components(documents::discovery()?)?;
    components.extend(kinds::components(documents::folder()?)?);
    let rendered = further::render(&components);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/sim/src/types/further.txt");
    is_table(&path, &rendered).map(drop)
}

#[test]
fn a_new_cluster_has_the_roles_of_the_server() -> Result<()> {
    let server = ControlPlane::start()?;
    let rendered = roles::render(&server)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/sim/src/bootstrap/roles.txt");
    if is_table(&path, &rendered)? {
        let compared = roles::compare(&server)?;
        ensure!(compared > 100, "only {compared} objects were compared");
    }
    Ok(())
}

/// Refuses a table that is not the one that was rendered, or writes it: then it says
/// that this is not what was compiled.
fn is_table(path: &Path, rendered: &str) -> Result<bool> {
    if env::var_os("REEVE_UPDATE_TABLE").is_some() {
        fs::write(path, rendered).context("cannot write the table")?;
        return Ok(false);
    }
    let checked_in = fs::read_to_string(path)?;
    let differs = rendered
        .lines()
        .zip(checked_in.lines())
        .find(|(server, ours)| server != ours);
    ensure!(
        rendered == checked_in,
        "{} is not that of the server, first in {differs:?} (server, checked in); \
         write it with REEVE_UPDATE_TABLE=1 and see what changes",
        path.display()
    );
    Ok(true)
}

fn requests() -> Result<usize> {
    match env::var("REEVE_ORACLE_REQUESTS") {
        Ok(number) => number.parse().context("REEVE_ORACLE_REQUESTS"),
        Err(_) => Ok(REQUESTS),
    }
}

fn seed() -> Result<u64> {
    match env::var("REEVE_ORACLE_SEED") {
        Ok(seed) => seed.parse().context("REEVE_ORACLE_SEED"),
        Err(_) => Ok(SEED),
    }
}

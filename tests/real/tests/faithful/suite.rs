//! Runs scenarios on both servers and judges what differs.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use crate::accepted::Accepted;
use crate::compare::{Difference, differences};
use crate::corpus::{self, Scenario};
use crate::generate::{Chance, Kind};
use crate::normal::Names;
use crate::play::{Outcome, play};
use crate::predict::{self, Tally};
use crate::servers::Servers;
use crate::shrink::shrink;

/// How many scenarios are played at once.
const AT_ONCE: usize = 8;
/// How many lines of differences are printed.
const SHOWN: usize = 100_000;
/// What is generated when nothing else is asked for: the same each time, so that
/// a run means the same tomorrow.
const SEED: u64 = 1;
/// How many scenarios of each kind are generated when nothing else is asked for, and
/// how long they are.
const SCENARIOS: usize = 4;
const LENGTH: usize = 36;
/// How many generated differences are made small and printed.
const SHRUNK: usize = 6;
/// Percent of generated operations that may be answered differently.
const DIFFERENT: f64 = 0.5;
/// Percent of applies that may be predicted to change something and do not.
const NEEDLESS: f64 = 1.0;

/// The folder of this program.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faithful")
}

/// The differences of one step, if there are any.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) step: usize,
    pub(crate) title: String,
    pub(crate) differences: Vec<Difference>,
}

/// Plays a scenario on both servers. The answer has the steps that were answered
/// differently.
pub(crate) async fn compare(
    servers: &Servers,
    scenario: &Scenario,
    namespace: &str,
) -> Result<Vec<Finding>> {
    let (real, embedded) = tokio::try_join!(
        play(&servers.real, scenario, namespace),
        play(&servers.embedded, scenario, namespace),
    )?;
    Ok(findings(scenario, &real, &embedded))
}

/// The steps whose outcomes differ.
pub(crate) fn findings(
    scenario: &Scenario,
    real: &[Outcome],
    embedded: &[Outcome],
) -> Vec<Finding> {
    let (real, embedded) = (normal(real), normal(embedded));
    let pairs = scenario.steps.iter().zip(real.iter().zip(&embedded));
    pairs
        .enumerate()
        .map(|(step, (what, (real, embedded)))| Finding {
            step,
            title: what.title(),
            differences: differences(real, embedded),
        })
        .filter(|finding| !finding.differences.is_empty())
        .collect()
}

fn normal(outcomes: &[Outcome]) -> Vec<Value> {
    let mut names = Names::default();
    outcomes
        .iter()
        .map(|outcome| names.normal(outcome))
        .collect()
}

/// Drops what is accepted, and prints the rest.
pub(crate) fn unaccepted(
    accepted: &mut Accepted,
    scenario: &str,
    findings: Vec<Finding>,
) -> Vec<Finding> {
    let judged = findings.into_iter().map(|mut finding| {
        finding
            .differences
            .retain(|difference| !accepted.has(scenario, &finding.title, difference));
        finding
    });
    judged
        .filter(|finding| !finding.differences.is_empty())
        .collect()
}

/// Findings as text.
pub(crate) fn report(scenario: &str, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let number = finding.step + 1;
        let _ = writeln!(text, "{scenario}: step {number}, {}", finding.title);
        for difference in &finding.differences {
            let _ = writeln!(
                text,
                "    {}\n      real      {}\n      embedded  {}",
                difference.at, difference.real, difference.embedded
            );
        }
    }
    text
}

/// How much of a run was answered alike.
#[derive(Debug, Default)]
struct Score {
    operations: usize,
    different: usize,
    report: String,
}

impl Score {
    fn add(&mut self, scenario: &Scenario, findings: &[Finding]) {
        self.operations += scenario.steps.len();
        self.different += findings.len();
        self.report.push_str(&report(&scenario.name, findings));
    }

    fn print(&self, what: &str) {
        let Self {
            operations,
            different,
            ..
        } = self;
        println!("{what}: {different} of {operations} operations are answered differently");
        for line in self.report.lines().take(SHOWN) {
            println!("{line}");
        }
    }
}

/// The scenarios that were written by hand.
async fn corpus(
    servers: &Servers,
    accepted: &mut Accepted,
    filter: &str,
) -> Result<(Score, Tally)> {
    let mut scenarios = corpus::read(&folder().join("corpus"))?;
    scenarios.retain(|scenario| scenario.name.starts_with(filter));
    // Those that wait for controllers take longest, and go beside the rest.
    scenarios.sort_by_key(|scenario| !scenario.waits());
    let compared =
        stream::iter(scenarios.iter().enumerate())
            .map(|(index, scenario)| async move {
                judged(servers, scenario, &format!("s{index}")).await
            })
            .buffered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
    let (mut score, mut sum) = (Score::default(), Tally::default());
    for (scenario, (findings, tally)) in scenarios.iter().zip(compared) {
        score.add(scenario, &unaccepted(accepted, &scenario.name, findings));
        sum.add(tally);
    }
    Ok((score, sum))
}

/// As [`compare`], with the predictions of `reeve_ssa` on the way.
async fn judged(
    servers: &Servers,
    scenario: &Scenario,
    namespace: &str,
) -> Result<(Vec<Finding>, Tally)> {
    let ((real, tally), embedded) = tokio::try_join!(
        predict::play(&servers.real, scenario, namespace),
        play(&servers.embedded, scenario, namespace),
    )?;
    Ok((findings(scenario, &real, &embedded), tally))
}

/// Generated scenarios, with the predictions of `reeve_ssa` on the way.
async fn generated(
    servers: &Servers,
    accepted: &mut Accepted,
    filter: &str,
    seed: u64,
    count: usize,
) -> Result<(Score, Tally)> {
    let text = fs::read_to_string(folder().join("generated.yaml"))?;
    let kinds: Vec<Kind> = corpus::parse(&text)?;
    let mut scenarios = Vec::new();
    for kind in &kinds {
        let before = Scenario {
            name: kind.kind.clone(),
            steps: kind.before.clone(),
        };
        compare(
            servers,
            &before,
            &format!("before-{}", kind.kind.to_lowercase()),
        )
        .await?;
        let mut chance = Chance::new(seed, &kind.kind);
        for _ in 0..count {
            scenarios.push(kind.scenario(&mut chance, LENGTH));
        }
    }
    scenarios.retain(|scenario| scenario.name.starts_with(filter));
    let compared =
        stream::iter(scenarios.iter().enumerate())
            .map(|(index, scenario)| async move {
                judged(servers, scenario, &format!("g{index}")).await
            })
            .buffered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
    let (mut score, mut sum) = (Score::default(), Tally::default());
    let mut shown = Vec::new();
    for (scenario, (findings, tally)) in scenarios.iter().zip(compared) {
        let left = unaccepted(accepted, &scenario.name, findings);
        score.add(scenario, &left);
        sum.add(tally);
        if let Some(first) = left.first() {
            let mut scenario = scenario.clone();
            scenario.steps.truncate(first.step + 1);
            shown.push(scenario);
        }
    }
    // It takes minutes, and is of use to somebody who mends them.
    if percent(score.different, score.operations) > DIFFERENT {
        for scenario in shown.iter().take(SHRUNK) {
            let small = shrink(servers, accepted, scenario).await?;
            println!("answered differently:\n{}", corpus::print(&[small])?);
        }
    }
    Ok((score, sum))
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// A number from the environment.
fn setting<T: FromStr<Err = ParseIntError>>(name: &str, usual: T) -> Result<T> {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{name} is {text:?}; write a whole number")),
        Err(_) => Ok(usual),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_answers_as_the_real_one_does() -> Result<()> {
    let filter = env::var("REEVE_FAITHFUL").unwrap_or_default();
    let seed: u64 = setting("REEVE_SEED", SEED)?;
    let count: usize = setting("REEVE_SCENARIOS", SCENARIOS)?;
    let servers = Servers::start().await?;
    let mut accepted = Accepted::read(&folder().join("accepted.yaml"))?;

    let started = Instant::now();
    let (written, mut tally) = corpus(&servers, &mut accepted, &filter).await?;
    println!("the corpus took {:.1} s", started.elapsed().as_secs_f32());
    written.print("corpus");
    println!("REEVE_SEED={seed}");
    let (random, more) = generated(&servers, &mut accepted, &filter, seed, count).await?;
    random.print("generated");
    tally.add(more);
    let unlisted = tally.unlisted(&folder().join("settled.yaml"))?;
    for field in &unlisted {
        println!("set otherwise by the server, and not in settled.yaml: {field}");
    }
    println!(
        "predictions: {} applies, {} without a change, {} changes missed, {} predicted for nothing",
        tally.applies,
        tally.unchanged,
        tally.missed.len(),
        tally.needless.len()
    );
    for case in tally.missed.iter().chain(&tally.needless).take(SHRUNK) {
        println!("  {case}");
    }

    ensure!(written.different == 0, "the corpus is answered differently");
    let different = percent(random.different, random.operations);
    ensure!(
        different <= DIFFERENT,
        "{different:.2} % of generated operations are answered differently"
    );
    ensure!(tally.missed.is_empty(), "changes were missed");
    let needless = percent(tally.needless.len(), tally.applies);
    ensure!(
        needless <= NEEDLESS,
        "{needless:.2} % of applies were predicted to change something and did not"
    );
    ensure!(
        unlisted.is_empty(),
        "fields that the server sets otherwise are not in settled.yaml: {unlisted:#?}"
    );
    if filter.is_empty() {
        let unused = accepted.unused();
        ensure!(
            unused.is_empty(),
            "accepted differences that no longer occur: {unused:#?}"
        );
    }
    Ok(())
}

//! Runs scenarios on both servers and judges what differs.

use std::collections::BTreeSet;
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

use crate::accepted::{Accepted, AsCase};
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
/// What is generated when nothing else is asked for: the same each time, so that
/// a run means the same tomorrow.
const SEED: u64 = 1;
/// How many scenarios of each kind are generated when nothing else is asked for, and
/// how long they are.
const SCENARIOS: usize = 8;
const LENGTH: usize = 36;
/// How many operations those are at least; of more scenarios there are as many more.
const OPERATIONS: usize = 13_000;
/// How many different generated differences are made small: each takes half a minute.
const SHRUNK: usize = 20;
/// Percent of generated operations that have to be answered alike to the last letter,
/// the accepted differences counted against them.
const ALIKE: f64 = 99.5;
/// How many wrong predictions are printed.
const PREDICTIONS: usize = 6;
/// Percent of applies that may be predicted to change something and do not.
const NEEDLESS: f64 = 1.0;
/// How many changes may be missed that make empty containers of what was sent before.
const HOLLOW: usize = 1;
/// How many applies are predicted at least, and how many of them change nothing: else
/// those percents mean little.
const APPLIES: usize = 500;
const UNCHANGED: usize = 200;
/// How often a scenario that was written by hand is played before a difference counts that
/// may be chance.
const TRIES: usize = 3;
/// How many percent of scenarios may be played again. Chance strikes one now and then, more
/// on a slow machine; what strikes more of them is a fault that comes and goes.
const AGAIN: f64 = 5.0;
/// How many operations are written by hand at least.
const WRITTEN: usize = 800;

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
    Ok(findings(scenario, namespace, &real, &embedded))
}

/// The steps whose outcomes differ.
pub(crate) fn findings(
    scenario: &Scenario,
    namespace: &str,
    real: &[Outcome],
    embedded: &[Outcome],
) -> Vec<Finding> {
    let (real, embedded) = (normal(namespace, real), normal(namespace, embedded));
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

fn normal(namespace: &str, outcomes: &[Outcome]) -> Vec<Value> {
    let mut names = Names::of(namespace);
    outcomes
        .iter()
        .map(|outcome| names.normal(outcome))
        .collect()
}

/// Drops what is accepted.
pub(crate) fn unaccepted(
    scenario: &str,
    findings: Vec<Finding>,
    mut accepts: impl FnMut(&str, &str, &Difference) -> bool,
) -> Vec<Finding> {
    let judged = findings.into_iter().map(|mut finding| {
        finding
            .differences
            .retain(|difference| !accepts(scenario, &finding.title, difference));
        finding
    });
    judged
        .filter(|finding| !finding.differences.is_empty())
        .collect()
}

/// Findings as text, each difference in the form of a case of the table.
pub(crate) fn report(scenario: &str, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let number = finding.step + 1;
        let request = &finding.title;
        let _ = writeln!(text, "{scenario}: step {number}, {request}");
        for difference in &finding.differences {
            let case = AsCase {
                scenario,
                request,
                difference,
            };
            let _ = write!(text, "{case}");
        }
    }
    text
}

/// How much of a run was answered alike.
#[derive(Debug, Default)]
struct Score {
    operations: usize,
    /// Operations whose only differences are in the table.
    listed: usize,
    /// Operations with other differences.
    different: usize,
    /// Scenarios that were written by hand.
    scenarios: usize,
    /// Those that were played again.
    again: usize,
    report: String,
}

impl Score {
    /// Counts what differs in a scenario. The answer is what is not in the table.
    fn judge(
        &mut self,
        accepted: &mut Accepted,
        scenario: &Scenario,
        findings: Vec<Finding>,
    ) -> Vec<Finding> {
        let found = findings.len();
        let take = |name: &str, request: &str, difference: &Difference| {
            accepted.take(name, request, difference)
        };
        let left = unaccepted(&scenario.name, findings, take);
        self.operations += scenario.steps.len();
        self.listed += found - left.len();
        self.different += left.len();
        self.report.push_str(&report(&scenario.name, &left));
        left
    }

    /// Percent of operations without any difference.
    fn alike(&self) -> f64 {
        let alike = self.operations - self.listed - self.different;
        percent(alike, self.operations)
    }

    fn print(&self, what: &str) {
        let Self {
            operations,
            listed,
            different,
            report,
            ..
        } = self;
        println!(
            "{what}: {:.2} % of {operations} operations are answered alike; {listed} differ as accepted.yaml says, {different} otherwise",
            self.alike()
        );
        print!("{report}");
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
    scenarios.sort_by_key(|scenario| (scenario.alone, !scenario.waits()));
    let shared = scenarios.iter().filter(|scenario| !scenario.alone).count();
    let known = &*accepted;
    let played = |(index, scenario)| async move { settled(servers, known, scenario, index).await };
    let mut compared = stream::iter(scenarios.iter().enumerate().take(shared))
        .map(played)
        .buffered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    for one in scenarios.iter().enumerate().skip(shared) {
        compared.push(played(one).await?);
    }
    let (mut score, mut sum) = (Score::default(), Tally::default());
    for (scenario, (findings, tallies)) in scenarios.iter().zip(compared) {
        score.judge(accepted, scenario, findings);
        score.again += usize::from(tallies.len() > 1);
        tallies.into_iter().for_each(|tally| sum.add(tally));
    }
    score.scenarios = scenarios.len();
    Ok((score, sum))
}

/// As [`judged`]; what differs in nothing but what may be chance is played again, which shows
/// whether it was. What was predicted wrongly counts of each time.
async fn settled(
    servers: &Servers,
    accepted: &Accepted,
    scenario: &Scenario,
    index: usize,
) -> Result<(Vec<Finding>, Vec<Tally>)> {
    let mut tallies = Vec::new();
    loop {
        let attempt = tallies.len() + 1;
        let namespace = format!("corpus{index}x{attempt}x");
        let (findings, tally) = judged(servers, scenario, &namespace).await?;
        tallies.push(tally);
        if attempt == TRIES || !is_chance(accepted, scenario, &findings) {
            return Ok((findings, tallies));
        }
        println!(
            "{}: played again, as what differs may be chance",
            scenario.name
        );
    }
}

/// Whether something differs that is not accepted, and each such difference may be chance.
fn is_chance(accepted: &Accepted, scenario: &Scenario, findings: &[Finding]) -> bool {
    let all = findings.iter().flat_map(|finding| {
        let of_it = finding.differences.iter();
        of_it.map(|difference| (finding.title.as_str(), difference))
    });
    let mut left = all
        .filter(|(request, difference)| !accepted.has(&scenario.name, request, difference))
        .peekable();
    left.peek().is_some()
        && left.all(|(request, difference)| accepted.may_be_chance(request, difference))
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
    Ok((findings(scenario, namespace, &real, &embedded), tally))
}

/// The kinds of generated scenarios, once both servers have what they need.
async fn kinds(servers: &Servers) -> Result<Vec<Kind>> {
    let text = fs::read_to_string(folder().join("generated.yaml"))?;
    let kinds: Vec<Kind> = corpus::parse(&text)?;
    for (index, kind) in kinds.iter().enumerate() {
        let before = Scenario {
            name: kind.kind.clone(),
            alone: false,
            steps: kind.before.clone(),
        };
        compare(servers, &before, &format!("before-{index}")).await?;
    }
    Ok(kinds)
}

/// Generated scenarios, with the predictions of `reeve_ssa` on the way. The answer has,
/// of each kind of difference, the first scenario with it, and the place.
async fn generated(
    servers: &Servers,
    accepted: &mut Accepted,
    kinds: &[Kind],
    filter: &str,
    seed: u64,
    count: usize,
) -> Result<(Score, Tally, Vec<(Scenario, String)>)> {
    let mut scenarios = Vec::new();
    for kind in kinds {
        let mut chance = Chance::new(seed, &kind.kind);
        for _ in 0..count {
            scenarios.push(kind.scenario(&mut chance, LENGTH));
        }
    }
    scenarios.retain(|scenario| scenario.name.starts_with(filter));
    let compared = stream::iter(scenarios.iter().enumerate())
        .map(|(index, scenario)| async move {
            judged(servers, scenario, &format!("generated{seed}x{index}x")).await
        })
        .buffered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    let (mut score, mut sum) = (Score::default(), Tally::default());
    let (mut seen, mut first) = (BTreeSet::new(), Vec::new());
    for (scenario, (findings, tally)) in scenarios.iter().zip(compared) {
        let left = score.judge(accepted, scenario, findings);
        sum.add(tally);
        for finding in &left {
            for difference in &finding.differences {
                // One of each kind is enough to mend it.
                if seen.insert((scenario.name.clone(), difference.at.clone())) {
                    let mut scenario = scenario.clone();
                    scenario.steps.truncate(finding.step + 1);
                    first.push((scenario, difference.at.clone()));
                }
            }
        }
    }
    Ok((score, sum, first))
}

/// Makes scenarios as small as they get and prints them.
async fn print_small(
    servers: &Servers,
    accepted: &Accepted,
    first: &[(Scenario, String)],
) -> Result<()> {
    for (scenario, at) in first.iter().take(SHRUNK) {
        let small = shrink(servers, accepted, scenario, at).await?;
        println!("different at {at}:\n{}", corpus::print(&[small])?);
    }
    if first.len() > SHRUNK {
        let more = first.len() - SHRUNK;
        println!("{more} more kinds of differences are not made small");
    }
    Ok(())
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
    let seeds: usize = setting("REEVE_SEEDS", 1)?;
    let count: usize = setting("REEVE_SCENARIOS", SCENARIOS)?;
    let servers = Servers::start().await?;
    let mut accepted = Accepted::read(&folder().join("accepted.yaml"))?;

    let started = Instant::now();
    let (written, mut tally) = corpus(&servers, &mut accepted, &filter).await?;
    println!("the corpus took {:.1} s", started.elapsed().as_secs_f32());
    written.print("corpus");
    let again = percent(written.again, written.scenarios);
    println!(
        "{} of {} scenarios were played again",
        written.again, written.scenarios
    );
    let kinds = kinds(&servers).await?;
    let (mut randoms, mut first) = (Vec::new(), Vec::new());
    for seed in (seed..).take(seeds) {
        println!("REEVE_SEED={seed}");
        let made = generated(&servers, &mut accepted, &kinds, &filter, seed, count).await?;
        let (random, more, small) = made;
        random.print("generated");
        randoms.push((seed, random));
        first.extend(small);
        tally.add(more);
    }
    ensure!(
        written.operations > 0 || randoms.iter().any(|(_, random)| random.operations > 0),
        "no scenario has a name that begins with {filter:?}"
    );
    print_small(&servers, &accepted, &first).await?;
    let settlement = tally.against(&folder().join("settled.yaml"))?;
    for field in &settlement.unlisted {
        println!("set otherwise by the server, and not in settled.yaml: {field}");
    }
    // Other seeds may not find all.
    let is_usual = filter.is_empty() && seed == SEED && count >= SCENARIOS;
    let unfound = if is_usual {
        settlement.unused
    } else {
        Vec::new()
    };
    for row in &unfound {
        println!("in settled.yaml, and does not occur: {row}");
    }
    println!(
        "predictions: {} applies, {} without a change, {} changes missed, {} of empty containers \
         only, {} predicted for nothing",
        tally.applies,
        tally.unchanged,
        tally.missed.len(),
        tally.hollow,
        tally.needless.len()
    );
    for case in tally.missed.iter().chain(&tally.needless).take(PREDICTIONS) {
        println!("  {case}");
    }

    println!("what the rows of accepted.yaml took in:");
    print!("{}", accepted.account());
    let unused = if filter.is_empty() {
        accepted.unused()
    } else {
        Vec::new()
    };
    for case in &unused {
        println!("accepted, and does not occur: {case}");
    }

    ensure!(written.different == 0, "the corpus is answered differently");
    if filter.is_empty() {
        ensure!(
            again <= AGAIN,
            "{again:.1} % of the scenarios had to be played again, more than chance makes"
        );
        ensure!(
            written.operations >= WRITTEN,
            "{} operations were written by hand; make it {WRITTEN}",
            written.operations
        );
        ensure!(
            count < SCENARIOS || (tally.applies >= APPLIES && tally.unchanged >= UNCHANGED),
            "{} applies were predicted and {} of them changed nothing; make it {APPLIES} and {UNCHANGED}",
            tally.applies,
            tally.unchanged
        );
    }
    for (seed, random) in randoms {
        ensure!(
            random.different == 0,
            "generated operations are answered differently; the seed is {seed}"
        );
        let alike = random.alike();
        ensure!(
            random.operations == 0 || alike >= ALIKE,
            "{alike:.2} % of generated operations are answered alike; the seed is {seed}"
        );
        // Few scenarios vary more.
        let least = match count < SCENARIOS {
            true => 0,
            false => OPERATIONS * count / SCENARIOS,
        };
        ensure!(
            !filter.is_empty() || random.operations >= least,
            "{} operations were generated; make it {least}",
            random.operations
        );
    }
    ensure!(tally.missed.is_empty(), "changes were missed");
    ensure!(
        tally.hollow <= HOLLOW,
        "{} changes of empty containers were missed",
        tally.hollow
    );
    let needless = percent(tally.needless.len(), tally.applies);
    ensure!(
        needless <= NEEDLESS,
        "{needless:.2} % of applies were predicted to change something and did not"
    );
    ensure!(
        settlement.unlisted.is_empty(),
        "fields that the server sets otherwise are not in settled.yaml: {:#?}",
        settlement.unlisted
    );
    ensure!(
        unfound.is_empty(),
        "rows of settled.yaml do not occur: {unfound:#?}"
    );
    ensure!(
        unused.is_empty(),
        "{} cases of accepted.yaml do not occur",
        unused.len()
    );
    Ok(())
}

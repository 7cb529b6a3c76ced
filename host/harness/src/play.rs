//! Plays one scenario from its first line to its last.

use crate::check::{Checker, Mismatch};
use crate::log::Log;
use crate::report::Failure;
use crate::scenario::{Action, Expect, Object};
use crate::source::Part;
use crate::suite::Case;
use crate::tester::ActionError;
use crate::update::Replacement;
use crate::watchdog::Watch;
use crate::world::{Changed, Package, Stage, Unfelt, World};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// What came of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// What went wrong.
    pub(crate) failures: Vec<Failure>,
    /// How the file has to be changed so that some of it goes right.
    pub(crate) repairs: Vec<Replacement>,
    /// The conditions when it went wrong.
    pub(crate) conditions: Vec<String>,
    /// What plugin and agent said until then.
    pub(crate) log: Vec<String>,
}

/// Whether the newest version of the plugin runs.
#[derive(Clone, Debug)]
enum Runs {
    Yes,
    /// It does not, for this reason, and the scenario expects nothing about the Plugin.
    Not(String),
    /// It does not, for this reason, and something was expected about the Plugin since.
    NotAndMeant(String),
}

/// A scenario while it is played.
struct Player<'a> {
    case: &'a Case,
    packages: &'a HashMap<PathBuf, Package>,
    /// Whether to go on after a failure that an update repairs.
    update: bool,
    world: World,
    package: &'a Package,
    config: Option<&'a Value>,
    /// Whether the plugin's newest version runs, as far as the scenario knows.
    runs: Runs,
    played: Played,
    log: &'a Log,
    watch: &'a Watch<'a>,
}

/// Why a step cannot be done.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error(transparent)]
    Unfelt(#[from] Unfelt),
}

/// Virtual time that passes between two words to the watchdog. A scenario may
/// last for weeks, with thousands of small things done in each hour.
const STRIDE: Duration = Duration::from_secs(3600);

/// A moment of a scenario.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Which step, from 1; 0 stands for what is given.
    step: usize,
}

impl Moment {
    /// Its place in the file.
    fn path(self) -> Vec<Part<'static>> {
        match self.step {
            0 => Vec::new(),
            step => vec![Part::Key("steps"), Part::Item(step - 1)],
        }
    }
}

/// Plays a scenario. Must be called within a current-thread runtime whose time is
/// paused.
///
/// It ends with the first step that goes wrong: what comes after would only say
/// so once more. With `update`, it goes on as long as an update helps.
pub(crate) async fn play(
    stage: &Stage,
    case: &Case,
    packages: &HashMap<PathBuf, Package>,
    update: bool,
    log: &Log,
    watch: &Watch<'_>,
) -> Played {
    let given = Moment { step: 0 };
    let Some(package) = packages.get(&case.component) else {
        return Played::default();
    };
    let world = match World::new(stage, case, package).await {
        Ok(world) => world,
        Err(error) => {
            return Played {
                failures: vec![failure(case, given, error.to_string())],
                ..Played::default()
            };
        }
    };
    let mut player = Player {
        case,
        packages,
        update,
        world,
        package,
        config: case.scenario.given.config.as_ref(),
        runs: Runs::Yes,
        played: Played::default(),
        log,
        watch,
    };
    player.play().await;
    player.played
}

impl<'a> Player<'a> {
    async fn play(&mut self) {
        let scenario = &self.case.scenario;
        let given = Moment { step: 0 };
        if let Err(error) = self.begin().await {
            self.fail(given, error.to_string()).await;
            return;
        }
        if !self.conclude(given, &scenario.expect, 0).await {
            return;
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            let moment = Moment { step: index + 1 };
            let before = self.world.writes();
            // Who lets time pass asks nothing of the server, and the agent does.
            if !matches!(step.action, Action::Advance(_)) {
                self.world.lift_outage();
            }
            let acted = self.act(&step.action).await;
            self.world.resume_outage();
            if let Err(error) = acted {
                self.fail(moment, error.to_string()).await;
                return;
            }
            if !self.conclude(moment, &step.expect, before).await {
                return;
            }
        }
        let last = Moment {
            step: scenario.steps.len(),
        };
        if let Err(unfelt) = self.world.check_faults() {
            self.fail(last, unfelt.to_string()).await;
            return;
        }
        // What is absent, and writes that are not made, are no sign that it runs.
        if let Runs::Not(problem) = &self.runs {
            let message = format!(
                "the plugin does not run as it is given: {problem}; a scenario in which that is \
                 meant expects a condition `of: Plugin`"
            );
            self.fail(last, message).await;
        }
    }

    async fn begin(&mut self) -> Result<(), ActionError> {
        let case = self.case;
        let own = &case.scenario.given.objects;
        let later = case
            .scenario
            .steps
            .iter()
            .flat_map(|step| match &step.action {
                Action::Apply(objects) | Action::Create(objects) => objects.as_slice(),
                _ => &[],
            });
        let definitions = own
            .iter()
            .chain(later)
            .filter(|object| object.is_definition());
        let definitions: Vec<&Object> = definitions.collect();
        if !definitions.is_empty() {
            self.world
                .expect_kinds(&definitions, self.package, self.config)
                .await?;
        }
        // Definitions from files are there already.
        let from_files = case.objects.iter().filter(|object| !object.is_definition());
        let given: Vec<&Object> = from_files.chain(own).collect();
        self.world.give(&given).await?;
        self.world.give_sources(&case.scenario.given.sources);
        self.world.give_effects(&case.scenario.given.actions);
        self.world.start_agent().await;
        Ok(())
    }

    async fn act(&mut self, action: &'a Action) -> Result<(), Refused> {
        match action {
            Action::Apply(objects) => {
                for object in objects {
                    self.world.tester.apply(object).await?;
                }
            }
            Action::Create(objects) => {
                for object in objects {
                    self.world.tester.create(object).await?;
                }
            }
            Action::Edit(edit) => self.world.tester.edit(&edit.object, &edit.patch).await?,
            Action::Label(label) => {
                self.world
                    .tester
                    .label(&label.object, &label.labels)
                    .await?;
            }
            Action::Delete(reference) => self.world.tester.delete(reference).await?,
            Action::Advance(span) => self.advance(span.0).await,
            Action::Config(config) => {
                self.config = Some(config);
                self.world
                    .reinstall(self.package, self.config, Changed::Config)
                    .await?;
            }
            Action::Component(path) => {
                if let Some(package) = self.packages.get(&self.case.resolve(path)) {
                    self.package = package;
                }
                self.world
                    .reinstall(self.package, self.config, Changed::Component)
                    .await?;
            }
            Action::Restart => self.world.start_agent().await,
            Action::Faults(faults) => self.world.set_faults(faults).await?,
            Action::Sources(sources) => self.world.give_sources(sources),
            Action::Actions(effects) => self.world.give_effects(effects),
            Action::Outage(outage) => self.world.set_outage(*outage).await,
        }
        Ok(())
    }

    async fn advance(&self, mut left: Duration) {
        while !left.is_zero() {
            let stride = left.min(STRIDE);
            tokio::time::sleep(stride).await;
            self.watch.pat();
            left -= stride;
        }
    }

    /// Lets the agent settle and checks what is expected then. Returns whether to
    /// go on.
    async fn conclude(&mut self, moment: Moment, expect: &Expect, writes_before: u64) -> bool {
        if let Err(unsettled) = self.world.settle().await {
            self.fail(moment, unsettled.to_string()).await;
            return false;
        }
        self.runs = match (self.world.problem(&self.case.plugin), &self.runs) {
            (None, _) => Runs::Yes,
            (Some(problem), _) if expect.is_about_plugin() => Runs::NotAndMeant(problem),
            (Some(problem), Runs::NotAndMeant(known)) if *known == problem => {
                Runs::NotAndMeant(problem)
            }
            (Some(problem), _) => Runs::Not(problem),
        };
        if expect.is_empty() {
            return true;
        }
        let mut path = moment.path();
        path.push(Part::Key("expect"));
        let node = self.case.node.as_ref().and_then(|node| node.at(&path));
        let checker = Checker {
            tester: &self.world.tester,
            plugin: &self.case.plugin,
            writes: self.world.writes().saturating_sub(writes_before),
        };
        self.world.lift_outage();
        let mismatches = checker.check(expect, node).await;
        self.world.resume_outage();
        if mismatches.is_empty() {
            return true;
        }
        let mut go_on = self.update;
        for mismatch in mismatches {
            match mismatch.repair.as_ref().filter(|_| self.update) {
                Some(repair) => self.played.repairs.extend(repair.iter().cloned()),
                None => {
                    go_on = false;
                    let failure = mismatch_failure(self.case, moment, mismatch);
                    self.played.failures.push(failure);
                }
            }
        }
        if !go_on {
            self.remember().await;
        }
        go_on
    }

    async fn fail(&mut self, moment: Moment, message: String) {
        self.played
            .failures
            .push(failure(self.case, moment, message));
        self.remember().await;
    }

    /// Keeps what helps to understand a failure.
    async fn remember(&mut self) {
        self.world.lift_outage();
        let checker = Checker {
            tester: &self.world.tester,
            plugin: &self.case.plugin,
            writes: 0,
        };
        self.played.conditions = checker.all_conditions().await;
        self.world.resume_outage();
        self.played.log = self.log.take();
    }
}

fn failure(case: &Case, moment: Moment, message: String) -> Failure {
    let step = moment.step;
    let name = step
        .checked_sub(1)
        .and_then(|index| case.scenario.steps.get(index)?.name.clone());
    Failure {
        step,
        name,
        line: case.line_of(&moment.path()),
        message,
        difference: String::new(),
    }
}

fn mismatch_failure(case: &Case, moment: Moment, mismatch: Mismatch) -> Failure {
    let whole = failure(case, moment, mismatch.message);
    Failure {
        line: mismatch.line.unwrap_or(whole.line),
        difference: mismatch.difference,
        ..whole
    }
}

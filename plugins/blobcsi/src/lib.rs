//! Gives every Profile volumes for its containers in Azure Blob Storage, and for
//! those buckets of others that it may read.

mod azure;
mod bucket;
mod config;
mod container;
mod held;
mod live;
mod namesakes;
mod pair;
mod pods;
mod source;
mod volume;

use reeve_sdk::prelude::*;

use bucket::Which;
use config::Config;
use held::{Doubt, Held};
use live::Live;
use pair::{Pair, Place};
use source::Answer;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const VOLUME: Kind = Kind::new("v1", "PersistentVolume");
const CLAIM: Kind = Kind::new("v1", "PersistentVolumeClaim");
const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
const POD: Kind = Kind::new("v1", "Pod");

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::NamespaceNamedLikePrimary;
    let manifest = Manifest::controller(PROFILE)
        .projection(["/metadata/name"])
        .reads((PROFILE, Scope::Cluster))
        .reads((VOLUME, Scope::Cluster))
        .reads((CLAIM, place()))
        .writes(VOLUME, Scope::Cluster)
        .writes(CLAIM, place());
    let manifest = match config.deletes_pods() {
        true => manifest.reads((POD, place())).writes(POD, place()),
        false => manifest,
    };
    Ok(source::declared(
        config,
        container::declared(config, manifest),
    ))
}

fn reconcile(profile: Profile, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let profile = profile.metadata.name;
    let answers = source::answers(config, cx)?;
    let mut problems = Problems::new();
    let (wanted, doubts) = wanted(&profile, config, &answers, &mut problems);
    let may_hold = |answer: &Answer<'_>| answer.says.is_err() || answer.is_empty();
    let all = config.deletes_pods() || !doubts.is_empty() || answers.iter().any(may_hold);
    let live = Live::read(cx, &profile, &wanted, all)?;
    let pairs = distinct(wanted, &live, &mut problems);
    let pairs = namesakes::refuse(cx, &profile, pairs, &live, &mut problems)?;
    let held = Held::of(&profile, &live, &pairs, &answers, &doubts);

    // A Profile may well have no volume, and that is meant.
    let mut outcome = Outcome::nothing();
    for action in container::actions(&profile, config) {
        outcome = outcome.action(action);
    }
    for pair in &pairs {
        // A volume of a container that is not there cannot be mounted.
        let container = pair.needs.as_ref();
        if container.is_some_and(|key| !cx.has_fact(key)) && !live.has(pair) {
            continue;
        }
        let (volume, claim) = live.fits(pair);
        if volume {
            outcome = outcome.object(pair.volume.object());
        }
        if claim {
            outcome = outcome.object(pair.claim.object());
        }
    }
    outcome = outcome.objects(held.volumes.iter().map(|volume| volume.object()));
    outcome = outcome.objects(held.claims.iter().map(|claim| claim.object()));
    if config.deletes_pods() {
        // Only what is going already: the host may hold back what is withdrawn.
        let stays = |name: &str| {
            pairs.iter().any(|pair| pair.claim.name == name)
                || held.claims.iter().any(|claim| claim.name == name)
        };
        let going = live
            .claims
            .iter()
            .filter(|live| live.is_going && live.is_automounted);
        let going = going.map(|live| live.claim.name.as_str());
        let going: Vec<&str> = going.filter(|name| !stays(name)).collect();
        outcome = pods::end(cx, &profile, &going, outcome)?;
    }
    outcome = tell(outcome, &profile, &answers, &held);
    Ok(outcome.problems("BucketsUsable", "UnusableBuckets", &problems))
}

/// The volumes that the Profile should have, some perhaps of one name, and the buckets
/// of which it cannot be told.
fn wanted<'a>(
    profile: &str,
    config: &Config,
    answers: &'a [Answer<'_>],
    problems: &mut Problems,
) -> (Vec<Pair>, Vec<Doubt<'a>>) {
    let (mut pairs, mut doubts) = (Vec::new(), Vec::new());
    for instance in config.instances() {
        let needs = container::needed(&instance, config);
        pairs.extend(problems.take(Pair::of_instance(&instance, profile, needs)));
    }
    for answer in answers {
        let Answer { class, account, .. } = *answer;
        let place = Place {
            fdi: &config.fdi,
            class,
            account,
        };
        let doubt = |which: Which| Doubt {
            class,
            account,
            which,
        };
        for bucket in answer.says.iter().flat_map(|said| &said.buckets) {
            let Some(access) = bucket.access(profile) else {
                continue;
            };
            match problems.take(Pair::of_bucket(bucket, access, place, profile)) {
                Some(pair) => pairs.push(pair),
                None => doubts.push(doubt(bucket.which())),
            }
        }
        let unreadable = answer.unreadable(profile);
        doubts.extend(unreadable.map(|one| doubt(one.which.clone())));
    }
    (pairs, doubts)
}

/// Of several that want one name, who has it, and else the first.
fn distinct(wanted: Vec<Pair>, live: &Live, problems: &mut Problems) -> Vec<Pair> {
    let has = |pair: &Pair| {
        live.volume(&pair.volume.name)
            .is_some_and(|live| live.volume.is_at(&pair.volume))
    };
    let (first, second): (Vec<Pair>, Vec<Pair>) = wanted.into_iter().partition(has);
    let mut pairs: Vec<Pair> = Vec::new();
    for pair in first.into_iter().chain(second) {
        let (volume, claim) = (&pair.volume.name, &pair.claim.name);
        let alike = |other: &&Pair| other.volume.name == *volume || other.claim.name == *claim;
        match pairs.iter().find(alike) {
            Some(other) => problems.add(format_args!(
                "{}: volume {volume} and claim {claim} would have a name of {}; give it another name",
                pair.what, other.what
            )),
            None => pairs.push(pair),
        }
    }
    pairs
}

/// Says which descriptions could not be used, and which were not believed. There is an event
/// of a bucket that names what it is, and none of what is about all Profiles.
fn tell(mut outcome: Outcome, profile: &str, answers: &[Answer<'_>], held: &Held) -> Outcome {
    let mut wrong =
        Problems::advising("Volumes that came of it stay as they are until that is mended");
    let mut names_one = false;
    for answer in answers {
        names_one |= answer.tell(profile, &mut wrong);
    }
    let (kind, reason) = ("SourcesUsable", "UnusableSources");
    if names_one {
        outcome = outcome.problems(kind, reason, &wrong);
    } else if !wrong.is_empty() {
        outcome = outcome.condition(Condition::fails(kind, reason, wrong.text()));
    }
    let mut emptied = Problems::new();
    let counts = answers.iter().zip(&held.emptied);
    for (answer, count) in counts.filter(|(_, count)| **count > 0) {
        emptied.add(format_args!(
            "{}: it names no bucket at all, which would withdraw every volume that came of it, {count} \
             here; if that is meant, set {}/allowEmptyAnswer to true in config.yaml",
            answer.place,
            answer.class.path()
        ));
    }
    if !emptied.is_empty() {
        let told = emptied.text();
        outcome = outcome.condition(Condition::holds("KeptOnEmptyAnswer", "EmptyAnswer", told));
    }
    outcome
}

reeve_sdk::plugin!(manifest, reconcile, container::actuate);

#[cfg(test)]
mod tests;

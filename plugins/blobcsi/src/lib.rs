//! Gives every Profile volumes for its containers in Azure Blob Storage, and for
//! those buckets of others that it may read.

mod azure;
mod bucket;
mod config;
mod container;
mod live;
mod pods;
mod source;
mod volume;

use reeve_sdk::prelude::*;

use config::Config;
use live::{Found, Live};
use source::Answer;
use volume::{CLASSIFICATION, Pair, Place};

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
    let wanted = wanted(&profile, config, &answers, &mut problems);
    let doubtful = answers.iter().any(|answer| !answer.is_whole());
    let live = Live::read(cx, &profile, &wanted, doubtful || config.deletes_pods())?;
    let pairs = distinct(wanted, &live, &mut problems);

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
            outcome = outcome.object(pair.volume());
        }
        if claim {
            outcome = outcome.object(pair.claim());
        }
    }
    let held = Held::of(&live, &profile, &pairs, &answers);
    outcome = outcome.objects(held.volumes.iter().map(|volume| volume.kept_volume()));
    outcome = outcome.objects(held.claims.iter().map(|claim| claim.kept_claim(&profile)));
    if config.deletes_pods() {
        // Only what is going already: the host may hold back what is withdrawn.
        let going = live.claims.iter().filter(|(name, claim)| {
            let stays = pairs.iter().any(|pair| pair.claim == **name);
            claim.is_going() && claim.is_automounted() && !stays
        });
        let going: Vec<&String> = going.map(|(name, _)| name).collect();
        outcome = pods::end(cx, &profile, &going, outcome)?;
    }
    Ok(tell(outcome, &answers).problems("BucketsUsable", "UnusableBuckets", &problems))
}

/// The volumes that the Profile should have, some perhaps of one name.
fn wanted(
    profile: &str,
    config: &Config,
    answers: &[Answer<'_>],
    problems: &mut Problems,
) -> Vec<Pair> {
    let instances = config.instances();
    let mut pairs: Vec<Pair> = instances
        .iter()
        .filter_map(|instance| {
            let needs = container::needed(instance, config);
            problems.take(Pair::of_instance(instance, profile, needs))
        })
        .collect();
    for answer in answers {
        let place = Place {
            fdi: &config.fdi,
            class: answer.class,
            account: answer.account,
        };
        let buckets = answer.says.iter().flat_map(|said| &said.buckets);
        pairs.extend(buckets.filter_map(|bucket| {
            let access = bucket.access(profile)?;
            problems.take(Pair::of_bucket(bucket, access, place, profile))
        }));
    }
    pairs
}

/// Of several that want one name, who has it, and else the first.
fn distinct(wanted: Vec<Pair>, live: &Live, problems: &mut Problems) -> Vec<Pair> {
    let has = |pair: &Pair| {
        live.volumes
            .get(&pair.volume)
            .is_some_and(|found| found.gives(pair))
    };
    let (first, second): (Vec<Pair>, Vec<Pair>) = wanted.into_iter().partition(has);
    let mut pairs: Vec<Pair> = Vec::new();
    for pair in first.into_iter().chain(second) {
        let alike = |other: &&Pair| other.volume == pair.volume || other.claim == pair.claim;
        match pairs.iter().find(alike) {
            Some(other) => problems.add(format_args!(
                "{}: volume {} and claim {} would have a name of {}; give it another name",
                pair.what, pair.volume, pair.claim, other.what
            )),
            None => pairs.push(pair),
        }
    }
    pairs
}

/// What stays as it is because nobody can tell whether it is still wanted.
#[derive(Default)]
struct Held<'a> {
    volumes: Vec<&'a Found>,
    claims: Vec<&'a Found>,
}

impl<'a> Held<'a> {
    /// Volumes and claims of buckets of a classification of which an answer is
    /// missing, except those of an account for which there is a whole answer.
    fn of(live: &'a Live, profile: &str, pairs: &[Pair], answers: &[Answer<'_>]) -> Self {
        let mut held = Self::default();
        for doubtful in answers.iter().filter(|answer| !answer.is_whole()) {
            let class = doubtful.class.name();
            let known = |account: &str| {
                let mut same = answers
                    .iter()
                    .filter(|answer| answer.class == doubtful.class);
                same.any(|answer| answer.is_whole() && answer.account == account)
            };
            let marked = format!("{profile}-fdi-{class}-");
            for (name, volume) in &live.volumes {
                let of_bucket = volume.label(CLASSIFICATION) == class && name.starts_with(&marked);
                let wanted = pairs.iter().any(|pair| pair.volume == *name);
                if of_bucket && !wanted && !known(volume.account()) {
                    hold(&mut held.volumes, volume);
                }
            }
            for (name, claim) in &live.claims {
                let volume = claim.volume_name();
                let of_bucket = claim.label(CLASSIFICATION) == class && volume.starts_with(&marked);
                let wanted = pairs.iter().any(|pair| pair.claim == *name);
                let gone = !live.volumes.contains_key(volume);
                let kept = held.volumes.iter().any(|held| held.name() == volume);
                if of_bucket && !wanted && (gone || kept) {
                    hold(&mut held.claims, claim);
                }
            }
        }
        held
    }
}

/// Several accounts may give the same reason.
fn hold<'a>(held: &mut Vec<&'a Found>, found: &'a Found) {
    if !held.iter().any(|other| other.name() == found.name()) {
        held.push(found);
    }
}

/// Says which descriptions could not be used. No event: it is about all Profiles.
fn tell(outcome: Outcome, answers: &[Answer<'_>]) -> Outcome {
    let wrong: Vec<String> = answers.iter().flat_map(Answer::problems).collect();
    if wrong.is_empty() {
        return outcome;
    }
    outcome.condition(Condition::fails(
        "SourcesUsable",
        "UnusableSources",
        format!(
            "{}. Volumes that came of it stay as they are",
            wrong.join("; ")
        ),
    ))
}

reeve_sdk::plugin!(manifest, reconcile, container::actuate);

#[cfg(test)]
mod tests;

//! Builds images of models, by their packages, and serves them: the management agent of
//! DataRobot's MLOps as a plugin.
//!
//! A ModelDeployment names a model. A Job puts it into the image of the prediction
//! server and reports the digest; a Deployment serves that digest. What is known of all
//! this stands on objects of the cluster, and nowhere else.

mod builder;
mod claims;
mod config;
mod image;
mod images;
mod job;
mod jobs;
mod key;
mod known;
mod live;
mod model;
mod names;
mod prerequisites;
mod record;
mod report;
mod serve;
mod settings;
mod state;
mod supervisor;
mod tracking;

use reeve_sdk::prelude::*;

use builder::{Build, job_name, key_of, tag};
use config::{Builder, Config};
use image::Image;
use images::{Changes, Images};
use job::{JobState, LiveJob};
use live::Live;
use model::{Model, Spec, Version};
use names::{
    AWAITS, CONFIG_MAP, DEPLOYMENT, INGRESS, JOB, MODEL_DEPLOYMENT, POD, Place, REPLICA_SET,
    SECRET, SERVICE, SERVICE_ACCOUNT,
};
use record::{Record, Seen};
use serve::Serving;
use settings::Settings;
use state::{Decision, Deploy, Observed};

/// The parts of a ModelDeployment that are read.
#[input]
struct ModelDeployment {
    metadata: Metadata,
    spec: Json,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    let settings = Settings::of(config)?;
    let place = || Scope::Namespaces(config.namespaces.clone());
    let mut manifest = Manifest::controller(MODEL_DEPLOYMENT);
    manifest = match config.supervisor.report.url.as_str() {
        "" => manifest.projection(["/spec"]),
        _ => manifest.projection(["/spec", "/metadata/labels", "/metadata/ownerReferences"]),
    };
    for kind in [
        CONFIG_MAP,
        JOB,
        POD,
        DEPLOYMENT,
        REPLICA_SET,
        SERVICE_ACCOUNT,
    ] {
        manifest = manifest.reads((kind, place()));
    }
    // Each by its name, and no other: rights to read it are as narrow.
    for name in prerequisites::secrets(&settings) {
        manifest = manifest.reads(ReadRule::new(SECRET, place()).names([name]));
    }
    for kind in [
        CONFIG_MAP,
        JOB,
        DEPLOYMENT,
        SERVICE,
        INGRESS,
        SERVICE_ACCOUNT,
        // Its status.
        MODEL_DEPLOYMENT,
    ] {
        manifest = manifest.writes(kind, place());
    }
    supervisor::declared(config, manifest)
}

/// A model that is wanted, and where its image comes from.
struct Target {
    model: Model,
    base: Image,
    key: String,
    /// Name of the Job that builds it.
    job: String,
    /// Where its image is pushed; where nothing is built, the prediction server itself.
    repository: Image,
}

fn reconcile(primary: ModelDeployment, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let settings = Settings::of(config).or_terminal("the configuration")?;
    let environment = supervisor::environment(&primary.metadata);
    let uid = primary.metadata.uid;
    let namespace = primary.metadata.namespace.unwrap_or_default();
    if !config.namespaces.contains(&namespace) {
        return Err(Failure::terminal(format!(
            "namespace {namespace} is not among /namespaces of the configuration ({}); add it, or \
             deploy the model in one of them",
            config.namespaces.join(", ")
        )));
    }
    let place = Place {
        name: primary.metadata.name,
        namespace,
    };
    let said = primary.spec.to_string();
    let spec: Spec = reeve_sdk::parse_json(&said).or_terminal("spec")?;
    let spec = &spec;
    let recorded = Record::read(&place, cx)?;
    let live = Live::read(&place, recorded.served, cx)?;
    let own = LiveJob::made_for(&place, cx)?;
    let mut target = target(&place, spec, &settings, &live);
    // What serves is found where it was, whatever becomes of its spec.
    let held = recorded.id.clone();
    let mut id = match &target {
        Ok(target) => target.model.deployment_id.clone(),
        Err(_) => held.clone().unwrap_or_else(|| id(&place, spec)),
    };
    let taken = claims::taken(&place, &id, &config.namespaces, cx)?;
    let found = match &taken {
        None if target.is_ok() => Some(id.clone()),
        None => held,
        Some(_) => held.filter(|held| !held.eq_ignore_ascii_case(&id)),
    };
    if let Some(by) = &taken {
        if target.is_ok() {
            target = Err(vec![format!(
                "spec.deploymentId: `{id}` is the id of ModelDeployment {by} already, whatever \
                 letters are capitals; give one of them another, or delete it"
            )]);
        }
        id = found.clone().unwrap_or_else(|| place.name.clone());
    }
    let account = prerequisites::account(&place, &settings, cx)?;

    let mut record = recorded.clone();
    record.id = found;
    let mut named = None;
    let wanted = match &target {
        Err(problems) => Err(problems.clone()),
        Ok(target) => {
            let mut job = JobState::Absent;
            let mut losses = 0;
            let mut missing = Vec::new();
            let key = &target.key;
            let repository = &target.repository;
            let mut image =
                known::image(&target.model, &target.base, key, repository, &live, &record);
            if image.is_none() {
                named = LiveJob::named(&place, &target.job, key, &own, cx)?;
                if let Some(found) = &named {
                    job = found.state(&found.pods(&place, cx)?);
                }
                if !matches!(job, JobState::Complete(_)) {
                    image = known::elsewhere(&place, key, repository, cx)?;
                }
            }
            if image.is_some() {
                named = None;
                record.seen = Seen::default();
                // Those that answer have all that they need.
                if !live.answers(key) && spec.stopped != Some(true) {
                    missing = prerequisites::of_servers(&place, &settings, cx)?;
                }
            } else {
                missing = prerequisites::of_build(&place, &settings, cx)?;
                missing.extend(account.missing.clone());
                // Whoever it was made for: what one reads all of them may miss.
                let uid = named.as_ref().and_then(LiveJob::uid);
                losses = record.losses(&target.job, uid);
                record.see(&target.job, uid);
            }
            Ok(state::Wanted {
                key: &target.key,
                image,
                repository: &target.repository,
                missing,
                job,
                losses,
            })
        }
    };
    let decision = state::decide(&Observed {
        stopped: spec.stopped == Some(true),
        busy: jobs::is_busy(&place, &own, cx)?,
        wanted,
        live: &live,
    });

    if spec.stopped == Some(true) {
        // What a stop has deleted was not lost.
        record.seen = Seen::default();
    }
    record.served = live.served;
    let version = version(&decision, target.as_ref().ok(), &live);
    note(&mut record, &live, version.as_ref());
    let mut images = Images::read(&place, &recorded, cx)?;
    let changes = collect(
        &mut images,
        &mut record,
        &place,
        target.as_ref().ok(),
        &live,
        cx,
    )?;

    let prediction_url = report::url(&decision, settings.root.as_ref(), Some(&id));
    let known = supervisor::known(record.report, cx);
    record.report = match environment {
        // Whose id it is not, nothing is told of.
        Some(_) if taken.is_some() => known,
        Some(environment) => {
            let about = supervisor::About {
                environment: &environment,
                deployment: &id,
                uid: &uid,
                model: target.as_ref().ok().map(|target| &*target.model.id),
                prediction_url,
            };
            supervisor::report(&about, &decision, config, known.as_ref(), cx)
        }
        None => None,
    };
    let mut outcome = Outcome::new().empty_is_meant();
    if let Some(told) = &record.report {
        outcome = outcome.action(supervisor::action(told));
    }
    let wants = target.as_ref().ok().map(|target| &*target.key);
    let mut noted = record.object(&place, wants);
    if let Some(key) = wants.filter(|_| spec.stopped != Some(true)) {
        noted["metadata"]["labels"][AWAITS] = json!(key);
    }
    outcome = outcome.object(noted);
    outcome = outcome.objects(images.object(&place));
    outcome = outcome.objects(account.object);
    let build = target.as_ref().ok().map(|target| Build {
        place: &place,
        name: &target.job,
        key: &target.key,
        model: &target.model,
        settings: &settings,
        base: &target.base,
        destination: target.repository.tagged(tag(&target.model.id, &target.key)),
        model_id: &target.model.id,
    });
    let wanted = build.as_ref().map(|build| jobs::Wanted {
        build,
        step: decision.build,
        live: named.as_ref(),
    });
    outcome = outcome.objects(jobs::jobs(
        &place,
        &own,
        wanted.as_ref(),
        &recorded,
        &record,
        cx,
    )?);
    if let Some(version) = &version {
        let serving = Serving {
            place: &place,
            spec,
            settings: &settings,
            id: &id,
            version,
        };
        outcome = outcome.objects(serving.objects());
    }
    let facts = report::Facts {
        id: Some(&id),
        root: settings.root.as_ref(),
        key: wants,
        image: version.as_ref().map(|version| version.image.to_string()),
        job: named.as_ref().map(|job| &*job.metadata.name),
        relaunch: live.relaunch.as_deref(),
        replicas: live.replicas,
        observed: key::short(&said),
    };
    outcome = outcome.object(report::status(&place, &decision, &facts));
    outcome = report::tell(outcome, &decision);
    if let Some(due) = live.due {
        outcome = outcome.next_after(due);
    }
    if let Some(problem) = account.problem {
        let mut problems = Problems::new();
        problems.add(problem);
        outcome = outcome.problems("AccountUsable", "AccountDiffers", &problems);
    }
    Ok(changes.tell(outcome, &place))
}

/// What is wanted, or all that is wrong with it.
fn target(
    place: &Place,
    spec: &Spec,
    settings: &Settings<'_>,
    live: &Live,
) -> Result<Target, Vec<String>> {
    let missing = settings.missing();
    let model = Model::check(&place.name, spec, settings);
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(format!(
            "the configuration does not say {}; set it in config.yaml",
            missing.join(", ")
        ));
    }
    let mounts = settings.config.image_builder.builder == Builder::Mount;
    let base = settings.base.clone();
    if mounts && base.as_ref().is_some_and(|base| base.digest.is_none()) {
        problems.push(
            "/imageBuilder/ppsImage of the configuration has no digest; where models are mounted \
             it serves as it is, so add `@sha256:` and its digest"
                .to_owned(),
        );
    }
    let (model, base) = match (model, base) {
        (Ok(model), Some(base)) if problems.is_empty() => (model, base),
        (model, _) => {
            problems.extend(model.err().into_iter().flatten());
            return Err(problems);
        }
    };
    let base = base_of(&model, base, settings, live);
    let key = key_of(&model, settings, &base);
    let repository = match (&settings.repository, mounts) {
        (Some(repository), false) => repository.clone(),
        _ => base.clone(),
    };
    Ok(Target {
        job: job_name(&key, spec.retry.as_deref()),
        model,
        base,
        key,
        repository,
    })
}

/// The prediction server that a model is put into: what serves already stays on the
/// one that it was built on, unless the configuration says otherwise.
fn base_of(model: &Model, base: Image, settings: &Settings<'_>, live: &Live) -> Image {
    let rebuilds = settings.config.image_builder.rebuild_on_pps_image_change;
    let serves = live.version.as_ref().filter(|version| {
        version.package == model.package() && version.artifact.as_ref() == model.artifact()
    });
    match serves.filter(|_| !rebuilds) {
        Some(version) => version.base.clone(),
        None => base,
    }
}

/// What is to serve, if anything.
fn version(decision: &Decision, target: Option<&Target>, live: &Live) -> Option<Version> {
    match (&decision.deploy, target) {
        (Deploy::Nothing, _) => None,
        (Deploy::Kept, _) => live.version.clone(),
        (Deploy::Wanted(image), Some(target)) => Some(Version::of(
            &target.model,
            &target.key,
            &target.base,
            image.clone(),
        )),
        (Deploy::Wanted(_), None) => None,
    }
}

/// Notes the images that were built for the deployment: the one that is to serve, and
/// the one that does, should the record have been lost.
fn note(record: &mut Record, live: &Live, version: Option<&Version>) {
    for version in live.version.iter().chain(version) {
        if version.artifact.is_some() {
            continue;
        }
        let (key, image) = (version.key.clone(), version.image.clone());
        record.images.insert(key, image);
    }
}

/// Moves images that nothing uses to the orphans.
fn collect(
    images: &mut Images,
    record: &mut Record,
    place: &Place,
    target: Option<&Target>,
    live: &Live,
    cx: &Context,
) -> Result<Changes, Failure> {
    // What a spec wants that makes no sense, nobody can tell.
    if target.is_none() {
        return Ok(Changes::default());
    }
    let serving = live.version.as_ref().map(|version| version.key.clone());
    images.collect(record, |key, digest, is_recorded| {
        let is_own = target.is_some_and(|target| target.key == key);
        let is_own = is_own || serving.as_deref() == Some(key);
        Ok(is_recorded && is_own
            || live.names(digest)
            || jobs::is_wanted_elsewhere(place, key, cx)?
            || live::is_named(place, digest, cx)?)
    })
}

/// Id of a deployment of which nothing is known yet, and whose spec makes no sense: the id
/// may.
fn id(place: &Place, spec: &Spec) -> String {
    let said = spec.usable_id();
    said.unwrap_or(&place.name).to_owned()
}

reeve_sdk::plugin!(manifest, reconcile, supervisor::actuate);

#[cfg(test)]
mod tests;

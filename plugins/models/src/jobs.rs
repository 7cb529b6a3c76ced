//! Which Jobs there are to be: the one that is wanted, and those that are kept.

use reeve_sdk::prelude::*;

use crate::builder::Build;
use crate::job::{LiveJob, expiring};
use crate::names::{AWAITS, CONFIG_MAP, KEY, Place, WANTS};
use crate::record::Record;
use crate::state;

/// Jobs that are over and are kept for their logs.
const FINISHED: usize = 3;

/// The build of the model that is wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) build: &'a Build<'a>,
    pub(crate) step: state::Build,
    /// Its Job, whoever it was made for.
    pub(crate) live: Option<&'a LiveJob>,
}

/// The Jobs that there are to be. `own` are those that were made for the deployment,
/// `recorded` is the record as it stands in the cluster: what is not in there yet must
/// not go by itself. `record` is what it becomes: an image that is not in there may be
/// deleted by a retention policy, so that its build must not be taken for it.
pub(crate) fn jobs(
    place: &Place,
    own: &[LiveJob],
    wanted: Option<&Wanted<'_>>,
    recorded: &Record,
    record: &Record,
    cx: &Context,
) -> Result<Vec<Value>, Failure> {
    let built = |record: &Record, job: &LiveJob| {
        let key = job.label(KEY);
        key.is_some_and(|key| record.images.contains_key(key))
    };
    let mut jobs = Vec::new();
    if let Some(wanted) = wanted
        && wanted.step == state::Build::Made
    {
        match wanted.live {
            None => jobs.push(wanted.build.job()),
            Some(job) if job.is_of(place) => jobs.push(kept(place, job, Some(wanted), cx)?),
            // Another deployment with the same model has it made.
            Some(_) => {}
        }
    }
    let mut finished: Vec<&LiveJob> = Vec::new();
    for job in own {
        let is_wanted = wanted.is_some_and(|wanted| job.metadata.name == wanted.build.name);
        let step = wanted.map(|wanted| wanted.step);
        let is_done = is_wanted && step != Some(state::Build::Left);
        if is_done || job.metadata.deletion_timestamp.is_some() {
            continue;
        }
        // Who shares a build has to read it, too.
        let is_shared = match job.label(KEY) {
            Some(key) => is_awaited_elsewhere(place, key, cx)?,
            None => false,
        };
        if job.is_finished() {
            // Who shares it makes it anew, which takes its name.
            if is_shared && !built(record, job) && job.is_lost(place, cx)? {
                continue;
            }
            if is_wanted || !job.is_complete() || built(record, job) || is_shared {
                finished.push(job);
            }
        } else if is_shared {
            jobs.push(job.as_it_is(place, cx)?);
        }
    }
    let age = |job: &LiveJob| {
        let created = job.metadata.creation_timestamp.clone();
        (created, job.metadata.name.clone())
    };
    finished.sort_by_key(|job| std::cmp::Reverse(age(job)));
    for job in finished.into_iter().take(FINISHED) {
        let one = kept(place, job, wanted, cx)?;
        jobs.push(match job.is_complete() && built(recorded, job) {
            true => expiring(one),
            false => one,
        });
    }
    Ok(jobs)
}

/// A Job as it would be made, if that is how it was made; otherwise as it is.
fn kept(
    place: &Place,
    job: &LiveJob,
    wanted: Option<&Wanted<'_>>,
    cx: &Context,
) -> Result<Value, Failure> {
    let wanted = wanted.filter(|wanted| job.metadata.name == wanted.build.name);
    let made = wanted.map(|wanted| wanted.build.job());
    match made.filter(|made| job.is_from_that_of(made)) {
        Some(made) => Ok(made),
        None => job.as_it_is(place, cx),
    }
}

/// Whether a build is under way that only this deployment needs.
pub(crate) fn is_busy(place: &Place, own: &[LiveJob], cx: &Context) -> Result<bool, Failure> {
    for job in own.iter().filter(|job| !job.is_finished()) {
        match job.label(KEY) {
            Some(key) if is_awaited_elsewhere(place, key, cx)? => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// Whether another deployment of the namespace wants what is built under this key.
pub(crate) fn is_wanted_elsewhere(place: &Place, key: &str, cx: &Context) -> Result<bool, Failure> {
    is_said_elsewhere(place, WANTS, key, cx)
}

/// Whether another deployment of the namespace needs the build under this key.
fn is_awaited_elsewhere(place: &Place, key: &str, cx: &Context) -> Result<bool, Failure> {
    is_said_elsewhere(place, AWAITS, key, cx)
}

fn is_said_elsewhere(place: &Place, label: &str, key: &str, cx: &Context) -> Result<bool, Failure> {
    let records = cx.list_references(&place.labelled(CONFIG_MAP, label, key))?;
    let own = place.record();
    Ok(records.iter().any(|record| record.name != own))
}

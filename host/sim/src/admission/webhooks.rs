//! Webhooks: programs beside the server that are asked about requests of clients, and may
//! change them.
//!
//! Only those on the loopback are asked, where the server was told to ask any: what an
//! embedded server is given must not reach other machines. The others count as failed, as
//! their `failurePolicy` says. They are asked one after another, in the order of the names
//! of their configurations.

mod call;
mod made;
mod review;
mod trust;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::no_object;
use super::policy::matching::{Equivalent, applies};
use super::policy::{Request, conditions_hold, known, unconverted};
use crate::kinds::edit::{integer, items, present, text};
use crate::rest::patch::operations;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Range;

pub(crate) use call::{ask, ask_now, is_on_loopback, is_reachable};
use review::Answer;

const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// The group whose configurations nobody is asked about, so that they can always be
/// changed.
const GROUP: &str = "admissionregistration.k8s.io";
/// How long one may take that does not say, in seconds.
const TIMEOUT: i64 = 10;

/// One webhook that is to be asked, and as what it sees the request.
struct Asked<'a> {
    webhook: Value,
    equivalent: Equivalent<'a>,
}

impl Asked<'_> {
    fn name(&self) -> &str {
        text(&self.webhook, "name")
    }

    /// What a failure to ask comes to.
    fn failed(&self, why: &str) -> Result<(), ApiError> {
        if text(&self.webhook, "failurePolicy") == "Ignore" {
            tracing::warn!(webhook = self.name(), why, "webhook failed, and is ignored");
            return Ok(());
        }
        let name = self.name();
        let why = format!("failed calling webhook {name:?}: {why}");
        Err(ApiError::internal_error(&why))
    }

    /// Asks about a request. None where nobody has to be, or where that failed and does
    /// not count.
    fn ask(
        &self,
        request: &Request<'_>,
        warn: &mut impl FnMut(&str),
    ) -> Result<Option<Answer>, ApiError> {
        let known = known(request, &self.equivalent).map_err(|why| unconverted(&why))?;
        match conditions_hold(request, &self.webhook, &known) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(why) => {
                if text(&self.webhook, "failurePolicy") == "Ignore" {
                    return Ok(None);
                }
                let about = request.resource.about(request.name());
                return Err(ApiError::forbidden(about, &why));
            }
        }
        let uid = request.server.random.uid();
        let body = review::question(&self.webhook, &uid, &known);
        let seconds = integer(&self.webhook, "timeoutSeconds").unwrap_or(TIMEOUT);
        let patience = Duration::from_secs(seconds.unsigned_abs());
        let client = self.webhook.get("clientConfig").unwrap_or(&Value::Null);
        let answered = ask_now(client, body.to_string().into(), patience);
        let answered = answered.map_err(|why| format!("failed to call webhook: {why}"));
        let answer = answered.and_then(|answer| Answer::read(&answer, &body));
        match answer {
            Ok(answer) => {
                answer.warnings.iter().for_each(|warning| warn(warning));
                match answer.refusal(self.name()) {
                    Some(refusal) => Err(refusal),
                    None => Ok(Some(answer)),
                }
            }
            Err(why) => self.failed(&why).map(|()| None),
        }
    }
}

/// Whether there are webhooks that may change requests.
pub(super) fn has_mutating(server: &Shared) -> bool {
    server.asks_webhooks && server.store.any(MUTATING, &Range::default())
}

/// Whether there are webhooks that may refuse requests.
pub(super) fn has_validating(server: &Shared) -> bool {
    server.asks_webhooks && server.store.any(VALIDATING, &Range::default())
}

/// The webhooks of one sort that a request concerns.
fn asked<'a>(request: &Request<'a>, table: &str) -> Vec<Asked<'a>> {
    let store = &request.server.store;
    let is_exempt = request.resource.group == GROUP;
    if !request.server.asks_webhooks || is_exempt || !store.any(table, &Range::default()) {
        return Vec::new();
    }
    let page = store.list(table, &Range::default(), None);
    let configurations = page.map(|page| page.objects).unwrap_or_default();
    let mut asked = Vec::new();
    for configuration in configurations {
        for webhook in items(&configuration.value(), "webhooks") {
            let mut criteria = webhook.clone();
            if present(webhook, "rules").is_none() {
                continue;
            }
            criteria["resourceRules"] = webhook["rules"].clone();
            if let Some(equivalent) = applies(request, &criteria) {
                asked.push(Asked {
                    webhook: webhook.clone(),
                    equivalent,
                });
            }
        }
    }
    asked
}

/// Asks all webhooks that may refuse a request.
///
/// # Errors
///
/// The first refusal, or failure that counts.
pub(crate) fn check(request: &Request<'_>, mut warn: impl FnMut(&str)) -> Result<(), ApiError> {
    for asked in asked(request, VALIDATING) {
        asked.ask(request, &mut warn)?;
    }
    Ok(())
}

/// Has webhooks change the object of a request; none where they change nothing. `settle`
/// brings a changed object into the form that objects have.
///
/// # Errors
///
/// As [`check`], and what is wrong with what one makes.
pub(crate) fn mutate(
    request: &Request<'_>,
    mut settle: impl FnMut(&mut Value) -> Result<(), ApiError>,
    mut warn: impl FnMut(&str),
) -> Result<Option<Value>, ApiError> {
    let all = asked(request, MUTATING);
    if all.is_empty() {
        return Ok(None);
    }
    let mut object = request.object.cloned();
    let (mut earlier, mut again) = (BTreeSet::new(), BTreeSet::new());
    for is_first in [true, false] {
        for (index, asked) in all.iter().enumerate() {
            if !is_first && !again.contains(&index) {
                continue;
            }
            let request = Request {
                object: object.as_ref(),
                ..*request
            };
            let answer = asked.ask(&request, &mut warn)?;
            let patch = answer.map(|answer| answer.patch).unwrap_or_default();
            if let Some(before) = &object
                && !patch.is_empty()
            {
                let mut changed = asked
                    .equivalent
                    .of(Some(before))
                    .map_err(|why| unconverted(&why))?;
                operations::run_each(&mut changed, &patch).map_err(|(why, failed)| {
                    let words = failed.and_then(operations::complaint);
                    ApiError::internal_error(&words.unwrap_or_else(|| why.to_string()))
                })?;
                if !changed.is_object() {
                    return Err(no_object(&changed));
                }
                made::check(&request, &asked.equivalent, &mut changed)?;
                changed = request.made(&asked.equivalent, changed)?;
                settle(&mut changed)?;
                if changed != *before {
                    again.append(&mut earlier);
                    object = Some(changed);
                }
            }
            if text(&asked.webhook, "reinvocationPolicy") == "IfNeeded" {
                earlier.insert(index);
            }
        }
    }
    Ok(object.filter(|object| Some(object) != request.object))
}

//! How often the server was asked for what, so that a test can say "no writes".

use std::collections::BTreeMap;

use foldhash::HashMap;
use parking_lot::Mutex;

use crate::http::route::Verb;

/// One sort of request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The verb.
    pub verb: Verb,
    /// The resource with group and subresource: `pods/status`,
    /// `deployments.apps`.
    pub resource: String,
    /// Whether it was only tried.
    pub dry_run: bool,
}

/// Counts of requests since the server was made, or since
/// [`crate::Server::reset_requests`]. Refused requests count too; those to paths
/// that are no served resource do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<Call, u64>);

impl Requests {
    /// How often `verb` was asked of `resource`, tries included.
    pub fn count(&self, verb: Verb, resource: &str) -> u64 {
        self.sum(|call| call.verb == verb && call.resource == resource)
    }

    /// How many requests would have changed a stored object: no dry runs, and no
    /// reviews or tokens, which are created but not stored.
    pub fn writes(&self) -> u64 {
        self.sum(|call| is_stored(call.verb, call.dry_run, &call.resource))
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.sum(|_| true)
    }

    /// The counts, by call.
    pub fn iter(&self) -> impl Iterator<Item = (&Call, u64)> {
        self.0.iter().map(|(call, count)| (call, *count))
    }

    fn sum(&self, which: impl Fn(&Call) -> bool) -> u64 {
        self.iter()
            .filter(|(call, _)| which(call))
            .map(|(_, count)| count)
            .sum()
    }
}

/// Whether such a request would have changed a stored object.
fn is_stored(verb: Verb, dry_run: bool, resource: &str) -> bool {
    verb.is_write() && !dry_run && !is_review(resource)
}

fn is_review(resource: &str) -> bool {
    let group = resource.split_once('.').map_or("", |(_, group)| group);
    matches!(group, "authorization.k8s.io" | "authentication.k8s.io")
        || resource == "serviceaccounts/token"
}

/// Counts of the requests to one resource, by verb and whether it was only tried.
type Counts = BTreeMap<(Verb, bool), u64>;

/// The counter itself, by resource.
#[derive(Debug, Default)]
pub(crate) struct Counter(Mutex<HashMap<String, Counts>>);

impl Counter {
    pub(crate) fn record(&self, verb: Verb, resource: &str, dry_run: bool) {
        let mut counts = self.0.lock();
        let sort = (verb, dry_run);
        match counts.get_mut(resource) {
            Some(counts) => *counts.entry(sort).or_insert(0) += 1,
            None => {
                counts.insert(resource.to_owned(), BTreeMap::from([(sort, 1)]));
            }
        }
    }

    /// As [`Requests::writes`].
    pub(crate) fn writes(&self) -> u64 {
        let counts = self.0.lock();
        let sorts = counts.iter().flat_map(|(resource, counts)| {
            counts
                .iter()
                .filter(|((verb, dry_run), _)| is_stored(*verb, *dry_run, resource))
        });
        sorts.map(|(_, count)| count).sum()
    }

    pub(crate) fn snapshot(&self) -> Requests {
        let counts = self.0.lock();
        let all = counts.iter().flat_map(|(resource, counts)| {
            counts.iter().map(|((verb, dry_run), count)| {
                let call = Call {
                    verb: *verb,
                    resource: resource.clone(),
                    dry_run: *dry_run,
                };
                (call, *count)
            })
        });
        Requests(all.collect())
    }

    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_and_tries_are_no_writes() {
        let counter = Counter::default();
        for (verb, resource, dry_run) in [
            (Verb::Create, "configmaps", false),
            (Verb::Update, "roles.rbac.authorization.k8s.io", false),
            (Verb::Patch, "configmaps", true),
            (
                Verb::Create,
                "subjectaccessreviews.authorization.k8s.io",
                false,
            ),
            (Verb::Get, "configmaps", false),
            (Verb::Get, "configmaps", false),
        ] {
            counter.record(verb, resource, dry_run);
        }
        let requests = counter.snapshot();
        assert_eq!(requests.writes(), 2);
        assert_eq!(counter.writes(), 2);
        assert_eq!(requests.total(), 6);
        assert_eq!(requests.count(Verb::Get, "configmaps"), 2);
        counter.reset();
        assert_eq!(counter.snapshot().total(), 0);
    }
}

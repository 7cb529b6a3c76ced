//! What one call has asked, as far as it is kept.
//!
//! What a guest asks about is its own text, whether or not the answer is that it may
//! not ask: without a bound, a call could fill the agent's memory with names of things
//! that do not exist.

use crate::memo::Answers;
use crate::problem::Problem;
use crate::reads::Read;
use reeve_api::Reason;
use reeve_core::{Digest, GroupVersionKind};

/// Different questions of one call. Who needs many objects lists them, which is one
/// question; this is for those who look up each object that another one names.
const MAX_READS: usize = 4_000;

/// Bytes of all of these together, as they are in memory: names, selectors, projections.
/// They are kept for each unit as long as it exists, so that changes find it.
const MAX_BYTES: usize = 512 * 1024;

/// Lists of these that are neither of one namespace nor of what has one label. To look all of
/// them up again takes as long as the cluster is large.
const MAX_WIDE: usize = 100;

/// Everything that a call has asked, with the digest of what it was told.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    answers: Answers,
    bytes: usize,
    wide: usize,
    /// Whether there was more than is kept.
    over: bool,
}

impl Asked {
    /// Notes a question, and what it was told.
    pub(crate) fn note(&mut self, read: Read, told: Digest) {
        if self.over || self.answers.contains_key(&read) {
            return;
        }
        let bytes = self.bytes + weight(&read);
        let wide = self.wide + usize::from(read.is_wide());
        if self.answers.len() >= MAX_READS || bytes > MAX_BYTES || wide > MAX_WIDE {
            self.over = true;
            return;
        }
        (self.bytes, self.wide) = (bytes, wide);
        self.answers.insert(read, told);
    }

    /// All questions and answers.
    ///
    /// # Errors
    ///
    /// When there were more than are kept: then nobody could tell when the answer of
    /// the plugin changes, and it is of no use.
    pub(crate) fn all(&self) -> Result<Answers, Problem> {
        if self.over {
            return Err(Problem::passing(
                Reason::LimitExceeded,
                format!(
                    "reconcile: the plugin asked about more than {MAX_READS} different things, \
                     about more than {MAX_WIDE} lists of all namespaces and labels, or with more \
                     than {} KiB of names, selectors and projections; list what is read instead of \
                     reading it one by one, and narrow lists",
                    MAX_BYTES / 1024
                ),
            ));
        }
        Ok(self.answers.clone())
    }
}

/// Bytes that a question takes in memory besides a place for it, roughly.
pub(crate) fn weight(read: &Read) -> usize {
    let of_kind = |kind: &GroupVersionKind| kind.group.len() + kind.version.len() + kind.kind.len();
    let of_namespace = |namespace: &Option<String>| namespace.as_ref().map_or(0, String::len);
    match read {
        Read::Object(object, projection) => {
            of_kind(&object.kind)
                + of_namespace(&object.namespace)
                + object.name.len()
                + projection.weight()
        }
        Read::List {
            kind,
            namespace,
            selector,
            projection,
        } => {
            let projection = projection.as_ref().map_or(0, |one| one.weight());
            of_kind(kind) + of_namespace(namespace) + selector.weight() + projection
        }
        Read::Source(name) | Read::SourceAge(name) => name.len(),
        Read::Clock => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::ObjectReference;
    use reeve_core::projection::Projection;

    fn read(name: String) -> Read {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        Read::Object(
            ObjectReference::new(kind, None, name),
            Projection::default(),
        )
    }

    fn list(selector: &str, pointers: &[&str]) -> Read {
        let pointers = pointers.iter().map(|one| (*one).to_owned()).collect();
        Read::List {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            namespace: None,
            selector: selector.parse().unwrap(),
            projection: Some(Projection::new(pointers).unwrap()),
        }
    }

    fn asked(reads: impl IntoIterator<Item = Read>) -> Asked {
        let mut asked = Asked::default();
        for read in reads {
            asked.note(read, Digest::of(b"told"));
        }
        asked
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_in_bytes() {
        let names = |count: usize, length: usize| {
            (0..count).map(move |number| read(format!("{}{number}", "x".repeat(length))))
        };
        let labels = |operator: &'static str, count: usize| {
            (0..count).map(move |number| list(&format!("a{operator}{number}"), &[]))
        };
        for (asked, kept) in [
            (asked(names(MAX_READS, 8)), Ok(MAX_READS)),
            (asked(names(MAX_READS + 1, 8)), Err(MAX_READS)),
            (asked(names(100_000, 8)), Err(MAX_READS)),
            // The same again and again is one question.
            (asked((0..100_000).map(|_| read("a".into()))), Ok(1)),
            (asked(names(1, MAX_BYTES)), Err(0)),
            (asked(labels("!=", MAX_WIDE)), Ok(MAX_WIDE)),
            (asked(labels("!=", MAX_WIDE + 1)), Err(MAX_WIDE)),
            (asked(labels("=", MAX_WIDE + 1)), Ok(MAX_WIDE + 1)),
            (asked(names(3, MAX_BYTES / 2 - 100)), Err(2)),
            (asked([list(&format!("a={}", "b".repeat(60)), &[])]), Ok(1)),
            (
                asked([list("", &[&format!("/{}", "x".repeat(MAX_BYTES))])]),
                Err(0),
            ),
        ] {
            assert!(asked.bytes <= MAX_BYTES && asked.wide <= MAX_WIDE);
            let all = asked.all().map(|answers| answers.len());
            match kept {
                Ok(kept) => assert_eq!(all.unwrap(), kept),
                Err(kept) => {
                    assert_eq!(asked.answers.len(), kept);
                    let problem = all.unwrap_err();
                    assert_eq!(problem.reason, Reason::LimitExceeded);
                    assert!(problem.message.contains("different things"), "{problem}");
                }
            }
        }
    }

    #[test]
    fn everything_that_a_guest_writes_has_weight() {
        assert_eq!(weight(&read("abc".into())), "ConfigMapv1abc".len());
        let light = weight(&list("", &[]));
        assert!(weight(&list("a=b", &[])) >= light + 100);
        // Short requirements take many times their text.
        let many = vec!["a"; 1_000].join(",");
        assert!(weight(&list(&many, &[])) > 30 * many.len());
        let heavy = weight(&list("", &["/data/a"]));
        assert!(heavy >= light + "/data/a".len(), "{heavy}");
    }
}

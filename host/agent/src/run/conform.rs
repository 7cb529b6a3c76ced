//! Asking a plugin twice about the same, and about what it has answered.

mod fed;

use super::Runner;
use super::ask::shown;
use crate::active::Active;
use crate::memo::Answers;
use crate::plugin::steps::AT_ONCE;
use crate::problem::Problem;
use crate::reads::Read;
use crate::view::CallView;
use fed::Feed;
use reeve_api::Reason;
use reeve_cluster::{Object, Snapshot};
use reeve_core::outcome::Outcome;
use reeve_core::{Failure, ObjectReference, UnitKey};
use reeve_engine::{Fact, Request};
use std::sync::Arc;

/// Times that a version is shown what it has answered: as many as it may make once it runs.
const STEPS: u32 = AT_ONCE;

/// What a call ended with.
#[derive(Debug, PartialEq)]
enum Said {
    Outcome(Box<Outcome>),
    Failure(Failure),
    /// It trapped.
    Fault,
    /// It ran out of a limit, some of which are times.
    Limit,
}

/// One of the two answers.
#[derive(Debug)]
struct Answer {
    said: Said,
    /// What it read, with what it was told; none when it was too much to keep.
    reads: Option<Answers>,
}

impl Runner {
    /// Asks a version twice about a unit as a snapshot has it, with the same time. Then, if
    /// it has to be `at_rest` and reads what it makes, what it would answer if that were
    /// done, until it answers the same again.
    ///
    /// # Errors
    ///
    /// When the two answers differ and nothing that was read does, and when it does not
    /// come to rest within [`STEPS`].
    pub(crate) async fn conforms(
        &self,
        unit: &UnitKey,
        active: &Arc<Active>,
        snapshot: &Snapshot,
        primary: &Object,
        facts: Vec<Fact>,
        at_rest: bool,
    ) -> Result<(), Problem> {
        // Nothing is asked about such a one.
        if self.lent(unit, active).is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        let seen = shown(active, primary);
        let ask = async |snapshot: &Snapshot| {
            let view = CallView::new(snapshot.clone(), active.clone(), unit, now);
            let view = Arc::new(view);
            let request = Request {
                primary: seen.clone(),
                config: active.config.clone(),
                facts: facts.clone(),
                unit: Some(unit.clone()),
            };
            let call = {
                let (active, view) = (active.clone(), view.clone());
                async move {
                    let component = &active.component;
                    component.reconcile(request, view, &active.limits).await
                }
            };
            let said = match active.threads.run(call).await.map(|called| called.value) {
                Ok(Ok(outcome)) => Said::Outcome(Box::new(outcome)),
                Ok(Err(failure)) => Said::Failure(failure),
                Err(fault) if fault.kind.limit().is_some() || fault.retries() => Said::Limit,
                Err(_) => Said::Fault,
            };
            let reads = view.reads().ok();
            Answer { said, reads }
        };
        let first = ask(snapshot).await;
        // How long it takes is no input, and it need not take as long again.
        if first.said == Said::Limit {
            return Ok(());
        }
        let second = ask(snapshot).await;
        compare(&first, &second).map_err(|difference| {
            Problem::lasting(
                Reason::NotDeterministic,
                format!(
                    "asked twice about {} on the same inputs, the new version answers \
                     differently: {difference}. A plugin is a pure function of what it is given \
                     and reads; this is a fault of it, or of the sandbox",
                    unit.primary
                ),
            )
        })?;
        if !at_rest {
            return Ok(());
        }
        let mut feed = Feed::new(unit, active, primary, snapshot);
        let (mut last, mut change) = (second, String::new());
        for _ in 0..STEPS {
            let Answer {
                said: Said::Outcome(outcome),
                reads: Some(reads),
            } = &last
            else {
                return Ok(());
            };
            if !feed.take_in(outcome) || !feed.concerns(reads) {
                return Ok(());
            }
            let next = ask(feed.seen()).await;
            let documents = next.reads.as_ref().is_some_and(|next| turned(reads, next));
            if documents || next.said == last.said {
                return Ok(());
            }
            // One that fails may wait for what only time, or somebody else, can bring.
            let Said::Outcome(wanted) = &next.said else {
                return Ok(());
            };
            change = difference(outcome, wanted);
            last = next;
        }
        Err(restless(&unit.primary, &change))
    }
}

/// What is wrong with a version that does not come to rest.
fn restless(primary: &ObjectReference, change: &str) -> Problem {
    Problem::lasting(
        Reason::NotConvergent,
        format!(
            "of {primary}, the new version reads what it has made, and then wants something \
             else, {STEPS} times in a row (the last time: {change}); it would write without end. \
             Let what is desired not depend on what the plugin itself has written. Where this \
             is not so, set spec.upgrade.shadow of the Plugin to Report or Off: then it is not \
             looked at"
        ),
    )
}

/// Whether an outside document is another than it was.
fn turned(first: &Answers, second: &Answers) -> bool {
    first.iter().any(|(read, told)| {
        matches!(read, Read::Source(_) | Read::SourceAge(_))
            && second.get(read).is_some_and(|other| other != told)
    })
}

/// Where two answers differ, if that is to be laid to the plugin.
fn compare(first: &Answer, second: &Answer) -> Result<(), String> {
    if first.said == Said::Limit || second.said == Said::Limit {
        return Ok(());
    }
    // Whoever asks for more than is kept is refused when it runs, and may have been told of
    // two states of the outside.
    let (Some(known), Some(again)) = (&first.reads, &second.reads) else {
        return Ok(());
    };
    // An outside document that has just come is another input.
    let moved = |(read, told)| again.get(read).is_some_and(|other| other != told);
    if known.iter().any(moved) {
        return Ok(());
    }
    if !known.keys().all(|read| again.contains_key(read)) || known.len() != again.len() {
        return Err("it reads something else".to_owned());
    }
    if first.said == second.said {
        return Ok(());
    }
    Err(match (&first.said, &second.said) {
        (Said::Outcome(first), Said::Outcome(second)) => difference(first, second),
        (Said::Failure(_), Said::Failure(_)) => "it fails with another message".to_owned(),
        _ => "it fails once, and once it does not".to_owned(),
    })
}

fn difference(first: &Outcome, second: &Outcome) -> String {
    let (a, b) = (first.objects.len(), second.objects.len());
    if a != b {
        return format!("{a} objects, then {b}");
    }
    let pairs = first.objects.iter().zip(&second.objects);
    match pairs.into_iter().position(|(a, b)| a != b) {
        Some(index) => format!("objects[{index}] is another text"),
        None if first.actions != second.actions => "it asks for other actions".to_owned(),
        None => "what it says beside the objects".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::Digest;

    fn objects(texts: &[&str]) -> Said {
        Said::Outcome(Box::new(Outcome {
            objects: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            ..Outcome::default()
        }))
    }

    fn answer(said: Said, reads: &[(&str, &str)]) -> Answer {
        let reads = reads.iter().map(|(name, told)| {
            let read = Read::Source((*name).to_owned());
            (read, Digest::of(told.as_bytes()))
        });
        Answer {
            said,
            reads: Some(reads.collect()),
        }
    }

    #[test]
    fn only_differences_of_the_plugin_count() {
        let failure = |text: &str| Said::Failure(Failure::Terminal(text.to_owned()));
        let read = [("a", "1")];
        for (first, second, expected) in [
            (
                answer(objects(&["{}"]), &read),
                answer(objects(&["{}"]), &read),
                Ok(()),
            ),
            (
                answer(objects(&["{}", "1"]), &read),
                answer(objects(&["{}", "2"]), &read),
                Err("objects[1] is another text"),
            ),
            (
                answer(objects(&["{}"]), &read),
                answer(objects(&[]), &read),
                Err("1 objects, then 0"),
            ),
            // Too much was asked for to say what was told.
            (
                Answer {
                    reads: None,
                    ..answer(objects(&["1"]), &[])
                },
                answer(objects(&["2"]), &read),
                Ok(()),
            ),
            // The document has changed between the two.
            (
                answer(objects(&["1"]), &read),
                answer(objects(&["2"]), &[("a", "2")]),
                Ok(()),
            ),
            (
                answer(objects(&["1"]), &read),
                answer(objects(&["1"]), &[("b", "1")]),
                Err("it reads something else"),
            ),
            (
                answer(failure("a"), &[]),
                answer(failure("b"), &[]),
                Err("it fails with another message"),
            ),
            (
                answer(failure("a"), &[]),
                answer(Said::Fault, &[]),
                Err("it fails once, and once it does not"),
            ),
            (answer(Said::Fault, &[]), answer(Said::Fault, &[]), Ok(())),
            (answer(Said::Limit, &[]), answer(objects(&[]), &[]), Ok(())),
        ] {
            let found = compare(&first, &second);
            assert_eq!(found, expected.map_err(str::to_owned), "{first:?}");
        }
    }
}

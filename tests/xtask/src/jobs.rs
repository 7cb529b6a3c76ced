//! Programs of tests, several at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::report::Counts;

/// Something that counts tests.
pub(crate) struct Job<'a> {
    /// The row of the report to which it belongs.
    pub(crate) row: String,
    /// What it is called when it is told which jobs take longest.
    pub(crate) name: String,
    /// What it does.
    pub(crate) run: Box<dyn Fn() -> Result<Counts> + Sync + 'a>,
}

/// How the jobs of one row went.
pub(crate) struct Ran {
    pub(crate) row: String,
    pub(crate) result: Result<Counts>,
    /// Of all its jobs, as if one had come after the other.
    pub(crate) time: Duration,
}

/// Runs all jobs in so many lanes. The first to start are those named in `longest`, in
/// that order, so that none runs long after all others. Returns the rows in the order of
/// their names.
pub(crate) fn run(lanes: usize, mut jobs: Vec<Job<'_>>, longest: &[&str]) -> Vec<Ran> {
    let place = |name: &str| longest.iter().position(|one| *one == name);
    jobs.sort_by_key(|job| place(&job.name).unwrap_or(longest.len()));
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let lane = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let result = (job.run)();
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            let row = rows.entry(job.row.as_str());
            let (sum, time) = row.or_insert_with(|| (Ok(Counts::default()), Duration::ZERO));
            add(sum, result);
            *time += started.elapsed();
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(lane);
        }
    });
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let row = |(row, (result, time)): (&str, _)| Ran {
        row: row.to_owned(),
        result,
        time,
    };
    rows.into_iter().map(row).collect()
}

/// Adds what one job counted to what others of its row did. One that could not run fails
/// its row, and what the others counted is in their logs.
fn add(sum: &mut Result<Counts>, result: Result<Counts>) {
    match (sum.as_mut(), result) {
        (Ok(sum), Ok(counts)) => *sum += counts,
        (Ok(_), Err(error)) => *sum = Err(error),
        (Err(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn job<'a>(row: &str, name: &str, run: impl Fn() -> Result<Counts> + Sync + 'a) -> Job<'a> {
        Job {
            row: row.to_owned(),
            name: name.to_owned(),
            run: Box::new(run),
        }
    }

    #[test]
    fn every_job_runs_once_the_longest_first_and_counts_for_its_row() {
        let order = Mutex::new(Vec::new());
        let ran = |name: &'static str| {
            order.lock().unwrap().push(name);
            Ok(Counts::ONE_PASSED)
        };
        let jobs = vec![
            job("b", "short", || ran("short")),
            job("a", "long", || ran("long")),
            job("b", "longest", || ran("longest")),
        ];
        let rows = super::run(1, jobs, &["longest", "long"]);
        assert_eq!(*order.lock().unwrap(), ["longest", "long", "short"]);
        let counted: Vec<_> = rows
            .iter()
            .map(|ran| (ran.row.as_str(), ran.result.as_ref().unwrap().passed))
            .collect();
        assert_eq!(counted, [("a", 1), ("b", 2)]);
    }

    #[test]
    fn lanes_run_beside_each_other() {
        let meet = std::sync::Barrier::new(2);
        let wait = || {
            meet.wait();
            Ok(Counts::ONE_PASSED)
        };
        let rows = super::run(2, vec![job("a", "one", wait), job("a", "two", wait)], &[]);
        assert_eq!(rows[0].result.as_ref().unwrap().passed, 2);
    }

    #[test]
    fn one_that_cannot_run_fails_its_row_alone() {
        let jobs = vec![
            job("a", "broken", || bail!("no start")),
            job("a", "fine", || Ok(Counts::ONE_PASSED)),
            job("b", "fine", || Ok(Counts::ONE_PASSED)),
        ];
        let rows = super::run(2, jobs, &[]);
        assert!(rows[0].result.is_err());
        assert!(rows[1].result.is_ok());
    }
}

//! What an operator lets plugins have, and what a plugin has of it.

use crate::problem::Problem;
use reeve_api::{LimitOverrides, Reason};
use reeve_core::prune;
use reeve_engine::Limits;
use std::time::Duration;

/// The most that `Plugin.spec.limits` may ask for. Where it is less than a default,
/// it is the default too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitBounds(Bounded);

/// All that `Plugin.spec.limits` is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bounded {
    /// Limits of each call.
    call: Limits,
    /// Limits on what is deleted.
    deletion: prune::Policy,
}

/// All that can be kept.
const MOST: Bounded = Bounded {
    call: Limits::MOST,
    deletion: prune::Policy::MOST,
};

/// Why a bound cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// There is no such limit.
    #[error("there is no limit `{name}`; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// Nothing could run, or nothing could hold it.
    #[error("{name} is {value}; it must be between {least} and {most}")]
    OutOfRange {
        /// The limit.
        name: &'static str,
        /// The bound that was asked for.
        value: u64,
        /// The least that makes sense.
        least: u64,
        /// The most that the engine can keep.
        most: u64,
    },
}

/// One limit, by its name in `Plugin.spec.limits`.
struct Field {
    name: &'static str,
    /// The least with which a plugin can do anything.
    least: u64,
    asked: fn(&LimitOverrides) -> Option<u64>,
    get: fn(&Bounded) -> u64,
    set: fn(&mut Bounded, u64),
}

macro_rules! fields {
    ($part:ident: $($field:ident, $name:literal, $least:expr, $limit:ident;)*) => {
        &[$(Field {
            name: $name,
            least: $least,
            asked: |asked| asked.$field.map(u64::from),
            get: |limits| Amount::number(&limits.$part.$limit),
            set: |limits, number| limits.$part.$limit = Amount::of(number),
        }),*]
    };
}

/// Limits of each call.
const OF_CALLS: &[Field] = fields! {
    call:
    run_milliseconds, "runMilliseconds", 10, run_time;
    wall_milliseconds, "wallMilliseconds", 10, wall_time;
    memory_bytes, "memoryBytes", 64 << 10, memory_bytes;
    stack_bytes, "stackBytes", 64 << 10, stack_bytes;
    output_bytes, "outputBytes", 1 << 10, output_bytes;
    output_objects, "outputObjects", 1, output_objects;
    host_calls, "hostCalls", 1, host_calls;
    host_call_bytes, "hostCallBytes", 1 << 10, host_call_bytes;
    log_bytes, "logBytes", 0, log_bytes;
};

/// Limits on what is deleted, over all calls. Nothing is a limit too: a person approves
/// each deletion then.
const OF_DELETIONS: &[Field] = fields! {
    deletion:
    deletions_per_hour, "deletionsPerHour", 0, budget;
    deletion_percent, "deletionPercent", 0, plugin_share_percent;
};

fn fields() -> impl Iterator<Item = &'static Field> {
    OF_CALLS.iter().chain(OF_DELETIONS)
}

/// A limit as one number: times in milliseconds.
trait Amount {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Amount for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl Amount for usize {
    fn of(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }

    fn number(&self) -> u64 {
        u64::try_from(*self).unwrap_or(u64::MAX)
    }
}

impl Amount for u8 {
    fn of(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }

    fn number(&self) -> u64 {
        u64::from(*self)
    }
}

impl Amount for Duration {
    fn of(number: u64) -> Self {
        Self::from_millis(number)
    }

    fn number(&self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

fn names() -> String {
    let names: Vec<&str> = fields().map(|field| field.name).collect();
    names.join(", ")
}

/// The names of the limits of calls, as in `Plugin.spec.limits`.
pub(crate) fn limit_names() -> impl Iterator<Item = &'static str> {
    OF_CALLS.iter().map(|field| field.name)
}

impl Default for LimitBounds {
    /// All that can be kept.
    fn default() -> Self {
        Self(MOST)
    }
}

impl LimitBounds {
    /// Bounds a limit, by its name in `Plugin.spec.limits`.
    ///
    /// # Errors
    ///
    /// When there is no such limit, or no plugin could run with it, or it is more
    /// than the engine can keep.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), BoundError> {
        let Some(field) = fields().find(|field| field.name == name) else {
            return Err(BoundError::Unknown {
                name: name.to_owned(),
            });
        };
        let (least, most) = (field.least, (field.get)(&MOST));
        if !(least..=most).contains(&value) {
            return Err(BoundError::OutOfRange {
                name: field.name,
                value,
                least,
                most,
            });
        }
        (field.set)(&mut self.0, value);
        Ok(())
    }

    /// What a plugin gets that asks for this: for each call, and of deletions.
    pub(crate) fn limits(
        &self,
        asked: Option<&LimitOverrides>,
    ) -> Result<(Limits, prune::Policy), Problem> {
        let Bounded { call, deletion } = self.all(asked)?;
        Ok((call, deletion))
    }

    fn all(&self, asked: Option<&LimitOverrides>) -> Result<Bounded, Problem> {
        let mut limits = Bounded::default();
        for field in fields() {
            let most = (field.get)(&self.0);
            let asked = asked.and_then(field.asked);
            match asked {
                // An API server that knows the CRD lets nothing else through.
                Some(value) if value < field.least => {
                    return Err(refused(field, value, &format!("less than {}", field.least)));
                }
                Some(value) if value > most => {
                    return Err(refused(
                        field,
                        value,
                        &format!("more than {most}, the most that the operator allows"),
                    ));
                }
                Some(value) => (field.set)(&mut limits, value),
                None => {
                    let default = (field.get)(&limits);
                    (field.set)(&mut limits, default.min(most));
                }
            }
        }
        Ok(limits)
    }
}

fn refused(field: &Field, value: u64, why: &str) -> Problem {
    Problem::lasting(
        Reason::PolicyInvalid,
        format!("Plugin spec.limits.{}: {value} is {why}", field.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> LimitOverrides {
        LimitOverrides {
            run_milliseconds: Some(100),
            wall_milliseconds: Some(200),
            memory_bytes: Some(1 << 20),
            stack_bytes: Some(1 << 20),
            output_bytes: Some(2000),
            output_objects: Some(3),
            host_calls: Some(4),
            host_call_bytes: Some(5000),
            log_bytes: Some(0),
            deletions_per_hour: Some(7),
            deletion_percent: Some(8),
        }
    }

    #[test]
    fn a_plugin_gets_what_it_asks_for() {
        let (limits, deletions) = LimitBounds::default().limits(Some(&asked())).unwrap();
        let expected = Limits {
            run_time: Duration::from_millis(100),
            wall_time: Duration::from_millis(200),
            memory_bytes: 1 << 20,
            stack_bytes: 1 << 20,
            output_bytes: 2000,
            output_objects: 3,
            host_calls: 4,
            host_call_bytes: 5000,
            log_bytes: 0,
        };
        assert_eq!(limits, expected);
        let expected = prune::Policy {
            budget: 7,
            plugin_share_percent: 8,
            ..prune::Policy::default()
        };
        assert_eq!(deletions, expected);
        let nothing = LimitOverrides::default();
        for asked in [None, Some(&nothing)] {
            let limits = LimitBounds::default().limits(asked).unwrap();
            assert_eq!(limits, (Limits::default(), prune::Policy::default()));
        }
    }

    #[test]
    fn every_limit_has_a_bound() {
        for field in fields() {
            let mut bounds = LimitBounds::default();
            let bound = field.least + 1;
            bounds.set(field.name, bound).unwrap();
            // Nobody gets more by asking for nothing.
            let limits = bounds.all(None).unwrap();
            assert_eq!((field.get)(&limits), bound, "{}", field.name);
            let problem = bounds.limits(Some(&asked()));
            let value = (field.asked)(&asked()).unwrap();
            if value > bound {
                let problem = problem.unwrap_err();
                assert_eq!(problem.reason, Reason::PolicyInvalid);
                assert_eq!(
                    problem.message,
                    format!(
                        "Plugin spec.limits.{}: {value} is more than {bound}, the most that the operator allows",
                        field.name
                    )
                );
            } else {
                assert!(problem.is_ok(), "{}", field.name);
            }
        }
    }

    #[test]
    fn bounds_that_make_no_sense_are_refused() {
        let mut bounds = LimitBounds::default();
        for (name, value, expected) in [
            (
                "memory",
                1,
                "there is no limit `memory`; there are runMilliseconds, wallMilliseconds, memoryBytes, stackBytes, outputBytes, outputObjects, hostCalls, hostCallBytes, logBytes, deletionsPerHour, deletionPercent",
            ),
            (
                "memoryBytes",
                1,
                "memoryBytes is 1; it must be between 65536 and 1073741824",
            ),
            (
                "runMilliseconds",
                60_001,
                "runMilliseconds is 60001; it must be between 10 and 60000",
            ),
            (
                "deletionsPerHour",
                1000,
                "deletionsPerHour is 1000; it must be between 0 and 750",
            ),
        ] {
            let error = bounds.set(name, value).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(bounds, LimitBounds::default());
        let little = LimitOverrides {
            memory_bytes: Some(1),
            ..LimitOverrides::default()
        };
        let problem = bounds.limits(Some(&little)).unwrap_err();
        assert_eq!(
            problem.message,
            "Plugin spec.limits.memoryBytes: 1 is less than 65536"
        );
    }
}

//! What an operator lets plugins have, and what a plugin has of it.

use crate::problem::Problem;
use reeve_api::{LimitOverrides, Reason};
use reeve_core::prune;
use reeve_engine::{CompileLimits, Limits};
use std::time::Duration;

/// What an operator lets plugins have: the most that `Plugin.spec.limits` may ask for, and
/// whether manifests may have wildcards. Where the most is less than a default, it is the
/// default too.
///
/// No plugin may ask for more time and memory to compile than the engine gives to each,
/// unless a bound says so: the memory has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitBounds {
    most: Allowed,
    wildcards: bool,
}

/// All that `Plugin.spec.limits` is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Limits of each call.
    pub(crate) call: Limits,
    /// Limits on compiling its component.
    pub(crate) compile: CompileLimits,
    /// Limits on what is deleted.
    pub(crate) deletion: prune::Policy,
}

/// All that can be kept.
const MOST: Allowed = Allowed {
    call: Limits::MOST,
    compile: CompileLimits::MOST,
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
    get: fn(&Allowed) -> u64,
    set: fn(&mut Allowed, u64),
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

/// Limits on compiling, and on what is compiled.
const OF_COMPILING: &[Field] = fields! {
    compile:
    compile_milliseconds, "compileMilliseconds", 100, time;
    compile_memory_bytes, "compileMemoryBytes", 32 << 20, memory_bytes;
    component_bytes, "componentBytes", 1 << 10, component_bytes;
    imports, "imports", 1, imports;
    exports, "exports", 1, exports;
    definitions, "definitions", 1, definitions;
};

/// Limits on what is deleted, over all calls. Nothing is a limit too: a person approves
/// each deletion then.
const OF_DELETIONS: &[Field] = fields! {
    deletion:
    deletions_per_hour, "deletionsPerHour", 0, budget;
    deletion_percent, "deletionPercent", 0, plugin_share_percent;
};

fn fields() -> impl Iterator<Item = &'static Field> {
    OF_CALLS.iter().chain(OF_COMPILING).chain(OF_DELETIONS)
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
        // Up, since none is no bound.
        u64::try_from(self.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
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
    /// All that can be kept; nothing is said of what compiling costs.
    fn default() -> Self {
        let mut most = MOST;
        most.compile.time = Duration::ZERO;
        most.compile.memory_bytes = 0;
        Self {
            most,
            wildcards: false,
        }
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
        (field.set)(&mut self.most, value);
        Ok(())
    }

    /// Lets manifests declare every kind of a group and version at once. It stands for the
    /// kinds that are served when the plugin is loaded.
    pub fn allow_wildcards(&mut self) {
        self.wildcards = true;
    }

    pub(crate) fn allows_wildcards(&self) -> bool {
        self.wildcards
    }

    /// What a plugin gets that asks for this, where others are given so much to compile.
    pub(crate) fn limits(
        &self,
        asked: Option<&LimitOverrides>,
        compile: &CompileLimits,
    ) -> Result<Allowed, Problem> {
        let mut limits = Allowed {
            compile: compile.clone(),
            ..Allowed::default()
        };
        for field in fields() {
            let most = match (field.get)(&self.most) {
                0 if field.least > 0 => (field.get)(&limits),
                said => said,
            };
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
            compile_milliseconds: Some(900),
            compile_memory_bytes: Some(64 << 20),
            component_bytes: Some(5000),
            imports: Some(10),
            exports: Some(11),
            definitions: Some(12),
            deletions_per_hour: Some(7),
            deletion_percent: Some(8),
        }
    }

    #[test]
    fn a_plugin_gets_what_it_asks_for() {
        let usual = CompileLimits::default();
        let bounds = LimitBounds::default();
        let allowed = bounds.limits(Some(&asked()), &usual).unwrap();
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
        assert_eq!(allowed.call, expected);
        let expected = prune::Policy {
            budget: 7,
            plugin_share_percent: 8,
            ..prune::Policy::default()
        };
        assert_eq!(allowed.deletion, expected);
        let expected = CompileLimits {
            time: Duration::from_millis(900),
            memory_bytes: 64 << 20,
            component_bytes: 5000,
            imports: 10,
            exports: 11,
            definitions: 12,
            ..CompileLimits::default()
        };
        assert_eq!(allowed.compile, expected);
        let nothing = LimitOverrides::default();
        for asked in [None, Some(&nothing)] {
            let limits = bounds.limits(asked, &usual).unwrap();
            assert_eq!(limits, Allowed::default());
        }
    }

    #[test]
    fn what_compilers_get_is_the_operators_to_say() {
        let usual = CompileLimits {
            time: Duration::from_secs(5),
            ..CompileLimits::default()
        };
        let bounds = LimitBounds::default();
        assert_eq!(bounds.limits(None, &usual).unwrap().compile, usual);
        let asked = LimitOverrides {
            compile_milliseconds: Some(6000),
            ..LimitOverrides::default()
        };
        let problem = bounds.limits(Some(&asked), &usual).unwrap_err();
        assert_eq!(
            problem.message,
            "Plugin spec.limits.compileMilliseconds: 6000 is more than 5000, the most that the operator allows"
        );
        let mut more = bounds;
        more.set("compileMilliseconds", 7000).unwrap();
        let given = more.limits(Some(&asked), &usual).unwrap().compile;
        assert_eq!(given.time, Duration::from_secs(6));
        assert_eq!(more.limits(None, &usual).unwrap().compile, usual);
    }

    #[test]
    fn every_limit_has_a_bound() {
        for field in fields() {
            let mut bounds = LimitBounds::default();
            let bound = field.least + 1;
            bounds.set(field.name, bound).unwrap();
            // Nobody gets more by asking for nothing.
            let limits = bounds.limits(None, &CompileLimits::default()).unwrap();
            assert_eq!((field.get)(&limits), bound, "{}", field.name);
            let problem = bounds.limits(Some(&asked()), &CompileLimits::default());
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
                "there is no limit `memory`; there are runMilliseconds, wallMilliseconds, memoryBytes, stackBytes, outputBytes, outputObjects, hostCalls, hostCallBytes, logBytes, compileMilliseconds, compileMemoryBytes, componentBytes, imports, exports, definitions, deletionsPerHour, deletionPercent",
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
        let problem = bounds
            .limits(Some(&little), &CompileLimits::default())
            .unwrap_err();
        assert_eq!(
            problem.message,
            "Plugin spec.limits.memoryBytes: 1 is less than 65536"
        );
    }
}

//! What an operator lets plugins have, as flags of `reeve run`.

use crate::compile;
use clap::{ArgAction, Args};
use reeve_agent::{GuestThreads, LimitBounds};
use reeve_engine::{CompileLimits, EngineConfig};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The most that plugins may ask for.
#[derive(Args, Clone)]
pub(crate) struct LimitArgs {
    /// The most that a plugin may ask for in spec.limits, for example
    /// memoryBytes=268435456; may be given several times, or separated by commas
    #[arg(
        long,
        env = "REEVE_MAX_LIMIT",
        value_name = "LIMIT=NUMBER",
        value_delimiter = ',',
        value_parser = bound
    )]
    max_limit: Vec<(String, u64)>,
    /// Let plugins declare every kind of a group and version at once, by `*` in its place:
    /// those that are served when the plugin is loaded
    #[arg(
        long,
        env = "REEVE_ALLOW_WILDCARDS",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value_t = false,
        action = ArgAction::Set
    )]
    allow_wildcards: bool,
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> anyhow::Result<LimitBounds> {
        let mut bounds = LimitBounds::default();
        for (index, (name, value)) in self.max_limit.iter().enumerate() {
            if self.max_limit[..index]
                .iter()
                .any(|(other, _)| other == name)
            {
                anyhow::bail!("--max-limit: {name} is given twice; keep one of the two");
            }
            bounds
                .set(name, *value)
                .map_err(|error| anyhow::anyhow!("--max-limit: {error}"))?;
        }
        if self.allow_wildcards {
            bounds.allow_wildcards();
        }
        Ok(bounds)
    }
}

/// Bounds on what plugins use.
#[derive(Args)]
#[command(next_help_heading = "Bounds on plugins")]
pub(crate) struct BoundArgs {
    #[command(flatten)]
    limits: LimitArgs,
    /// Time to compile a component; a plugin may ask for more in spec.limits where
    /// --max-limit compileMilliseconds=NUMBER allows it
    #[arg(long, env = "REEVE_COMPILE_TIMEOUT", default_value = "60s", value_name = "DURATION", value_parser = crate::run::duration)]
    compile_timeout: Duration,
    /// Memory to compile a component, in bytes, on top of the program's own. The
    /// pod needs it beside the agent's, as it does what
    /// --max-limit compileMemoryBytes=NUMBER allows plugins to ask for
    #[arg(long, env = "REEVE_COMPILE_MEMORY", default_value_t = CompileLimits::MEMORY_BYTES, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(33_554_432..))]
    compile_memory: u64,
    /// Components that are compiled at once; each needs its memory
    #[arg(long, env = "REEVE_COMPILERS", default_value_t = CompileLimits::AT_ONCE, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    compilers: u32,
    /// Threads on which plugins run; by default four for each processor
    #[arg(long, env = "REEVE_GUEST_THREADS", value_name = "NUMBER")]
    guest_threads: Option<NonZeroUsize>,
    /// Threads on which one plugin runs; by default half as many as there are
    /// processors
    #[arg(long, env = "REEVE_GUEST_THREADS_PER_PLUGIN", value_name = "NUMBER")]
    guest_threads_per_plugin: Option<NonZeroUsize>,
}

impl BoundArgs {
    /// Settings of an engine that compiles in processes of its own.
    pub(crate) fn engine(&self, cache: Option<PathBuf>) -> io::Result<EngineConfig> {
        Ok(EngineConfig {
            cache,
            compile: CompileLimits {
                time: self.compile_timeout,
                memory_bytes: self.compile_memory,
                at_once: self.compilers,
                ..CompileLimits::default()
            },
            ..EngineConfig::new(compile::compiler()?)
        })
    }

    pub(crate) fn limits(&self) -> anyhow::Result<LimitBounds> {
        // The least that a plugin may be given, too.
        const LEAST: Duration = Duration::from_millis(100);
        if self.compile_timeout < LEAST {
            anyhow::bail!("compile-timeout: nothing would ever be compiled; use 100ms or more");
        }
        self.limits.limits()
    }

    pub(crate) fn threads(&self) -> GuestThreads {
        let (all, each) = GuestThreads::usual();
        GuestThreads::new(
            self.guest_threads.map_or(all, NonZeroUsize::get),
            self.guest_threads_per_plugin
                .map_or(each, NonZeroUsize::get),
        )
    }
}

/// `memoryBytes=268435456`.
fn bound(text: &str) -> Result<(String, u64), String> {
    let form = || "write it like memoryBytes=268435456".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    let value = value
        .parse::<u64>()
        .map_err(|error| format!("{error}; {}", form()))?;
    Ok((name.to_owned(), value))
}

//! Settings of an engine.

use crate::compiler::Compiler;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of an [`crate::Engine`], fixed for its life.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Folder for compiled components, made when it is missing. It must belong to
    /// this installation alone: whoever can write to it and read its key can run
    /// code as this process. Without it every start compiles everything anew.
    pub cache: Option<PathBuf>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Bounds on compiling one component, where nothing else is said of it.
    pub compile: CompileLimits,
    /// Instances that run at once on memory reserved beforehand. More than that
    /// run too, on memory that is mapped for each call, several times slower.
    /// Zero reserves nothing.
    pub max_instances: u32,
}

impl EngineConfig {
    /// More calls than this at once do not go faster on any machine that an agent
    /// is given; each takes 4 GiB of address space, which costs nothing until it
    /// is used.
    pub const MAX_INSTANCES: u32 = 128;

    /// The defaults, with no cache.
    pub fn new(compiler: Compiler) -> Self {
        Self {
            cache: None,
            compiler,
            compile: CompileLimits::default(),
            max_instances: Self::MAX_INSTANCES,
        }
    }
}

/// Bounds on compiling one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Size of the component.
    pub component_bytes: u64,
    /// Memory of the compiler, on top of what its program takes.
    pub memory_bytes: u64,
    /// Time of the compiler. With [`Compiler::InThisProcess`], time until a load
    /// gives up waiting.
    pub time: Duration,
    /// Imports of the component.
    pub imports: u64,
    /// Exports of the component.
    pub exports: u64,
    /// Types, functions, memories, tables, instances, aliases, imports, exports
    /// and so on of the component and of everything nested in it, added up.
    pub definitions: u64,
    /// Compilers that run at once; further loads wait for their turn. Zero stands
    /// for one.
    pub at_once: u32,
}

impl CompileLimits {
    /// Ten times a component made by an interpreted language's tool chain.
    pub const COMPONENT_BYTES: u64 = 32 << 20;
    /// Some times what such a component takes on one thread. The memory limit of
    /// the pod must have room for it beside the agent.
    pub const MEMORY_BYTES: u64 = 512 << 20;
    /// Such a component takes some ten seconds on one slow core.
    pub const TIME: Duration = Duration::from_secs(60);
    /// Twice the interfaces that there are to import.
    pub const IMPORTS: u64 = 100;
    /// A plugin needs one or two; some tool chains add interfaces of their own.
    pub const EXPORTS: u64 = 100;
    /// An interpreter with its libraries has some ten thousand functions, and as
    /// many types and table entries are never needed.
    pub const DEFINITIONS: u64 = 100_000;
    /// One more would need its memory too, and compilations are rare.
    pub const AT_ONCE: u32 = 1;

    /// The most that one plugin can be given, whatever an operator says.
    pub const MOST: Self = Self {
        // What a delivery may unpack to.
        component_bytes: Self::COMPONENT_BYTES,
        // Sixteen times the default; few nodes have more to spare for one compiler.
        memory_bytes: 8 << 30,
        // Nobody waits longer for a plugin to begin.
        time: Duration::from_secs(600),
        // Names alone: a hundred times what there is to import.
        imports: 10_000,
        exports: 10_000,
        definitions: 10_000_000,
        at_once: Self::AT_ONCE,
    };

    /// What is counted of a component itself, however long it takes to compile.
    pub(crate) fn counted(&self) -> [u64; 4] {
        [
            self.component_bytes,
            self.imports,
            self.exports,
            self.definitions,
        ]
    }
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            component_bytes: Self::COMPONENT_BYTES,
            memory_bytes: Self::MEMORY_BYTES,
            time: Self::TIME,
            imports: Self::IMPORTS,
            exports: Self::EXPORTS,
            definitions: Self::DEFINITIONS,
            at_once: Self::AT_ONCE,
        }
    }
}

/// What another process needs to know of the limits, as one argument of a command
/// line.
impl CompileLimits {
    pub(crate) fn to_argument(&self) -> String {
        [
            self.component_bytes,
            self.memory_bytes,
            u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            self.imports,
            self.exports,
            self.definitions,
        ]
        .map(|number| number.to_string())
        .join(",")
    }

    pub(crate) fn from_argument(text: &str) -> Option<Self> {
        let numbers: Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
        let [
            component_bytes,
            memory_bytes,
            millis,
            imports,
            exports,
            definitions,
        ] = numbers.ok()?.try_into().ok()?;
        Some(Self {
            component_bytes,
            memory_bytes,
            time: Duration::from_millis(millis),
            imports,
            exports,
            definitions,
            at_once: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_a_command_line() {
        let limits = CompileLimits::default();
        let text = limits.to_argument();
        assert_eq!(text, "33554432,536870912,60000,100,100,100000");
        assert_eq!(CompileLimits::from_argument(&text), Some(limits));
        for text in ["", "1,2,3", "1,2,3,4,5,x", "1,2,3,4,5,6,7", "-1,2,3,4,5,6"] {
            assert_eq!(CompileLimits::from_argument(text), None, "{text}");
        }
    }
}

//! Validating and compiling, wherever it is done.

use crate::config::CompileLimits;
use crate::load::LoadError;
use crate::world;

/// Validates a component and compiles it into what wasmtime can load.
///
/// Made for bytes of unknown origin; what it takes of time and memory is bounded by
/// whoever calls it.
///
/// # Errors
///
/// When the component is too large, has too many parts, is damaged, belongs to
/// another world, or cannot be compiled.
pub(crate) fn compile(
    engine: &wasmtime::Engine,
    bytes: &[u8],
    limits: &CompileLimits,
) -> Result<Vec<u8>, LoadError> {
    check_component(bytes, limits)?;
    engine
        .precompile_component(bytes)
        .map_err(|error| refusal(&error, limits))
}

/// Looks at a component as far as that goes without compiling it: whether it is one,
/// its size, the names of its imports and exports, and how much it defines.
///
/// # Errors
///
/// When the component is too large, has too many parts, is damaged, or belongs to
/// another world.
pub fn check_component(bytes: &[u8], limits: &CompileLimits) -> Result<(), LoadError> {
    let size = bytes.len() as u64;
    if size > limits.component_bytes {
        let limit = limits.component_bytes;
        return Err(LoadError::TooLarge { size, limit });
    }
    world::identify(bytes).map_err(|found| LoadError::NotAComponent { found })?;
    world::check(bytes, limits)
}

/// Tells what is wrong with the component from what the compiler cannot do.
fn refusal(error: &wasmtime::Error, limits: &CompileLimits) -> LoadError {
    let reason = error.root_cause().to_string();
    // Function bodies are validated while they are compiled, and then the type of
    // the error is private to wasmtime.
    if error.is::<wasmparser::BinaryReaderError>()
        || reason.starts_with("Invalid input WebAssembly code")
    {
        LoadError::Invalid { reason }
    } else if error.is::<wasmtime::error::OutOfMemory>() {
        LoadError::CompileMemory {
            limit: limits.memory_bytes,
        }
    } else {
        LoadError::Compile {
            reason: format!("{error:#}"),
        }
    }
}

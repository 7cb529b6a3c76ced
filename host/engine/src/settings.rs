//! How wasmtime is set up.
//!
//! What a guest may do and what an instruction gives is fixed here, not left to
//! defaults: an upgrade of wasmtime must not change what a plugin computes.

use crate::limits::Limits;
use std::num::NonZeroUsize;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

/// Stack of a guest of which nothing else is said.
pub(crate) const STACK_BYTES: usize = Limits::STACK_BYTES as usize;

/// What host functions have of the same stack, [`crate::View`] included: not much
/// less than on a thread of its own.
const HOST_STACK_BYTES: usize = 3 << 19;

/// Address space of each linear memory. With 4 GiB no access needs a bounds
/// check; pages that are not touched cost nothing.
const MEMORY_RESERVATION_BYTES: u64 = 4 << 30;

/// Room before and after a memory into which no access with a small constant
/// offset can miss.
const MEMORY_GUARD_BYTES: u64 = 32 << 20;

/// What an operator may raise a plugin's memory to.
pub(crate) const MEMORY_CEILING_BYTES: usize = 1 << 30;

/// Entries of one table in the pool. Plugins have one entry for each function
/// whose address is taken; those made by interpreted languages have some
/// thousand.
pub(crate) const TABLE_ENTRIES: usize = 20_000;

/// Core modules, memories and tables of one component. The Rust SDK
/// needs three, one and two; composed components need some times more.
pub(crate) const PER_COMPONENT: u32 = 20;

/// How deep into the guest's stack the report of a trap looks: as far as it is shown.
const BACKTRACE_FRAMES: usize = 2;

/// Memory of a slot that is cleared by writing zeroes when the slot is used
/// again, rather than given back to the system: the whole of a small guest, so
/// that most calls need no system call for it.
const KEEP_RESIDENT_BYTES: usize = 256 << 10;

/// Settings of the allocator that reserves slots beforehand.
pub(crate) fn pooled(max_instances: u32) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(max_instances)
        .total_core_instances(max_instances.saturating_mul(4))
        .total_memories(max_instances)
        .total_tables(max_instances.saturating_mul(4))
        .total_stacks(max_instances)
        .max_core_instances_per_component(PER_COMPONENT)
        .max_memories_per_component(PER_COMPONENT)
        .max_tables_per_component(PER_COMPONENT)
        .max_memory_size(MEMORY_CEILING_BYTES)
        // From Linux 6.7 on the kernel tells which pages were written, and only
        // those are cleared: a quarter of the time of a small call.
        .pagemap_scan(Enabled::Auto)
        .table_elements(TABLE_ENTRIES)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES)
        .max_unused_warm_slots(max_instances);
    let mut config = common(STACK_BYTES);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The stack that a guest gets for a limit. There are eight sizes, since each takes
/// an allocator of its own.
pub(crate) fn stack_for(limit: u64) -> usize {
    const LEAST: u64 = 64 << 10;
    let bytes = limit.clamp(LEAST, Limits::MOST.stack_bytes);
    usize::try_from(bytes.next_power_of_two()).unwrap_or(STACK_BYTES)
}

/// Settings of the allocator that maps memory for each call.
pub(crate) fn on_demand(stack_bytes: usize) -> Config {
    let mut config = common(stack_bytes);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Settings of a process that only compiles. It has one thread, so that a component
/// cannot take the processor from everything else, and so that the process can do
/// without the right to start others.
pub(crate) fn compiling() -> Config {
    let mut config = on_demand(STACK_BYTES);
    config.parallel_compilation(false);
    config
}

/// What decides about the machine code, and so must be the same for all: a
/// component is compiled once.
fn common(stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .parallel_compilation(true)
        .memory_reservation(MEMORY_RESERVATION_BYTES)
        .memory_guard_size(MEMORY_GUARD_BYTES)
        .memory_init_cow(true)
        .max_wasm_stack(stack_bytes)
        .async_stack_size(stack_bytes + HOST_STACK_BYTES)
        // A stack is only ever read where it has been written.
        .async_stack_zeroing(false)
        .epoch_interruption(true)
        // Nothing unwinds through a guest, and its traces go by frame pointers; to register
        // the tables would read the whole of them at each load.
        .native_unwind_info(false)
        // A trace names functions. The table that would add offsets into the component is a
        // tenth of an artifact.
        .generate_address_map(false)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES));
    pin_features(&mut config);
    config
}

/// The instructions that a guest may use, and their results.
fn pin_features(config: &mut Config) {
    config
        // Results that differ between machines would make a call impure.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .relaxed_simd_deterministic(true)
        .shared_memory(false)
        // What compilers of Rust, C, Go, JavaScript and Python emit today.
        .wasm_bulk_memory(true)
        .wasm_multi_value(true)
        .wasm_simd(true)
        .wasm_extended_const(true)
        .wasm_tail_call(true)
        .wasm_component_model(true)
        // Composed components have one memory for each part.
        .wasm_multi_memory(true)
        // Everything else is attack surface that no plugin needs.
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_have_few_sizes() {
        for (limit, stack) in [
            (0, 64 << 10),
            (64 << 10, 64 << 10),
            ((64 << 10) + 1, 128 << 10),
            (Limits::STACK_BYTES, STACK_BYTES),
            (1_000_000, 1 << 20),
            (u64::MAX, 8 << 20),
        ] {
            assert_eq!(stack_for(limit), stack, "{limit}");
        }
    }
}

//! Guests that mean harm: each is contained, the operator reads what it did, and
//! an honest plugin beside it goes on.
//!
//! What a call answers that makes no sense is in `bad_outcome`, what is no component
//! at all in `bad_delivery`; here is what goes for the machine. That a guest sees nothing
//! of the machine that could change its answer is in the engine's own tests.

mod flood;
mod graft;

use graft::Graft;
use reeve_engine::{CompileLimits, Compiler, CompilerProgram, Engine, EngineConfig};
use reeve_it::{World, core_reference, guest, plugin};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// What the honest plugin makes for a tenant.
fn honest(tenant: &str) -> Value {
    core_reference("LimitRange", tenant, "default-container-limits")
}

async fn install_honest(world: &World) {
    let component = [("plugin.wasm", plugin("limitranges"))];
    world.install("limitranges", &component, None).await;
}

/// Delivers a component that is to be refused, for this reason and in these words.
async fn refused_by(world: World, component: Vec<u8>, reason: &str, words: &[&str]) {
    install_honest(&world).await;
    world
        .install("bad", &[("plugin.wasm", component)], None)
        .await;
    world.settle().await;
    let loaded = world.plugin_condition("bad", "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", reason),
        "{loaded:?}"
    );
    for word in words {
        assert!(
            loaded.message.contains(word),
            "`{word}` is not in {loaded:?}"
        );
    }
    world.tenant("alice", &[]).await;
    world.settle().await;
    assert!(world.get(&honest("alice")).await.is_some());
}

async fn refused(component: Vec<u8>, reason: &str, words: &[&str]) {
    refused_by(World::started().await, component, reason, words).await;
}

macro_rules! refused {
    ($($name:ident: $component:expr => $reason:literal, $words:expr;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                refused($component, $reason, &$words).await;
            }
        )*
    };
}

// What can be told before anything runs.
refused! {
    a_hundred_and_one_imports: Graft::on_shell().imports(101)
        => "TooLarge", ["more than 100 imports"];
    five_thousand_exports: Graft::on_shell().exports(5_000)
        => "TooLarge", ["more than 100 exports"];
    a_hundred_thousand_types: Graft::on_shell().types(100_000)
        => "TooLarge", ["more than 100000 types, functions"];
    nine_hundred_instances: Graft::on_shell().instances("(module)", 900)
        => "TooLarge", ["no instance of the component can be made", "900 ", "exceeds"];
    thirty_memories: Graft::on_shell().instances("(module (memory 1))", 30)
        => "TooLarge", ["no instance of the component can be made", "30 ", "exceeds"];
    a_table_of_ten_million: Graft::on_shell().with("(module (table 10000000 funcref))")
        => "TooLarge", ["no instance of the component can be made", "table", "10000000"];
    a_name_that_fills_the_memory: Graft::on_shell()
        .with(&format!("(module (func ${}))", "a".repeat(70_000)))
        => "TooLarge", ["more than 65536 bytes in the name of a function"];
    shared_memory_for_threads: Graft::on_shell().with("(module (memory 1 1 shared))")
        => "CompileFailed", ["threads must be enabled"];
}

// What an instance does before the first call.
refused! {
    a_loop_at_the_start: Graft::on_plugin()
        .with("(module (func $f (loop br 0)) (start $f))")
        => "MetadataFailed", ["metadata: the plugin ", "time limit"];
    a_recursion_at_the_start: Graft::on_plugin()
        .with("(module (func $f call $f) (start $f))")
        => "MetadataFailed", ["metadata: the plugin used up its stack of 512 KiB"];
    a_trap_at_the_start: Graft::on_plugin()
        .with("(module (func $f unreachable) (start $f))")
        => "MetadataFailed", ["metadata: the plugin trapped: wasm trap: wasm `unreachable`"];
    a_large_memory: Graft::on_plugin().with("(module (memory 1100))")
        => "MetadataFailed", ["more than its memory limit of 64 MiB"];
    memories_that_are_large_together: Graft::on_plugin().instances("(module (memory 100))", 11)
        => "MetadataFailed", ["more than its memory limit of 64 MiB"];
    a_memory_that_grows: Graft::on_plugin().with(
        "(module (memory 1) (func $f (loop (drop (memory.grow (i32.const 16))) br 0)) (start $f))")
        => "MetadataFailed", ["more than its memory limit of 64 MiB"];
    a_table_that_grows: Graft::on_plugin().with(
        "(module (table 1 funcref)
            (func $f (loop
                (if (i32.eq (table.grow (ref.null func) (i32.const 5000)) (i32.const -1))
                    (then unreachable))
                br 0))
            (start $f))")
        => "MetadataFailed", ["metadata: the plugin trapped: wasm trap: wasm `unreachable`"];
    an_export_with_lines_of_its_own: Graft::on_shell().with(
        r#"(module (func) (export "a\0a\1b[2Kready" (func 0)) (export "a\0a\1b[2Kready" (func 0)))"#)
        => "CompileFailed", [r"a\n\u{1b}[2Kready"];
    a_forged_handle: Graft::on_plugin().component(&handles("(call $drop (i32.const 12345))"))
        => "MetadataFailed", ["metadata: the plugin trapped: ", "unknown handle index 12345"];
    a_handle_that_is_given_up_twice: Graft::on_plugin().component(&handles(
        "(local $one i32) (local.set $one (call $new (i32.const 7)))
         (call $drop (local.get $one)) (call $drop (local.get $one))"))
        => "MetadataFailed", ["metadata: the plugin trapped: ", "unknown handle index"];
    a_handle_of_another_kind: Graft::on_plugin().component(&handles(
        "(call $drop-other (call $new (i32.const 7)))"))
        => "MetadataFailed", ["metadata: the plugin trapped: ", "handle index", "wrong type"];
    data_beyond_its_memory: Graft::on_plugin()
        .with(r#"(module (memory 1) (data (i32.const 65536) "too far"))"#)
        => "MetadataFailed", ["metadata: the plugin trapped: ", "out of bounds memory access"];
}

/// A component that does this with handles when it starts.
fn handles(body: &str) -> String {
    format!(
        r#"(component
            (type $one (resource (rep i32)))
            (type $other (resource (rep i32)))
            (core func $new (canon resource.new $one))
            (core func $drop (canon resource.drop $one))
            (core func $drop-other (canon resource.drop $other))
            (core module $module
                (import "" "new" (func $new (param i32) (result i32)))
                (import "" "drop" (func $drop (param i32)))
                (import "" "drop-other" (func $drop-other (param i32)))
                (func $start {body})
                (start $start))
            (core instance $handles
                (export "new" (func $new))
                (export "drop" (func $drop))
                (export "drop-other" (func $drop-other)))
            (core instance (instantiate $module (with "" (instance $handles)))))"#
    )
}

/// Nothing in it is against a rule, so it runs: what is never called costs nothing.
#[tokio::test(start_paused = true)]
async fn a_thousand_nested_components_do_no_harm() {
    let world = World::started().await;
    install_honest(&world).await;
    let component = Graft::on_plugin().nested(1_000);
    world
        .install("deep", &[("plugin.wasm", component)], None)
        .await;
    world.settle().await;
    let loaded = world.plugin_condition("deep", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
}

/// An agent whose compiler is a process with these limits. The honest plugin has
/// been compiled before.
async fn with_compiler(cache: &Path, compile: CompileLimits) -> World {
    let compiler = CompilerProgram::new(env!("CARGO_BIN_EXE_it-compiler"), [""; 0]);
    let config = |compile| EngineConfig {
        cache: Some(cache.to_owned()),
        compile,
        max_instances: 0,
        ..EngineConfig::new(Compiler::Process(compiler.clone()))
    };
    let patient = Engine::new(config(CompileLimits::default())).unwrap();
    patient.load(plugin("limitranges").into()).await.unwrap();
    let mut world = World::new().await;
    world.start_on(Engine::new(config(compile)).unwrap());
    world
}

/// One function in which everything is alive everywhere.
fn slow_module() -> String {
    use std::fmt::Write as _;
    let locals = 500;
    let mut body = String::new();
    for block in 0..6_000 {
        let (a, b) = (block % locals, (block * 7 + 3) % locals);
        write!(
            body,
            "(if (local.get {a}) (then (local.set {b} (i32.load (local.get {a}))))
              (else (local.set {a} (i32.mul (local.get {b}) (local.get {a})))))"
        )
        .unwrap();
    }
    let locals = "i32 ".repeat(locals);
    format!("(module (memory 1) (func (local {locals}) {body}))")
}

#[tokio::test(start_paused = true)]
async fn a_component_that_compiles_slowly() {
    let cache = tempfile::tempdir().unwrap();
    let hasty = CompileLimits {
        time: Duration::from_millis(200),
        ..CompileLimits::default()
    };
    let world = with_compiler(cache.path(), hasty).await;
    let component = Graft::on_shell().with(&slow_module());
    let words = ["compiling the component takes longer than 0.2 s"];
    refused_by(world, component, "CompileFailed", &words).await;
}

#[tokio::test(start_paused = true)]
async fn a_component_that_compiles_in_much_memory() {
    let cache = tempfile::tempdir().unwrap();
    let frugal = CompileLimits {
        memory_bytes: 16 << 20,
        ..CompileLimits::default()
    };
    let world = with_compiler(cache.path(), frugal).await;
    let component = Graft::on_shell().with(&slow_module());
    let words = ["compiling the component takes more than 16 MiB of memory"];
    refused_by(world, component, "CompileFailed", &words).await;
}

/// A ConfigMap for each tenant: what the guests below are called for.
async fn trip(world: &World, name: &str) {
    world
        .apply(&reeve_test_support::samples::namespace(name))
        .await;
    world.apply(&core_reference("ConfigMap", name, name)).await;
}

/// Runs a guest on one ConfigMap, and checks what its unit says.
async fn unit_fails(name: &str, config: Value, reason: &str, words: &[&str]) {
    let world = World::started().await;
    install_honest(&world).await;
    trip(&world, "trip").await;
    let component = [("plugin.wasm", guest(name))];
    world.install(name, &component, Some(config)).await;
    world.settle().await;
    let ready = world.unit_condition(name, "trip", "Ready").await;
    assert_eq!(
        (&*ready.status, &*ready.reason),
        ("False", reason),
        "{ready:?}"
    );
    for word in words {
        assert!(ready.message.contains(word), "`{word}` is not in {ready:?}");
    }
    assert_eq!(
        world
            .get(&core_reference("ConfigMap", "trip", "sights"))
            .await,
        None
    );
    world.tenant("alice", &[]).await;
    world.settle().await;
    assert!(world.get(&honest("alice")).await.is_some());
}

macro_rules! unit_fails {
    ($($name:ident: $guest:literal $config:tt => $reason:literal, $words:expr;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                unit_fails($guest, json!($config), $reason, &$words).await;
            }
        )*
    };
}

unit_fails! {
    an_exit: "tourist" {"look": "exit"} => "Trapped", ["called exit(1)"];
    handles_that_leak: "tourist" {"look": "litter"} => "Trapped", ["no free keys"];
    much_randomness: "tourist" {"look": "gamble"} => "Trapped", ["exceeds limit 65536"];
    memory_at_once: "chameleon" {"reconcile": {"do": "grab", "bytes": 1_000_000_000}}
        => "LimitExceeded", ["more than its memory limit of 64 MiB"];
    an_argument_without_end: "chameleon" {"reconcile": {"do": "long-line", "bytes": 20_000_000}}
        => "LimitExceeded", ["passed more than 4 MiB to one host function"];
}

//! `reeve` as the compiler of components, which is confined.

use bytes::Bytes;
use reeve_engine::{CompileLimits, Compiler, CompilerProgram, Engine, EngineConfig};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn engine(memory_bytes: u64) -> Engine {
    let program = CompilerProgram::new(env!("CARGO_BIN_EXE_reeve"), ["compile-component"]);
    Engine::new(EngineConfig {
        compile: CompileLimits {
            memory_bytes,
            ..CompileLimits::default()
        },
        max_instances: 0,
        ..EngineConfig::new(Compiler::Process(program))
    })
    .unwrap()
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn plugin(name: &str) -> Bytes {
    std::fs::read(reeve_test_support::component(name))
        .unwrap()
        .into()
}

#[tokio::test]
async fn the_largest_component_compiles_within_the_limit() {
    let engine = engine(CompileLimits::default().memory_bytes);
    let component = engine.load(plugin("models")).await.unwrap();
    assert_eq!(component.size(), plugin("models").len());
}

/// The least that a limit may be is enough for a component of usual size.
#[tokio::test]
async fn a_small_component_compiles_within_the_least_limit() {
    engine(32 << 20).load(plugin("notebook")).await.unwrap();
}

/// What takes far more than the limit is refused.
#[tokio::test]
async fn a_component_does_not_compile_in_less_memory_than_it_takes() {
    use std::fmt::Write as _;
    // Everything is alive everywhere.
    let mut body = String::new();
    for block in 0..1_500 {
        let (a, b) = (block % 500, (block * 7 + 3) % 500);
        write!(
            body,
            "(if (local.get {a}) (then (local.set {b} (i32.load (local.get {a}))))
              (else (local.set {a} (i32.mul (local.get {b}) (local.get {a})))))"
        )
        .unwrap();
    }
    let locals = "i32 ".repeat(500);
    let text = format!(
        r#"(component
             (core module (memory 1) (func (local {locals}) {body}))
             (instance $api)
             (export "reeve:plugin/controller-api@0.1.0" (instance $api)))"#
    );
    let greedy: Bytes = wat::parse_str(text).unwrap().into();
    let error = engine(32 << 20).load(greedy).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "compiling the component takes more than 32 MiB of memory; make it smaller, or raise the limit"
    );
}

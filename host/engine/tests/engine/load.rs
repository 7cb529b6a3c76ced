//! What cannot be loaded, and what the operator then reads.

use crate::guests::{bytes, chameleon, config, engine};
use bytes::Bytes;
use reeve_core::Digest;
use reeve_engine::{CompileLimits, Engine, EngineConfig, LoadError};

async fn refused(bytes: impl Into<Bytes>) -> LoadError {
    engine().load(bytes.into()).await.unwrap_err()
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// An engine of its own, without a pool: cheap to make.
fn engine_with(compile: CompileLimits) -> Engine {
    Engine::new(EngineConfig {
        compile,
        max_instances: 0,
        ..config()
    })
    .unwrap()
}

#[tokio::test]
async fn a_component_knows_its_bytes() {
    let bytes = bytes("chameleon");
    let component = chameleon().await;
    assert_eq!(component.digest(), Digest::of(&bytes));
    assert_eq!(component.size(), bytes.len());
}

#[tokio::test]
async fn what_is_no_component_is_named() {
    const UNKNOWN: &str = "it does not start as WebAssembly does; name the built `.wasm` file";
    let module = component("(module)");
    let cases: [(&[u8], &str); 9] = [
        (b"", "it is empty; name the built `.wasm` file"),
        (
            &module,
            "it is a core WebAssembly module; encode it with `wasm-tools component new`",
        ),
        (
            b"\n(component)",
            "it is WebAssembly in text form; encode it with `wasm-tools parse`",
        ),
        (
            b"\x1f\x8b\x08rest",
            "it is a gzip stream; deliver it under the key `plugin.wasm.gz`",
        ),
        (
            b"\x28\xb5\x2f\xfdrest",
            "it is a zstd stream; deliver it under the key `plugin.wasm.zst`",
        ),
        (b"AGFzbQEAAAA=", "it is text; name the built `.wasm` file"),
        (b"\xff\xfe\0", UNKNOWN),
        (b"\0asm", UNKNOWN),
        (b"\0asm\x0d\0", UNKNOWN),
    ];
    for (bytes, reason) in cases {
        assert_eq!(
            refused(bytes.to_vec()).await.to_string(),
            format!("this is no WebAssembly component: {reason}"),
        );
    }
}

#[tokio::test]
async fn machine_code_from_outside_is_never_accepted() {
    let wasmtime = wasmtime::Engine::default();
    let code = wasmtime.precompile_component(&component("(component)"));
    assert_eq!(
        refused(code.unwrap()).await.to_string(),
        "this is no WebAssembly component: it is machine code compiled by wasmtime, which is never accepted; deliver the component itself",
    );
}

#[tokio::test]
async fn a_damaged_component_is_named_with_the_offset() {
    let mut damaged = bytes("tourist").to_vec();
    let middle = damaged.len() / 2;
    damaged.truncate(middle);
    let error = refused(damaged).await;
    assert!(matches!(error, LoadError::Invalid { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the component is not valid: "), "{text}");
    assert!(text.contains("offset 0x"), "{text}");
}

#[tokio::test]
async fn features_that_are_pinned_off_are_refused() {
    let cases = [
        ("(memory 1 1 shared)", "threads must be enabled"),
        ("(memory i64 1)", "memory64 must be enabled"),
        (
            "(func (param v128 v128) (result v128) local.get 0 local.get 1 i8x16.relaxed_swizzle)",
            "relaxed SIMD support is not enabled",
        ),
        ("(tag)", "exceptions proposal not enabled"),
        ("(type (struct))", "gc types are disabled"),
    ];
    for (field, reason) in cases {
        // With the right export, so that it gets as far as being compiled.
        let text = format!(
            r#"(component
                 (core module {field})
                 (instance $api)
                 (export "reeve:plugin/controller-api@0.1.0" (instance $api)))"#
        );
        let error = refused(component(&text)).await;
        assert!(matches!(error, LoadError::Invalid { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// With the right export, so that it gets as far as what is in it.
fn with_module(fields: &str) -> Vec<u8> {
    component(&format!(
        r#"(component
             (core module $m {fields})
             (core instance (instantiate $m))
             (instance $api)
             (export "reeve:plugin/controller-api@0.1.0" (instance $api)))"#
    ))
}

/// A trap copies them.
#[tokio::test]
async fn names_of_functions_have_a_length_that_people_read() {
    for (length, is_refused) in [(64 << 10, false), ((64 << 10) + 1, true)] {
        let name = "a".repeat(length);
        let error = refused(with_module(&format!("(func ${name})"))).await;
        let expected = "the component has more than 65536 bytes in the name of a function; build \
                        it without names for debugging";
        assert_eq!(error.to_string() == expected, is_refused, "{error}");
    }
}

#[tokio::test]
async fn what_no_instance_can_have_is_told_as_that() {
    for (fields, what) in [
        ("(memory 1)".repeat(21), "21"),
        ("(table 20001 funcref)".to_owned(), "20001"),
        ("(table 1 funcref)".repeat(21), "21"),
    ] {
        let error = refused(with_module(&fields)).await;
        assert!(matches!(error, LoadError::BeyondInstance { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(what), "{text}");
        assert!(
            text.contains("it may have 20 core instances, memories and tables, 20000 entries in a table and 1 GiB in a memory"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn another_world_is_named_item_by_item() {
    let api = "reeve:plugin/controller-api@0.1.0";
    let cases = [
        (
            "(component)".to_owned(),
            format!("it does not export `{api}`; build it for the world `controller` of `reeve:plugin`"),
        ),
        (
            r#"(component (instance $i) (export "reeve:plugin/controller-api@0.7.0" (instance $i)))"#
                .to_owned(),
            "it exports `reeve:plugin/controller-api@0.7.0`, but this version of reeve speaks reeve:plugin@0.1; build it with a matching SDK".to_owned(),
        ),
        (
            format!(
                r#"(component
                     (import "wasi:http/incoming-handler@0.2.0" (instance))
                     (import "wasi:clocks/wall-clock@0.3.0" (instance))
                     (import "reeve:plugin/teapot@0.1.0" (instance))
                     (import "acme:db/client" (instance))
                     (instance $i) (export "{api}" (instance $i)))"#
            ),
            "it imports `wasi:http/incoming-handler@0.2.0`, which a plugin cannot have; of `wasi:http` 0.2 it may import `outgoing-handler` and `types`; \
             it imports `wasi:clocks/wall-clock@0.3.0`, which a plugin cannot have; WASI 0.2 is there, other versions are not; \
             it imports `reeve:plugin/teapot@0.1.0`, which a plugin cannot have; it belongs to a version of the contract that this reeve does not speak; \
             it imports `acme:db/client`, which a plugin cannot have; plugins import interfaces of `reeve:plugin` and WASI 0.2 only".to_owned(),
        ),
    ];
    for (text, reason) in cases {
        let error = refused(component(&text)).await.to_string();
        assert_eq!(error, format!("the component does not fit: {reason}"));
    }
}

#[tokio::test]
async fn wrong_types_are_named_with_their_function() {
    let api = "reeve:plugin/controller-api@0.1.0";
    // Functions of these names, all without parameters and with a number as result.
    let functions = |names: &[&str]| {
        let exports: String = names
            .iter()
            .map(|name| format!(r#"(export "{name}" (func $f))"#))
            .collect();
        format!(
            r#"(component
                 (core module $m (func (export "f") (result i32) unreachable))
                 (core instance $c (instantiate $m))
                 (func $f (result u32) (canon lift (core func $c "f")))
                 (instance $i {exports})
                 (export "{api}" (instance $i)))"#
        )
    };
    let cases = [
        (
            functions(&["describe", "metadata", "reconcile"]),
            [
                "`metadata` of `reeve:plugin",
                "expected `record` found `u32`",
            ],
        ),
        (
            functions(&["other"]),
            [api, "does not export the function `metadata`"],
        ),
        (
            format!(
                r#"(component
                     (import "reeve:plugin/clock@0.1.0" (instance (export "now" (func (result string)))))
                     (instance $i) (export "{api}" (instance $i)))"#
            ),
            ["reeve:plugin/clock@0.1.0", "now"],
        ),
    ];
    for (text, parts) in cases {
        let error = refused(component(&text)).await;
        assert!(matches!(error, LoadError::WrongWorld { .. }), "{error}");
        for part in parts {
            assert!(
                error.to_string().contains(part),
                "{error} should name {part}"
            );
        }
    }
}

#[tokio::test]
async fn a_large_component_is_not_even_looked_at() {
    let engine = engine_with(CompileLimits {
        component_bytes: 1 << 10,
        ..CompileLimits::default()
    });
    let error = engine.load(Bytes::from(vec![0; 1025])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the component has 1025 bytes, more than the limit of 1 KiB; build it for size and without debug information"
    );
}

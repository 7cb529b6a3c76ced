//! The compiler as a process: what it may, what becomes of one that fails.

use crate::guests::{World, bytes, compiler, config, limits, request};
use bytes::Bytes;
use reeve_engine::{
    CompileLimits, Compiler, CompilerProgram, Engine, EngineConfig, EngineError, LoadError,
};
use serde_json::json;
use std::error::Error as _;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An engine of its own, without a pool: cheap to make.
fn engine_with(compiler: Compiler, compile: CompileLimits) -> Engine {
    Engine::new(EngineConfig {
        compile,
        max_instances: 0,
        ..EngineConfig::new(compiler)
    })
    .unwrap()
}

/// A component of the right world with one function that is so large that it takes
/// seconds to compile and much memory.
fn slow() -> Bytes {
    large(6_000)
}

fn large(blocks: usize) -> Bytes {
    use std::fmt::Write as _;
    // Each block reads and writes all locals, so that everything is alive
    // everywhere.
    let locals = 500;
    let mut body = String::new();
    for block in 0..blocks {
        let (a, b, c) = (
            block % locals,
            (block * 7 + 3) % locals,
            (block * 13 + 5) % locals,
        );
        write!(
            body,
            "(if (local.get {a}) (then (local.set {b} (i32.add (local.get {c}) (i32.load (local.get {a})))))
              (else (local.set {c} (i32.mul (local.get {b}) (local.get {a})))))"
        )
        .unwrap();
    }
    let locals = "i32 ".repeat(locals);
    let text = format!(
        r#"(component
             (core module (memory 1) (func (local {locals}) {body}))
             (instance $api)
             (export "reeve:plugin/controller-api@0.1.0" (instance $api)))"#
    );
    wat::parse_str(text).unwrap().into()
}

#[tokio::test]
async fn what_a_process_compiled_runs() {
    let engine = engine_with(compiler(), CompileLimits::default());
    let component = engine.load(bytes("tourist")).await.unwrap();
    let called = component
        .reconcile(request(&json!({})), Arc::new(World::default()), &limits())
        .await;
    assert!(called.unwrap().value.is_ok());
    assert_eq!(engine.stats().compiled, 1);
}

/// Linux has had seccomp since 2012, and the processors here have a table of its
/// calls. Landlock can be switched off.
#[test]
#[cfg(target_os = "linux")]
fn the_engine_says_what_confines_its_compiler() {
    let engine = engine_with(compiler(), CompileLimits::default());
    let confinement = engine.confinement().unwrap();
    assert!(confinement.system_calls);
    let text = confinement.to_string();
    assert!(text.starts_with("resource limits, "), "{text}");
    assert!(text.ends_with(", seccomp"), "{text}");

    let engine = engine_with(Compiler::InThisProcess, CompileLimits::default());
    assert_eq!(engine.confinement(), None);
}

#[tokio::test]
async fn a_slow_compiler_is_ended_and_the_next_load_has_its_turn() {
    let engine = engine_with(
        compiler(),
        CompileLimits {
            time: Duration::from_millis(300),
            ..CompileLimits::default()
        },
    );
    let slow = slow();
    for _ in 0..2 {
        let before = Instant::now();
        let error = engine.load(slow.clone()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "compiling the component takes longer than 0.3 s; make it smaller, or raise the limit"
        );
        assert!(error.retries());
        assert!(before.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(engine.stats().compiled, 2, "each time anew");
}

/// Each load has bounds of its own: nobody is refused for what another may not, and nobody
/// is given what they may not have because another may.
#[tokio::test]
async fn loads_within_other_bounds_do_not_decide_for_each_other() {
    let engine = engine_with(compiler(), CompileLimits::default());
    let usual = CompileLimits::default();
    let hasty = CompileLimits {
        time: Duration::from_millis(300),
        ..usual.clone()
    };
    let narrow = CompileLimits {
        imports: 1,
        ..usual.clone()
    };
    // At the same time, so that one finds the other's compiler at work.
    let slow = slow();
    let (patient, ended) = tokio::join!(
        async {
            // Not the first, which is the one that compiles.
            while engine.stats().compiled == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            engine.load_within(slow.clone(), usual.clone()).await
        },
        engine.load_within(slow.clone(), hasty.clone()),
    );
    let limit = hasty.time;
    assert_eq!(ended.unwrap_err(), LoadError::CompileTimeout { limit });
    // It was compiled, and is no plugin.
    let refused = patient.unwrap_err();
    assert!(matches!(refused, LoadError::WrongWorld { .. }), "{refused}");

    let tourist = bytes("tourist");
    let held = engine.load(tourist.clone()).await.unwrap();
    assert!(engine.loaded(held.digest(), &usual).is_some());
    // What is there costs nothing.
    assert!(engine.loaded(held.digest(), &hasty).is_some());
    assert!(engine.loaded(held.digest(), &narrow).is_none());
    let refused = engine.load_within(tourist, narrow).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("the component has more than 1 imports"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_load_that_nobody_waits_for_frees_its_turn() {
    let engine = engine_with(compiler(), CompileLimits::default());
    let slow = slow();
    let loading = tokio::spawn({
        let (engine, slow) = (engine.clone(), slow.clone());
        async move { engine.load(slow).await.map(drop) }
    });
    // It has its turn before the other asks.
    while engine.stats().compiled == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    loading.abort();
    assert!(loading.await.unwrap_err().is_cancelled());
    let before = Instant::now();
    engine.load(bytes("tourist")).await.unwrap();
    assert!(before.elapsed() < CompileLimits::TIME / 2);
}

#[tokio::test]
async fn a_compiler_that_needs_too_much_memory_is_ended() {
    let engine = engine_with(
        compiler(),
        CompileLimits {
            memory_bytes: 16 << 20,
            ..CompileLimits::default()
        },
    );
    let error = engine.load(slow()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "compiling the component takes more than 16 MiB of memory; make it smaller, or raise the limit"
    );
    assert!(!error.retries());
}

#[tokio::test]
async fn a_compiler_that_crashes_is_a_load_that_fails() {
    // A program that starts well enough to be probed.
    let script = format!(
        r#"if [ "$(head -c 4 | tail -c 3)" = asm ]; then echo boom >&2; kill -SEGV $$; fi; exec "{}" "$0" </dev/null"#,
        env!("CARGO_BIN_EXE_reeve-compiler")
    );
    let crashing = Compiler::Process(CompilerProgram::new("/bin/sh", ["-c", &script]));
    let engine = engine_with(crashing, CompileLimits::default());
    let error = engine.load(bytes("tourist")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the compiler crashed on the component: it was ended by signal 11 (SIGSEGV): boom; it may have been built to do that, otherwise this is a bug of wasmtime"
    );
    assert!(!error.retries());
}

#[test]
fn a_compiler_that_does_not_run_is_told_at_once() {
    for (program, expected) in [
        (
            CompilerProgram::new("/nowhere/compiler", [""; 0]),
            "No such file",
        ),
        (
            CompilerProgram::new("/bin/false", [""; 0]),
            "it ended with code 1",
        ),
        (
            CompilerProgram::new("/bin/sh", ["-c", "echo I am no compiler >&2; exit 2"]),
            "it ended with code 2: I am no compiler",
        ),
    ] {
        let error = Engine::new(EngineConfig {
            max_instances: 0,
            ..EngineConfig::new(Compiler::Process(program))
        })
        .unwrap_err();
        assert!(matches!(error, EngineError::Compiler { .. }), "{error:?}");
        assert_eq!(error.to_string(), "cannot run the compiler");
        let source = error.source().unwrap().to_string();
        assert!(source.starts_with(expected), "{source}");
    }
}

/// What a compiler leaves behind when it is asked without a component, by hand.
#[test]
fn the_compiler_answers_and_ends() {
    let run = |argument: &str, input: &[u8]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_reeve-compiler"))
            .arg(argument)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nobody reads the input of one that gives up at once.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    };
    let damaged = b"\0asm\x0d\0\x01\0\xff";
    let output = run("1000,536870912,60000,100,100,100", damaged);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout[0], b'R');
    assert_eq!(output.stdout[3], b'I', "{output:?}");

    let output = run("1000,536870912,60000,100,100,100", &[0; 2000]);
    assert_eq!(output.stdout[3], b'L', "{output:?}");

    let output = run("rubbish", b"");
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.starts_with("this is started by reeve itself"),
        "{words}"
    );

    // No time at all: the limit on processor time is the process's own.
    let output = run("99999999,536870912,0,100,100,1000000", &slow());
    let signal = output.status.signal();
    assert!(
        matches!(signal, Some(libc::SIGXCPU | libc::SIGKILL)),
        "{output:?}"
    );
}

#[tokio::test]
async fn in_this_process_a_slow_compilation_is_not_waited_for_and_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    let engine = Engine::new(EngineConfig {
        cache: Some(place.path().to_owned()),
        compile: CompileLimits {
            time: Duration::ZERO,
            ..CompileLimits::default()
        },
        max_instances: 0,
        ..EngineConfig::new(Compiler::InThisProcess)
    })
    .unwrap();
    let error = engine.load(large(300)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "compiling the component takes longer than 0 s; make it smaller, or raise the limit"
    );
    assert!(error.retries());

    // However often somebody asks, it is compiled once, and then found.
    let bytes = bytes("tourist");
    while engine.stats().cached == 0 {
        let _ = engine.load(bytes.clone()).await;
    }
    assert_eq!(engine.stats().compiled, 2);
}

/// Both ways to the same machine code, so that one cache serves both.
#[tokio::test]
async fn both_ways_make_the_same() {
    let place = tempfile::tempdir().unwrap();
    for (compiler, compiled) in [(compiler(), 1), (Compiler::InThisProcess, 0)] {
        let engine = Engine::new(EngineConfig {
            cache: Some(place.path().to_owned()),
            compiler,
            max_instances: 0,
            ..config()
        })
        .unwrap();
        engine.load(bytes("tourist")).await.unwrap();
        assert_eq!(engine.stats().compiled, compiled);
    }
}

/// What the component does with the compiler is the component's: what is counted of
/// it is counted before anything is compiled.
#[tokio::test]
async fn a_component_of_too_many_parts_is_refused() {
    let small = CompileLimits {
        imports: 2,
        exports: 2,
        definitions: 40,
        ..CompileLimits::default()
    };
    let engine = engine_with(compiler(), small);
    let import = |n: u32| format!(r#"(import "wasi:io/poll{n}@0.2.0" (instance))"#);
    let export = |n: u32| format!(r#"(instance $e{n}) (export "a:b/c{n}" (instance $e{n}))"#);
    let parts = |part: &dyn Fn(u32) -> String, n: u32| (0..n).map(part).collect::<String>();
    let nested = |n: u32| (0..n).fold(String::new(), |inner, _| format!("(component {inner})"));
    for (text, expected) in [
        (
            parts(&import, 3),
            "the component has more than 2 imports; a plugin imports interfaces of `reeve:plugin` and WASI 0.2 only, each once",
        ),
        (
            parts(&export, 3),
            "the component has more than 2 exports; a plugin exports an interface of `reeve:plugin`, and little else",
        ),
        (
            parts(&|_| "(type (func))".to_owned(), 41),
            "the component has more than 40 types, functions, instances and other definitions, those of nested components included; leave out what it does not need",
        ),
        (
            format!(
                "(core module {})",
                parts(&|_| "(type (func))".to_owned(), 40)
            ),
            "the component has more than 40 types, ",
        ),
        (nested(41), "the component has more than 40 types, "),
        (nested(20), "the component does not fit: "),
    ] {
        let bytes = wat::parse_str(format!("(component {text})")).unwrap();
        let error = engine.load(bytes.into()).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// What the kernel says of a compiler that waits for its component: nothing is open that was
/// handed on, and no limit is as it was.
#[test]
#[cfg(target_os = "linux")]
fn a_compiler_has_what_it_needs_and_no_more() {
    use std::io::Read as _;
    let limits = "1000,536870912,5000,1,1,1";
    let mut child = Command::new("/bin/sh")
        .args(["-c", r#"exec 7</dev/null 9>/dev/null; exec "$0" "$@""#])
        .args([env!("CARGO_BIN_EXE_reeve-compiler"), limits])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It says how it is confined, and it is.
    let mut first = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    let of = |what: &str| format!("/proc/{}/{what}", child.id());
    let mut open: Vec<String> = std::fs::read_dir(of("fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    open.sort();
    assert_eq!(open, ["0", "1", "2"]);
    let said = std::fs::read_to_string(of("limits")).unwrap();
    let hard_and_soft = |name: &str| -> Vec<String> {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        let words = line
            .unwrap_or_else(|| panic!("no {name}: {said}"))
            .split_whitespace();
        words.take(2).map(str::to_owned).collect()
    };
    for (name, most) in [
        ("Max cpu time", "6"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max processes", "0"),
        ("Max open files", "0"),
    ] {
        assert_eq!(hard_and_soft(name), [most, most], "{name}");
    }
    let memory: u64 = hard_and_soft("Max address space")[1].parse().unwrap();
    // What the program itself has mapped comes on top.
    assert!((512 << 20..4 << 30).contains(&memory), "{memory}");
    let killed_first = std::fs::read_to_string(of("oom_score_adj")).unwrap();
    assert_eq!(killed_first.trim(), "1000");
    child.kill().unwrap();
    child.wait().unwrap();
}

//! A version that answers differently when it is asked the same does not take over.
//!
//! No guest can do that: nothing that changes reaches it. Only machine code can that is
//! not what was compiled, as a compiler would return that was taken over. Here somebody
//! with the key of the cache puts such code there: where the component computes with a
//! constant, it draws a number from the processor.

use crate::upgrades::{set_policy, status};
use reeve_core::Digest;
use reeve_engine::{Compiler, Engine, EngineConfig};
use reeve_it::{NAMESPACE, World, core_reference, guest};
use reeve_test_support::skipped;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A constant of the guest's deed `nan-bits`, which nothing else of it computes with.
const CONSTANT: u64 = 0xfff8_0000_0000_1234;

fn engine(cache: &Path) -> Engine {
    let config = EngineConfig {
        cache: Some(cache.to_owned()),
        max_instances: 0,
        ..EngineConfig::new(Compiler::InThisProcess)
    };
    Engine::new(config).unwrap()
}

/// What the cache knows its entries by: HMAC-SHA256 over the digest of name and contents.
fn mac(key: &[u8], name: &str, contents: &[u8]) -> [u8; 32] {
    let hash = |parts: &[&[u8]]| *Digest::of(&parts.concat()).bytes();
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        for (padded, key) in block.iter_mut().zip(key) {
            *padded ^= key;
        }
        block
    };
    let entry = hash(&[name.as_bytes(), contents]);
    let inner = hash(&[&pad(0x36), &entry]);
    hash(&[&pad(0x5c), &inner])
}

/// Puts a random number that is neither negative nor infinite into the register into
/// which an instruction loads the constant. Returns how many such instructions there are.
fn draw(code: &mut [u8]) -> usize {
    let mut found = 0;
    for at in 0..code.len().saturating_sub(9) {
        let [rex, opcode, constant @ ..] = &code[at..at + 10] else {
            continue;
        };
        let (rex, register) = (*rex, opcode.wrapping_sub(0xb8));
        // movabs register, constant
        if matches!(rex, 0x48 | 0x49) && register < 8 && constant == CONSTANT.to_le_bytes() {
            let instead = [
                // rdrand register
                &[rex, 0x0f, 0xc7, 0xf0 | register][..],
                // shr register, 2
                &[rex, 0xc1, 0xe8 | register, 2],
                // nop
                &[0x66, 0x90],
            ];
            code[at..at + 10].copy_from_slice(&instead.concat());
            found += 1;
        }
    }
    found
}

/// Alters a component in a cache, as if the cache itself had.
fn alter(cache: &Path, component: &[u8]) {
    let key = fs::read(cache.join("key")).unwrap();
    let digest = Digest::of(component).hex();
    let names = fs::read_dir(cache).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let name = names.find(|name| name.starts_with(&digest)).unwrap();
    let mut entry = fs::read(cache.join(&name)).unwrap();
    let (seal, code) = entry.split_at_mut(32);
    assert_eq!(*seal, mac(&key, &name, code), "entries are made otherwise");
    assert!(draw(code) > 0, "the constant is loaded otherwise");
    seal.copy_from_slice(&mac(&key, &name, code));
    fs::write(cache.join(name), entry).unwrap();
}

fn can_draw() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("rdrand");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Of two versions of one component, the second computes with the constant.
async fn deliver(world: &World, deed: &str) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": deed},
    });
    let component = [("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
    world.settle().await;
}

async fn fleet(cache: &Path) -> World {
    let mut world = World::new().await;
    world.start_on(engine(cache));
    for name in ["ann", "bob"] {
        world.tenant(name, &[]).await;
    }
    world.allow("chameleon").await;
    deliver(&world, "echo").await;
    world
}

async fn data(world: &World) -> Option<Value> {
    let object = core_reference("ConfigMap", "ann", "chameleon-ann");
    Some(world.get(&object).await?["data"].clone())
}

#[tokio::test(start_paused = true)]
async fn what_answers_differently_does_not_take_over() {
    if !can_draw() {
        skipped("this processor has no `rdrand`, with which code answers differently");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let first = engine(cache.path());
    first.load(guest("chameleon").into()).await.unwrap();

    // As it was compiled, it may.
    let world = fleet(cache.path()).await;
    deliver(&world, "nan-bits").await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    assert_eq!(data(&world).await.unwrap()["4"], "7ff8000000000000");
    drop(world);

    alter(cache.path(), &guest("chameleon"));
    let world = fleet(cache.path()).await;
    let before = data(&world).await;
    assert!(before.is_some(), "what does not compute with it is well");
    for shadow in ["Enforce", "Off"] {
        set_policy(&world, json!({"shadow": shadow})).await;
        deliver(&world, "nan-bits").await;
        let loaded = world.plugin_condition("chameleon", "Loaded").await;
        assert_eq!(
            (&*loaded.status, &*loaded.reason),
            ("False", "NotDeterministic"),
            "{loaded:?}"
        );
        for text in [
            "asked twice about Profile ann on the same inputs, the new version answers \
             differently: objects[0] is another text",
            "a fault of it, or of the sandbox",
        ] {
            assert!(loaded.message.contains(text), "{text}: {loaded:?}");
        }
        // Nothing is to be approved, and what ran goes on.
        assert!(!loaded.message.contains("approve"), "{loaded:?}");
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(ready.status, "True", "{ready:?}");
        let object = core_reference("ConfigMap", "ann", "chameleon-ann");
        world.delete(&object).await;
        world.settle().await;
        assert_eq!(data(&world).await, before);
        assert_eq!(status(&world).await["units"]["ready"], 2);
    }
    let like = core_reference("Event", NAMESPACE, "");
    let mut events = world.list(&like).await;
    events.retain(|event| event["reason"] == "NotDeterministic");
    assert!(!events.is_empty(), "the Plugin has an event of it");
}

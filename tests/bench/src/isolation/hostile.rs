//! Plugins that mean harm, each in a way of its own.

use crate::setup::{Fixed, guest, large_profile, plugin, request};
use crate::wasm;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use reeve_agent::{AgentConfig, GuestThreads, PluginThreads};
use reeve_core::{Desired, GroupVersionKind, Manifest, ObjectReference};
use reeve_engine::{Component, Engine, Limits, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Calls that a hostile plugin has under way, of which few run at once: all the runs that
/// an agent makes at a time.
const CALLS: usize = AgentConfig::CONCURRENCY;

/// Objects in a list, for one that lists without end.
const LISTED: usize = 100;

/// How long a component has to keep its compiler busy to count as slow: some times as
/// long as it is measured without a break.
const SLOW: Duration = Duration::from_secs(1);

/// How calls end that neither fault nor are refused.
const ANSWERED: &str = "answered";

/// One kind of harm.
pub(super) struct Hostile {
    /// What it does, after `one that`.
    pub(super) what: &'static str,
    work: Work,
}

enum Work {
    /// None at all, to see what the machine alone does to the figures.
    Nothing,
    /// It is called again and again.
    Calls(Arc<Calls>),
    /// It is compiled again and again.
    Loads { engine: Engine, component: Bytes },
}

struct Calls {
    component: Component,
    request: Request,
    view: Arc<Fixed>,
    manifest: Arc<Manifest>,
    /// What an operator reads of one call, or [`ANSWERED`].
    end: &'static str,
}

/// What the guest `chameleon` is told to do, and how that ends.
fn deeds() -> [(&'static str, Value, &'static str); 15] {
    let objects =
        |count: usize, bytes: usize| json!({"do": "objects", "count": count, "bytes": bytes});
    [
        ("loops", json!({"do": "loop"}), "ran for more than"),
        (
            "calls itself without end",
            json!({"do": "recurse"}),
            "used up its stack",
        ),
        (
            "allocates without end",
            json!({"do": "hoard"}),
            "memory limit",
        ),
        (
            "asks for 1 GB of memory at once",
            json!({"do": "grab", "bytes": 1_000_000_000}),
            "memory limit",
        ),
        (
            "calls the host without end",
            json!({"do": "call-flood", "calls": u64::MAX}),
            "called the host more than",
        ),
        (
            "lists without end",
            json!({"do": "read-flood", "kind": "Secret.v1"}),
            "read more than",
        ),
        (
            // Just less than the calls that it has.
            "logs 99,000 lines",
            json!({"do": "log-flood", "lines": 99_000}),
            ANSWERED,
        ),
        (
            "logs a line of 20 MB",
            json!({"do": "long-line", "bytes": 20_000_000}),
            "passed more than",
        ),
        (
            "returns an object of 8 MiB",
            objects(1, 8 << 20),
            "output limit",
        ),
        (
            "returns 50,000 objects",
            objects(50_000, 10),
            "output limit",
        ),
        ("returns as much as it may", objects(1_000, 4_000), ANSWERED),
        (
            "returns a million lists in one another",
            json!({"do": "nested", "depth": 1_000_000}),
            "recursion limit",
        ),
        (
            "fails",
            json!({"do": "fail", "how": "retry", "text": "as told"}),
            "as told",
        ),
        ("traps", json!({"do": "trap"}), "unreachable"),
        (
            "panics",
            json!({"do": "panic", "text": "as told"}),
            "as told",
        ),
    ]
}

/// What the guest `tourist` is told to look at, and how that ends.
const LOOKS: [(&str, &str, &str); 3] = [
    ("exits", "exit", "called exit(1)"),
    ("opens handles without end", "litter", "no free keys"),
    (
        "asks for 1 MB of random bytes",
        "gamble",
        "exceeds limit 65536",
    ),
];

/// Modules that are put into an honest plugin, how many instances of them it has then,
/// and how its calls end.
fn grafts() -> [(&'static str, Vec<u8>, usize, &'static str); 3] {
    [
        (
            "grows its memory page by page",
            wasm::growing_memory(),
            1,
            "memory limit",
        ),
        (
            // Eleven of them are within the limit.
            "fills memories of 6 MB until it may not",
            wasm::filled_memory(90),
            12,
            "memory limit",
        ),
        // The pool has 20 tables of this size for a component, which needs some itself.
        ("fills 17 tables", wasm::filled_table(20_000), 17, ANSWERED),
    ]
}

impl Hostile {
    /// All of them.
    pub(super) async fn all(engine: &Engine) -> Result<Vec<Self>> {
        let chameleon = engine.load(guest("chameleon")?).await?;
        let tourist = engine.load(guest("tourist")?).await?;
        let mut config = json!({
            "primary": "Profile.v1.kubeflow.org",
            // The second is what the plugin below writes that others are put into.
            "writes": ["ConfigMap.v1", "LimitRange.v1"],
            "scope": "namespace-named-like-primary",
        });
        let declared = Bytes::from(config.to_string());
        let described = chameleon.describe(declared, &Limits::default()).await?;
        let manifest = Arc::new(Manifest::try_from(described.value?)?);
        let profile = large_profile();
        let view = Arc::new(Fixed {
            listed: vec![Bytes::from(profile.to_string()); LISTED],
        });
        let called = |what, component: &Component, config: &Value, end| Self {
            what,
            work: Work::Calls(Arc::new(Calls {
                component: component.clone(),
                request: Request {
                    config: Bytes::from(config.to_string()),
                    ..request(&profile)
                },
                view: view.clone(),
                manifest: manifest.clone(),
                end,
            })),
        };
        let mut all = vec![Self {
            what: "does nothing",
            work: Work::Nothing,
        }];
        for (what, deed, end) in deeds() {
            config["reconcile"] = deed;
            all.push(called(what, &chameleon, &config, end));
        }
        for (what, look, end) in LOOKS {
            all.push(called(what, &tourist, &json!({"look": look}), end));
        }
        let honest = plugin("limitranges")?;
        for (what, module, count, end) in grafts() {
            let bytes = wasm::graft(&honest, &module, count).context("no component")?;
            let component = engine.load(bytes.into()).await?;
            all.push(called(what, &component, &json!({}), end));
        }
        let slow = wasm::graft(&honest, &wasm::slow(), 0).context("no component")?;
        all.push(Self {
            what: "compiles slowly",
            work: Work::Loads {
                engine: engine.clone(),
                component: slow.into(),
            },
        });
        Ok(all)
    }

    /// Whether it only shows what the others are to be compared with.
    pub(super) fn is_harmless(&self) -> bool {
        matches!(self.work, Work::Nothing)
    }

    /// Sees that it does what it is said to do.
    pub(super) async fn probe(&self) -> Result<()> {
        match &self.work {
            Work::Nothing => {}
            Work::Calls(calls) => {
                let limits = Limits {
                    // Enough for everything that ends by itself.
                    run_time: Duration::from_secs(1),
                    ..Limits::default()
                };
                let threads = GuestThreads::default().of_plugin();
                let end = match calls.make(limits, &threads).await {
                    Ok(_) => ANSWERED.to_owned(),
                    Err(error) => format!("{error:#}"),
                };
                let what = self.what;
                ensure!(end.contains(calls.end), "one that {what} ends with: {end}");
            }
            Work::Loads { engine, component } => {
                let load = engine.load(component.clone());
                let soon = tokio::time::timeout(SLOW, load).await;
                ensure!(soon.is_err(), "it compiled within {SLOW:?}: {soon:?}");
            }
        }
        Ok(())
    }

    /// Does harm until it is dropped.
    pub(super) fn attack(&self, threads: &PluginThreads) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        match &self.work {
            Work::Nothing => {}
            Work::Calls(calls) => {
                for _ in 0..CALLS {
                    let (calls, threads) = (calls.clone(), threads.clone());
                    tasks.spawn(async move {
                        loop {
                            // What becomes of it was looked at before.
                            let _ = calls.make(Limits::default(), &threads).await;
                        }
                    });
                }
            }
            Work::Loads { engine, component } => {
                let (engine, component) = (engine.clone(), component.clone());
                tasks.spawn(async move {
                    loop {
                        // A compiler is ended at its limit at the latest.
                        let _ = engine.load(component.clone()).await;
                    }
                });
            }
        }
        tasks
    }
}

impl Calls {
    /// Makes a call as the agent does: on a thread of its plugin, where what the guest answers
    /// is checked as well.
    async fn make(&self, limits: Limits, threads: &PluginThreads) -> Result<Desired> {
        let (component, request) = (self.component.clone(), self.request.clone());
        let (view, manifest) = (self.view.clone(), self.manifest.clone());
        let call = async move {
            let called = component.reconcile(request, view, &limits).await?;
            Ok(called.map(|answer| {
                let primary = ObjectReference {
                    kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                    namespace: None,
                    name: "alice".to_owned(),
                };
                anyhow::Ok(Desired::check(answer?, &manifest, &primary, |_| true)?)
            }))
        };
        threads.run_judged(call, Result::is_err).await?.value
    }
}

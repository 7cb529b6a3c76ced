//! What goes wrong around an agent that runs on a real API server: it converges after
//! each fault, and asks for no more than that takes.
//!
//! Elsewhere: outages of the API server (`story`), of etcd and of the agent's token, and
//! definitions that go and come back (`bad_input`), agents that are stopped or killed
//! (`ha`, `crashes`), clocks that jump (`ha`), requests that arrive late or twice (`late`).

#[expect(dead_code, reason = "late requests are another story")]
mod gate;
mod stage;
mod writer;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use reeve_test_support::samples;
use serde_json::json;

use gate::Gate;
use stage::{NAMESPACE, PLUGIN, Requests, Stage};
use writer::Writer;

/// Watches of the agent: its own four (ConfigMaps twice, Plugins, Units), Profiles and
/// quotas. Whatever breaks, each lists or connects anew a few times at most.
const WATCHES: usize = 6;

/// Writes that a changed Profile may cost while something is amiss: the quota, once more
/// when the first was lost or refused, and a Unit and an event that tell of it and go.
const WRITES: usize = 6;

/// Bytes that all faults together may cost for good: what allocators keep.
const MEMORY: u64 = 6 << 20;

/// Long enough for the agent to have heard, if it could.
const A_WHILE: Duration = Duration::from_secs(3);

#[test]
fn the_agent_converges_after_each_fault_and_asks_for_no_more_than_that_takes() -> Result<()> {
    let mut stage = Stage::new()?;
    let before = stage.memory()?;
    connections_that_break_cost_no_lists(&mut stage)?;
    silent_watches_are_no_news_of_their_own(&mut stage)?;
    versions_that_are_too_old_are_listed_once(&mut stage)?;
    a_namespace_that_goes_is_waited_for(&mut stage)?;
    rights_that_are_taken_and_given_back(&mut stage)?;
    an_api_server_that_fails(&mut stage)?;
    admission_that_changes_what_is_sent(&mut stage)?;
    somebody_who_writes_without_end(&mut stage)?;
    let after = stage.memory()?;
    eprintln!("{before} bytes before the faults, {after} after them");
    ensure!(after < before + MEMORY, "{before} bytes became {after}");
    an_api_server_that_has_too_much_to_do(&mut stage)
}

/// What a fault may cost. A write whose connection breaks is sent once more.
#[derive(Clone, Copy)]
struct Cost {
    lists: usize,
    watches: usize,
    writes: usize,
}

/// Lets a fault happen, and holds it to what it may cost.
fn costing(
    stage: &mut Stage,
    most: Cost,
    fault: impl FnOnce(&mut Stage) -> Result<()>,
) -> Result<Requests> {
    let (before, start) = (stage.requests()?, Instant::now());
    fault(stage)?;
    let asked = stage.requests()?.since(before);
    eprintln!("{asked:?} in {:.1} s", start.elapsed().as_secs_f32());
    ensure!(
        asked.lists <= most.lists && asked.watches <= most.watches && asked.writes <= most.writes,
        "{asked:?}, which is too much"
    );
    Ok(asked)
}

/// Watches go on where they were.
fn connections_that_break_cost_no_lists(stage: &mut Stage) -> Result<()> {
    let most = Cost {
        lists: 0,
        watches: 3 * WATCHES,
        writes: 3 * WRITES,
    };
    let asked = costing(stage, most, |stage| {
        for profile in ["ann", "bob", "cleo"] {
            stage.proxy.reset();
            let pods = stage.ask(profile)?;
            stage.wait_for_pods(profile, &pods)?;
        }
        Ok(())
    })?;
    // Nothing counted would be within any cost.
    ensure!(
        asked.writes >= 3 && asked.watches > 0,
        "not all of it was counted: {asked:?}"
    );
    Ok(())
}

/// What nobody tells of is not known, and not taken for anything else either; what was
/// missed is told when the connection breaks.
fn silent_watches_are_no_news_of_their_own(stage: &mut Stage) -> Result<()> {
    let most = Cost {
        lists: 0,
        watches: 2 * WATCHES,
        writes: WRITES,
    };
    costing(stage, most, |stage| {
        let before = stage.pods("ann")?;
        stage.proxy.silence();
        let pods = stage.ask("ann")?;
        sleep(A_WHILE);
        ensure!(stage.pods("ann")? == before, "it was not silent");
        stage.proxy.reset();
        stage.wait_for_pods("ann", &pods)
    })
    .map(drop)
}

/// An API server that has started anew does not know how things were before.
fn versions_that_are_too_old_are_listed_once(stage: &mut Stage) -> Result<()> {
    let most = Cost {
        lists: 2 * WATCHES,
        watches: 4 * WATCHES,
        writes: WRITES,
    };
    let asked = costing(stage, most, |stage| {
        stage.proxy.close();
        stage.ask("bob")?;
        let pods = stage.ask("bob")?;
        stage.cluster.stop_api_server();
        stage.cluster.start_api_server()?;
        stage.proxy.open();
        stage.wait_for_pods("bob", &pods)?;
        stage.wait_for_readiness(true)
    })?;
    ensure!(asked.lists > 0, "nothing was too old: {asked:?}");
    Ok(())
}

fn a_namespace_that_goes_is_waited_for(stage: &mut Stage) -> Result<()> {
    // Watches that were backing off come back only now.
    let most = Cost {
        lists: WATCHES,
        watches: 2 * WATCHES,
        writes: 3 * WRITES,
    };
    costing(stage, most, |stage| {
        stage.cluster.kubectl(&["delete", "namespace", "cleo"])?;
        stage.wait_until_said("cleo", Some(("NamespaceAbsent", "cleo")))?;
        // Somebody else is none the worse for it.
        let pods = stage.ask("ann")?;
        stage.wait_for_pods("ann", &pods)?;
        let pods = stage.ask("cleo")?;
        stage.cluster.apply_objects(&[samples::namespace("cleo")])?;
        stage.wait_for_pods("cleo", &pods)?;
        stage.wait_until_said("cleo", None)
    })
    .map(drop)
}

fn rights_that_are_taken_and_given_back(stage: &mut Stage) -> Result<()> {
    let binding = |whose: &str| format!("reeve-plugin-{NAMESPACE}.{PLUGIN}-{whose}");
    // What the plugin's account may do. The plugin is put aside without it, and what it
    // watches is listed once more when it is back.
    let most = Cost {
        lists: WATCHES,
        watches: WATCHES,
        writes: 3 * WRITES,
    };
    costing(stage, most, |stage| {
        let delete = ["delete", "clusterrolebinding", &binding("account")];
        stage.cluster.kubectl(&delete)?;
        let (before, pods) = (stage.pods("ann")?, stage.ask("ann")?);
        stage.wait_until_said("ann", Some(("Forbidden", "resourcequotas")))?;
        ensure!(stage.pods("ann")? == before);
        stage.grant()?;
        stage.wait_for_pods("ann", &pods)?;
        stage.wait_until_said("ann", None)
    })?;
    // What the agent may see; a watch that is open goes on, so it has to break.
    let most = Cost {
        lists: 20,
        watches: 4 * WATCHES,
        writes: WRITES,
    };
    costing(stage, most, |stage| {
        let delete = ["delete", "clusterrolebinding", &binding("agent")];
        stage.cluster.kubectl(&delete)?;
        stage.proxy.reset();
        let before = stage.pods("bob")?;
        let pods = stage.ask("bob")?;
        sleep(A_WHILE);
        ensure!(stage.pods("bob")? == before, "it saw what it may not");
        // Nothing of what it cannot see is taken for gone.
        let quotas = stage.cluster.kubectl(&[
            "get",
            "resourcequotas",
            "-A",
            "-l",
            "reeve.dev/plugin",
            "-o",
            "name",
        ])?;
        ensure!(quotas.lines().count() == stage::PROFILES.len(), "{quotas}");
        stage.grant()?;
        stage.wait_for_pods("bob", &pods)
    })
    .map(drop)
}

/// A webhook that nobody answers makes 500s of all writes.
fn an_api_server_that_fails(stage: &mut Stage) -> Result<()> {
    let most = Cost {
        lists: 0,
        watches: WATCHES,
        writes: 3 * WRITES,
    };
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "broken"},
        "webhooks": [{
            "name": "broken.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["resourcequotas"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    costing(stage, most, |stage| {
        stage.cluster.apply_objects(&[webhook])?;
        sleep(A_WHILE);
        let pods = stage.ask("bob")?;
        stage.wait_until_said("bob", Some(("ApplyFailed", "broken.example.com")))?;
        let delete = ["delete", "validatingwebhookconfiguration", "broken"];
        stage.cluster.kubectl(&delete)?;
        stage.wait_for_pods("bob", &pods)?;
        stage.wait_until_said("bob", None)
    })
    .map(drop)
}

/// What admission makes of a field of ours is how it stays.
fn admission_that_changes_what_is_sent(stage: &mut Stage) -> Result<()> {
    let api = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "few-pods"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["resourcequotas"],
                "operations": ["CREATE", "UPDATE"],
            }]},
            "matchConditions": [{"name": "cleo", "expression": "object.metadata.namespace == 'cleo'"}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'replace', path: '/spec/hard/pods', value: '3'}]",
            }}],
        },
    });
    let binding = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "few-pods"}, "spec": {"policyName": "few-pods"},
    });
    stage.cluster.apply_objects(&[policy, binding])?;
    // It is in force a moment after it is there.
    sleep(A_WHILE);
    stage.ask("cleo")?;
    stage.wait_for_pods("cleo", "3")?;
    let most = Cost {
        lists: 0,
        watches: WATCHES,
        writes: 2,
    };
    costing(stage, most, |stage| {
        stage.ask("cleo")?;
        sleep(A_WHILE);
        ensure!(stage.pods("cleo")? == "3", "admission is not in force");
        stage.wait_until_said("cleo", None)
    })?;
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        stage.cluster.kubectl(&["delete", kind, "few-pods"])?;
    }
    sleep(A_WHILE);
    let pods = stage.ask("cleo")?;
    stage.wait_for_pods("cleo", &pods)
}

/// Who changes what the plugin does not want is in nobody's way, and who changes what it
/// does is answered more and more rarely.
fn somebody_who_writes_without_end(stage: &mut Stage) -> Result<()> {
    let annotates =
        |number: u64| json!({"metadata": {"annotations": {"writer": number.to_string()}}});
    let most = Cost {
        lists: 0,
        watches: WATCHES,
        writes: 3 * WRITES,
    };
    costing(stage, most, |stage| {
        let writer = Writer::on_quota(&stage.cluster, "ann", annotates)?;
        writer.wait_for(10)?;
        for _ in 0..3 {
            let pods = stage.ask("ann")?;
            stage.wait_for_pods("ann", &pods)?;
        }
        writer.wait_for(30)
    })?;
    // What is overwritten is written down, and the journal listed to keep it short.
    let most = Cost {
        lists: 2,
        writes: 6 * WRITES,
        ..most
    };
    costing(stage, most, |stage| {
        let pods = stage.pods("ann")?;
        let fights = |_: u64| json!({"spec": {"hard": {"pods": "7"}}});
        let writer = Writer::on_quota(&stage.cluster, "ann", fights)?;
        writer.wait_for(10)?;
        sleep(2 * A_WHILE);
        // Somebody else is none the worse for it.
        let others = stage.ask("bob")?;
        stage.wait_for_pods("bob", &others)?;
        drop(writer);
        stage.wait_for_pods("ann", &pods)
    })
    .map(drop)
}

/// Who is told to come back later does, at that time and not before, and what was not
/// done meanwhile is.
fn an_api_server_that_has_too_much_to_do(stage: &mut Stage) -> Result<()> {
    let gate = Gate::start(&stage.cluster)?;
    stage.go_through(&gate)?;
    let most = Cost {
        lists: 0,
        watches: 2 * WATCHES,
        writes: 3 * WRITES,
    };
    costing(stage, most, |stage| {
        let before = stage::PROFILES.map(|profile| stage.pods(profile));
        gate.refuse(Some(2));
        let mut asked = Vec::new();
        for profile in stage::PROFILES {
            asked.push((profile, stage.ask(profile)?));
        }
        sleep(A_WHILE);
        let refused = gate.refused();
        ensure!(refused.writes > 0, "nothing was written: {refused:?}");
        // Now watches come back, too, and are refused.
        gate.reset();
        sleep(2 * A_WHILE);
        for (before, (profile, _)) in before.into_iter().zip(&asked) {
            ensure!(stage.pods(profile)? == before?, "{profile} was not refused");
        }
        let refused = gate.refused();
        gate.refuse(None);
        for (profile, pods) in &asked {
            stage.wait_for_pods(profile, pods)?;
        }
        stage.wait_until_said("bob", None)?;
        stage.wait_for_readiness(true)?;
        eprintln!("{refused:?}");
        ensure!(
            refused.requests >= 3 + WATCHES && refused.early == 0,
            "{refused:?}"
        );
        Ok(())
    })
    .map(drop)
}

//! Every part goes away and comes back while Profiles converge.

use anyhow::{Result, ensure};
use reeve_real::eventually;

use crate::expected::{APPLICATIONS, NETWORK_POLICIES, QUOTAS, VOLUMES};
use crate::stage::{Stage, text};
use reeve_test_platform::{NAMESPACE, PLUGINS, Tenant, World};

/// Whoever makes a role waits for this.
const LOCK: &str = "BEGIN; LOCK TABLE pg_authid IN SHARE MODE;";

/// Makes all Profiles, in two halves. As long as the databases are locked, no half is at
/// its end: so each part is away in the middle of it.
pub(crate) fn each_part_is_away_while_they_come(
    stage: &mut Stage,
    tenants: &[Tenant],
    world: &World,
) -> Result<()> {
    let second = |(index, tenant): (usize, &Tenant)| {
        // Who comes second finds that its container is taken.
        (index % 3 == 2 || tenant.is_twin, tenant.clone())
    };
    let (second, first): (Vec<_>, Vec<_>) = tenants
        .iter()
        .enumerate()
        .map(second)
        .partition(|(second, _)| *second);
    let [first, second] = [first, second].map(|half| {
        half.into_iter()
            .map(|(_, tenant)| tenant)
            .collect::<Vec<_>>()
    });
    let locks = [
        stage.platform.databases[0].hold(LOCK)?,
        stage.platform.databases[1].hold(LOCK)?,
    ];

    stage.platform.add(&first)?;
    some_are_there(stage, 5)?;
    stage.kill_agent()?;
    some_are_there(stage, first.len() / 3)?;
    stage.platform.cluster.stop_api_server();
    stage.platform.cluster.start_api_server()?;
    some_are_there(stage, first.len() / 2)?;
    stage.platform.cluster.stop_etcd();
    stage.platform.cluster.start_etcd()?;
    stage.wait_for_kind(QUOTAS, &first, world)?;
    is_not_at_its_end(stage)?;
    // So that there are answers that stay.
    stage.wait_for_kind(VOLUMES, &first, world)?;

    stage.platform.storage.stop();
    for gateway in &mut stage.platform.gateways {
        gateway.stop();
    }
    stage.platform.add(&second)?;
    stage.wait_for_kind(NETWORK_POLICIES, tenants, world)?;
    only_containers_are_waited_for(stage, &second, world)?;
    is_not_at_its_end(stage)?;
    stage.platform.storage.resume()?;
    for gateway in &mut stage.platform.gateways {
        gateway.resume()?;
    }
    stage.wait_for_kind(VOLUMES, tenants, world)?;
    is_not_at_its_end(stage)?;
    // The sessions that hold the locks end with the servers.
    for database in &mut stage.platform.databases {
        database.stop();
    }
    drop(locks);
    for database in &mut stage.platform.databases {
        database.resume()?;
    }
    Ok(())
}

/// Waits until so many Profiles have something.
fn some_are_there(stage: &Stage, count: usize) -> Result<()> {
    stage.explained(eventually(&format!("{count} quotas are there"), || {
        let found = stage.objects_of_plugins(QUOTAS)?.len();
        ensure!(found >= count, "{found}");
        Ok(())
    }))
}

fn is_not_at_its_end(stage: &Stage) -> Result<()> {
    let found = stage.objects_of_plugins(APPLICATIONS)?;
    let gitea = found.keys().find(|(_, name)| name.starts_with("gitea-"));
    ensure!(gitea.is_none(), "there is {gitea:?} without a database");
    Ok(())
}

/// With neither storage nor gateways, those who come have the volumes that the last answers
/// give them, and none of a container that nobody has made.
fn only_containers_are_waited_for(stage: &Stage, late: &[Tenant], world: &World) -> Result<()> {
    let wanted = late
        .iter()
        .flat_map(|tenant| crate::expected::of(tenant, world))
        .filter(|wanted| wanted.kind == VOLUMES && wanted.name.contains("-fdi-"));
    let mut wanted: Vec<String> = wanted.map(|wanted| wanted.name).collect();
    wanted.sort();
    ensure!(!wanted.is_empty());
    stage.explained(eventually("volumes of the last answers are there", || {
        let found = stage.objects_of_plugins(VOLUMES)?;
        let found = found.into_iter().filter(|(_, volume)| {
            let profile = text(&volume["metadata"]["labels"]["kubeflow-profile"]);
            late.iter().any(|tenant| tenant.name == profile)
        });
        let mut found: Vec<String> = found.map(|((_, name), _)| name).collect();
        found.sort();
        ensure!(found == wanted, "{found:?}, not {wanted:?}");
        Ok(())
    }))
}

/// An agent that finds all as it should be has nothing to do.
pub(crate) fn a_restart_writes_nothing(stage: &mut Stage, tenants: &[Tenant]) -> Result<()> {
    let before = stage.platform.cluster.audit_log()?.len();
    stage.kill_agent()?;
    stage.explained(eventually("all units have run", || {
        let (_, metrics) = stage.agent()?.ask("/metrics")?;
        for (plugin, _) in PLUGINS {
            let of = format!("reeve_units{{plugin=\"{plugin}\",state=\"");
            let counts = metrics.lines().filter_map(|line| line.strip_prefix(&of));
            let run: usize = counts
                .filter_map(|line| line.split_once("\"} "))
                .filter(|(state, _)| *state != "unknown")
                .filter_map(|(_, count)| count.parse::<usize>().ok())
                .sum();
            ensure!(run == tenants.len(), "{run} of {plugin}");
        }
        Ok(())
    }))?;
    let account = format!("system:serviceaccount:{NAMESPACE}:");
    let events = stage.platform.cluster.audit_log()?.split_off(before);
    let writes: Vec<String> = events
        .iter()
        .filter(|event| text(&event["impersonatedUser"]["username"]).starts_with(&account))
        .map(|event| {
            let about = &event["objectRef"];
            let (what, namespace) = (text(&about["resource"]), text(&about["namespace"]));
            format!(
                "{} {what} {namespace}/{}",
                text(&event["verb"]),
                text(&about["name"])
            )
        })
        .collect();
    eprintln!("{} writes after a restart", writes.len());
    ensure!(writes.is_empty(), "{writes:#?}");
    Ok(())
}

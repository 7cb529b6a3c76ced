//! Outside effects of many units, beside a bare loop that has the same ones: a role and
//! a database for each tenant, in a PostgreSQL on this machine.

use crate::converge::agent;
use crate::figure::{Figures, median};
use crate::postgres::{CONNECTIONS, connect};
use crate::setup::guest;
use crate::world::{AGENT, NAMESPACE, World, apply, grantee, profile_name};
use anyhow::Result;
use bytes::Bytes;
use futures::future::try_join_all;
use reeve_core::grant;
use reeve_engine::{Compiler, Engine, EngineConfig};
use reeve_outside::Secret;
use reeve_outside::scram::verifier;
use reeve_real::Postgres;
use reeve_sim::{Config, Server};
use reeve_test_support::http::Certificate;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio_postgres::Client;

const PROFILES: usize = 200;
const ROUNDS: u32 = 8;
const PLUGIN: &str = "envoy";
const PASSWORD: &str = "of the administrator";
const SECRET: &str = "postgres-admin";

/// Deletes what the tenants have.
const CLEAR: &str = r"
SELECT format('DROP DATABASE %I', datname) FROM pg_database WHERE datname LIKE 'reeve\_%' \gexec
SELECT format('DROP ROLE %I', rolname) FROM pg_roles WHERE rolname LIKE 'reeve\_%' \gexec
";

struct Outside {
    server: Postgres,
    roots: String,
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let certificate = Certificate::of(&["localhost"])?;
    let outside = tokio::task::spawn_blocking(move || {
        let (roots, key) = (certificate.pem, certificate.key_pem);
        let server = Postgres::start(&roots, &key, PASSWORD)?;
        anyhow::Ok(Outside { server, roots })
    });
    let outside = Arc::new(outside.await??);
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let component = guest(PLUGIN)?;
    let (mut bare, mut full, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (loop_time, agent_time) = if round.count_ones() % 2 == 0 {
            let loop_time = by_loop(&outside).await?;
            (loop_time, by_agent(&outside, &engine, &component).await?)
        } else {
            let agent_time = by_agent(&outside, &engine, &component).await?;
            (by_loop(&outside).await?, agent_time)
        };
        // The first round warms the server up.
        if round > 0 {
            bare.push(loop_time);
            full.push(agent_time);
            ratios.push(agent_time / loop_time);
        }
    }
    let ratio = full.iter().sum::<f64>() / bare.iter().sum::<f64>();
    let each = |name: &str| format!("{name}, {PROFILES} roles with a database each, median");
    figures.plain(&each("bare loop"), median(&mut bare), "s");
    figures.plain(&each("agent"), median(&mut full), "s");
    figures.plain(
        "agent / bare loop, median of the rounds",
        median(&mut ratios),
        "",
    );
    figures.limited("agent / bare loop, all rounds together", ratio, "", 1.3);
    tokio::task::spawn_blocking(move || drop(outside)).await?;
    Ok(())
}

/// Seconds that an agent takes from its start to the last unit that is ready: with the
/// Secrets, the records and the reports that belong to the effects.
async fn by_agent(outside: &Arc<Outside>, engine: &Engine, component: &Bytes) -> Result<f64> {
    let cluster = Server::new(Config::default());
    let mut world = World::install(cluster.client(), engine, []).await?;
    let admin = json!({
        "host": "localhost",
        "port": outside.server.port().to_string(),
        "username": Postgres::ADMIN,
        "password": PASSWORD,
        "ca.crt": outside.roots,
    });
    let policy = json!({"capabilities": {"sql": [
        {"name": "main", "secret": {"name": SECRET}, "addresses": ["127.0.0.0/8"]},
    ]}});
    let named = |kind: &str, name: &str| {
        json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
        })
    };
    let mut secret = named("Secret", SECRET);
    secret["stringData"] = admin;
    let mut plugin = named("Plugin", PLUGIN);
    plugin["apiVersion"] = json!("reeve.dev/v1alpha1");
    plugin["spec"] = policy;
    let secrets = BTreeSet::from([(NAMESPACE.to_owned(), SECRET.to_owned())]);
    let granted = grant::secrets(&grantee(PLUGIN), &secrets);
    for object in [secret, plugin].iter().chain(&granted) {
        apply(world.admin(), object).await?;
    }
    let config = json!({"database": true});
    world
        .add(engine, PLUGIN, component.clone(), &config)
        .await?;
    world.populate(PROFILES).await?;
    let client = cluster.client_as(AGENT, ["system:authenticated"]);
    let (_, time) = agent(&client, engine, world.units()).await?;
    outside.clear().await?;
    Ok(time)
}

/// Seconds that the statements alone take, with connecting.
async fn by_loop(outside: &Arc<Outside>) -> Result<f64> {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let connections = (0..CONNECTIONS).map(|_| async {
        let client = connect(outside.server.port(), &outside.roots, PASSWORD).await?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= PROFILES {
                return anyhow::Ok(());
            }
            make(&client, &profile_name(number)).await?;
        }
    });
    try_join_all(connections).await?;
    let time = begun.elapsed().as_secs_f64();
    outside.clear().await?;
    Ok(time)
}

/// What the plugin does for a tenant.
async fn make(client: &Client, profile: &str) -> Result<()> {
    let role = format!("reeve_{}", profile.replace('-', "_"));
    let found = "SELECT 1 FROM pg_roles WHERE rolname = $1";
    anyhow::ensure!(client.query(found, &[&role]).await?.is_empty(), "{role}");
    // As the agent does: the server is told a verifier, and computes none.
    let verifier = verifier(&Secret::new(PASSWORD))?;
    let make = format!(r#"CREATE ROLE "{role}" WITH LOGIN PASSWORD '{verifier}'"#);
    client.execute(&make, &[]).await?;
    let found = "SELECT 1 FROM pg_database WHERE datname = $1";
    anyhow::ensure!(client.query(found, &[&role]).await?.is_empty(), "{role}");
    let make =
        format!(r#"CREATE DATABASE "{role}" OWNER "{role}" TEMPLATE template0 ENCODING 'UTF8'"#);
    client.execute(&make, &[]).await?;
    Ok(())
}

impl Outside {
    async fn clear(self: &Arc<Self>) -> Result<()> {
        let outside = self.clone();
        tokio::task::spawn_blocking(move || outside.server.admin(CLEAR)).await??;
        Ok(())
    }
}

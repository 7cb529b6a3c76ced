//! How long it takes to make a server and get its first answers, for whoever
//! makes many: `cargo run --release -p reeve-sim --example starts`.

use std::error::Error;
use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use reeve_sim::Server;
use serde_json::json;

const ROUNDS: u32 = 500;
const APPLIES: u32 = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut servers = Vec::new();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        servers.push(Server::default());
    }
    println!("make a server: {:?}", start.elapsed() / ROUNDS);
    let start = Instant::now();
    for server in &servers {
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        for n in 0..APPLIES {
            let name = format!("c{n}");
            let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "1"}});
            maps.patch(&name, &PatchParams::apply("m"), &Patch::Apply(config))
                .await?;
        }
    }
    println!(
        "apply an object: {:?}",
        start.elapsed() / (ROUNDS * APPLIES)
    );
    Ok(())
}

//! Serves an empty cluster on a loopback port until interrupted, and writes a
//! kubeconfig for it: `cargo run -p reeve-sim --example serve -- FILE [PORT]`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use reeve_sim::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: serve KUBECONFIG [PORT]")?;
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let serving = Server::default()
        .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .await?;
    serving.write_kubeconfig(&PathBuf::from(&file), "default")?;
    println!("ready: {} (kubeconfig in {file})", serving.url());
    tokio::signal::ctrl_c().await?;
    serving.shutdown().await;
    Ok(())
}

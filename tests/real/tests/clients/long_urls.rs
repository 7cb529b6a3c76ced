//! URLs that the embedded API server cannot take: kubectl says so at once, where it would try
//! again for ever if its stream were only reset.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use reeve_real::EmbeddedCluster;

/// Longer than a path that the HTTP library takes, and short enough for a command line.
const TOO_LONG: usize = 70_000;
/// kubectl gives up by then whatever happens.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn kubectl_says_that_a_url_is_too_long() -> Result<()> {
    let server = EmbeddedCluster::start()?;
    let patience = format!("--request-timeout={}s", PATIENCE.as_secs());
    let get = |length: usize| {
        let name = "a".repeat(length);
        let path =
            format!("/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name={name}");
        server.kubectl(&["get", "--raw", &path, &patience])
    };
    let end = |said: &str| said[said.len().saturating_sub(200)..].to_owned();
    if let Err(error) = get(TOO_LONG - 10_000) {
        bail!("a shorter one is refused: {}", end(&format!("{error:#}")));
    }
    let said = match get(TOO_LONG) {
        Ok(answer) => answer,
        Err(error) => format!("{error:#}"),
    };
    // The one who has heard of the limit sends nothing.
    let is_refused = ["status code 431", "larger than peer's advertised limit"]
        .iter()
        .any(|why| said.contains(why));
    ensure!(is_refused, "kubectl says: {}", end(&said));
    Ok(())
}

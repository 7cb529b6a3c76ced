//! The options that ask for actors.

use clap::Args;
use reeve_sim::{Actors, CustomKind};

#[derive(Args)]
pub(crate) struct ActorArgs {
    /// Make workloads run: pods become ready, Jobs complete, claims are bound
    ///
    /// Nothing runs for real; annotations of the domain actor.reeve.dev say how long
    /// things take and what fails. See docs/embedded-cluster.md.
    #[arg(long)]
    actors: bool,
    /// Nodes to run them on
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "actors")]
    nodes: usize,
    /// Custom kind to reconcile, as Kind.group; may be repeated
    #[arg(long = "actor-kind", value_name = "KIND.GROUP", requires = "actors")]
    kinds: Vec<CustomKind>,
}

impl ActorArgs {
    /// The actors that are asked for.
    pub(crate) fn actors(&self) -> Option<Actors> {
        self.actors.then(|| Actors {
            nodes: self.nodes,
            kinds: self.kinds.clone(),
            ..Actors::default()
        })
    }
}

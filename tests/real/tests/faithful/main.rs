//! How faithful the embedded API server is: the same requests, sent as they are
//! to it and to a real kube-apiserver, must be answered alike.
//!
//! `corpus/*.yaml` are written by hand, one file a behaviour. `generate` makes
//! further ones out of `generated.yaml`, prints its seed, and shrinks what is
//! answered differently to a scenario for the corpus. What may differ, and why,
//! is in `accepted.yaml` and nowhere else.
//!
//! `REEVE_FAITHFUL=crud/` runs only the scenarios whose names begin so,
//! `REEVE_SEED=7` other generated ones, `REEVE_SEEDS=20` those of twenty seeds from
//! there on, and `REEVE_SCENARIOS=32` four times as many of each.
//!
//! What is said of the definitions of other projects is compared where
//! `REEVE_DEFINITIONS` names a folder with them.

mod accepted;
mod chance;
mod compacted;
mod compare;
mod conversion;
mod corpus;
mod coverage;
mod exchange;
mod generate;
mod growth;
mod kept_up;
mod normal;
mod openapi;
mod play;
mod predict;
mod servers;
mod shrink;
mod suite;
mod third_party;
mod webhooks;

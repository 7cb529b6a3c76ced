//! Whose a container is where nobody can be asked: where an instance has no endpoint.
//!
//! Different names of Profiles give one container. Whoever came first has it, and of two that
//! came together the Profile of its very name. Others say by a label which one they have.

use reeve_sdk::prelude::*;

use crate::VOLUME;
use crate::live::{LiveVolume, PARTS, malformed};
use crate::pair::Pair;
use crate::volume::{CONTAINER, Volume};

/// Of the metadata of a volume.
#[input]
#[derive(Default)]
struct Stamped {
    creation_timestamp: Option<String>,
}

/// Takes out the volumes of containers that are those of other Profiles, and says so.
pub(crate) fn own(
    pairs: Vec<Pair>,
    profile: &str,
    cx: &Context,
    problems: &mut Problems,
) -> Result<Vec<Pair>, Failure> {
    let mut own = Vec::new();
    for pair in pairs {
        let container = pair.volume.source.attribute("containerName");
        let rival = match pair.is_unsaid {
            true => rival(&pair.volume, profile, container, cx)?,
            false => None,
        };
        match rival {
            Some(rival) => problems.add(format_args!(
                "{}: container {container} is that of Profile {rival}: both names give the same \
                 container; rename one of them, or set its blobEndpoint and give this container \
                 to one of them",
                pair.what
            )),
            None => own.push(pair),
        }
    }
    Ok(own)
}

/// The Profile that a container is rather for.
fn rival(
    wanted: &Volume,
    profile: &str,
    container: &str,
    cx: &Context,
) -> Result<Option<String>, Failure> {
    let parts = || PARTS.into_iter().chain(["/metadata/creationTimestamp"]);
    let others = Query::of(VOLUME)
        .selector(format!("{CONTAINER}={container}"))
        .projection(parts());
    let mut found: Vec<Fields> = cx.list(&others)?;
    let of_its_name = wanted.name.strip_prefix(profile).unwrap_or_default();
    for name in [format!("{container}{of_its_name}"), wanted.name.clone()] {
        found.extend(cx.get_parts::<Fields, _>(&VOLUME.object(name), parts())?);
    }
    let mut first: Option<(bool, String, bool, String)> = None;
    for object in &found {
        let Some(LiveVolume { volume, .. }) =
            LiveVolume::read(object).map_err(malformed(VOLUME))?
        else {
            continue;
        };
        let same = volume.is_at(wanted) && volume.source.secret == wanted.source.secret;
        if !same {
            continue;
        }
        let stamped: Stamped = object.read("metadata").map_err(malformed(VOLUME))?;
        let since = stamped.creation_timestamp.unwrap_or_default();
        let rank = (
            since.is_empty(),
            since,
            volume.profile != container,
            volume.profile,
        );
        if first.as_ref().is_none_or(|first| rank < *first) {
            first = Some(rank);
        }
    }
    Ok(first.map(|(.., who)| who).filter(|who| who != profile))
}

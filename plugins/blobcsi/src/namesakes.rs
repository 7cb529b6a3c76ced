//! Profiles whose names give the same container.

use reeve_sdk::prelude::*;

use crate::azure::container_of;
use crate::live::Live;
use crate::pair::{Pair, own_volume};
use crate::{PROFILE, VOLUME};

/// The pairs without those that would give the Profile a container of another one, which
/// are told of.
///
/// Where containers are made by an effect, it is said in Azure whose each is. Elsewhere
/// nothing but the volumes says so: who has one keeps it, and of those that have none the
/// Profile comes first whose name is that of the container, then the first by name.
/// What a Profile has is never taken away.
pub(crate) fn refuse(
    cx: &Context,
    profile: &str,
    pairs: Vec<Pair>,
    live: &Live,
    problems: &mut Problems,
) -> Result<Vec<Pair>, Failure> {
    let unclear = |pair: &Pair| pair.instance.is_some() && pair.needs.is_none();
    let container = match container_of(profile) {
        Some(container) if pairs.iter().any(unclear) => container,
        _ => return Ok(pairs),
    };
    // Whoever has all of them, under a name that is the container's, need not look at all
    // Profiles, and is not asked again at each new one.
    let settled = pairs.iter().all(|pair| !unclear(pair) || live.has(pair));
    if settled && container == profile {
        return Ok(pairs);
    }
    let mut others = cx.list_references(&Query::of(PROFILE))?;
    others.retain(|other| {
        other.name != profile && container_of(&other.name).as_ref() == Some(&container)
    });
    if others.is_empty() {
        return Ok(pairs);
    }
    let rank = |name: &str| (name != container, name.to_owned());
    let mut kept = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Some(instance) = pair.instance.as_deref().filter(|_| unclear(&pair)) else {
            kept.push(pair);
            continue;
        };
        let mut holder = None;
        for other in &others {
            let volume = VOLUME.object(own_volume(&other.name, instance));
            let has = cx.get_parts::<Fields, _>(&volume, ["/metadata/name"])?;
            if has.is_some() || rank(&other.name) < rank(profile) {
                holder = Some(&other.name);
                break;
            }
        }
        let Some(holder) = holder else {
            kept.push(pair);
            continue;
        };
        let has = live.has(&pair);
        let stays = match has {
            true => "; what is there stays, and shows each the files of the other",
            false => "",
        };
        problems.add(format_args!(
            "{}: container {container} is that of Profile {holder}, too: both names give the same \
             container; recreate one of the Profiles under another name{stays}",
            pair.what
        ));
        if has {
            kept.push(pair);
        }
    }
    Ok(kept)
}

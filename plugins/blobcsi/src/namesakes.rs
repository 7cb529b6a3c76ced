//! Profiles whose names give the same container.

use reeve_sdk::prelude::*;

use crate::azure::container_of;
use crate::live::{Live, look};
use crate::pair::{Pair, own_volume};
use crate::{PROFILE, VOLUME};

/// The pairs without those that would give the Profile a container of another one, which
/// are told of.
///
/// Where containers are made by an effect, it is said in Azure whose each is. Elsewhere
/// nothing but the volumes says so: who has one of any instance keeps it, whatever account
/// that is in, and of those that have none the Profile comes first whose name is that of the
/// container, then the first by name. What a Profile has is never taken away.
pub(crate) fn refuse(
    cx: &Context,
    profile: &str,
    mut pairs: Vec<Pair>,
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
    let mut holder = None;
    for other in &others {
        for instance in pairs.iter().filter(|pair| unclear(pair)) {
            let instance = instance.instance.as_deref().unwrap_or_default();
            let volume = VOLUME.object(own_volume(&other.name, instance));
            if look(cx, &volume, &["/metadata/name"])?.is_some() {
                holder = Some(&other.name);
            }
        }
    }
    // Who has one volume of it may have all.
    let has = pairs.iter().any(|pair| unclear(pair) && live.has(pair));
    if !has && holder.is_none() && profile != container {
        let mut names = others.iter().map(|other| &other.name);
        holder = names.find(|name| **name == container || name.as_str() < profile);
    }
    let Some(holder) = holder else {
        return Ok(pairs);
    };
    pairs.retain(|pair| {
        if !unclear(pair) {
            return true;
        }
        problems.add(format_args!(
            "{}: container {container} is that of Profile {holder}, too: both names give the same \
             container; recreate one of the Profiles under another name; what is there stays",
            pair.what
        ));
        live.has(pair)
    });
    Ok(pairs)
}

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
/// nothing but the volumes says so: who has one of any instance keeps it, whatever account
/// that is in, and of those that have none the oldest Profile comes first, then the one whose
/// name is that of the container, then the first by name. What a Profile has is never taken
/// away.
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
    let mut holder = None;
    for other in &others {
        if has_any(cx, &other.name, pairs.iter().filter(|pair| unclear(pair)))? {
            holder = Some(&other.name);
            break;
        }
    }
    // Who has one volume of it may have all.
    let has = pairs.iter().any(|pair| unclear(pair) && live.has(pair));
    if !has && holder.is_none() {
        let own = rank(cx, profile, &container)?;
        for other in &others {
            if rank(cx, &other.name, &container)? < own {
                holder = Some(&other.name);
                break;
            }
        }
    }
    let Some(holder) = holder else {
        return Ok(pairs);
    };
    let stays = match has {
        true => "; what is there stays, and shows each the files of the other",
        false => "",
    };
    let (doubtful, mut kept): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(unclear);
    for pair in &doubtful {
        problems.add(format_args!(
            "{}: container {container} is that of Profile {holder}, too: both names give the same \
             container; recreate one of the Profiles under another name{stays}",
            pair.what
        ));
    }
    kept.extend(doubtful.into_iter().filter(|pair| live.has(pair)));
    Ok(kept)
}

/// Whether a Profile has a volume of one of the instances of these pairs.
fn has_any<'a>(
    cx: &Context,
    profile: &str,
    mut pairs: impl Iterator<Item = &'a Pair>,
) -> Result<bool, Failure> {
    pairs.try_fold(false, |has, pair| {
        let instance = pair.instance.as_deref().unwrap_or_default();
        let volume = VOLUME.object(own_volume(profile, instance));
        let found = cx.get_parts::<Fields, _>(&volume, ["/metadata/name"])?;
        Ok(has || found.is_some())
    })
}

/// Which of several Profiles without a volume comes first: the oldest, since the volumes of
/// an older one may be on their way.
fn rank(cx: &Context, profile: &str, container: &str) -> Result<(String, bool, String), Failure> {
    let made =
        cx.get_parts::<Fields, _>(&PROFILE.object(profile), ["/metadata/creationTimestamp"])?;
    let metadata = made.and_then(|made| made.read::<Fields>("metadata").ok());
    let made = metadata.and_then(|metadata| metadata.read::<String>("creationTimestamp").ok());
    Ok((
        made.unwrap_or_default(),
        profile != container,
        profile.to_owned(),
    ))
}

//! What of a model need not be built: an image that is known already.

use reeve_sdk::prelude::*;

use crate::image::Image;
use crate::live::Live;
use crate::model::{Model, Source, Version};
use crate::names::{KEY, Place, REPLICA_SET, WANTS};
use crate::record::Record;

/// A ReplicaSet, whoever's it is.
#[input]
struct Set {
    spec: SetSpec,
}

#[input]
struct SetSpec {
    template: Template,
}

#[input]
struct Template {
    metadata: Metadata,
}

/// The image of a model that is put into `base`, under `key`. What a record names in another
/// repository than the one that images are pushed to, no build has put there: a key is of one
/// repository, and of a record anybody may be the author who writes ConfigMaps.
pub(crate) fn image(
    model: &Model,
    base: &Image,
    key: &str,
    repository: &Image,
    live: &Live,
    record: &Record,
) -> Option<Image> {
    if matches!(model.source, Source::Artifact(_)) {
        let digest = base.digest.clone()?;
        return Some(base.at(digest));
    }
    let serving = live.version.as_ref().filter(|version| version.key == key);
    serving
        .map(|version| version.image.clone())
        .or_else(|| recorded(record, key, repository))
}

fn recorded(record: &Record, key: &str, repository: &Image) -> Option<Image> {
    let image = record.images.get(key)?;
    (image.repository == repository.repository).then(|| image.clone())
}

/// The image that others in the namespace have under a key: who wants it too, and is
/// stopped perhaps, or whatever ReplicaSet is there to go back to. What neither has may be
/// deleted by a retention policy.
pub(crate) fn elsewhere(
    place: &Place,
    key: &str,
    repository: &Image,
    cx: &Context,
) -> Result<Option<Image>, Failure> {
    for record in Record::labelled(place, WANTS, key, cx)? {
        if let Some(image) = recorded(&record, key, repository) {
            return Ok(Some(image));
        }
    }
    let query = place.labelled(REPLICA_SET, KEY, key).projection([
        "/spec/template/metadata/labels",
        "/spec/template/metadata/annotations",
    ]);
    let sets: Vec<Set> = cx.list(&query)?;
    let mut versions = sets.iter().filter_map(|set| {
        let marks = &set.spec.template.metadata;
        Version::read(&marks.labels, &marks.annotations)
    });
    let found = versions.find(|version| version.key == key && version.artifact.is_none());
    Ok(found.map(|version| version.image))
}

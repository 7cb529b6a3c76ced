//! The images that were pushed for a deployment: a ConfigMap that stays when the deployment
//! is deleted, so that retention policies find all that nothing uses.
//!
//! It is text, an image a line. A policy may take out the lines of what it has deleted.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use crate::image::{Digest, Image};
use crate::names::{CONFIG_MAP, DELETE, IMAGES, OF, Place, object};
use crate::record::Record;

/// Lines about images that nothing uses any more: with names of a thousand characters they
/// fit into a ConfigMap.
const ORPHANS: usize = 900;

/// What was pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Images {
    /// Whether the list is there.
    exists: bool,
    /// Images in use, and the build keys that they are of.
    used: Vec<(Image, String)>,
    /// Images that nothing uses any more, as `repository@digest`, the oldest first.
    pub(crate) orphaned: Vec<String>,
}

/// What has become of images.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Nothing uses them any more.
    pub(crate) orphaned: Vec<String>,
    /// They are listed no more.
    pub(crate) dropped: Vec<String>,
}

/// The parts of the ConfigMap that are read.
#[input]
struct Live {
    data: Option<BTreeMap<String, String>>,
}

impl Images {
    /// Reads the list of a deployment, with what its record still has of it.
    pub(crate) fn read(place: &Place, record: &Record, cx: &Context) -> Result<Self, Failure> {
        let reference = place.object(&CONFIG_MAP, place.images());
        let live: Option<Live> = cx.get_parts(&reference, ["/data"])?;
        let exists = live.is_some();
        let data = live.and_then(|live| live.data).unwrap_or_default();
        let lines = |key: &str| data.get(key).into_iter().flat_map(|text| text.lines());
        let used = |line: &str| {
            let (image, key) = line.split_once(' ')?;
            let image = Image::parse(image).ok().filter(|i| i.digest.is_some())?;
            Some((image, key.to_owned()))
        };
        let mut orphaned: Vec<String> = record.orphans.clone();
        orphaned.extend(lines("orphaned").map(str::to_owned));
        Ok(Self {
            exists,
            used: lines("used").filter_map(used).collect(),
            orphaned,
        })
    }

    /// The ConfigMap, where there is anything to list.
    pub(crate) fn object(&self, place: &Place) -> Option<Value> {
        if !self.exists && self.used.is_empty() && self.orphaned.is_empty() {
            return None;
        }
        let used = self
            .used
            .iter()
            .map(|(image, key)| format!("{image} {key}"));
        let used: Vec<String> = used.collect();
        Some(object(
            &place.object(&CONFIG_MAP, place.images()),
            json!({
                "labels": {OF: place.name, IMAGES: "true"},
                "annotations": {DELETE: "never"},
            }),
            "data",
            json!({"used": used.join("\n"), "orphaned": self.orphaned.join("\n")}),
        ))
    }

    /// Moves what `is_used` denies to the orphans. Of images that a record has it is asked,
    /// and of those that once were in use and are in no record: it was lost, or they are of
    /// an earlier deployment of the name.
    pub(crate) fn collect(
        &mut self,
        record: &mut Record,
        mut is_used: impl FnMut(&str, &Digest, bool) -> Result<bool, Failure>,
    ) -> Result<Changes, Failure> {
        let mut changes = Changes::default();
        let mut used = Vec::new();
        let recorded = std::mem::take(&mut record.images);
        let earlier = std::mem::take(&mut self.used);
        let earlier = earlier.into_iter().filter(|(image, _)| {
            let mut recorded = recorded.values();
            recorded.all(|known| !known.is_the_same_as(image))
        });
        let earlier: Vec<_> = earlier.map(|(image, key)| (key, image, false)).collect();
        let recorded = recorded.into_iter().map(|(key, image)| (key, image, true));
        for (key, image, is_recorded) in recorded.chain(earlier) {
            let digest = image.digest.as_ref();
            if match digest {
                Some(digest) => is_used(&key, digest, is_recorded)?,
                None => true,
            } {
                if is_recorded {
                    record.images.insert(key.clone(), image.clone());
                }
                used.push((image, key));
            } else {
                changes.orphaned.push(image.to_string());
            }
        }
        let is_used = |line: &String| used.iter().any(|(image, _)| image.to_string() == *line);
        self.orphaned
            .retain(|known| !changes.orphaned.contains(known) && !is_used(known));
        self.orphaned.extend(changes.orphaned.iter().cloned());
        self.used = used;
        let surplus = self.orphaned.len().saturating_sub(ORPHANS);
        changes.dropped = self.orphaned.drain(..surplus).collect();
        Ok(changes)
    }
}

impl Changes {
    /// An event of each.
    pub(crate) fn tell(&self, mut outcome: Outcome, place: &Place) -> Outcome {
        let list = place.images();
        for image in &self.orphaned {
            let message = format!(
                "nothing uses {image} any more; the list in ConfigMap {list} is for retention \
                 policies"
            );
            outcome = outcome.event(Event::normal("ImageOrphaned", message));
        }
        for image in &self.dropped {
            let message = format!(
                "{image} is listed no more, since ConfigMap {list} is full; delete what it lists \
                 and nothing uses, and take that out of it"
            );
            outcome = outcome.event(Event::warning("ImageUnlisted", message));
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(digit: char) -> Image {
        let digest = String::from(digit).repeat(64);
        Image::parse(&format!("r.example.com/models@sha256:{digest}")).unwrap()
    }

    fn place() -> Place {
        Place {
            name: "churn".to_owned(),
            namespace: "models".to_owned(),
        }
    }

    fn again(images: &Images, record: &Record) -> Images {
        let cx = Context::test().with_object(images.object(&place()).unwrap());
        Images::read(&place(), record, &cx).unwrap()
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        assert_eq!(Images::default().object(&place()), None);
        let images = Images {
            exists: true,
            used: vec![(image('a'), "k".to_owned())],
            orphaned: vec![image('b').to_string()],
        };
        assert_eq!(again(&images, &Record::default()), images);
        let object = images.object(&place()).unwrap();
        let annotation = &object["metadata"]["annotations"]["reeve.dev/delete"];
        assert_eq!(annotation, "never");
        // Records once had what nothing uses.
        let older = Record {
            orphans: vec![image('c').to_string()],
            ..Record::default()
        };
        let both = [image('c').to_string(), image('b').to_string()];
        assert_eq!(again(&images, &older).orphaned, both);
    }

    #[test]
    fn what_nothing_uses_is_told_once_and_what_is_dropped_is_told() {
        let mut record = Record::default();
        record.images.insert("a".to_owned(), image('a'));
        record.images.insert("b".to_owned(), image('b'));
        let mut images = Images::default();
        let all = |_: &str, _: &Digest, _: bool| Ok(true);
        assert_eq!(
            images.collect(&mut record, all).unwrap(),
            Changes::default()
        );
        let only_a = |key: &str, _: &Digest, _: bool| Ok(key == "a");
        let changes = images.collect(&mut record, only_a).unwrap();
        assert_eq!(changes.orphaned, [image('b').to_string()]);
        assert_eq!(record.images.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(images.orphaned, changes.orphaned);
        let changes = images.collect(&mut record, only_a).unwrap();
        assert_eq!(changes, Changes::default());
        // Of an image that no record has any more it is asked, too.
        record.images.clear();
        let nothing = |_: &str, _: &Digest, is_recorded: bool| Ok(is_recorded);
        let changes = images.collect(&mut record, nothing).unwrap();
        assert_eq!(changes.orphaned, [image('a').to_string()]);
        // Used again, it is no orphan.
        record.images.insert("b".to_owned(), image('b'));
        images.collect(&mut record, all).unwrap();
        assert_eq!(images.orphaned, [image('a').to_string()]);

        images.orphaned = (0..ORPHANS).map(|index| index.to_string()).collect();
        let changes = images.collect(&mut record, |_, _, _| Ok(false)).unwrap();
        assert_eq!(changes.dropped, ["0"]);
        assert_eq!(images.orphaned.len(), ORPHANS);
        assert_eq!(images.orphaned.last(), Some(&image('b').to_string()));
    }
}

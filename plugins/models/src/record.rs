//! What was built for a deployment: a ConfigMap that outlives Jobs and agents.
//!
//! It is text, a thing a line, so that people and retention policies can read it.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use crate::claims;
use crate::image::Image;
use crate::names::{CONFIG_MAP, ID, OF, Place, WANTS, object};

/// What was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Images in use, by digest, by their build keys.
    pub(crate) images: BTreeMap<String, Image>,
    /// The build that is wanted, and the Jobs of its name that there have been.
    pub(crate) seen: Seen,
    /// Images that nothing uses any more, from when records had them.
    pub(crate) orphans: Vec<String>,
    /// How many servers there were to be when all of them answered last.
    pub(crate) served: Option<i64>,
    /// The id under which the deployment is found, if it has one.
    pub(crate) id: Option<String>,
    /// What the supervisor was told last, or is to be told.
    pub(crate) report: Option<Value>,
}

/// Jobs of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The name.
    pub(crate) job: String,
    /// Their uids.
    pub(crate) uids: Vec<String>,
}

/// The parts of the ConfigMap that are read.
#[input]
struct Live {
    metadata: Metadata,
    data: Option<BTreeMap<String, String>>,
}

impl Record {
    /// Reads the record of a deployment. A line that somebody has made unreadable is as
    /// if it were not there: at worst, something is built once more.
    pub(crate) fn read(place: &Place, cx: &Context) -> Result<Self, Failure> {
        let reference = place.object(&CONFIG_MAP, place.record());
        let live: Option<Live> = cx.get_parts(&reference, ["/metadata/labels", "/data"])?;
        Ok(live.map(Self::of).unwrap_or_default())
    }

    /// The records with a label, as far as they are of images.
    pub(crate) fn labelled(
        place: &Place,
        label: &str,
        value: &str,
        cx: &Context,
    ) -> Result<Vec<Self>, Failure> {
        let query = place.labelled(CONFIG_MAP, label, value);
        let live: Vec<Live> = cx.list(&query.projection(["/data/images"]))?;
        Ok(live.into_iter().map(Self::of).collect())
    }

    fn of(mut live: Live) -> Self {
        let label = live.metadata.labels.remove(ID);
        let data = live.data.unwrap_or_default();
        Self {
            id: data.get("id").cloned().or(label),
            ..Self::parse(&data)
        }
    }

    fn parse(data: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
        let image = |line: &str| {
            let mut words = line.split(' ');
            let (key, image) = (words.next()?, words.next()?);
            let image = Image::parse(image).ok().filter(|i| i.digest.is_some())?;
            Some((key.to_owned(), image))
        };
        let mut seen = text("seen").split_whitespace().map(str::to_owned);
        Self {
            images: text("images").lines().filter_map(image).collect(),
            seen: Seen {
                job: seen.next().unwrap_or_default(),
                uids: seen.collect(),
            },
            orphans: text("orphaned").lines().map(str::to_owned).collect(),
            served: text("served").parse().ok(),
            report: reeve_sdk::parse_json::<Json>(text("report"))
                .ok()
                .map(|report| report.0),
            id: None,
        }
    }

    /// The ConfigMap. `wants` is the key that the deployment wants, if any, by which
    /// others see that it is used.
    pub(crate) fn object(&self, place: &Place, wants: Option<&str>) -> Value {
        let mut labels = json!({OF: place.name});
        if let Some(key) = wants {
            labels[WANTS] = json!(key);
        }
        let lines = |lines: Vec<String>| lines.join("\n");
        let images = self
            .images
            .iter()
            .map(|(key, image)| format!("{key} {image}"))
            .collect();
        let mut data = json!({"images": lines(images)});
        if !self.seen.uids.is_empty() {
            data["seen"] = json!(format!("{} {}", self.seen.job, self.seen.uids.join(" ")));
        }
        if let Some(served) = self.served {
            data["served"] = json!(served.to_string());
        }
        if let Some(id) = &self.id {
            let label = claims::label(id);
            if label != *id {
                data["id"] = json!(id);
            }
            labels[ID] = json!(label);
        }
        if let Some(report) = &self.report {
            data["report"] = json!(report.to_string());
        }
        object(
            &place.object(&CONFIG_MAP, place.record()),
            json!({"labels": labels}),
            "data",
            data,
        )
    }

    /// Notes a Job that builds `job`, and forgets those of other builds.
    pub(crate) fn see(&mut self, job: &str, uid: Option<&str>) {
        if self.seen.job != job {
            self.seen = Seen {
                job: job.to_owned(),
                uids: Vec::new(),
            };
        }
        if let Some(uid) = uid
            && !self.seen.uids.iter().any(|known| known == uid)
        {
            self.seen.uids.push(uid.to_owned());
        }
    }

    /// How many Jobs that build `job` are gone, when `uid` is the one that is there.
    pub(crate) fn losses(&self, job: &str, uid: Option<&str>) -> usize {
        if self.seen.job != job {
            return 0;
        }
        let others = self.seen.uids.iter();
        others.filter(|known| Some(known.as_str()) != uid).count()
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

    fn again(record: &Record) -> Record {
        let cx = Context::test().with_object(record.object(&place(), Some("k")));
        Record::read(&place(), &cx).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::default();
        assert_eq!(again(&record), record);
        record.images.insert("a".to_owned(), image('a'));
        record.images.insert("b".to_owned(), image('b'));
        record.see("model-build-b", Some("1"));
        record.see("model-build-b", Some("2"));
        record.report = Some(json!({"event": "e", "modelId": null}));
        record.served = Some(3);
        for id in ["64f0", "Churn"] {
            record.id = Some(id.to_owned());
            assert_eq!(again(&record), record);
        }
        assert_eq!(again(&record), record);
        let labels = &record.object(&place(), Some("k"))["metadata"]["labels"];
        assert_eq!(labels, &json!({OF: "churn", WANTS: "k", ID: "churn"}));
    }

    /// They once had the tag behind it.
    #[test]
    fn older_lines_are_read_without_their_tags() {
        let line = format!("a {} m-a", image('a'));
        let data = BTreeMap::from([("images".to_owned(), line)]);
        let mut record = Record::default();
        record.images.insert("a".to_owned(), image('a'));
        assert_eq!(Record::parse(&data), record);
    }

    #[test]
    fn lines_that_make_no_sense_are_as_if_they_were_not_there() {
        let data = [
            ("images", "a\n\nb r.io/x\nc r.io/x:1 t\n"),
            ("seen", " "),
            ("report", "{"),
            ("served", "many"),
        ];
        let data = data.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(Record::parse(&data.into()), Record::default());
    }

    #[test]
    fn jobs_of_other_builds_are_forgotten() {
        let mut record = Record::default();
        record.see("x", Some("1"));
        record.see("x", Some("1"));
        record.see("x", None);
        assert_eq!(
            (record.losses("x", Some("1")), record.losses("x", None)),
            (0, 1)
        );
        assert_eq!(record.losses("y", None), 0);
        record.see("y", Some("2"));
        assert_eq!((record.losses("x", None), record.losses("y", None)), (0, 1));
    }
}

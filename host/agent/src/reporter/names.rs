//! Names of Secrets, which `Unit` objects remember whatever else is said of the units.
//!
//! The reporter alone writes `Unit` objects, so whatever it writes of a unit has the names
//! in it, and it deletes none that has any.

use super::UnitReport;
use crate::secret_names::Remembered;
use reeve_api::{KeptSecret, UnitSpec, UnitStatus};
use std::collections::{BTreeSet, HashMap};

/// What is remembered, by the name of the `Unit` object.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Kept>);

#[derive(Debug)]
struct Kept {
    spec: UnitSpec,
    names: BTreeSet<KeptSecret>,
    /// Those that the object has, as it was written last.
    written: BTreeSet<KeptSecret>,
    /// Whether the object says nothing else.
    bare: bool,
}

/// What is to become of a `Unit` object.
#[derive(Debug, PartialEq)]
pub(super) enum Writing {
    /// It is as it should be.
    Nothing,
    Delete,
    Write(Box<UnitReport>),
}

impl Names {
    /// Takes up what an object has. What was told of it here is newer, unless `anew`.
    pub(super) fn recall(&mut self, found: Remembered, anew: bool) {
        if anew || !self.0.contains_key(&found.object) {
            let kept = Kept {
                spec: found.spec,
                written: found.names.clone(),
                names: found.names,
                bare: found.bare,
            };
            self.0.insert(found.object, kept);
        }
    }

    /// Adds names. Returns whether all of them are written already.
    pub(super) fn add(
        &mut self,
        object: &str,
        spec: &UnitSpec,
        names: &BTreeSet<KeptSecret>,
    ) -> bool {
        let kept = self.0.entry(object.to_owned()).or_insert_with(|| Kept {
            spec: spec.clone(),
            names: BTreeSet::new(),
            written: BTreeSet::new(),
            bare: false,
        });
        // The primary may be another of its name.
        kept.spec.clone_from(spec);
        kept.names.extend(names.iter().cloned());
        names.is_subset(&kept.written)
    }

    /// Whether all of these are written.
    pub(super) fn has_written(&self, object: &str, names: &BTreeSet<KeptSecret>) -> bool {
        let kept = self.0.get(object);
        kept.is_some_and(|kept| names.is_subset(&kept.written))
    }

    /// Takes note of the names that an object has, which somebody has changed. Returns whether it
    /// should have others.
    pub(super) fn changed(&mut self, object: &str, found: BTreeSet<KeptSecret>) -> bool {
        let kept = self.0.get_mut(object).filter(|kept| kept.written != found);
        kept.is_some_and(|kept| {
            kept.written = found;
            kept.bare = false;
            true
        })
    }

    /// Whether an object has names that are written nowhere.
    pub(super) fn is_behind(&self, object: &str) -> bool {
        let kept = self.0.get(object);
        kept.is_some_and(|kept| !kept.names.is_subset(&kept.written))
    }

    /// Forgets all names but these. Returns whether that is news.
    pub(super) fn retain(&mut self, object: &str, names: &BTreeSet<KeptSecret>) -> bool {
        let Some(kept) = self.0.get_mut(object) else {
            return false;
        };
        let before = kept.names.len();
        kept.names.retain(|name| names.contains(name));
        let news = kept.names.len() < before;
        if kept.names.is_empty() {
            self.0.remove(object);
        }
        news
    }

    /// The objects of which something is remembered.
    pub(super) fn objects(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Notes that an object is gone, `rightly` or not. Returns whether it should not be.
    pub(super) fn lost(&mut self, object: &str, rightly: bool) -> bool {
        if rightly {
            self.0.remove(object);
        }
        let kept = self.0.get_mut(object);
        kept.is_some_and(|kept| {
            kept.written.clear();
            true
        })
    }

    /// What is to be written where this is to be said, and which names are in it.
    pub(super) fn writing(
        &self,
        object: &str,
        said: Option<&UnitReport>,
    ) -> (Writing, BTreeSet<KeptSecret>) {
        let kept = self.0.get(object);
        let names = kept.map(|kept| kept.names.clone()).unwrap_or_default();
        let report = match (said, kept) {
            (None, None) => return (Writing::Delete, names),
            (None, Some(kept)) if kept.bare && kept.written == kept.names => {
                return (Writing::Nothing, names);
            }
            (None, Some(kept)) => UnitReport {
                spec: kept.spec.clone(),
                status: UnitStatus::default(),
            },
            (Some(report), _) => report.clone(),
        };
        let UnitReport { spec, mut status } = report;
        status.secrets = names.iter().cloned().collect();
        (Writing::Write(Box::new(UnitReport { spec, status })), names)
    }

    /// Notes that an object was written with these names.
    pub(super) fn written(&mut self, object: &str, names: BTreeSet<KeptSecret>, bare: bool) {
        if let Some(kept) = self.0.get_mut(object) {
            kept.written = names;
            kept.bare = bare;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> BTreeSet<KeptSecret> {
        let names = text.split_whitespace();
        names
            .map(|name| KeptSecret {
                namespace: "a".into(),
                name: name.into(),
            })
            .collect()
    }

    fn report(digest: Option<&str>, secrets: &str) -> UnitReport {
        UnitReport {
            spec: UnitSpec::default(),
            status: UnitStatus {
                digest: digest.map(Into::into),
                secrets: names(secrets).into_iter().collect(),
                ..UnitStatus::default()
            },
        }
    }

    fn write(digest: Option<&str>, secrets: &str) -> Writing {
        Writing::Write(Box::new(report(digest, secrets)))
    }

    #[test]
    fn an_object_is_there_for_as_long_as_it_remembers_something() {
        let mut kept = Names::default();
        let spec = UnitSpec::default();
        let said = report(Some("d"), "");
        let writing = |kept: &Names, said| kept.writing("u", said).0;
        assert_eq!(writing(&kept, None), Writing::Delete);
        assert_eq!(writing(&kept, Some(&said)), write(Some("d"), ""));
        assert!(!kept.add("u", &spec, &names("x")));
        assert!(!kept.has_written("u", &names("x")));
        assert_eq!(writing(&kept, None), write(None, "x"));
        assert_eq!(writing(&kept, Some(&said)), write(Some("d"), "x"));
        // One more name comes while it is written.
        let (_, in_it) = kept.writing("u", Some(&said));
        assert!(!kept.add("u", &spec, &names("y")));
        kept.written("u", in_it, false);
        assert!(kept.has_written("u", &names("x")));
        assert!(!kept.has_written("u", &names("x y")));
        // There is nothing else to say any more.
        assert_eq!(writing(&kept, None), write(None, "x y"));
        kept.written("u", names("x y"), true);
        assert!(kept.add("u", &spec, &names("y")));
        assert_eq!(writing(&kept, None), Writing::Nothing);
        // Somebody takes one away.
        assert!(!kept.changed("u", names("x y")));
        assert!(kept.changed("u", names("x")));
        assert!(kept.is_behind("u"));
        assert!(!kept.add("u", &spec, &names("y")));
        assert_eq!(writing(&kept, None), write(None, "x y"));
        kept.written("u", names("x y"), true);
        assert!(!kept.is_behind("u"));
        assert!(!kept.retain("u", &names("x y z")));
        assert!(kept.retain("u", &names("y")));
        assert_eq!(writing(&kept, None), write(None, "y"));
        assert!(kept.lost("u", false));
        assert!(!kept.has_written("u", &names("y")));
        assert!(kept.retain("u", &names("")));
        assert_eq!(writing(&kept, None), Writing::Delete);
        assert!(!kept.lost("u", false));
        assert_eq!(kept.len(), 0);
    }
}

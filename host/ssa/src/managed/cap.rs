//! The limit on `Update` entries.

use std::collections::BTreeMap;

use super::{ManagedFields, ManagerId, Operation, seconds};

/// How many `Update` entries an object keeps; the oldest beyond it are merged.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

impl ManagedFields {
    /// Merges the oldest `Update` entries of each version until at most
    /// [`MAX_UPDATE_MANAGERS`] are left, or nothing more can be merged.
    pub(crate) fn cap_updates(&mut self) {
        let mut updaters: Vec<ManagerId> = self
            .0
            .keys()
            .filter(|id| id.operation == Operation::Update)
            .cloned()
            .collect();
        let mut left = updaters.len();
        if left <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort_by_cached_key(|id| {
            let seconds = self.0.get(id).map_or(0, seconds);
            (seconds, id.sort_key())
        });
        let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in updaters {
            if left <= MAX_UPDATE_MANAGERS {
                break;
            }
            let Some(version) = self.0.get(&id).map(|owned| owned.api_version.clone()) else {
                continue;
            };
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, id);
                continue;
            };
            let bucket = ManagerId::update(ANCIENT, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), owned);
            }
            let Some(merged) = self.0.get(&id).cloned() else {
                continue;
            };
            if let Some(owned) = self.0.get_mut(&bucket) {
                owned.set = owned.set.union(&merged.set);
                owned.time = merged.time;
            }
            if id != bucket {
                self.0.remove(&id);
            }
            left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed::entries::tests::{parse, update};

    #[test]
    fn the_oldest_updates_of_a_version_are_merged() {
        let names = |managed: &ManagedFields| -> Vec<String> {
            managed
                .to_value()
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| {
                    format!(
                        "{}@{}",
                        entry["manager"].as_str().unwrap(),
                        entry["apiVersion"].as_str().unwrap()
                    )
                })
                .collect()
        };
        let mut entries: Vec<_> = (0..10)
            .map(|i| update(&format!("m{i}"), "v1", i, &format!("f:k{i}")))
            .collect();
        let mut ten = parse(&entries);
        ten.cap_updates();
        assert_eq!(ten, parse(&entries), "ten are kept");

        entries.push(update("other", "v2", 0, "f:o"));
        entries.push(update("m10", "v1", 10, "f:k10"));
        let mut capped = parse(&entries);
        let all = capped.union();
        capped.cap_updates();
        let mut expected = vec!["other@v2".to_owned(), "ancient-changes@v1".to_owned()];
        expected.extend((3..11).map(|i| format!("m{i}@v1")));
        assert_eq!(names(&capped), expected);
        assert_eq!(capped.union(), all, "no field is lost");
        let bucket = capped
            .get(&ManagerId::update("ancient-changes", "v1", ""))
            .unwrap();
        assert_eq!(
            bucket.time.as_deref(),
            Some("2026-01-01T00:00:02Z"),
            "time of the newest"
        );

        // The bucket takes part like any other entry.
        let mut entries = capped.to_value().as_array().unwrap().clone();
        entries.push(update("m11", "v1", 11, "f:k11"));
        let mut again = parse(&entries);
        again.cap_updates();
        assert_eq!(
            names(&again)[..3],
            ["other@v2", "ancient-changes@v1", "m4@v1"]
        );
    }
}

//! The desired state as a document: what is changed in it, and nothing else.

use serde_json::{Map, Value, json};

/// The version of the documents that are written here.
const VERSION: &str = "0.1";

/// Why a desired state cannot be changed in some way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DocumentError {
    /// It is something else.
    #[error("it is no desired state: expected {{\"version\": \"0.1\", \"packs\": […]}}")]
    Form,
    /// There is such a pack already.
    #[error(
        "pack {name} is in it already, at {path}; take it out with `reeve pack remove {name}` first"
    )]
    There { name: String, path: String },
    /// There is no such pack.
    #[error("pack {name} is not in it; in it are: {packs}")]
    Absent { name: String, packs: String },
    /// Nothing would be left.
    #[error(
        "{name} is the last pack, and a desired state without packs is refused unless \
         spec.allowEmpty of the PackSet says so; where it does, --allow-empty takes it out"
    )]
    Last { name: String },
}

/// A desired state. What is not known of it stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    packs: Vec<Value>,
    /// What stands beside them.
    rest: Map<String, Value>,
}

impl Document {
    /// One with these packs.
    pub(super) fn new(packs: Vec<Value>) -> Self {
        let rest = Map::from_iter([("version".to_owned(), json!(VERSION))]);
        Self { packs, rest }
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// When it has no list of packs.
    pub(super) fn parse(text: &str) -> Result<Self, DocumentError> {
        let read = serde_json::from_str(text);
        let mut rest: Map<String, Value> = read.map_err(|_| DocumentError::Form)?;
        match rest.remove("packs") {
            Some(Value::Array(packs)) => Ok(Self { packs, rest }),
            _ => Err(DocumentError::Form),
        }
    }

    /// As it is stored.
    pub(super) fn text(&self) -> String {
        let mut whole = self.rest.clone();
        whole.insert("packs".to_owned(), Value::Array(self.packs.clone()));
        format!("{:#}\n", Value::Object(whole))
    }

    /// The packs in it that have names.
    pub(super) fn packs(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let packs = self.packs.iter();
        packs.filter_map(|pack| Some((pack.get("name")?.as_str()?, pack.as_object()?)))
    }

    /// What it says of a pack.
    pub(super) fn pack(&self, name: &str) -> Option<&Map<String, Value>> {
        let found = self.packs().find(|(known, _)| *known == name);
        found.map(|(_, pack)| pack)
    }

    /// Adds a pack at the end.
    ///
    /// # Errors
    ///
    /// When one of its name is there.
    pub(super) fn add(
        &mut self,
        name: &str,
        says: Map<String, Value>,
    ) -> Result<(), DocumentError> {
        if let Some(index) = position(&self.packs, name) {
            let (name, path) = (name.to_owned(), format!("/packs/{index}"));
            return Err(DocumentError::There { name, path });
        }
        let mut pack = Map::new();
        pack.insert("name".to_owned(), json!(name));
        pack.extend(says);
        self.packs.push(Value::Object(pack));
        Ok(())
    }

    /// Puts an entry in the place of the one of its name, or at the end.
    pub(super) fn put(&mut self, name: &str, entry: Value) {
        match position(&self.packs, name) {
            Some(index) => self.packs[index] = entry,
            None => self.packs.push(entry),
        }
    }

    /// Takes a pack out.
    ///
    /// # Errors
    ///
    /// When it is not there, or is the last one and that is not meant.
    pub(super) fn remove(&mut self, name: &str, allow_empty: bool) -> Result<(), DocumentError> {
        let index = position(&self.packs, name).ok_or_else(|| self.absent(name))?;
        if self.packs.len() == 1 && !allow_empty {
            let name = name.to_owned();
            return Err(DocumentError::Last { name });
        }
        self.packs.remove(index);
        Ok(())
    }

    /// Says whether a pack is suspended. Returns whether that is new.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub(super) fn suspend(&mut self, name: &str, suspend: bool) -> Result<bool, DocumentError> {
        let index = position(&self.packs, name).ok_or_else(|| self.absent(name))?;
        let pack = self.packs[index]
            .as_object_mut()
            .ok_or(DocumentError::Form)?;
        let before = pack.get("suspend") == Some(&Value::Bool(true));
        match suspend {
            true => drop(pack.insert("suspend".to_owned(), Value::Bool(true))),
            false => drop(pack.remove("suspend")),
        }
        Ok(before != suspend)
    }

    fn absent(&self, name: &str) -> DocumentError {
        let packs: Vec<&str> = self.packs().map(|(name, _)| name).collect();
        DocumentError::Absent {
            name: name.to_owned(),
            packs: match packs.is_empty() {
                true => "none".to_owned(),
                false => packs.join(", "),
            },
        }
    }
}

fn position(packs: &[Value], name: &str) -> Option<usize> {
    packs.iter().position(|pack| pack["name"] == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let text = r#"{"version": "0.1", "later": 1, "packs": [
            {"name": "flux"}, {"name": "istio", "extra": true, "suspend": true}]}"#;
        Document::parse(text).unwrap()
    }

    #[test]
    fn changes_leave_the_rest_alone() {
        let mut changed = document();
        let says = Map::from_iter([("version".to_owned(), json!("1.x"))]);
        changed.add("spicedb", says).unwrap();
        assert!(changed.suspend("istio", false).unwrap());
        assert!(!changed.suspend("istio", false).unwrap());
        changed.remove("flux", false).unwrap();
        let expected = json!({"version": "0.1", "later": 1, "packs": [
            {"name": "istio", "extra": true}, {"name": "spicedb", "version": "1.x"}]});
        assert_eq!(
            serde_json::from_str::<Value>(&changed.text()).unwrap(),
            expected
        );
        let again = Document::parse(&changed.text()).unwrap();
        assert_eq!(again, changed);
    }

    #[test]
    fn an_entry_takes_the_place_of_the_one_of_its_name() {
        let mut changed = document();
        changed.put("istio", json!({"name": "istio", "version": "2"}));
        changed.put("spicedb", json!({"name": "spicedb"}));
        let names: Vec<&str> = changed.packs().map(|(name, _)| name).collect();
        assert_eq!(names, ["flux", "istio", "spicedb"]);
        let istio = changed.pack("istio").map(|entry| json!(entry));
        assert_eq!(istio, Some(json!({"name": "istio", "version": "2"})));
    }

    #[test]
    fn what_cannot_be_done_says_so() {
        let mut document = document();
        let check = |result: Result<(), DocumentError>, expected: &str| {
            assert_eq!(result.unwrap_err().to_string(), expected);
        };
        check(
            document.clone().add("istio", Map::new()),
            "pack istio is in it already, at /packs/1; take it out with `reeve pack remove istio` first",
        );
        check(
            document.remove("a", false),
            "pack a is not in it; in it are: flux, istio",
        );
        check(
            document.suspend("a", true).map(drop),
            "pack a is not in it; in it are: flux, istio",
        );
        document.remove("flux", false).unwrap();
        let last = document.clone().remove("istio", false);
        assert!(matches!(last, Err(DocumentError::Last { .. })));
        document.remove("istio", true).unwrap();
        check(
            document.remove("istio", true),
            "pack istio is not in it; in it are: none",
        );
        for text in ["", "[]", r#"{"packs": {}}"#] {
            assert_eq!(Document::parse(text), Err(DocumentError::Form), "{text}");
        }
    }
}

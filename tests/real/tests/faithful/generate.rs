//! Makes scenarios out of the kinds in `generated.yaml`: several managers write
//! two objects of a kind in every way there is, with values good and bad, while somebody
//! watches.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::corpus::{Edit, Scenario, Step};
use crate::play::put;

const NAMES: [&str; 2] = ["a", "b"];
/// The object whose creation ends what is watched.
const LAST: &str = "last";
/// Where an object without a namespace says of which scenario it is, and how to ask for those
/// of one.
const CLUSTER_LABEL: &str = "/metadata/labels/of";
const CLUSTER_QUERY: &str = "&labelSelector=of%3D$ns";
const MANAGERS: [&str; 3] = ["ann", "bob", "cat"];

/// A kind that is written to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    /// Where its objects are.
    pub(crate) path: String,
    /// What every object needs to be valid.
    #[serde(default)]
    base: Map<String, Value>,
    /// Fields by JSON pointer, with the values that they are given.
    fields: Map<String, Value>,
    /// Fields that are written by way of `/status`.
    #[serde(default)]
    status: Map<String, Value>,
    /// Parameters of deletions. Whose dependents would be kept waits for the garbage
    /// collector, and how long that takes is chance.
    #[serde(default)]
    deletion: String,
    /// Whether none is deleted: a controller takes its finalizer, at a time of its own.
    #[serde(default)]
    kept: bool,
    /// Whether applies always have all that an object needs: those who own less of it cannot
    /// let go of the rest.
    #[serde(default)]
    whole: bool,
    /// Whether strategic patches are understood.
    #[serde(default)]
    custom: bool,
    /// Whether its objects are in no namespace: their names then tell of which scenario
    /// they are, and so does a label.
    #[serde(default)]
    cluster: bool,
    /// What has to be there first; sent once.
    #[serde(default)]
    pub(crate) before: Vec<Step>,
}

/// A stream of numbers that a seed decides.
#[derive(Clone, Debug)]
pub(crate) struct Chance(reeve_test_support::Chance);

impl Chance {
    pub(crate) fn new(seed: u64, stream: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = stream.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix);
        Self(reeve_test_support::Chance::new(seed))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0.place(count)
    }

    /// Whether something happens that does so `percent` times in a hundred.
    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

impl Kind {
    /// About `length` requests, and what a watch tells of them.
    pub(crate) fn scenario(&self, chance: &mut Chance, length: usize) -> Scenario {
        let own = if self.cluster { CLUSTER_QUERY } else { "" };
        let mut watch = Step::request("GET", format!("{}?watch=true{own}", self.path));
        watch.watch = Some("all".to_owned());
        let mut steps = vec![watch];
        while steps.len() < length {
            self.operation(chance, &mut steps);
        }
        let mut last = Step::request("POST", self.path.clone());
        last.body = Some(self.bare(LAST));
        steps.push(last);
        steps.push(Step {
            events: Some("all".to_owned()),
            through: Some(self.name(LAST)),
            ..Step::default()
        });
        Scenario {
            name: format!("generated/{}", self.kind),
            alone: false,
            steps,
        }
    }

    fn operation(&self, chance: &mut Chance, steps: &mut Vec<Step>) {
        let name = *chance.pick(&NAMES);
        let object = format!("{}/{}", self.path, self.name(name));
        match chance.below(20) {
            0..=2 => {
                let mut step = Step::request("POST", self.query(chance, &self.path));
                step.body = Some(self.whole(chance, name));
                steps.push(step);
            }
            3..=8 => {
                let mut query = self.query(chance, &object);
                if chance.percent(35) {
                    query.push_str("&force=true");
                }
                let mut step = Step::request("PATCH", query);
                let config = if chance.percent(50) || self.whole {
                    self.whole(chance, name)
                } else {
                    self.part(chance, name)
                };
                step.apply = Some(config);
                // Once more, as those do who apply what has not changed.
                steps.push(step.clone());
                steps.push(step);
            }
            9..=10 => self.replace(chance, &object, &self.fields, steps),
            11..=13 => {
                let mut step = Step::request("PATCH", self.query(chance, &object));
                step.merge = Some(self.changes(chance, &self.fields, true));
                steps.push(step);
            }
            14 => {
                let mut step = Step::request("PATCH", self.query(chance, &object));
                step.json = Some(self.operations(chance));
                steps.push(step);
            }
            15 | 16 if !self.custom => {
                let mut step = Step::request("PATCH", self.query(chance, &object));
                step.strategic = Some(self.changes(chance, &self.fields, true));
                steps.push(step);
            }
            17 if !self.kept => {
                let dry = if chance.percent(20) { "dryRun=All" } else { "" };
                let deletion = &self.deletion;
                let path = format!("{object}?{dry}&{deletion}");
                let path = path.trim_end_matches(['&', '?']).replace("?&", "?");
                steps.push(Step::request("DELETE", path));
            }
            18 | 19 if !self.status.is_empty() => {
                let status = format!("{object}/status");
                match chance.below(3) {
                    0 => self.replace(chance, &status, &self.status, steps),
                    1 => {
                        let mut step = Step::request("PATCH", self.query(chance, &status));
                        step.merge = Some(self.changes(chance, &self.status, true));
                        steps.push(step);
                    }
                    _ => {
                        let mut step = Step::request("PATCH", self.query(chance, &status));
                        let mut config = self.typed(name);
                        self.fill(chance, &self.status, &mut config);
                        step.apply = Some(config);
                        steps.push(step);
                    }
                }
            }
            _ => steps.push(Step::request("GET", object)),
        }
    }

    /// Reads an object and writes it back, changed.
    fn replace(
        &self,
        chance: &mut Chance,
        path: &str,
        fields: &Map<String, Value>,
        steps: &mut Vec<Step>,
    ) {
        let mut read = Step::request("GET", path);
        read.save = Some("live".to_owned());
        steps.push(read);
        let mut edit = Edit {
            of: "live".to_owned(),
            ..Edit::default()
        };
        for (pointer, value) in self.some(chance, fields) {
            if value.is_null() {
                edit.remove.push(pointer);
            } else {
                edit.set.insert(pointer, value);
            }
        }
        if chance.percent(30) {
            edit.remove.push("/metadata/resourceVersion".to_owned());
        }
        let mut write = Step::request("PUT", self.query(chance, path));
        write.edit = Some(edit);
        steps.push(write);
    }

    fn query(&self, chance: &mut Chance, path: &str) -> String {
        let manager = chance.pick(&MANAGERS);
        let mut path = format!("{path}?fieldManager={manager}");
        if chance.percent(8) {
            path.push_str("&dryRun=All");
        }
        if chance.percent(8) {
            path.push_str("&fieldValidation=Strict");
        }
        path
    }

    fn name(&self, name: &str) -> String {
        match self.cluster {
            true => format!("$ns-{name}"),
            false => name.to_owned(),
        }
    }

    fn typed(&self, name: &str) -> Value {
        let name = self.name(name);
        json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}})
    }

    /// An object with all it needs, and nothing else.
    fn bare(&self, name: &str) -> Value {
        let mut object = self.typed(name);
        if self.cluster {
            put(&mut object, CLUSTER_LABEL, json!("$ns"));
        }
        for (pointer, value) in &self.base {
            put(&mut object, pointer, value.clone());
        }
        object
    }

    /// An object with all it needs.
    fn whole(&self, chance: &mut Chance, name: &str) -> Value {
        let mut object = self.bare(name);
        self.fill(chance, &self.fields, &mut object);
        object
    }

    /// Some fields of an object.
    fn part(&self, chance: &mut Chance, name: &str) -> Value {
        let mut object = self.typed(name);
        self.fill(chance, &self.fields, &mut object);
        object
    }

    fn fill(&self, chance: &mut Chance, fields: &Map<String, Value>, object: &mut Value) {
        for (pointer, value) in self.some(chance, fields) {
            put(object, &pointer, value);
        }
    }

    fn changes(&self, chance: &mut Chance, fields: &Map<String, Value>, nulls: bool) -> Value {
        let mut changes = json!({});
        for (pointer, value) in self.some(chance, fields) {
            let value = if nulls && chance.percent(15) {
                Value::Null
            } else {
                value
            };
            put(&mut changes, &pointer, value);
        }
        changes
    }

    fn operations(&self, chance: &mut Chance) -> Value {
        let some = self.some(chance, &self.fields).into_iter();
        some.map(|(path, value)| match chance.below(4) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "replace", "path": path, "value": value}),
            _ => json!({"op": "add", "path": path, "value": value}),
        })
        .collect()
    }

    /// One to four fields, each with one of its values.
    fn some(&self, chance: &mut Chance, fields: &Map<String, Value>) -> Vec<(String, Value)> {
        let all: Vec<_> = fields.iter().collect();
        let mut chosen = Map::new();
        for _ in 0..=chance.below(4) {
            let (pointer, values) = *chance.pick(&all);
            let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
            let value = values.get(chance.below(values.len())).cloned();
            chosen.insert(pointer.clone(), value.unwrap_or_default());
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn a_seed_decides_what_is_made() -> anyhow::Result<()> {
        let kind: Kind = corpus::parse(
            "{kind: ConfigMap, apiVersion: v1, path: /x, fields: {/data/a: [\"1\", null], /data/b: [x]}}",
        )?;
        let make = |seed| kind.scenario(&mut Chance::new(seed, "ConfigMap"), 30);
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert!(make(1).steps.len() >= 30);
        let printed = corpus::print(&[make(3)])?;
        let read: Vec<Scenario> = corpus::parse(&printed)?;
        assert_eq!(read, [make(3)]);
        Ok(())
    }
}

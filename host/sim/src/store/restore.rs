//! A store as it was kept: what is noted of it, and how it comes back.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;

use super::{Object, Store, Table, TableName};
use crate::state::{Entry, Snapshot};

/// All objects of a store at one version. They are shared with it.
#[derive(Debug)]
pub(crate) struct Image {
    /// The version.
    pub(crate) version: u64,
    /// The objects of each table, in key order. A table without objects counts: it
    /// may have had some, and watches of then have expired.
    pub(crate) tables: Vec<(TableName, Vec<Arc<Object>>)>,
}

impl Store {
    /// A store at `version` that holds nothing yet, and of whose history nothing is
    /// known.
    pub(crate) fn restored(history: usize, version: u64) -> Self {
        let store = Store::new(history);
        {
            let mut state = store.state.lock();
            state.version = version;
            state.floor = version;
        }
        store.latest.send_replace(version);
        store
    }

    /// Puts what a snapshot holds in its place. That is no write.
    ///
    /// # Errors
    ///
    /// Why it cannot be in there.
    pub(crate) fn place(&self, entry: &Entry<'_>) -> Result<(), String> {
        let mut state = self.state.lock();
        let upto = state.version;
        match *entry {
            Entry::Table { table } => {
                let mut rows = Table::new(upto);
                rows.compact(upto);
                state.tables.insert(TableName::from(table), rows);
                Ok(())
            }
            Entry::Put {
                version,
                table,
                key,
                json,
                mark,
            } => {
                if version > upto {
                    return Err(format!("{table} {key} is newer than the snapshot"));
                }
                let rows = state.tables.get_mut(table);
                let rows = rows.ok_or_else(|| format!("{key} is of a table that is not there"))?;
                rows.place(object(table, key, version, json, mark)?);
                Ok(())
            }
            _ => Err("it holds what no snapshot holds".to_owned()),
        }
    }

    /// Carries out a write again.
    ///
    /// # Errors
    ///
    /// Why it cannot have happened.
    pub(crate) fn replay(&self, entry: &Entry<'_>) -> Result<(), String> {
        let bounds = self.bounds();
        let mut state = self.state.lock();
        let next = state.version + 1;
        let follows = |version: u64| {
            let wrong = || format!("resourceVersion {version} follows {}", next - 1);
            (version == next).then_some(()).ok_or_else(wrong)
        };
        match *entry {
            Entry::Put {
                version,
                table,
                key,
                json,
                mark,
            } => {
                follows(version)?;
                let object = object(table, key, version, json, mark)?;
                state.table(&TableName::from(table)).put(object, &bounds);
            }
            Entry::Removed {
                version,
                table,
                key,
            } => {
                follows(version)?;
                let rows = state.table(&TableName::from(table));
                let last = rows.get(key);
                let last = last.ok_or_else(|| format!("{table} {key} is removed and not there"))?;
                rows.take(Arc::new(last.restamped(version)), &bounds);
            }
            Entry::Compacted { version } => {
                if version != state.version {
                    return Err("another version was compacted than the last one".to_owned());
                }
                state.compact();
                return Ok(());
            }
            _ => return Err("it holds what no log holds".to_owned()),
        }
        state.version = next;
        drop(state);
        self.latest.send_replace(next);
        Ok(())
    }

    /// Notes all objects, and does something with their version before there is
    /// another one.
    pub(crate) fn image<T, E>(
        &self,
        then: impl FnOnce(u64) -> Result<T, E>,
    ) -> Result<(Image, T), E> {
        let state = self.state.lock();
        let mut tables: Vec<_> = state
            .tables
            .iter()
            .map(|(name, table)| (name.clone(), table.current(&super::Range::default())))
            .collect();
        let version = state.version;
        let done = then(version)?;
        drop(state);
        tables.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok((Image { version, tables }, done))
    }

    /// All objects as they are now, for a file of its own.
    pub(crate) fn snapshot_of_all(&self) -> Snapshot {
        let objects = match self.image(|_| Ok::<_, Infallible>(())) {
            Ok((image, ())) => image,
            Err(never) => match never {},
        };
        Snapshot {
            objects,
            tokens: Vec::new(),
        }
    }
}

fn object(
    table: &str,
    key: &str,
    version: u64,
    json: &[u8],
    mark: Option<u64>,
) -> Result<Arc<Object>, String> {
    let json = Bytes::from(Box::<[u8]>::from(json));
    let object = Object::stored(key, version, json);
    let object = object.map_err(|error| format!("{table} {key} is no object: {error}"))?;
    Ok(Arc::new(object.marked(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_come_back() {
        let put = |json: &'static str| {
            let entry = Entry::Put {
                version: 8,
                table: "pods",
                key: "a",
                json: json.as_bytes(),
                mark: None,
            };
            Store::restored(1, 7).replay(&entry)
        };
        assert_eq!(put("{}"), Ok(()));
        for json in ["5", "[]", "null", "{", ""] {
            let refused = put(json).unwrap_err();
            assert!(refused.starts_with("pods a is no object: "), "{refused}");
        }
    }
}

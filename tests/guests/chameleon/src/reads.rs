//! Reads of the cluster, of sources and of what ought to be chance.

use crate::config::kind;
use crate::contract::types::{Failure, ObjectReference};
use crate::contract::{cluster, sources};
use std::collections::HashSet;

pub(crate) fn get(
    of: &str,
    namespace: Option<String>,
    name: &str,
    projection: &[String],
) -> Result<Option<String>, Failure> {
    let object = reference(of, namespace, name.to_owned());
    let found = if projection.is_empty() {
        cluster::get(&object)
    } else {
        cluster::get_parts(&object, projection)
    };
    found.map(|found| found.map(text)).map_err(failure)
}

pub(crate) fn list(
    of: &str,
    namespace: Option<String>,
    selector: String,
) -> Result<Vec<String>, Failure> {
    cluster::list(&query(of, namespace, selector))
        .map(|found| found.into_iter().map(text).collect())
        .map_err(failure)
}

pub(crate) fn keys(
    of: &str,
    namespace: Option<String>,
    selector: String,
) -> Result<Vec<String>, Failure> {
    let found = cluster::list_keys(&query(of, namespace, selector)).map_err(failure)?;
    Ok(found
        .into_iter()
        .map(|key| match key.namespace {
            Some(namespace) => format!("{namespace}/{}", key.name),
            None => key.name,
        })
        .collect())
}

pub(crate) fn source(name: &str) -> Result<String, Failure> {
    match sources::read(name) {
        Ok(document) => Ok(text(document.body)),
        Err(error) => Err(Failure::NotReady(format!("{error:?}"))),
    }
}

pub(crate) fn hash_order() -> String {
    let numbers: HashSet<u32> = (0..64).collect();
    format!("{numbers:?}")
}

pub(crate) fn reference(of: &str, namespace: Option<String>, name: String) -> ObjectReference {
    ObjectReference {
        kind: kind(of),
        namespace,
        name,
    }
}

pub(crate) fn query(of: &str, namespace: Option<String>, selector: String) -> cluster::ListQuery {
    cluster::ListQuery {
        kind: kind(of),
        namespace,
        selector,
        projection: Vec::new(),
    }
}

/// Each kind of error gives another kind of failure, so that tests can tell them
/// apart.
fn failure(error: cluster::ReadError) -> Failure {
    match error {
        cluster::ReadError::Forbidden(text) => Failure::Terminal(format!("forbidden: {text}")),
        cluster::ReadError::Undeclared(text) => Failure::Terminal(format!("undeclared: {text}")),
        cluster::ReadError::Invalid(text) => Failure::Terminal(format!("invalid: {text}")),
        cluster::ReadError::NotSynced(text) => Failure::NotReady(format!("not synced: {text}")),
    }
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(bytes.as_ref()).into_owned()
}

//! What became of the objects of a kind, as a watch told it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::ControlPlane;
use crate::server::Server;

/// Longer than kubectl takes to list a namespace.
const FIRST_LIST: Duration = Duration::from_secs(30);

/// A watch that notes every object of a kind in a namespace which comes or goes, from
/// its start to its end. It tells what was stored; the API server's audit log tells only
/// what was answered, and who is killed while it writes has no answer.
#[derive(Debug)]
pub struct Witness {
    record: PathBuf,
    _watch: Server,
}

/// That an object came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether it came.
    pub added: bool,
    /// Its name.
    pub name: String,
    /// The version of the cluster that this made; later ones are greater.
    pub version: u64,
}

impl Witness {
    /// Begins to watch. Returns when what there is has been noted, which must be one
    /// object at least.
    ///
    /// # Errors
    ///
    /// When kubectl does not start, or tells of no object.
    pub fn start(cluster: &ControlPlane, resource: &str, namespace: &str) -> Result<Self> {
        const NAME: &str = "witness";
        let kubeconfig = cluster.kubeconfig();
        let line = r#"{.type} {.object.metadata.name} {.object.metadata.resourceVersion}{"\n"}"#;
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespace={namespace}"),
            "get".to_owned(),
            resource.to_owned(),
            "--watch".to_owned(),
            "--output-watch-events".to_owned(),
            format!("--output=jsonpath={line}"),
        ];
        let record = cluster.folder().join(format!("{NAME}.log"));
        let (supervise, kubectl) = (cluster.supervise(), cluster.kubectl_program());
        let mut watch = Server::start(NAME, supervise, kubectl, &arguments, cluster.folder())?;
        watch.wait_until(FIRST_LIST, || {
            fs::read_to_string(&record).is_ok_and(|text| text.contains('\n'))
        })?;
        Ok(Self {
            record,
            _watch: watch,
        })
    }

    /// What it has noted so far, in the order in which it happened.
    ///
    /// # Errors
    ///
    /// When the record cannot be read, or holds what kubectl says when a watch fails.
    pub fn seen(&self) -> Result<Vec<Seen>> {
        let text = fs::read_to_string(&self.record)?;
        // The last line may be under way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let seen: Result<Vec<_>> = whole.lines().map(read).collect();
        Ok(seen?.into_iter().flatten().collect())
    }
}

/// Reads a line of the record; none for a change of an object.
fn read(line: &str) -> Result<Option<Seen>> {
    let fields: Vec<_> = line.split(' ').collect();
    let strange = || format!("the watch says: {line}");
    let [event, name, version] = fields[..] else {
        anyhow::bail!(strange());
    };
    let added = match event {
        "ADDED" => true,
        "DELETED" => false,
        "MODIFIED" => return Ok(None),
        _ => anyhow::bail!(strange()),
    };
    let version = version.parse().with_context(strange)?;
    Ok(Some(Seen {
        added,
        name: name.to_owned(),
        version,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let added = read("ADDED a 7").unwrap().unwrap();
        assert_eq!((added.added, &*added.name, added.version), (true, "a", 7));
        let deleted = read("DELETED a 9").unwrap().unwrap();
        assert_eq!((deleted.added, deleted.version), (false, 9));
        assert_eq!(read("MODIFIED a 8").unwrap(), None);
        for line in ["error: gone", "ADDED a b", "BOOKMARK a 1"] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}

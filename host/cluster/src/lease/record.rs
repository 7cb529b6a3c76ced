//! What a Lease says.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The fields of a Lease that matter to its candidates.
///
/// The times in it are for people: clocks of different machines are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Who holds it; empty when nobody does.
    pub(super) holder: String,
    /// How long the others leave it to the holder, in seconds; zero when it does
    /// not say.
    pub(super) duration: u32,
    /// When the holder got it.
    pub(super) acquired: Option<Timestamp>,
    /// When the holder last renewed it.
    pub(super) renewed: Option<Timestamp>,
    /// How often it has changed hands.
    pub(super) transitions: i32,
}

/// A Lease as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// Tells it from an earlier Lease of the same name.
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) record: Record,
    /// The whole of it: what others have put there stays there.
    object: Value,
}

impl Stored {
    /// Reads a Lease; none when it lacks what every object has.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let object: Value = serde_json::from_slice(body).ok()?;
        let metadata = |field: &str| object.get("metadata")?.get(field)?.as_str();
        let (uid, version) = (metadata("uid")?, metadata("resourceVersion")?);
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let text = |field: &str| spec.get(field).and_then(Value::as_str);
        let number = |field: &str| spec.get(field).and_then(Value::as_i64).unwrap_or(0);
        let time = |field: &str| text(field).and_then(|time| time.parse().ok());
        Some(Self {
            uid: uid.to_owned(),
            version: version.to_owned(),
            record: Record {
                holder: text("holderIdentity").unwrap_or_default().to_owned(),
                duration: u32::try_from(number("leaseDurationSeconds")).unwrap_or(0),
                acquired: time("acquireTime"),
                renewed: time("renewTime"),
                transitions: i32::try_from(number("leaseTransitions")).unwrap_or(0),
            },
            object,
        })
    }

    #[cfg(test)]
    pub(super) fn bare(uid: u64, version: u64, record: &Record) -> Self {
        Self {
            uid: uid.to_string(),
            version: version.to_string(),
            record: record.clone(),
            object: Value::Null,
        }
    }

    /// The body of an update that puts a record in the place of this one, if it
    /// still is the one.
    pub(super) fn updated(&self, record: &Record) -> Value {
        let mut object = self.object.clone();
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        let mut spec = spec.map(std::mem::take).unwrap_or_default();
        record.write(&mut spec);
        object["spec"] = Value::Object(spec);
        // The history of fields is the server's to write.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object
    }
}

impl Record {
    /// The body of a new Lease.
    pub(super) fn created(&self, namespace: &str, name: &str) -> Value {
        let mut spec = Map::new();
        self.write(&mut spec);
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        })
    }

    fn write(&self, spec: &mut Map<String, Value>) {
        spec.insert("holderIdentity".into(), json!(self.holder));
        // The API server takes no zero.
        if self.duration > 0 {
            spec.insert("leaseDurationSeconds".into(), json!(self.duration));
        }
        spec.insert("leaseTransitions".into(), json!(self.transitions));
        for (field, time) in [("acquireTime", self.acquired), ("renewTime", self.renewed)] {
            if let Some(time) = time {
                spec.insert(field.into(), json!(micro_time(time)));
            }
        }
    }
}

/// RFC 3339 with microseconds, as `metav1.MicroTime` is written.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_put_into_a_lease_stays_there() {
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": "reeve", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "labels": {"a": "b"}, "managedFields": [{}],
            },
            "spec": {
                "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3,
                "acquireTime": "2026-01-02T03:04:05.000001Z",
                "renewTime": "2026-01-02T03:04:06.000000Z",
                "preferredHolder": "x",
            },
        });
        let stored = Stored::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((&*stored.uid, &*stored.version), ("u", "7"));
        let record = &stored.record;
        assert_eq!(
            (&*record.holder, record.duration, record.transitions),
            ("one", 15, 3)
        );
        let mut expected = body.clone();
        expected["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(stored.updated(record), expected);

        let mut other = record.clone();
        other.holder = "two".into();
        expected["spec"]["holderIdentity"] = json!("two");
        assert_eq!(stored.updated(&other), expected);
    }

    #[test]
    fn a_bare_lease_is_nobodys() {
        for body in [
            json!({"metadata": {"uid": "u", "resourceVersion": "1"}}),
            json!({"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {"leaseDurationSeconds": -1}}),
        ] {
            let stored = Stored::parse(body.to_string().as_bytes()).unwrap();
            assert_eq!(stored.record, Record::default());
        }
        assert_eq!(Stored::parse(b"{}"), None);
        assert_eq!(Stored::parse(b"no json"), None);
    }
}

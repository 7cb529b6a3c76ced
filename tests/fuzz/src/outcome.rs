//! Outcomes, which come from guests.

use std::collections::BTreeSet;

use reeve_core::desired::Desired;
use reeve_core::kind::{GroupVersionKind, ObjectReference};
use reeve_core::manifest::{Manifest, RawManifest, RawPrimary, Scope, WriteRule};
use reeve_core::outcome::Outcome;
use reeve_core::ownership::Owner;
use reeve_core::unit::UnitKey;

/// The input is desired objects, one a line.
///
/// What is accepted stays within the manifest, names each object once, and can be
/// stamped without losing what the guest said.
pub fn outcome(input: &[u8]) {
    let manifest = manifest();
    let outcome = Outcome {
        objects: input
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect(),
        ..Outcome::default()
    };
    let profile = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    let primary = ObjectReference::new(profile, None, "alice");
    let namespaced = |object: &ObjectReference| object.kind.kind != "Namespace";
    let desired = match Desired::check(outcome, &manifest, &primary, namespaced) {
        Ok(desired) => desired,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let owner = Owner {
        unit: UnitKey::new("fuzz", primary),
        uid: "u".to_owned(),
    };
    let mut seen = BTreeSet::new();
    for object in desired.objects {
        let reference = object.reference;
        match (reference.kind.kind.as_str(), reference.namespace.as_deref()) {
            ("ResourceQuota", Some("alice"))
            | ("ConfigMap", Some("a" | "b"))
            | ("Namespace", None) => {}
            _ => panic!("outside of the manifest: {reference}"),
        }
        let key = (
            reference.kind.kind.clone(),
            reference.namespace.clone(),
            reference.name.clone(),
        );
        assert!(seen.insert(key), "twice {reference}");
        assert_eq!(object.body["metadata"]["name"], *reference.name);
        let stamped = owner.stamp(reference.clone(), object.body.clone());
        assert_eq!(stamped.reference, reference);
        for field in ["spec", "data", "apiVersion", "kind"] {
            assert_eq!(
                stamped.body().get(field),
                object.body.get(field),
                "{reference}"
            );
        }
        let again = owner.stamp(reference, object.body);
        assert_eq!(again, stamped, "the digest is by chance");
    }
}

fn manifest() -> Manifest {
    let write = |kind: &str, scope| WriteRule {
        kind: GroupVersionKind::new("", "v1", kind),
        scope,
    };
    Manifest::try_from(RawManifest {
        primary: Some(RawPrimary {
            kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
            selector: String::new(),
            projection: vec![],
        }),
        reads: vec![],
        writes: vec![
            write("ResourceQuota", Scope::NamespaceNamedLikePrimary),
            write("Namespace", Scope::Cluster),
            write("ConfigMap", Scope::Namespaces(vec!["a".into(), "b".into()])),
        ],
        sources: vec![],
        actions: vec![],
    })
    .expect("a good manifest")
}

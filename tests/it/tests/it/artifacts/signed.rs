//! Components that run only when they are signed with a key that counts.

use super::*;

/// Signatures, the reason and a part of what is said.
type Case<'a> = (&'a [(String, String)], &'a str, &'a str);

/// Keys and signatures by openssl.
fn openssl(folder: &std::path::Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = std::process::Command::new("openssl");
    let made = command.args(arguments).current_dir(folder).output();
    let made = made.unwrap_or_else(|error| panic!("openssl cannot be run: {error}"));
    assert!(made.status.success(), "{arguments:?}: {made:?}");
    made.stdout
}

struct Key {
    folder: tempfile::TempDir,
    public: String,
    /// How it signs a file.
    sign: &'static [&'static str],
}

impl Key {
    fn new(generate: &[&str], sign: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        openssl(
            folder.path(),
            &[&["genpkey", "-out", "key"], generate].concat(),
        );
        let public = openssl(folder.path(), &["pkey", "-in", "key", "-pubout"]);
        Self {
            public: String::from_utf8(public).unwrap(),
            folder,
            sign,
        }
    }

    fn p256() -> Self {
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        Self::new(&curve, &["dgst", "-sha256", "-sign", "key", "message"])
    }

    fn ed25519() -> Self {
        Self::new(
            &["-algorithm", "ed25519"],
            &[
                "pkeyutl", "-sign", "-rawin", "-inkey", "key", "-in", "message",
            ],
        )
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        std::fs::write(self.folder.path().join("message"), message).unwrap();
        openssl(self.folder.path(), self.sign)
    }

    /// A text that names a manifest, and its signature.
    fn of_manifest(&self, manifest: Digest) -> (String, String) {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": "registry.example/team/chameleon"},
                "image": {"docker-manifest-digest": manifest.to_string()},
                "type": "cosign container image signature",
            },
            "optional": null,
        })
        .to_string();
        let signature = STANDARD.encode(self.sign(payload.as_bytes()));
        (payload, signature)
    }
}

#[tokio::test]
async fn only_what_is_signed_with_a_key_that_counts_runs_from_a_registry() {
    let registry = Registry::start().await;
    let (ours, other) = (Key::p256(), Key::ed25519());
    let folder = tempfile::tempdir().unwrap();
    let mut world = world_with(Some(config(1))).await;
    world.cache_in(folder.path());
    world.start();
    let policy = |keys: &[&str]| json!({"signatures": {"keys": keys}});
    let image = registry.image("1");
    let one = edition(1);
    let first = registry.push("1", &one);
    set_artifact(&world, &image, policy(&[ours.public.as_str()])).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", "Unsigned"),
        "{loaded:?}"
    );
    assert!(
        loaded.message.contains("reeve plugin sign IMAGE"),
        "{loaded:?}"
    );
    registry.sign(first, &[ours.of_manifest(first)]);
    look(&world, 1).await;
    is_well(&world, &one).await;

    // What is next is signed by nobody, by somebody else, for something else, or not at
    // all: the version before runs.
    let two = edition(2);
    let second = registry.push("1", &two);
    let (payload, signature) = ours.of_manifest(second);
    let (first_payload, first_signature) = ours.of_manifest(first);
    let (other_payload, other_signature) = other.of_manifest(second);
    let forged = payload.replace("registry.example", "registry.elsewhere");
    let huge = "A".repeat(2000);
    let crowd = vec![(other_payload.clone(), other_signature.clone()); 40];
    let pair = |payload: &str, signature: &str| (payload.to_owned(), signature.to_owned());
    let all: [Case<'_>; 7] = [
        (
            &[],
            "Unsigned",
            "is not signed, and Plugin spec.signatures lets only those run",
        ),
        (
            &[pair(&other_payload, &other_signature)],
            "SignatureInvalid",
            "has 1 signatures, none of them of these bytes",
        ),
        (
            &[pair(&first_payload, &first_signature)],
            "SignatureInvalid",
            "has 1 signatures (1 of them of something else)",
        ),
        (
            &[pair(&payload, &first_signature)],
            "SignatureInvalid",
            "has 1 signatures, none",
        ),
        (
            &[pair(&forged, &signature)],
            "SignatureInvalid",
            "has 1 signatures, none",
        ),
        (
            &[pair(&payload, &huge), pair(&payload, "no base64")],
            "Unsigned",
            "is not signed",
        ),
        (&crowd, "SignatureInvalid", "has 16 signatures, none"),
    ];
    let mut number = 10;
    for (signatures, reason, says) in all {
        registry.sign(second, signatures);
        number += 1;
        look(&world, number).await;
        check(&world, "Loaded", reason, says, &one).await;
    }
    // A right one among wrong ones is enough.
    let mixed = [
        pair(&other_payload, &other_signature),
        pair(&payload, &signature),
    ];
    registry.sign(second, &mixed);
    look(&world, 20).await;
    is_well(&world, &two).await;

    // With other keys than those it was signed with it runs no more than it did, and not
    // after a restart; with one of them it does, and the registry need not be there.
    registry.fails(Some(StatusCode::SERVICE_UNAVAILABLE));
    let third = Key::p256();
    set_artifact(&world, &image, policy(&[third.public.as_str()])).await;
    check(
        &world,
        "Loaded",
        "SignatureInvalid",
        "none of them of these bytes",
        &two,
    )
    .await;
    world.stop().await;
    world.start();
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", "SignatureInvalid"),
        "{loaded:?}"
    );
    assert_eq!(status(&world).await["digest"], Value::Null);
    set_artifact(
        &world,
        &image,
        policy(&[third.public.as_str(), other.public.as_str()]),
    )
    .await;
    runs(&world, &two).await;
    let stale = world.plugin_condition("chameleon", "ArtifactStale").await;
    assert_eq!(stale.reason, "RegistryUnreachable", "{stale:?}");

    set_artifact(&world, &image, policy(&["no key"])).await;
    let says = "spec.signatures.keys[0] of the Plugin: no public key is in it";
    check(&world, "Loaded", "PolicyInvalid", says, &two).await;
}

#[tokio::test]
async fn the_agent_may_demand_signatures_of_config_maps() {
    let (ours, other) = (Key::ed25519(), Key::p256());
    let mut world = world_with(None).await;
    world.start_demanding(&ours.public);
    let one = edition(1);
    let deliver = async |component: &[u8], signature: Option<Vec<u8>>| {
        let mut data = vec![("plugin.wasm", component.to_vec())];
        data.extend(signature.map(|signature| ("plugin.wasm.sig", signature)));
        world.deliver("chameleon", &data, Some(config(1))).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.settle().await;
    };
    deliver(&one, None).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", "Unsigned"),
        "{loaded:?}"
    );
    assert!(
        loaded
            .message
            .contains("and the agent's signature-keys lets"),
        "{loaded:?}"
    );
    deliver(&one, Some(ours.sign(&one))).await;
    is_well(&world, &one).await;

    let two = edition(2);
    for (signature, reason, says) in [
        (None, "Unsigned", "is not signed"),
        (
            Some(ours.sign(&one)),
            "SignatureInvalid",
            "has 1 signatures, none",
        ),
        (
            Some(other.sign(&two)),
            "SignatureInvalid",
            "has 1 signatures, none",
        ),
        (
            Some(vec![0; 1000]),
            "SignatureInvalid",
            "plugin.wasm.sig is no signature: it is too long",
        ),
    ] {
        deliver(&two, signature).await;
        check(&world, "Loaded", reason, says, &one).await;
    }
    // A Plugin may demand more, and no less.
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({"signatures": {"keys": [other.public]}});
    world.apply(&plugin).await;
    deliver(&two, Some(ours.sign(&two))).await;
    check(
        &world,
        "Loaded",
        "SignatureInvalid",
        "and Plugin spec.signatures lets",
        &one,
    )
    .await;
    deliver(&two, Some(other.sign(&two))).await;
    check(
        &world,
        "Loaded",
        "SignatureInvalid",
        "and the agent's signature-keys lets",
        &one,
    )
    .await;
    plugin["spec"] = json!({"suspend": false});
    world.apply(&plugin).await;
    deliver(&two, Some(ours.sign(&two))).await;
    is_well(&world, &two).await;
}

//! Volumes and claims, field by field, and what is refused.

use proptest::prelude::*;
use reeve_sdk::names::check_dns_subdomain;
use reeve_sdk::prelude::*;

use super::*;

const OPTIONS: [&str; 9] = [
    "-o allow_other",
    "--file-cache-timeout-in-seconds=120",
    "--use-attr-cache=true",
    "--cancel-list-on-mount-seconds=10",
    "-o attr_timeout=120",
    "-o entry_timeout=120",
    "-o negative_timeout=120",
    "--log-level=LOG_DEBUG",
    "--cache-size-mb=1000",
];

struct Expected<'a> {
    volume: &'a str,
    claim: &'a str,
    class: &'a str,
    mode: &'a str,
    size: &'a str,
    attributes: Value,
    secret: [&'a str; 2],
    extra: &'a [&'a str],
}

impl Expected<'_> {
    fn objects(&self) -> [Value; 2] {
        let mut options = OPTIONS.to_vec();
        options.extend(self.extra);
        let mut csi = json!({
            "driver": "blob.csi.azure.com",
            "volumeHandle": self.volume,
            "volumeAttributes": self.attributes,
            "nodeStageSecretRef": {"name": self.secret[0], "namespace": self.secret[1]},
        });
        if self.mode == "ReadOnlyMany" {
            csi["readOnly"] = json!(true);
        }
        let annotations = json!({"reeve.dev/prune": "allow"});
        [
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {
                    "name": self.volume,
                    "labels": {
                        "data.statcan.gc.ca/classification": self.class, "kubeflow-profile": "alice",
                    },
                    "annotations": annotations,
                },
                "spec": {
                    "accessModes": [self.mode],
                    "capacity": {"storage": self.size},
                    "claimRef": {"name": self.claim, "namespace": "alice"},
                    "csi": csi,
                    "mountOptions": options,
                    "persistentVolumeReclaimPolicy": "Retain",
                },
            }),
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": self.claim,
                    "namespace": "alice",
                    "labels": {
                        "data.statcan.gc.ca/classification": self.class,
                        "blob.aaw.statcan.gc.ca/automount": "true",
                    },
                    "annotations": annotations,
                },
                "spec": {
                    "accessModes": [self.mode],
                    "resources": {"requests": {"storage": self.size}},
                    "storageClassName": "",
                    "volumeName": self.volume,
                },
            }),
        ]
    }
}

#[test]
fn every_profile_has_a_container_in_each_account() {
    let expected = |volume: &'static str, claim, class, mode, secret, extra| {
        Expected {
            volume,
            claim,
            class,
            mode,
            size: "10T",
            attributes: json!({"containerName": "alice"}),
            secret: [secret, "azure-blob-csi-system"],
            extra,
        }
        .objects()
    };
    let (rw, ro) = ("ReadWriteMany", "ReadOnlyMany");
    let all = [
        expected(
            "alice-standard",
            "standard",
            "unclassified",
            rw,
            "azure-secret",
            &[],
        ),
        expected(
            "alice-aaw-unclassified-ro",
            "aaw-unclassified-ro",
            "protected-b",
            ro,
            "azure-secret",
            &["-o ro"],
        ),
        expected(
            "alice-aaw-protected-b",
            "aaw-protected-b",
            "protected-b",
            rw,
            "aawdevcc00samgprotb",
            &[],
        ),
    ];
    let outcome = run(&json!({"preset": "main"}), Context::test());
    assert_eq!(outcome.objects_json(), all.concat());
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
    // Those accounts are of one installation, and nobody's default.
    assert!(run(&json!({}), Context::test()).objects_json().is_empty());
    let config = json!({"instances": [{
        "name": "own", "classification": "unclassified", "secretRef": "key/secrets", "capacity": 2,
    }]});
    let own = Expected {
        volume: "alice-own",
        claim: "own",
        class: "unclassified",
        mode: rw,
        size: "2T",
        attributes: json!({"containerName": "alice"}),
        secret: ["key", "secrets"],
        extra: &[],
    };
    assert_eq!(run(&config, Context::test()).objects_json(), own.objects());
}

#[test]
fn a_bucket_is_mounted_as_its_description_says() {
    let attributes = |container: &str, account: &str| {
        json!({
            "containerName": container,
            "storageAccount": account,
            "resourceGroup": "rg",
            "AzureStorageAuthType": "spn",
            "AzureStorageSPNClientId": "client",
            "AzureStorageSPNTenantId": "tenant",
            "protocol": "fuse2",
        })
    };
    let own = json!({"bucketName": "own", "pvName": "own", "spn": "sp", "readers": ["alice", "bob"],
        "writers": ["alice"]});
    let deep = json!({"bucketName": "deep", "pvName": "deep", "subfolder": "x/y", "spn": "sp",
        "readers": ["alice"]});
    let other = json!({"bucketName": "other", "pvName": "other", "spn": "sp", "readers": ["bob"],
        "writers": ["alice"]});
    let cx = Context::test().with_object(map(&[
        ("unclassified-internal", &json!([own, other]).to_string()),
        ("unclassified-external", "[]"),
        ("protected-b-internal", "[]"),
        ("protected-b-external", &json!([deep]).to_string()),
    ]));
    let outcome = run(&main_config(), cx);
    let own = Expected {
        volume: "alice-fdi-unclassified-own",
        claim: "fdi-own-unclassified",
        class: "unclassified",
        mode: "ReadWriteMany",
        size: "3T",
        attributes: attributes("own", "uncint"),
        secret: ["sp-secret", "fdi"],
        extra: &["--use-adls=true"],
    };
    let deep = Expected {
        volume: "alice-fdi-protected-b-deep",
        claim: "fdi-deep-protected-b",
        class: "protected-b",
        mode: "ReadOnlyMany",
        size: "3T",
        attributes: attributes("deep", "prbext"),
        secret: ["sp-secret", "fdi"],
        extra: &["-o ro", "--subdirectory=x/y", "--use-adls=true"],
    };
    assert_eq!(
        outcome.objects_json(),
        [own.objects(), deep.objects()].concat()
    );
    assert!(outcome.conditions().is_empty());
}

/// What of one description is refused, and that the bucket beside it is not.
#[track_caller]
fn check(config: &Value, odd: &Value, problem: &str) {
    let buckets = json!([odd, bucket("good", "good")]);
    let outcome = run(config, Context::test().with_object(described(&buckets)));
    assert_eq!(
        names(&outcome),
        [
            "PersistentVolume alice-fdi-unclassified-good",
            "PersistentVolumeClaim fdi-good-unclassified"
        ]
    );
    let found = condition(&outcome, "BucketsUsable").unwrap();
    assert_eq!(found, problem);
    assert_eq!(
        outcome.events(),
        [Event::warning("UnusableBuckets", problem)]
    );
    // It is nobody else's trouble.
    let cx = Context::test().with_object(described(&buckets));
    let bob = try_run("bob", config, cx).unwrap();
    assert!(bob.objects_json().is_empty() && bob.conditions().is_empty());
}

#[test]
fn a_bucket_that_cannot_be_mounted_is_refused_by_name() {
    let config = main_config();
    let name = "expected lower-case letters, digits, `-` and `.`, each part with a letter or digit \
                at both ends; name the bucket so that it is";
    let long = "x".repeat(240);
    for (odd, problem) in [
        (
            bucket("b", "WBD"),
            "bucket b (unclassified): \"b\" is no name of a container: expected 3 to 63 lower-case \
             letters, digits and single dashes, with a letter or digit at both ends"
                .to_owned(),
        ),
        (
            bucket("bbb", "WBD"),
            format!("bucket bbb (unclassified): claim \"fdi-WBD-unclassified\" would be no name: {name}"),
        ),
        (
            bucket("bbb", "a b"),
            format!(
                "bucket bbb (unclassified): volume \"alice-fdi-unclassified-a b\" would be no name: {name}"
            ),
        ),
        (
            bucket("bbb", &long),
            format!(
                "bucket bbb (unclassified): volume \"alice-fdi-unclassified-{long}\" would be no name: \
                 longer than the 253 characters that Kubernetes allows here; name the bucket so that \
                 it is"
            ),
        ),
        (
            json!({"bucketName": "bbb", "pvName": "p", "spn": "other", "readers": ["alice"]}),
            "bucket bbb (unclassified): the client id of its service principal other is not known; \
             set it under /fdi/clientIds"
                .to_owned(),
        ),
        (
            json!({"bucketName": "bbb", "pvName": "p", "readers": ["alice"]}),
            "bucket bbb (unclassified): it has a name and no spn; give it both, or neither".to_owned(),
        ),
        (
            json!({"bucketName": "bbb", "spn": "sp", "readers": ["alice"]}),
            "bucket bbb (unclassified): it has a spn and no name; give it both, or neither".to_owned(),
        ),
        (
            json!({"bucketName": "bbb", "readers": ["alice"]}),
            "bucket bbb (unclassified): the configuration does not say \
             /fdi/unclassified/principal/secretName; set it in config.yaml"
                .to_owned(),
        ),
        (
            json!({"bucketName": "bbb", "pvName": "p", "subfolder": "a --log-level=x", "spn": "sp",
                "readers": ["alice"]}),
            "bucket bbb (unclassified): folder \"a --log-level=x\": expected names with slashes \
             between them, without blanks, quotes, commas or backslashes"
                .to_owned(),
        ),
        (
            json!({"bucketName": "bbb", "pvName": "p", "subfolder": "../b", "spn": "sp",
                "readers": ["alice"]}),
            "bucket bbb (unclassified): folder \"../b\": expected names with slashes between them, \
             without blanks, quotes, commas or backslashes"
                .to_owned(),
        ),
    ] {
        check(&config, &odd, &problem);
    }
    let mut config = main_config();
    config["fdi"]["tenantId"] = json!("");
    let outcome = run(
        &config,
        Context::test().with_object(described(&json!([bucket("bbb", "p")]))),
    );
    assert!(outcome.objects_json().is_empty());
    assert_eq!(
        condition(&outcome, "BucketsUsable"),
        Some(
            "bucket bbb (unclassified): the configuration does not say /fdi/tenantId; set it in \
             config.yaml"
        )
    );
}

#[test]
fn of_two_with_one_name_the_one_that_has_it_keeps_it() {
    let config = main_config();
    let volume = "alice-fdi-unclassified-same";
    let container = |outcome: &Outcome| {
        assert_eq!(
            names(outcome),
            [
                format!("PersistentVolume {volume}"),
                "PersistentVolumeClaim fdi-same-unclassified".to_owned()
            ]
        );
        let object = outcome.objects_json().remove(0);
        object["spec"]["csi"]["volumeAttributes"]["containerName"].clone()
    };
    let cx = |buckets: Value| Context::test().with_object(described(&buckets));
    let alone = run(&config, cx(json!([bucket("bbb", "same")])));
    assert_eq!(container(&alone), "bbb");
    let both = json!([bucket("aaa", "same"), bucket("bbb", "same")]);
    // Nobody has it: the first of the description.
    let first = run(&config, cx(both.clone()));
    assert_eq!(container(&first), "aaa");
    let of = |second: &str, first: &str| {
        format!(
            "bucket {second} (unclassified): volume {volume} and claim fdi-same-unclassified would \
             have a name of bucket {first} (unclassified); give it another name"
        )
    };
    assert_eq!(condition(&first, "BucketsUsable"), Some(&*of("bbb", "aaa")));
    // What came later does not take it away.
    let later = run(&config, converged(&alone, cx(both)));
    assert_eq!(container(&later), "bbb");
    assert_eq!(condition(&later, "BucketsUsable"), Some(&*of("aaa", "bbb")));
    // Names that differ in case are one volume.
    let case = json!([bucket("aaa", "same"), bucket("bbb", "SAME")]);
    let outcome = run(&config, cx(case));
    assert_eq!(container(&outcome), "aaa");
}

proptest! {
    #[test]
    fn any_description_gives_objects_with_names_or_is_named(
        name in "[a-zA-Z0-9/._ -]{0,12}",
        label in "[a-zA-Z0-9._ -]{0,12}",
        folder in "[a-zA-Z0-9/._ \"-]{0,8}",
        spn in "sp|other|",
    ) {
        let entry = json!({"bucketName": name, "pvName": label, "subfolder": folder, "spn": spn,
            "readers": ["alice"], "writers": ["alice"]});
        let outcome = run(&main_config(), Context::test().with_object(described(&json!([entry]))));
        let objects = outcome.objects_json();
        prop_assert_eq!(objects.is_empty(), !outcome.conditions().is_empty());
        for object in &objects {
            let name = object["metadata"]["name"].as_str().unwrap();
            prop_assert!(check_dns_subdomain(name).is_ok(), "{}", name);
        }
        for option in objects.first().map(|volume| volume["spec"]["mountOptions"].clone()).iter() {
            let words: Vec<_> = option.as_array().unwrap().iter().skip(9).collect();
            prop_assert!(words.iter().all(|word| !word.as_str().unwrap().contains(' ')));
        }
    }
}

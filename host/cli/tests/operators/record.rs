//! `reeve record`, `reeve replay` and `reeve test --from`.

use super::{Desk, Said};
use reeve_core::recording::Recording;
use reeve_it::{core_reference, guest, plugin, profile_reference};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

/// A value that must not be where it was not asked for, and what the API server makes of
/// it.
const CANARY: (&str, &str) = ("canary-7f3a", "Y2FuYXJ5LTdmM2E=");

/// A cluster in which `quotas` runs for alice, who wants seven pods.
async fn quotas() -> Desk {
    let desk = Desk::new().await;
    desk.world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    desk.world
        .tenant("alice", &[("quotas.statcan.gc.ca/pods", "7")])
        .await;
    desk.file("quotas.wasm", &plugin("quotas"));
    desk.world.writes();
    desk
}

/// A cluster in which the chameleon does as it is told for alice, who has a Secret.
async fn chameleon(deed: Value) -> Desk {
    let desk = Desk::new().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reads": [{"kind": "Secret.v1", "scope": "cluster", "names": ["login"]}], "reconcile": deed,
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.install("chameleon", &data, Some(config)).await;
    desk.world.tenant("alice", &[]).await;
    let mut secret = core_reference("Secret", "alice", "login");
    secret["data"] = json!({"password": CANARY.1});
    desk.world.apply(&secret).await;
    desk.file("chameleon.wasm", &guest("chameleon"));
    desk.world.writes();
    desk
}

fn get() -> Value {
    json!({"do": "get", "kind": "Secret.v1", "namespace": "alice", "name": "login"})
}

impl Desk {
    fn text_of(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn recording(&self, name: &str) -> Recording {
        let read = Recording::read(self.text_of(name).as_bytes()).unwrap();
        assert!(!read.edited);
        read.recording
    }
}

impl Said {
    /// Checks the exit code, that nothing was complained about, and that all of this was
    /// said.
    #[track_caller]
    fn says(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.err.as_str()), (Some(code), ""), "{self:?}");
        for part in parts {
            assert!(self.out.contains(part), "{part}\n{}", self.out);
        }
    }
}

/// The bytes of a component with something in them that means nothing.
fn rebuilt(mut component: Vec<u8>) -> Vec<u8> {
    component.extend([0, 3, 1, b'x', 0]);
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_call_is_made_again_without_a_cluster() {
    let desk = quotas().await;
    let said = desk
        .reeve("record quotas/alice --save-component saved.wasm")
        .await;
    said.says(
        0,
        &[
            "recorded quotas 0.1.0 for Profile alice: 0 reads, 1 object\n\
             written to quotas-alice.recording.json (",
            "replay it with: reeve replay quotas-alice.recording.json --component saved.wasm\n",
        ],
    );
    assert_eq!(desk.world.writes(), 0, "recording writes nothing");
    let path = desk.folder.path().join("quotas-alice.recording.json");
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for who made it");
    assert_eq!(
        std::fs::read(desk.folder.path().join("saved.wasm")).unwrap(),
        plugin("quotas")
    );
    // Nothing of the cluster is needed any more.
    desk.file("kubeconfig", b"");
    let replay = "replay quotas-alice.recording.json";
    let said = desk
        .reeve(&format!("{replay} --component saved.wasm"))
        .await;
    said.says(
        0,
        &[
            "quotas 0.1.0 (sha256:…) for Profile alice, recorded at 20",
            "\nequal in each byte: 1 object\n",
        ],
    );
    let (code, answer) = desk.json(&format!("{replay} --component saved.wasm")).await;
    assert_eq!(code, Some(0));
    for (field, expected) in [
        ("equal", json!(true)),
        ("answer", json!("outcome")),
        ("differences", json!([])),
        ("obstacles", json!([])),
        ("unasked", json!([])),
    ] {
        assert_eq!(answer[field], expected, "{field}");
    }
    assert_eq!(answer["component"]["recorded"], true);
    assert_eq!(answer["recording"]["edited"], false);
    assert_eq!(answer["recording"]["primary"]["name"], "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_is_told_from_the_recorded_one() {
    let desk = quotas().await;
    desk.file("rebuilt.wasm", &rebuilt(plugin("quotas")));
    desk.file("limits.wasm", &plugin("limitranges"));
    desk.reeve("record quotas --file a.json").await.says(0, &[]);
    let said = desk.reeve("replay a.json --component rebuilt.wasm").await;
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err.starts_with("error: rebuilt.wasm is sha256:")
            && said
                .err
                .contains(", and the call was recorded with sha256:")
            && said
                .err
                .ends_with(" (quotas 0.1.0); name that one, or ask another version with --with\n"),
        "{}",
        said.err
    );
    let said = desk.reeve("replay a.json --with rebuilt.wasm").await;
    said.says(
        0,
        &[
            "quotas 0.1.0 (sha256:…) in the place of 0.1.0 (sha256:…) for Profile alice",
            "\nequal in each byte: 1 object\n",
        ],
    );
    let said = desk.reeve("replay a.json --with limits.wasm").await;
    assert_eq!((said.code, said.err.as_str()), (Some(2), ""), "{said:?}");
    let (code, answer) = desk.json("replay a.json --with limits.wasm").await;
    assert_eq!((code, &answer["equal"]), (Some(2), &json!(false)));

    // Another answer is told field by field.
    let mut recording = desk.recording("a.json");
    let config = json!({"hard": {"pods": "3"}, "labelPrefix": "none/"});
    recording.input.config = reeve_core::recording::Body::new(config.to_string());
    desk.file("b.json", recording.to_text().unwrap().as_bytes());
    let said = desk.reeve("replay b.json --component quotas.wasm").await;
    said.says(
        2,
        &[
            "\n  ~ ResourceQuota alice/quotas\n      ~ spec.hard.pods: \"7\" -> \"3\"\n",
            "\ndifferent\n",
        ],
    );
    let (_, answer) = desk.json("replay b.json --component quotas.wasm").await;
    assert_eq!(
        answer["differences"],
        json!([{
            "object": "ResourceQuota alice/quotas",
            "change": "changed",
            "fields": [{
                "path": "spec.hard.pods", "old": {"value": "7"}, "new": {"value": "3"},
            }],
        }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_recorded_is_told_as_such() {
    let desk = chameleon(get()).await;
    desk.file("other.wasm", &rebuilt(guest("chameleon")));
    desk.reeve("record chameleon --file a.json").await.says(
        0,
        &[
            "recorded chameleon 0.1.0 for Profile alice: 1 read, 1 object\n",
            "it holds values of 1 Secret: alice/login; --redact-secrets leaves out those that \
             are read\n",
        ],
    );
    let mut recording = desk.recording("a.json");
    recording.input.reads.clear();
    desk.file("b.json", recording.to_text().unwrap().as_bytes());
    let said = desk.reeve("replay b.json --with other.wasm").await;
    said.says(
        2,
        &[
            "\n  ! it reads Secret alice/login, which was not recorded; it was told that this is \
             not known yet\n",
            "\ndifferent, as far as can be told without 1 read that was not recorded\n",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redacted_recording_has_no_secret_and_replays_all_the_same() {
    let desk = chameleon(get()).await;
    desk.reeve("record chameleon/alice --file whole.json")
        .await
        .says(0, &[]);
    let whole = desk.text_of("whole.json");
    assert!(whole.contains(CANARY.1), "it is what the plugin saw");
    desk.reeve("record chameleon/alice --file redacted.json --redact-secrets")
        .await
        .says(
            0,
            &[
                "values of 1 Secret were not shown to it: the answer is the one to what stands in \
                 their place\n",
            ],
        );
    let redacted = desk.text_of("redacted.json");
    for canary in [CANARY.0, CANARY.1] {
        assert!(!redacted.contains(canary), "{redacted}");
    }
    let recording = desk.recording("redacted.json");
    assert_eq!(recording.redacted[0].fields, ["/data/password"]);
    for (file, said) in [
        ("whole.json", "recorded at"),
        (
            "redacted.json",
            "\n  values of 1 Secret are redacted: both answers are to what stands in their place\n",
        ),
    ] {
        let replay = format!("replay {file} --component chameleon.wasm");
        let said_of = desk.reeve(&replay).await;
        said_of.says(0, &[said, "\nequal in each byte: 1 object\n"]);
        assert!(!said_of.out.contains(CANARY.0));
    }
    let (_, answer) = desk
        .json("replay redacted.json --component chameleon.wasm")
        .await;
    assert_eq!(
        answer["recording"]["redacted"],
        json!(["Secret alice/login"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_and_a_trap_are_recorded_too() {
    for (deed, summary) in [
        (
            json!({"do": "fail", "how": "not-ready", "text": "no database yet"}),
            "the failure `not-ready`: no database yet",
        ),
        (
            json!({"do": "panic", "text": "lost"}),
            "no answer: reconcile: the plugin gave up: panicked at ",
        ),
    ] {
        let desk = chameleon(deed).await;
        desk.reeve("record chameleon/alice --file a.json")
            .await
            .says(0, &[summary]);
        desk.reeve("replay a.json --component chameleon.wasm")
            .await
            .says(0, &["\nequal in each byte: ", summary]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_recorded_or_replayed_says_why() {
    let desk = quotas().await;
    desk.world.tenant("bob", &[]).await;
    desk.file("there.json", b"{}");
    desk.reeve("record quotas/alice --file a.json")
        .await
        .says(0, &[]);
    let text = desk.text_of("a.json");
    desk.file("cut.json", &text.as_bytes()[..text.len() / 2]);
    desk.file(
        "edited.json",
        text.replace("\"memoryBytes\": 6", "\"memoryBytes\": 5")
            .as_bytes(),
    );
    desk.file(
        "newer.json",
        text.replace("reeve.dev/v1alpha1", "reeve.dev/v2")
            .as_bytes(),
    );
    desk.file(
        "damaged.json",
        text.replace("\"hostCalls\"", "\"hostCall\"").as_bytes(),
    );
    for (arguments, code, expected) in [
        (
            "record quotas",
            2,
            "plugin quotas: it has 2 units; name one of them, such as quotas/alice",
        ),
        (
            "record quotas/carol",
            2,
            "plugin quotas: it has no unit carol; its units are named by their primaries: \
             Profile alice, Profile bob",
        ),
        (
            "record quotas/alice --unit bob",
            2,
            "the unit is named twice: as alice and with --unit",
        ),
        (
            "record quotas/alice --file there.json",
            2,
            "there.json is there already; name another, or replace it with --force",
        ),
        (
            "replay absent.json --with quotas.wasm",
            1,
            "cannot read the recording absent.json: No such file or directory (os error 2)",
        ),
        (
            "replay there.json --with quotas.wasm",
            1,
            "there.json: it is no recording: it has neither `apiVersion` nor `kind`, where \
             `apiVersion: reeve.dev/v1alpha1` and `kind: Recording` should stand; name a file \
             that `reeve record` wrote",
        ),
        (
            "replay newer.json --with quotas.wasm",
            1,
            "newer.json: its form is `reeve.dev/v2`, and this reeve reads `reeve.dev/v1alpha1`; \
             use the reeve that wrote it, version 0.1.0",
        ),
        (
            "replay damaged.json --with quotas.wasm",
            1,
            "damaged.json: limits: unknown field `hostCall`, expected one of `runMilliseconds`, \
             `wallMilliseconds`, `memoryBytes`, `stackBytes`, `outputBytes`, `outputObjects`, \
             `hostCalls`, `hostCallBytes`, `logBytes`; the file is damaged, or was edited or \
             written by another version of reeve: record the call again",
        ),
        (
            "replay edited.json --component quotas.wasm",
            1,
            "edited.json was changed after it was written, if only in how a JSON text in it is \
             laid out, which the plugin would see; record the call again, or take the file as it \
             is with --edited",
        ),
        (
            "replay a.json --with there.json",
            1,
            "there.json is neither a component nor the ConfigMaps of one: it holds no ConfigMap",
        ),
    ] {
        desk.reeve(arguments).await.fails(code, expected);
    }
    let said = desk.reeve("replay cut.json --with quotas.wasm").await;
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.starts_with("error: cut.json: it ends in line ")
            && said
                .err
                .ends_with(", before its end; copy or record it again\n"),
        "{}",
        said.err
    );
    // 2 means that something differs.
    assert_eq!(desk.reeve("replay a.json").await.code, Some(1));
    desk.reeve("replay edited.json --component quotas.wasm --edited")
        .await
        .says(0, &["the file was edited", "equal in each byte"]);
    desk.reeve("record quotas/alice --file there.json --force")
        .await
        .says(0, &["written to there.json"]);
    desk.reeve("replay there.json --component quotas.wasm")
        .await
        .says(0, &["equal in each byte"]);
}

/// A call becomes a scenario that passes, whatever came of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_becomes_a_scenario_that_passes() {
    let desk = quotas().await;
    desk.reeve("record quotas/alice").await.says(0, &[]);
    std::fs::create_dir(desk.folder.path().join("plugin")).unwrap();
    let from = "test plugin --from quotas-alice.recording.json --component quotas.wasm";
    let said = desk.reeve(from).await;
    assert_eq!(said.err, "made plugin/scenarios/quotas-alice.yaml\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("1 passed, 0 failed"), "{}", said.out);
    let text = desk.text_of("plugin/scenarios/quotas-alice.yaml");
    for part in [
        "name: \"quotas for Profile alice, as recorded at 20",
        "pods: \"7\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // It is a scenario like any other, and fails with a component that does otherwise.
    desk.file("limits.wasm", &plugin("limitranges"));
    let said = desk.reeve("test plugin --component quotas.wasm").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = desk.reeve("test plugin --component limits.wasm").await;
    assert_eq!(said.code, Some(1), "{said:?}");
    let said = desk.reeve(from).await;
    said.fails(
        2,
        "plugin/scenarios/quotas-alice.yaml is there already; remove it, or rename \
         quotas-alice.recording.json, after which it is named",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_is_given_and_what_failed_is_expected() {
    let desk = chameleon(json!({"do": "echo"})).await;
    std::fs::create_dir(desk.folder.path().join("plugin")).unwrap();
    let deeds = [
        ("get", get(), "kind: Secret"),
        (
            "list",
            json!({"do": "list", "kind": "Secret.v1", "namespace": "alice"}),
            "kind: Secret",
        ),
        (
            "fail",
            json!({"do": "fail", "how": "not-ready", "text": "no database yet"}),
            "message: no database yet",
        ),
        (
            "panic",
            json!({"do": "panic", "text": "lost"}),
            "reason: Trapped",
        ),
        (
            "raw",
            json!({"do": "raw", "text": "{"}),
            "reason: OutcomeRefused",
        ),
        (
            "flood",
            json!({"do": "objects", "count": 1001}),
            "reason: LimitExceeded",
        ),
    ];
    for (name, deed, _) in &deeds {
        desk.world.tenant(name, &[]).await;
        let annotations = json!({"chameleon.reeve.dev/do": deed.to_string()});
        let patch = json!({"metadata": {"annotations": annotations}});
        desk.world.edit(&profile_reference(name), patch).await;
    }
    for (name, deed, expected) in &deeds {
        desk.reeve(&format!("record chameleon/{name} --file {name}.json"))
            .await
            .says(0, &[]);
        let from = format!("test plugin --from {name}.json --component chameleon.wasm");
        let said = desk.reeve(&from).await;
        let text = desk.text_of(&format!("plugin/scenarios/{name}.yaml"));
        assert_eq!(said.code, Some(0), "{deed}\n{}\n{text}", said.out);
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

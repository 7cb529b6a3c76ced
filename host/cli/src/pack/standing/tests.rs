//! Standings of packs, from objects as a cluster has them.

use super::*;
use crate::pack::parts::Halt;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{UnitSpec, UnitStatus, condition};

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn pack(name: &str, wave: &str, spec: Value) -> DynamicObject {
    object(json!({
        "apiVersion": "packs.reeve.dev/v1alpha1", "kind": "Pack",
        "metadata": {"name": name, "annotations": {
            "reeve.dev/wave": wave, "packs.reeve.dev/origin": "stored",
        }},
        "spec": spec,
    }))
}

fn parts() -> Vec<Part> {
    let part = |plugin: &str| Part {
        plugin: plugin.to_owned(),
        role: "Releases".to_owned(),
        config: json!({}),
        trouble: None,
    };
    vec![part("packs"), part("packs-flux")]
}

fn unit(plugin: &str, name: &str, reason: &str, message: &str) -> Unit {
    let mut unit = Unit::new("u", UnitSpec::default());
    unit.spec.plugin = plugin.to_owned();
    unit.spec.primary.kind = "Pack".to_owned();
    unit.spec.primary.name = name.to_owned();
    let now = Timestamp::UNIX_EPOCH;
    unit.status = Some(UnitStatus {
        conditions: vec![condition("Ready", "False", reason, message, None, now)],
        ..UnitStatus::default()
    });
    unit
}

/// Name, state and whether something else is wanted.
fn standings(
    objects: &[DynamicObject],
    document: &str,
    units: &[Unit],
) -> Vec<(String, State, bool)> {
    let document = Document::parse(document).unwrap();
    let packs = all(objects, Some(&document), units, &parts(), &[]);
    packs
        .into_iter()
        .map(|pack| (pack.name, pack.state, pack.pending))
        .collect()
}

#[test]
fn each_pack_has_a_state_in_the_order_of_waves() {
    let mut going = pack("going", "7", json!({}));
    going.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let objects = [
        going,
        pack("ready", "-5", json!({"version": "1.x"})),
        pack("blocked", "3", json!({})),
        pack("failed", "4", json!({})),
        pack("waiting", "2", json!({})),
        pack("off", "5", json!({"enabled": false})),
        pack("still", "1", json!({"suspend": true})),
        pack("other", "6", json!({"values": {"a": {"b": 1}}})),
    ];
    let units = [
        unit("packs", "blocked", "NotReady", "blocked by pack waiting: x"),
        unit("packs", "failed", "Terminal", "no"),
        unit("packs-flux", "waiting", "Progressing", "on its way"),
        // Somebody else's, and one of another plugin.
        unit("packs", "nobody", "Terminal", "no"),
        unit("other", "ready", "Terminal", "no"),
    ];
    let document = r#"{"version": "0.1", "packs": [
        {"name": "ready", "version": "1.x", "wave": null}, {"name": "blocked"}, {"name": "failed"},
        {"name": "waiting"}, {"name": "off", "enabled": false}, {"name": "still", "suspend": true},
        {"name": "other", "values": {"a": {"b": 2}}}, {"name": "new"}, {"name": "early", "wave": -9}]}"#;
    let expected = [
        ("early", State::NotApplied, true),
        ("ready", State::Ready, false),
        ("still", State::Suspended, false),
        ("waiting", State::Waiting, false),
        ("blocked", State::Blocked, false),
        ("failed", State::Failed, false),
        ("off", State::Disabled, false),
        ("other", State::Ready, true),
        ("going", State::Going, true),
        ("new", State::NotApplied, true),
    ]
    .map(|(name, state, pending)| (name.to_owned(), state, pending));
    assert_eq!(standings(&objects, document, &units), expected);
}

#[test]
fn who_is_made_by_hand_is_nothing_that_the_document_takes_away() {
    let mut mine = pack("mine", "1", json!({}));
    let annotations = mine.metadata.annotations.as_mut().unwrap();
    annotations.remove("packs.reeve.dev/origin");
    let objects = [mine, pack("theirs", "2", json!({}))];
    let document = r#"{"version": "0.1", "packs": []}"#;
    let expected = [("mine", false), ("theirs", true)]
        .map(|(name, pending)| (name.to_owned(), State::Ready, pending));
    assert_eq!(standings(&objects, document, &[]), expected);
}

#[test]
fn releases_are_read_as_flux_means_them() {
    let release = |status: Value, suspend: bool| {
        let found = Release::of(&object(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "r", "namespace": "n", "generation": 2},
            "spec": {"suspend": suspend}, "status": status,
        })));
        (found.ready, found.message)
    };
    let status = |kind: &str, status: &str, seen: i64| {
        json!({"observedGeneration": seen, "conditions": [{
            "type": kind, "status": status, "reason": "R", "message": "m", "observedGeneration": seen,
        }]})
    };
    let said = |found: (bool, String)| (found.0, found.1.contains("R: m"));
    assert_eq!(
        said(release(status("Ready", "True", 2), false)),
        (true, true)
    );
    assert_eq!(
        said(release(status("Ready", "False", 2), false)),
        (false, true)
    );
    assert_eq!(
        said(release(status("Stalled", "True", 2), false)),
        (false, true)
    );
    // What it says of an earlier generation counts for nothing.
    assert_eq!(
        said(release(status("Ready", "True", 1), false)),
        (false, false)
    );
    assert_eq!(said(release(json!({}), false)), (false, false));
    assert!(!release(status("Ready", "True", 2), true).0);
    // Ready as it was before is not ready.
    let mut busy = status("Ready", "True", 2);
    let conditions = busy["conditions"].as_array_mut().unwrap();
    conditions.push(json!({
        "type": "Reconciling", "status": "True", "reason": "P", "message": "upgrading",
        "observedGeneration": 2,
    }));
    let (ready, message) = release(busy, false);
    assert!(!ready && message.contains("P: upgrading"), "{message}");
}

#[test]
fn what_nobody_looks_after_is_not_ready() {
    let objects = [pack("istio", "-50", json!({}))];
    let halt = |runs| {
        let mut parts = parts();
        parts[0].trouble = Some(Halt {
            reason: "KindNotServed".to_owned(),
            message: "no\n HelmRelease".to_owned(),
            runs,
            passes: false,
        });
        parts
    };
    let of_role = |role: &str| {
        let mut parts = halt(false);
        parts[0].role = role.to_owned();
        parts
    };
    for (parts, state, message) in [
        // It makes Packs, and says nothing of one that is there.
        (
            of_role("DesiredState"),
            State::Ready,
            "it does not run: no HelmRelease",
        ),
        (
            halt(false),
            State::Waiting,
            "it does not run: no HelmRelease",
        ),
        (
            halt(true),
            State::Ready,
            "an earlier version runs: no HelmRelease",
        ),
    ] {
        let packs = all(&objects, None, &[], &parts, &[]);
        assert_eq!(packs[0].state, state);
        let halts: Vec<Trouble> = parts.iter().filter_map(Trouble::of_part).collect();
        assert_eq!(halts[0].message, message);
        let standing = Standing {
            place: None,
            unknown: None,
            halts,
            troubles: Vec::new(),
            warnings: Vec::new(),
            packs,
        };
        assert!(!standing.is_well());
    }
}

/// Beside what `Ready` is about, which is told as trouble.
#[test]
fn what_a_plugin_tells_of_a_pack_is_a_warning() {
    let mut told = unit("packs", "istio", "Running", "");
    let now = Timestamp::UNIX_EPOCH;
    let conditions = &mut told.status.as_mut().unwrap().conditions;
    conditions.clear();
    for (kind, status) in [
        ("Ready", "True"),
        ("Reconciling", "False"),
        ("PatchesMatch", "False"),
        ("ConfigurationClear", "True"),
        ("Contested", "True"),
    ] {
        let reason = "Told".to_owned();
        conditions.push(condition(kind, status, reason, "a\nb", None, now));
    }
    let parts = parts();
    let units = [told];
    let all = all(&[pack("istio", "1", json!({}))], None, &units, &parts, &[]);
    assert_eq!(all[0].state, State::Ready);
    let json = all[0].json();
    let warning = |kind: &str| json!({"plugin": "packs", "condition": kind, "message": "a b"});
    assert_eq!(
        json["warnings"],
        json!([warning("Contested"), warning("PatchesMatch")])
    );
    assert_eq!(Warning::all(&units, &parts, "Pack", Some("flux")).len(), 0);
}

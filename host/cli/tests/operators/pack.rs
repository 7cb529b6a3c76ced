//! `reeve pack`, without an agent: what is stored, listed and rendered.

use super::Desk;
use reeve_it::plugin;
use reeve_test_support::samples;
use serde_json::{Value, json};

const DEFINITIONS: &str = include_str!("../../../../plugins/packs/crds/packs.yaml");
const CONFIGURATION: &str =
    include_str!("../../../../plugins/packs/scenarios/shared/configuration.yaml");
const PLACE: &str = "Secret sgp-system-manager/desired-state, entry desired-state.json";

/// A cluster in which the parts of packs are installed.
async fn desk() -> Desk {
    let desk = Desk::new().await;
    for definition in serde_saphyr::from_multiple::<Value>(DEFINITIONS).unwrap() {
        desk.world.apply(&definition).await;
    }
    desk.world
        .apply(&samples::namespace("sgp-system-manager"))
        .await;
    for (name, data) in [
        ("packs", json!({})),
        (
            "packs-desired-state",
            json!({"component": "packs", "config.yaml": "role: DesiredState"}),
        ),
    ] {
        desk.world
            .apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"name": name, "namespace": "reeve-system", "labels": {"reeve.dev/plugin": "true"}},
            }))
            .await;
        runs(&desk, name, "True", "Running").await;
    }
    desk
}

/// As the agent reports a part.
async fn runs(desk: &Desk, name: &str, status: &str, reason: &str) {
    let mut plugin = reeve_it::plugin_reference(name);
    plugin["spec"] = json!({});
    desk.world.apply(&plugin).await;
    let ready = json!({
        "type": "Ready", "status": status, "reason": reason, "message": "as told",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"status": {"conditions": [ready]}});
    let api = desk.world.api(&plugin);
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(&status);
    api.patch_status(name, &params, &patch).await.unwrap();
}

fn pack(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "packs.reeve.dev/v1alpha1", "kind": "Pack",
        "metadata": {"name": name, "annotations": {"reeve.dev/wave": "-100"}}, "spec": spec,
    })
}

fn secret(text: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "desired-state", "namespace": "sgp-system-manager", "ownerReferences": owners},
        "stringData": {"desired-state.json": text},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_desired_state_is_changed_and_nothing_else_of_it() {
    let desk = desk().await;
    // What is there without a stored state is written down with the first change.
    desk.world
        .apply(&pack("flux", &json!({"version": "1.x"})))
        .await;
    desk.file("values.yaml", b"istiod: {pilot: {replicas: 2}}\n");
    desk.file(
        "patches.yaml",
        b"- {target: {kind: Gateway}, patch: {metadata: {labels: {a: b}}}}\n",
    );
    desk.reeve(
        "pack add istio --wave -3 --values values.yaml --patches patches.yaml --depends-on flux",
    )
    .await
    .is(
        0,
        &format!(
            "pack istio was added in {PLACE}\n\
                 nothing was stored before; the packs that were wanted stand in it, too\n\
                 it is being applied; `reeve pack status` says how far it is\n"
        ),
    );
    let (code, list) = desk.json("pack list").await;
    assert_eq!(code, Some(0));
    let row = |index: usize| {
        let pack = &list["packs"][index];
        json!([
            pack["name"],
            pack["wave"],
            pack["version"],
            pack["state"],
            pack["pending"]
        ])
    };
    assert_eq!(row(0), json!(["flux", -100, "1.x", "Ready", false]));
    assert_eq!(row(1), json!(["istio", -3, null, "NotApplied", true]));
    desk.reeve("pack status").await.is(
        1,
        &format!(
            "desired state: {PLACE}\n\
             ├─ flux: ready\n\
             └─ istio: not applied; `reeve pack reconcile` applies what is wanted of it now\n"
        ),
    );
    desk.reeve("pack status flux")
        .await
        .is(0, &format!("desired state: {PLACE}\n└─ flux: ready\n"));
    desk.reeve("pack status x").await.fails(
        2,
        "there is no pack x, and none is wanted; there are: flux, istio",
    );
    let (code, done) = desk.json("pack suspend istio").await;
    assert_eq!((code, &done["changed"]), (Some(0), &json!(true)));
    desk.reeve("pack suspend istio")
        .await
        .is(0, &format!("pack istio is suspended already in {PLACE}\n"));
    let (_, done) = desk.json("pack remove flux").await;
    assert_eq!(done["change"], "removed");
    desk.reeve("pack add istio").await.fails(
        2,
        &format!(
            "{PLACE}: pack istio is in it already, at /packs/0; take it out with `reeve pack remove \
             istio` first"
        ),
    );
    desk.reeve("pack remove istio").await.fails(
        2,
        &format!(
            "{PLACE}: istio is the last pack, and a desired state without packs is refused unless \
             spec.allowEmpty of the PackSet says so; where it does, --allow-empty takes it out"
        ),
    );
    let stored = desk.world.get(&secret("", &json!([]))).await.unwrap();
    let text = stored["data"]["desired-state.json"].as_str().unwrap();
    let text =
        String::from_utf8(base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).unwrap());
    let expected = json!({"version": "0.1", "packs": [{
        "name": "istio", "wave": -3, "dependsOn": ["flux"], "suspend": true,
        "values": {"istiod": {"pilot": {"replicas": 2}}},
        "patches": [{"target": {"kind": "Gateway"}, "patch": {"metadata": {"labels": {"a": "b"}}}}],
    }]});
    assert_eq!(
        serde_json::from_str::<Value>(&text.unwrap()).unwrap(),
        expected
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_initial_state_is_kept_by_the_first_change() {
    let desk = desk().await;
    let configuration: Value = serde_saphyr::from_str(CONFIGURATION).unwrap();
    desk.world.apply(&configuration).await;
    // What it has begun is as somebody has changed it since.
    let mut begun = pack("sgp-helm-repository", &json!({"version": "2"}));
    begun["metadata"]["annotations"]["packs.reeve.dev/origin"] = json!("initial");
    desk.world.apply(&begun).await;
    assert_eq!(desk.reeve("pack add temporalf").await.code, Some(0));
    desk.reeve("pack status sgp-helm-repository").await.is(
        0,
        &format!("desired state: {PLACE}\n└─ sgp-helm-repository: ready\n"),
    );
    let (_, list) = desk.json("pack list").await;
    let packs = list["packs"].as_array().unwrap().iter();
    let names: Vec<&str> = packs.map(|pack| pack["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sgp-helm-repository", "flux", "temporalf"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_names_the_next_command() {
    let bare = Desk::new().await;
    let said = bare.reeve("pack list").await;
    assert!(
        said.err
            .contains("`helm install packs charts/packs -n reeve-system`"),
        "{said:?}"
    );
    assert_eq!(said.code, Some(2));

    let desk = desk().await;
    let owner = json!([{
        "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "name": "state", "uid": "u",
    }]);
    let state = r#"{"version": "0.1", "packs": [{"name": "flux"}]}"#;
    desk.world.apply(&secret(state, &owner)).await;
    desk.reeve("pack add istio").await.fails(
        2,
        &format!(
            "{PLACE} is made by ExternalSecret state, which would undo the change: make it in the \
             secret manager, then run `reeve pack reconcile`"
        ),
    );
    desk.world.apply(&secret("text", &json!([]))).await;
    desk.reeve("pack add istio").await.fails(
        2,
        &format!(
            "{PLACE}: it is no desired state: expected {{\"version\": \"0.1\", \"packs\": […]}}"
        ),
    );
    let part = reeve_it::plugin_reference("packs-desired-state");
    desk.world.delete(&part).await;
    let said = desk.reeve("pack reconcile").await;
    assert!(
        said.err
            .contains("there is no plugin packs-desired-state yet"),
        "{said:?}"
    );
    let said = desk.reeve("pack reconcile istio").await;
    assert!(said.err.contains("`reeve pack add istio`"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packs_are_rendered_without_a_cluster() {
    let desk = Desk::new().await;
    desk.file("packs.wasm", &plugin("packs"));
    let configuration: Value = serde_saphyr::from_str(CONFIGURATION).unwrap();
    let text = configuration["stringData"]["system-manager-config.json"].as_str();
    desk.file("c.json", text.unwrap().as_bytes());
    desk.file("kubeconfig", b"");
    let names = [
        "flux",
        "sgp-helm-repository",
        "istio",
        "spicedb",
        "identity-service",
        "temporalf",
        "sgp-apps",
    ];
    let packs: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "suspend": true}))
        .collect();
    let state = |packs: &[Value]| json!({"version": "0.1", "packs": packs}).to_string();
    desk.file("s.json", state(&packs).as_bytes());
    let render = "pack render --component packs.wasm --configuration c.json --desired-state s.json";
    let (code, rendered) = desk.json(render).await;
    assert_eq!(code, Some(0));
    let of = |name: &str| -> Vec<String> {
        let packs = rendered["packs"].as_array().unwrap();
        let pack = packs.iter().find(|pack| pack["name"] == name).unwrap();
        let objects = pack["objects"].as_array().unwrap().iter();
        objects
            .map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]).replace('"', ""))
            .collect()
    };
    assert_eq!(rendered["packs"].as_array().unwrap().len(), names.len());
    assert_eq!(
        of("temporalf"),
        [
            "Namespace temporalf",
            "OCIRepository temporalf",
            "HelmRelease temporalf"
        ]
    );
    assert!(of("istio").contains(&"Gateway front-door".to_owned()));
    assert!(of("identity-service").contains(&"VirtualService identity-service".to_owned()));
    // What Secrets hold is for who asks for it.
    let canary = "Y2FuYXJ5";
    let text = desk.reeve(&format!("{render} istio sgp-apps")).await;
    assert!(
        text.out.contains("values.yaml: (hidden)") && text.out.contains("# pack istio\n"),
        "{text:?}"
    );
    assert!(!text.out.contains("# pack flux\n") && !text.out.contains(canary));
    let text = desk.reeve(&format!("{render} istio --show-secrets")).await;
    assert!(!text.out.contains("(hidden)"));

    desk.reeve(&format!("{render} x")).await.fails(
        2,
        "pack x is not in the desired state; in it are: flux, sgp-helm-repository, istio, spicedb, \
         identity-service, temporalf, sgp-apps",
    );
    let patches =
        json!([{"target": {"kind": "HelmRelease"}, "patch": [{"op": "remove", "path": "/none"}]}]);
    desk.file(
        "s.json",
        state(&[
            json!({"name": "flux"}),
            json!({"name": "sgp-helm-repository"}),
            json!({"name": "temporalf", "patches": patches}),
        ])
        .as_bytes(),
    );
    let said = desk.reeve(render).await;
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("pack temporalf: ") && said.err.contains("/spec/patches/0/patch/0: "),
        "{said:?}"
    );
    desk.file("s.json", br#"{"version": "0.1", "packs": [{"name": "x"}]}"#);
    let said = desk.reeve(render).await;
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("/packs/0/name: x: there is no such pack"),
        "{said:?}"
    );
    // By the file that they have written, not by where the cluster would have it.
    assert!(
        said.err.contains("desired-state.json (s.json) "),
        "{said:?}"
    );
    desk.file("s.json", br#"{"version": "0.1", "packs": []}"#);
    let said = desk.reeve(render).await;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("spec.allowEmpty"), "{said:?}");
    let said = desk.reeve(&format!("{render} --allow-empty")).await;
    said.is(0, "");
}

/// Neither has what nobody looks after nothing against it, nor is it applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_does_not_run_is_told() {
    let desk = desk().await;
    desk.world.apply(&pack("flux", &json!({}))).await;
    runs(&desk, "packs", "False", "KindNotServed").await;
    let expected = "desired state: Secret sgp-system-manager/desired-state, entry desired-state.json\n  \
                    packs: KindNotServed: it does not run: as told\n└─ flux: waiting\n";
    desk.reeve("pack status").await.is(1, expected);
    desk.reeve("pack status flux").await.is(1, expected);
    runs(&desk, "packs-desired-state", "False", "KindNotServed").await;
    let asked = desk.reeve("pack reconcile --timeout 5s").await;
    assert_eq!(asked.code, Some(2), "{asked:?}");
    let said =
        "plugin packs-desired-state does not run, so nothing is applied: KindNotServed: as told";
    assert!(asked.err.contains(said), "{asked:?}");
}

/// What the configuration wants in the beginning may be asked for by name, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wanted_already_can_be_added() {
    let desk = desk().await;
    let configuration: Value = serde_saphyr::from_str(CONFIGURATION).unwrap();
    desk.world.apply(&configuration).await;
    desk.reeve("pack add flux").await.is(
        0,
        &format!(
            "pack flux was wanted already; all that was wanted stands in {PLACE} now\n\
             it is being applied; `reeve pack status` says how far it is\n"
        ),
    );
    let again = desk.reeve("pack add flux").await;
    assert_eq!(again.code, Some(2), "{again:?}");
}

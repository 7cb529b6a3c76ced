//! What commands say of the outside: what would be done there, what a plugin needs of
//! it, and what grants that.

use super::Desk;
use reeve_it::{NAMESPACE, guest, plugin_reference, profile_reference};
use serde_json::json;
use std::io::ErrorKind;
use std::net::TcpListener;

/// A cluster with a plugin that has a document and two effects, and no agent.
async fn desk(url: &str) -> Desk {
    let desk = Desk::new().await;
    let config = json!({
        "url": "https://documents.example/notes?key=hunter2",
        "service": url,
        "database": true,
        "retire": true,
    });
    desk.world
        .install("envoy", &[("plugin.wasm", guest("envoy"))], Some(config))
        .await;
    desk
}

/// A service that must not be reached.
fn service() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_lists_effects_and_makes_none() {
    let (listener, url) = service();
    let desk = desk(&url).await;
    desk.world.tenant("alice", &[]).await;
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": {"http": [{"url": url}]}});
    desk.world.apply(&plugin).await;
    desk.world.writes();
    let said = desk.reeve("plan envoy").await;
    assert_eq!((said.code, said.err.as_str()), (Some(2), ""), "{said:?}");
    for part in [
        "warning: action database: to use database main is not granted; `reeve plugin grant envoy` \
         says what would grant it\n",
        "    + create ConfigMap alice/report",
        "    + make outside effect database (database): it is not in place yet\n        \
             with the generated Secret alice/login\n    \
         + make outside effect service (service): it is not in place yet\n",
        "1 to create, 2 outside effects to make or take away, 0 objects as they should be\n",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    assert!(!said.out.contains("hunter2"), "{}", said.out);
    let (code, plan) = desk.json("plan envoy").await;
    assert_eq!(code, Some(2));
    assert_eq!(plan["summary"]["effects"], 2);
    let effects = &plan["plugins"][0]["units"][0]["effects"];
    assert_eq!(
        effects[1],
        json!({
            "action": "service", "key": "service", "act": "make",
            "input": {"name": "alice", "service": url, "query": null, "revision": 0},
            "secrets": [], "reason": "it is not in place yet",
        })
    );
    assert_eq!(
        effects[0]["secrets"],
        json!([{"namespace": "alice", "name": "login"}])
    );
    let accepted = listener.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(accepted, Err(ErrorKind::WouldBlock), "nobody came");
    assert_eq!(
        desk.world.writes(),
        0,
        "a plan writes nothing, no Secret either"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_away_by_hand_is_forgotten() {
    // Nobody answers there.
    let (listener, url) = service();
    drop(listener);
    let mut desk = Desk::new().await;
    desk.world.start();
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": {"http": [{"url": url}]}});
    desk.world.apply(&plugin).await;
    let config = json!({"service": url, "retire": true});
    let component = [("plugin.wasm", guest("envoy"))];
    desk.world.install("envoy", &component, Some(config)).await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    let none = "envoy: Profile alice has no effect that is to be taken away\n";
    desk.reeve("forget envoy --unit alice service")
        .await
        .is(0, none);
    desk.world.delete(&profile_reference("alice")).await;
    desk.world.settle().await;
    let said = desk.reeve("forget envoy --unit alice").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let listed = "service (action service): action service (service), ";
    assert!(said.out.starts_with(listed), "{said:?}");
    desk.reeve("forget envoy --unit alice other").await.fails(
        2,
        "no effect other of Profile alice is to be taken away; there are: service",
    );
    let said = desk.reeve("forget envoy --unit alice service --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.starts_with("envoy: asked to forget service\n"),
        "{said:?}"
    );
    assert!(said.out.ends_with("envoy: it is forgotten\n"), "{said:?}");
    desk.world.settle().await;
    assert_eq!(desk.world.unit("envoy", "alice").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_needs_of_the_outside_is_shown_with_its_grants() {
    let desk = desk("https://service.example/v1/").await;
    let file = desk.file("envoy.wasm", &guest("envoy"));
    desk.file("config.yaml", b"database: true\n");
    // A file has no policy.
    let arguments = format!("plugin inspect {} --config config.yaml", file.display());
    let said = desk.reeve(&arguments).await;
    assert!(
        said.out
            .contains("\noutside   action database: use database main\n"),
        "{said:?}"
    );

    let lacking = [
        "source notes: fetch https://documents.example/notes (notes): not granted",
        "action service: send requests to https://service.example/v1/: not granted",
        "action database: use database main: not granted",
    ];
    let said = desk.reeve("plugin inspect envoy").await;
    assert!(!said.out.contains("hunter2"), "{}", said.out);
    let granted = desk.reeve("plugin grant envoy").await;
    for line in lacking {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
        let line = format!("# outside: {line}\n");
        assert!(granted.out.contains(&line), "{line}\n{}", granted.out);
    }
    let to_add = "# to grant what is not, add to Plugin reeve-system/envoy, as narrowly as it can be, and grant again:
#   spec:
#     capabilities:
#       http:
#       - methods:
#         - GET
#         url: https://documents.example/notes
#       - url: https://service.example/v1/
";
    assert!(granted.out.contains(to_add), "{}", granted.out);
    assert!(granted.out.contains("NAME-OF-A-SECRET"), "{}", granted.out);

    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": {
        "http": [
            {"url": "https://documents.example/", "methods": ["GET"]},
            {"url": "https://service.example/v1/a", "key": "k"},
        ],
        "sql": [{"name": "main", "secret": {"name": "admin", "namespace": "databases"}}],
        "keys": [{"name": "k", "type": "Bearer", "secret": {"name": "token"}}],
    }});
    desk.world.apply(&plugin).await;
    desk.world
        .apply(&reeve_test_support::samples::namespace("databases"))
        .await;
    let (_, inspected) = desk.json("plugin inspect envoy").await;
    let needs = inspected["outside"].as_array().unwrap();
    let standing: Vec<_> = needs.iter().map(|need| need["granted"].clone()).collect();
    assert_eq!(standing, ["whole", "part", "whole"]);
    assert_eq!(
        needs[1]["by"],
        json!([
            "http: https://service.example/v1/a, signed with key k (Bearer, Secret \
             reeve-system/token)"
        ])
    );
    // The Secrets that are named are the agent's to read, and nobody else's.
    let (_, list) = desk.json("plugin grant envoy").await;
    let items = list["items"].as_array().unwrap();
    for (namespace, secret) in [(NAMESPACE, "token"), ("databases", "admin")] {
        let role = items.iter().find(|item| {
            item["kind"] == "Role"
                && item["metadata"]["namespace"] == namespace
                && item["rules"][0]["resources"] == json!(["secrets"])
        });
        let rule = &role.unwrap()["rules"][0];
        assert_eq!(rule["resourceNames"], json!([secret]));
        assert_eq!(rule["verbs"], json!(["get"]));
    }
    let said = desk.reeve("plugin grant envoy --apply").await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    for part in [
        "granted to the agent: get secrets/admin in namespace databases\n",
        "outside: action database: use database main: granted by sql: main as Secret \
         databases/admin says\n",
        "applied: Role databases/reeve-plugin-reeve-system.envoy-outside\n",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    // What is granted no more goes.
    desk.world
        .edit(&plugin, json!({"spec": {"capabilities": {"sql": null}}}))
        .await;
    let said = desk.reeve("plugin grant envoy --apply").await;
    let gone = "deleted: Role databases/reeve-plugin-reeve-system.envoy-outside, which is no longer asked for\n";
    assert!(said.out.contains(gone), "{}", said.out);
    // Nor does an account lose what it had without a word.
    let said = desk
        .reeve("plugin grant envoy --apply --service-account other")
        .await;
    let lost = format!(", which no longer binds ServiceAccount {NAMESPACE}/envoy\n");
    assert!(said.out.contains(&lost), "{said:?}");
    let said = desk
        .reeve("plugin grant envoy --apply --service-account other")
        .await;
    assert!(!said.out.contains("no longer binds"), "{said:?}");
}

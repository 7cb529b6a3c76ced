//! `reeve explain`.

use super::Desk;
use reeve_it::{core_reference, guest, plugin};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn each_field_has_an_origin() {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk.world
        .install(
            "quotas",
            &[("plugin.wasm", plugin("quotas"))],
            Some(json!({"hard": {"pods": "9", "requests.storage": null}})),
        )
        .await;
    desk.world
        .tenant("alice", &[("quotas.statcan.gc.ca/gpu", "4")])
        .await;
    desk.world.settle().await;
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    desk.world
        .edit(&quota, json!({"spec": {"hard": {"configmaps": "30"}}}))
        .await;
    desk.world.settle().await;
    desk.world.writes();
    let said = desk.reeve("explain quota quotas -n alice").await;
    let foreign = said
        .out
        .lines()
        .find(|line| line.contains("spec.hard.configmaps"));
    let foreign = foreign.unwrap_or_default().to_owned();
    assert!(
        foreign.contains("\"30\"") && foreign.contains("kubectl-edit (Update, 20"),
        "{foreign}"
    );
    // What is used is counted by the cluster.
    let counted = |line: &&str| line.starts_with("  status.");
    let by = "kube-controller-manager (Update of status, 20";
    let counts: Vec<&str> = said.out.lines().filter(counted).collect();
    assert!(counts.len() > 9 && counts.iter().all(|line| line.contains(by)));
    let rest = said.out.lines().filter(|line| !counted(line));
    let out: String = rest.map(|line| format!("{line}\n")).collect();
    let out = out.replace(&foreign, "  (the foreign field)");
    let said = super::Said { out, ..said };
    said.is(
        0,
        r#"ResourceQuota alice/quotas
  (the foreign field)
  spec.hard["limits.cpu"]                 "70"    plugin quotas
  spec.hard["limits.memory"]              "368G"  plugin quotas
  spec.hard.pods                          "9"     plugin quotas
  spec.hard["requests.cpu"]               "70"    plugin quotas
  spec.hard["requests.memory"]            "368G"  plugin quotas
  spec.hard["requests.nvidia.com/gpu"]    "4"     plugin quotas
  spec.hard["services.loadbalancers"]     "0"     plugin quotas
  spec.hard["services.nodeports"]         "0"     plugin quotas

plugin quotas 0.1.0 (sha256:…)
  field manager  reeve/quotas
  unit           Profile alice
  the call that returns it reads
    the primary Profile alice (/metadata/labels)
    its configuration: {"hard":{"pods":"9","requests.storage":null}}
"#,
    );
    let (code, answer) = desk.json("explain ResourceQuota quotas -n alice").await;
    assert_eq!(code, Some(0));
    let fields = answer["fields"].as_array().unwrap();
    let of = |path: &str| fields.iter().find(|field| field["path"] == path).unwrap();
    assert_eq!(
        of("spec.hard.pods")["owners"],
        json!([{
            "manager": "reeve/quotas", "operation": "Apply", "subresource": "",
            "since": of("spec.hard.pods")["owners"][0]["since"],
        }])
    );
    assert_eq!(
        of("spec.hard.configmaps")["owners"][0]["manager"],
        "kubectl-edit"
    );
    assert_eq!(answer["plugins"][0]["primary"]["name"], "alice");
    assert_eq!(answer["plugins"][0]["call"]["reads"], json!([]));
    assert_eq!(desk.world.writes(), 0, "explaining writes nothing");
}

/// What a call read is told, also what it looked for in vain.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_is_told() {
    let mut desk = Desk::new().await;
    desk.world.start();
    for (name, deed) in [
        (
            "getter",
            json!({"do": "get", "kind": "Service.v1", "namespace": "alice", "name": "web", "projection": ["/spec"]}),
        ),
        (
            "lister",
            json!({"do": "list", "kind": "Service.v1", "namespace": "alice", "selector": "app=x"}),
        ),
        ("clock", json!({"do": "read-clock"})),
    ] {
        let config = json!({
            "primary": "Profile.v1.kubeflow.org", "reads": ["Service.v1"],
            "scope": "namespace-named-like-primary", "reconcile": deed,
        });
        let data = [("plugin.wasm", guest("chameleon"))];
        desk.world.install(name, &data, Some(config)).await;
        desk.world.tenant("alice", &[]).await;
        desk.world.settle().await;
        let (code, answer) = desk
            .json("explain configmap chameleon-alice -n alice")
            .await;
        assert_eq!(code, Some(0), "{answer}");
        let plugin = &answer["plugins"][0];
        assert_eq!(plugin["plugin"], name);
        let reads = &plugin["call"]["reads"];
        let expected = match name {
            "getter" => json!([{
                "object": {
                    "apiVersion": "v1", "kind": "Service", "namespace": "alice", "name": "web",
                },
                "fields": ["/spec"], "found": 0,
            }]),
            "lister" => json!([{
                "list": {
                    "apiVersion": "v1", "kind": "Service",
                    "namespace": "alice", "selector": "app=x",
                },
                "fields": [], "found": 0,
            }]),
            _ => json!([{"time": reads[0]["time"], "found": 1}]),
        };
        assert_eq!(*reads, expected, "{name}");
        // The next one wants an object of the same name.
        desk.world
            .delete(&reeve_it::config_map_reference(name))
            .await;
        desk.world.settle().await;
        desk.world
            .delete(&core_reference("ConfigMap", "alice", "chameleon-alice"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_to_do() {
    let desk = Desk::new().await;
    for (arguments, expected) in [
        (
            "explain quotta quotas -n alice",
            "the cluster serves no kind quotta; `kubectl api-resources` lists those that it does",
        ),
        (
            "explain quota quotas",
            "ResourceQuota quotas is in a namespace; name it with -n",
        ),
        (
            "explain profile alice -n alice",
            "Profile is in no namespace; leave out -n",
        ),
        (
            "explain quota quotas -n alice",
            "there is no ResourceQuota alice/quotas",
        ),
    ] {
        desk.reeve(arguments).await.fails(1, expected);
    }
    let mut secret = core_reference("Secret", "default", "token");
    secret["stringData"] = json!({"password": "correct-horse"});
    desk.world.apply(&secret).await;
    for output in ["", " -o json"] {
        let said = desk
            .reeve(&format!("explain secret token -n default{output}"))
            .await;
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        for (part, there) in [
            ("data.password", true),
            ("hidden", true),
            ("correct-horse", false),
            ("Y29ycmVjdC1ob3JzZQ==", false),
        ] {
            assert_eq!(said.out.contains(part), there, "{part}\n{}", said.out);
        }
    }
    // What nobody of ours has made can be explained, too.
    let said = desk.reeve("explain namespace default").await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.starts_with("Namespace default\n"), "{}", said.out);
}

/// What a plugin contributes to somebody else's object is its as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_contributed_field_is_of_the_unit_that_contributes_it() {
    let mut desk = Desk::new().await;
    desk.world.start();
    let shared = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shared", "namespace": "alice"}, "data": {"theirs": "x"},
    });
    let mut contribution = shared.clone();
    contribution["data"] = json!({"ours": "1"});
    contribution["metadata"]["annotations"] = json!({"reeve.dev/apply": "Contribute"});
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "writes": ["ConfigMap.v1"], "scope": "cluster",
        "reconcile": {"do": "nothing", "meant": true},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.install("told", &data, Some(config)).await;
    for tenant in ["alice", "bob"] {
        desk.world.tenant(tenant, &[]).await;
    }
    desk.world.apply(&shared).await;
    let deed = json!({"do": "raw", "text": contribution.to_string()}).to_string();
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed}}});
    let alice = reeve_it::profile_reference("alice");
    desk.world.edit(&alice, patch).await;
    desk.world.settle().await;
    let (code, answer) = desk.json("explain configmap shared -n alice").await;
    assert_eq!(code, Some(0), "{answer}");
    let plugin = &answer["plugins"][0];
    assert_eq!(plugin["plugin"], "told", "{answer}");
    assert_eq!(plugin["primary"]["name"], "alice", "{answer}");
    assert!(plugin["call"]["reads"].is_array(), "{answer}");
    let manager = plugin["manager"].as_str().unwrap_or_default();
    assert!(manager.starts_with("reeve/told:"), "{answer}");
    assert_eq!(desk.reeve("explain cm shared -n alice").await.code, Some(0));
}

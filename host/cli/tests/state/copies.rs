//! `reeve cluster save`, `load` and `import`, as a shell sees them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::server::{call, client, get, start};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Runs `reeve cluster` with these words in a folder: code, output and errors.
fn reeve(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_reeve"))
        .arg("cluster")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

async fn post(client: &kube::Client, path: &str, object: Value) -> Value {
    let (code, answer) = call(client, "POST", path, &object).await.unwrap();
    assert_eq!(code, 201, "{path}: {answer}");
    answer
}

/// Those that somebody made. A server makes one itself, with its own certificate, when it
/// comes to it.
async fn config_maps(client: &kube::Client) -> Vec<Value> {
    let (code, mut listed) = get(client, CONFIG_MAPS).await;
    assert_eq!(code, 200, "{listed}");
    let items = listed["items"].as_array_mut().unwrap();
    items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
    assert_eq!(items.len(), 2);
    std::mem::take(items)
}

#[tokio::test]
async fn what_is_saved_is_loaded_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let first = start(dir);
    let known = client(&dir.join("kubeconfig")).await;
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name}, "data": {"k": "v"}});
        post(&known, CONFIG_MAPS, map).await;
    }
    let before = config_maps(&known).await;

    let (code, said, errors) = reeve(dir, "save one.snapshot --kubeconfig kubeconfig");
    assert_eq!((code, &*errors), (Some(0), ""), "{said}");
    assert!(said.starts_with("saved to one.snapshot: "), "{said}");
    let refused = reeve(dir, "save one.snapshot --kubeconfig kubeconfig");
    assert_eq!(
        (refused.0, &*refused.2),
        (
            Some(2),
            "error: one.snapshot is there already; name another, or replace it with --force\n"
        )
    );
    let in_use = reeve(dir, "save two.snapshot --state state").2;
    assert!(in_use.contains("is in use by process"), "{in_use}");
    drop(first);
    let (code, said, errors) = reeve(dir, "save two.snapshot --state state");
    assert_eq!((code, &*errors), (Some(0), ""), "{said}");

    for (file, state) in [("one.snapshot", "one"), ("two.snapshot", "two")] {
        std::fs::create_dir(dir.join(state)).unwrap();
        let load = format!("load {file} --state {state}/state");
        let (code, said, errors) = reeve(dir, &load);
        assert_eq!((code, &*errors), (Some(0), ""), "{said}");
        let again = reeve(dir, &load);
        let expected = format!(
            "error: {state}/state holds a state already; name an empty folder, or remove that one\n"
        );
        assert_eq!((again.0, again.2), (Some(2), expected));
        let _server = start(&dir.join(state));
        let other = client(&dir.join(state).join("kubeconfig")).await;
        assert_eq!(config_maps(&other).await, before);
        // It is another server: who was known to the first is not known to it.
        let kubeconfig = |path: &Path| std::fs::read_to_string(path.join("kubeconfig")).unwrap();
        assert_ne!(kubeconfig(dir), kubeconfig(&dir.join(state)));
    }
}

#[tokio::test]
async fn what_cannot_be_saved_or_loaded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("text"), "just: text\n").unwrap();
    std::fs::write(dir.join("empty"), "").unwrap();
    std::fs::write(dir.join("open"), "a: [").unwrap();
    std::fs::write(dir.join("cut"), "reeve-state 1 snapshot 5\n").unwrap();
    std::fs::create_dir(dir.join("nothing")).unwrap();
    for (arguments, expected) in [
        (
            "save file --state nothing",
            "error: nothing holds no state; name a folder that reeve cluster --state was given\n",
        ),
        ("load empty --state s", "error: empty holds no objects\n"),
        (
            "load absent --state s",
            "error: cannot read absent: No such file or directory (os error 2)\n",
        ),
        (
            "load cut --state s",
            "error: cut is damaged at byte 25: it is cut off; what comes after that is lost, so that nothing of it is used: put back a copy, or begin anew with another folder\n",
        ),
        (
            "load cut --kubeconfig k",
            "error: cut is a whole state, which a cluster that runs cannot become: load it with --state FOLDER, and run reeve cluster --state FOLDER\n",
        ),
    ] {
        let (code, said, errors) = reeve(dir, arguments);
        assert_eq!(
            (code, &*said, &*errors),
            (Some(2), "", expected),
            "{arguments}"
        );
    }
    assert!(
        !dir.join("s").exists(),
        "nothing is made of what is unusable"
    );
    let (code, said, errors) = reeve(dir, "load text --state s");
    assert_eq!(
        (code, &*said, &*errors),
        (
            Some(1),
            "loaded: 0 objects\n",
            "error: an object without a name: it lacks apiVersion, kind or metadata.name\n"
        )
    );
}

/// Something like production: owners, a definition, a Secret, things of the system.
async fn fill(client: &kube::Client) {
    let namespace = json!({"metadata": {"name": "prod"}});
    post(client, "/api/v1/namespaces", namespace).await;
    post(
        client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json!({
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }),
    )
    .await;
    let things = "/apis/example.com/v1/namespaces/prod/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"yes": "no", "n": "1.0"}});
    let thing = post(client, things, thing).await;
    let mut owned = json!({"metadata": {"name": "owned", "ownerReferences": [{
        "apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": thing["metadata"]["uid"],
        "controller": true,
    }]}, "data": {"k": "v"}});
    post(client, "/api/v1/namespaces/prod/configmaps", owned.clone()).await;
    // An owner that is not imported, since it is a Node's like.
    owned["metadata"]["name"] = json!("orphan");
    let lease = post(
        client,
        "/apis/coordination.k8s.io/v1/namespaces/prod/leases",
        json!({"metadata": {"name": "l"}}),
    )
    .await;
    owned["metadata"]["ownerReferences"][0] = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "l", "uid": lease["metadata"]["uid"],
    });
    post(client, "/api/v1/namespaces/prod/configmaps", owned).await;
    let secret = json!({
        "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "topsecret"}},
        "data": {"password": "dG9wc2VjcmV0"},
    });
    post(client, "/api/v1/namespaces/prod/secrets", secret).await;
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    post(client, "/api/v1/namespaces/prod/services", service).await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    post(client, "/api/v1/namespaces/prod/resourcequotas", quota).await;
    let map = json!({"metadata": {"name": "of-system"}});
    post(client, "/api/v1/namespaces/kube-system/configmaps", map).await;
    let status = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
        "status": {"phase": "Ready"},
    });
    let path = format!("{things}/t/status");
    let (code, answer) = call(client, "PATCH", &path, &status).await.unwrap();
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn what_is_imported_lives_on_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for name in ["from", "to"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    let _from = start(&dir.join("from"));
    fill(&client(&dir.join("from/kubeconfig")).await).await;
    let (code, said, errors) = reeve(dir, "import all.yaml --kubeconfig from/kubeconfig");
    assert_eq!((code, &*said), (Some(0), ""), "{errors}");
    for line in [
        // Five of them are the certificate, which is left out.
        "  configmaps: 8\n",
        "1 object without owners that were not imported\n",
        "1 Secret with \"redacted\" for each value; --keep-secrets keeps them\n",
    ] {
        assert!(errors.contains(line), "{errors}");
    }
    let text = std::fs::read_to_string(dir.join("all.yaml")).unwrap();
    for absent in [
        "uid:",
        "resourceVersion",
        "managedFields",
        "topsecret",
        "dG9wc2VjcmV0",
        "of-system",
        "Lease",
        "system:",
        "clusterIP:",
        "nodePort",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }

    let _to = start(&dir.join("to"));
    let (code, said, errors) = reeve(dir, "load all.yaml --kubeconfig to/kubeconfig");
    assert_eq!((code, &*errors), (Some(0), ""), "{said}");
    let to = client(&dir.join("to/kubeconfig")).await;
    let (_, thing) = get(&to, "/apis/example.com/v1/namespaces/prod/things/t").await;
    assert_eq!(thing["status"]["phase"], "Ready");
    assert_eq!(thing["spec"], json!({"yes": "no", "n": "1.0"}));
    // The collector has looked at everything when it has taken something.
    let doomed = json!({"metadata": {"name": "doomed", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "there",
    }]}});
    let maps = "/api/v1/namespaces/prod/configmaps";
    post(&to, maps, doomed).await;
    while get(&to, &format!("{maps}/doomed")).await.0 != 404 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (code, owned) = get(&to, &format!("{maps}/owned")).await;
    assert_eq!(code, 200, "{owned}");
    assert_eq!(
        owned["metadata"]["ownerReferences"][0]["uid"],
        thing["metadata"]["uid"]
    );
    let (code, orphan) = get(&to, &format!("{maps}/orphan")).await;
    assert_eq!(
        (code, &orphan["metadata"]["ownerReferences"]),
        (200, &Value::Null)
    );
    let (_, secret) = get(&to, "/api/v1/namespaces/prod/secrets/s").await;
    assert_eq!(secret["data"], json!({"password": "cmVkYWN0ZWQ="}));
    assert_eq!(
        get(&to, "/api/v1/namespaces/prod/services/web").await.0,
        200
    );

    // What is imported from there is the same: nothing was lost or added.
    let (code, _, errors) = reeve(dir, "import again.yaml --kubeconfig to/kubeconfig");
    assert_eq!(code, Some(0), "{errors}");
    let again = std::fs::read_to_string(dir.join("again.yaml")).unwrap();
    assert_eq!(again, text);
}

#[tokio::test]
async fn what_is_imported_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let _server = start(dir);
    fill(&client(&dir.join("kubeconfig")).await).await;
    for (arguments, expected) in [
        (
            "--kind Thing",
            "CustomResourceDefinition,Namespace,Namespace,Thing",
        ),
        (
            "--kind things.example.com -n prod",
            "CustomResourceDefinition,Namespace,Thing",
        ),
        (
            "-n prod --without-kind secrets --without-kind configmap",
            "CustomResourceDefinition,Namespace,ServiceAccount,Service,Thing,ResourceQuota",
        ),
        ("-n default", "Namespace,ServiceAccount"),
        ("-n kube-system --kind ConfigMap", "Namespace,ConfigMap"),
    ] {
        let (code, said, errors) = reeve(
            dir,
            &format!("import - --kubeconfig kubeconfig {arguments}"),
        );
        assert_eq!(code, Some(0), "{errors}");
        let kinds = said.lines().filter_map(|line| line.strip_prefix("kind: "));
        assert_eq!(
            kinds.collect::<Vec<_>>().join(","),
            expected,
            "{arguments}: {said}"
        );
    }
    let (_, kept, errors) = reeve(
        dir,
        "import - --kubeconfig kubeconfig --kind Secret --keep-secrets",
    );
    assert!(kept.contains("dG9wc2VjcmV0"), "{kept}");
    assert!(
        errors.contains("1 Secret with their values: keep the file to yourself"),
        "{errors}"
    );
    for (arguments, expected) in [
        (
            "--kind Nothing",
            "error: the cluster serves no kind Nothing; write it as kubectl api-resources does, with its group if needed: Profile.kubeflow.org\n",
        ),
        (
            "-n nowhere",
            "error: the cluster has no namespace nowhere\n",
        ),
    ] {
        let (code, said, errors) = reeve(
            dir,
            &format!("import - --kubeconfig kubeconfig {arguments}"),
        );
        assert_eq!((code, &*said), (Some(2), ""));
        assert!(errors.ends_with(expected), "{errors}");
    }
}

#[tokio::test]
async fn what_may_not_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let _server = start(dir);
    let admin = client(&dir.join("kubeconfig")).await;
    fill(&admin).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/prod";
    let role = json!({
        "metadata": {"name": "reads"},
        "rules": [{"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments"], "verbs": ["list"]}],
    });
    post(&admin, &format!("{rbac}/roles"), role).await;
    let binding = json!({
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "prod"}],
    });
    post(&admin, &format!("{rbac}/rolebindings"), binding).await;
    let account = "/api/v1/namespaces/prod/serviceaccounts/default/token";
    let token = post(&admin, account, json!({})).await;
    let token = token["status"]["token"].as_str().unwrap();
    let kubeconfig = std::fs::read_to_string(dir.join("kubeconfig")).unwrap();
    let (before, _) = kubeconfig.split_once("token: ").unwrap();
    std::fs::write(dir.join("limited"), format!("{before}token: {token}\n")).unwrap();

    let (code, said, errors) = reeve(dir, "import - --kubeconfig limited -n prod");
    assert_eq!(code, Some(1), "{errors}");
    let kinds = said.lines().filter_map(|line| line.strip_prefix("kind: "));
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "ConfigMap"], "{said}");
    for line in [
        "not read: secrets: secrets is forbidden: User \"system:serviceaccount:prod:default\" cannot list resource \"secrets\" in API group \"\" in the namespace \"prod\"",
        "not read: namespace prod, of which there is only the name: namespaces \"prod\" is forbidden",
        "not read, since the embedded cluster would not serve them: things.example.com\n",
    ] {
        assert!(errors.contains(line), "{errors}");
    }
}

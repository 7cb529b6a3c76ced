//! Install, use, upgrade, uninstall, with the agent running as the chart's
//! ServiceAccount under exactly its rules.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::component;
use serde_json::{Value, json};

use crate::stage::{AGENT, NAMESPACE, Stage};

/// The user that the plugin's ServiceAccount is.
const QUOTAS: &str = "system:serviceaccount:reeve-system:quotas";

#[test]
fn what_is_installed_works_and_goes_again() -> Result<()> {
    let mut stage = Stage::new()?;
    let notes = stage.helm("install", &["--create-namespace"])?;
    ensure!(notes.contains("reeve plugin grant"), "{notes}");
    its_pods_are_restricted(&stage)?;
    stage.start_agent()?;
    it_may_do_nothing_by_itself(&stage)?;

    a_large_component_is_delivered_by_kubectl_apply(&stage)?;
    let lacking = stage.wait_for_reason("quotas", "Granted", "ServiceAccountUnusable")?;
    let command = "`reeve plugin grant quotas --namespace reeve-system --apply`";
    ensure!(lacking.contains(command), "{lacking}");

    let printed = stage.reeve(&["plugin", "grant", "quotas"])?;
    ensure!(
        stage.get("serviceaccount", NAMESPACE, "quotas")?.is_none(),
        "printing granted: {printed}"
    );
    ensure!(
        printed.contains("# grants: create, delete, patch resourcequotas cluster-wide"),
        "{printed}"
    );
    stage.reeve(&["plugin", "grant", "quotas", "--apply"])?;
    for profile in ["ann", "bob"] {
        stage.wait_for_pods(profile, "100")?;
    }
    stage.wait_for_reason("quotas", "Ready", "Running")?;
    stage.kubectl(&["label", "profile", "ann", "quotas.statcan.gc.ca/pods=7"])?;
    stage.wait_for_pods("ann", "7")?;

    a_call_is_recorded_and_made_again(&stage)?;
    the_policy_holds_without_the_agent(&stage)?;
    a_narrower_grant_takes_the_place_of_a_wider_one(&stage)?;
    an_upgrade_loses_nothing(&mut stage)?;

    // Uninstalled, it leaves what is not its own.
    stage.helm("uninstall", &[])?;
    for (kind, name) in [
        ("deployment", "reeve"),
        ("role", "reeve"),
        ("service", "reeve"),
    ] {
        ensure!(stage.get(kind, NAMESPACE, name)?.is_none(), "{kind} stays");
    }
    for (kind, namespace, name) in [
        ("plugin", NAMESPACE, "quotas"),
        ("configmap", NAMESPACE, "quotas"),
        ("resourcequota", "ann", "quotas"),
    ] {
        ensure!(
            stage.get(kind, namespace, name)?.is_some(),
            "{kind} {name} went"
        );
    }
    Ok(())
}

/// Pod Security admits the pods at its strictest level.
fn its_pods_are_restricted(stage: &Stage) -> Result<()> {
    let enforce = "pod-security.kubernetes.io/enforce=restricted";
    stage.kubectl(&["label", "namespace", NAMESPACE, enforce])?;
    let deployment = stage.get("deployment", NAMESPACE, "reeve")?;
    let deployment = deployment.context("no Deployment")?;
    let pod = |spec: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "reeve", "namespace": NAMESPACE},
            "spec": spec,
        })
        .to_string()
    };
    let create = ["create", "--dry-run=server", "-f", "-"];
    let mut spec = deployment["spec"]["template"]["spec"].clone();
    stage.kubectl_with(&create, &pod(&spec))?;
    // That something is enforced at all.
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    match stage.kubectl_with(&create, &pod(&spec)) {
        Ok(_) => bail!("a pod that may escalate was admitted"),
        Err(error) => ensure!(format!("{error:#}").contains("restricted"), "{error:#}"),
    }
    Ok(())
}

/// Nothing of what plugins do, and nobody to do it as.
fn it_may_do_nothing_by_itself(stage: &Stage) -> Result<()> {
    for (verb, resource) in [
        ("impersonate", "serviceaccounts/quotas"),
        ("list", "profiles.kubeflow.org"),
        ("list", "secrets"),
        ("create", "resourcequotas"),
        ("update", "configmaps"),
        ("create", "roles.rbac.authorization.k8s.io"),
    ] {
        let ask = [
            "auth", "can-i", verb, resource, "-n", NAMESPACE, "--as", AGENT,
        ];
        // kubectl fails where the answer is no.
        ensure!(
            stage.kubectl(&ask).is_err(),
            "the agent may {verb} {resource}"
        );
    }
    let ask = [
        "auth",
        "can-i",
        "list",
        "configmaps",
        "-n",
        NAMESPACE,
        "--as",
        AGENT,
    ];
    stage.kubectl(&ask).map(drop)
}

/// What the plugin was shown by a real server, as a file that needs none.
fn a_call_is_recorded_and_made_again(stage: &Stage) -> Result<()> {
    let path = |name: &str| stage.file(name).to_string_lossy().into_owned();
    let (file, component) = (path("ann.json"), path("recorded.wasm"));
    let quota = || stage.get("resourcequota", "ann", "quotas");
    let before = quota()?;
    let record = ["record", "quotas/ann", "--file", &file];
    let said = stage.reeve(&[&record[..], &["--save-component", &component]].concat())?;
    ensure!(
        said.contains(" for Profile ann: 0 reads, 1 object\n"),
        "{said}"
    );
    ensure!(quota()? == before, "recording wrote something");
    let said = stage.reeve(&["replay", &file, "--component", &component])?;
    ensure!(said.ends_with("\nequal in each byte: 1 object\n"), "{said}");
    // It is the call for ann, with what she asks for.
    let recording = fs::read_to_string(&file)?;
    ensure!(recording.contains(r#""pods":"7""#), "{recording}");
    Ok(())
}

/// A component of several hundred KB, in parts, each with a copy in an annotation.
fn a_large_component_is_delivered_by_kubectl_apply(stage: &Stage) -> Result<()> {
    let mut bytes = fs::read(component("quotas"))?;
    bytes.extend(custom_section(500_000));
    let file = stage.file("quotas.wasm");
    fs::write(&file, &bytes)?;
    let file = file.to_string_lossy().into_owned();
    let packed = stage.reeve(&["plugin", "package", &file, "--namespace", NAMESPACE])?;
    ensure!(
        packed.matches("kind: ConfigMap").count() > 3,
        "not in parts"
    );
    stage.cluster.apply(&packed)?;
    // Once more, which compares with the copies.
    stage.cluster.apply(&packed)?;
    let text = stage.reeve(&["plugin", "inspect", &file])?;
    for line in [
        "component quotas ",
        "contract  reeve:plugin@0.1",
        "imports   ",
        "exports   reeve:plugin/controller-api@0.1.0",
        "asks to   see ",
        "config    ",
    ] {
        ensure!(
            text.lines().any(|found| found.starts_with(line)),
            "no `{line}` in {text}"
        );
    }
    let of_file = stage.reeve(&["plugin", "inspect", &file, "-o", "json"])?;
    let of_cluster = stage.reeve(&["plugin", "inspect", "quotas", "-o", "json"])?;
    let of_file: Value = serde_json::from_str(&of_file)?;
    let of_cluster: Value = serde_json::from_str(&of_cluster)?;
    ensure!(
        of_file["digest"] == of_cluster["digest"],
        "{of_file} {of_cluster}"
    );
    ensure!(
        of_cluster["asks"]
            .as_array()
            .is_some_and(|asks| asks.contains(&json!(
                "write ResourceQuota in the namespace named like the primary"
            ))),
        "{of_cluster}"
    );
    Ok(())
}

/// A section that WebAssembly has no use for, of bytes that do not compress.
fn custom_section(length: usize) -> Vec<u8> {
    // A linear congruential generator (Numerical Recipes' constants).
    let mut state = 1_u32;
    let noise = (0..length).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let mut content = b"\x05noise".to_vec();
    content.extend(noise);
    let mut section = vec![0];
    let mut size = content.len();
    // LEB128.
    while size >= 0x80 {
        section.push(u8::try_from(size & 0x7f).unwrap_or_default() | 0x80);
        size >>= 7;
    }
    section.push(u8::try_from(size).unwrap_or_default());
    section.extend(content);
    section
}

fn quota(namespace: &str, name: &str, labels: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"hard": {"pods": "1"}},
    })
    .to_string()
}

/// The writes of the plugin's account, sent directly: the agent's own check is out
/// of the way, and the API server is the layer that refuses.
fn the_policy_holds_without_the_agent(stage: &Stage) -> Result<()> {
    let ours = json!({"reeve.dev/plugin": "quotas"});
    let others = json!({"reeve.dev/plugin": "other"});
    let create = |namespace: &str, labels: &Value, name: &str| {
        let arguments = ["create", "-f", "-", "--as", QUOTAS];
        stage.kubectl_with(&arguments, &quota(namespace, name, labels))
    };
    let refused = |result: Result<String>, expected: &str| match result {
        Ok(done) => bail!("not refused, though {expected}: {done}"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(text.contains(expected), "no `{expected}` in: {text}");
            Ok(())
        }
    };
    // The API server takes a moment to learn of a policy.
    let mut number = 0;
    eventually("the policy is enforced", || {
        number += 1;
        let name = format!("probe-{number}");
        refused(create("kube-system", &ours, &name), "begins with `kube-`")
    })?;
    create("ann", &ours, "second")?;
    refused(create(NAMESPACE, &ours, "x"), "decides what the agent runs")?;
    refused(
        create("ann", &json!({}), "x"),
        "carries the label reeve.dev/plugin",
    )?;
    refused(
        create("ann", &others, "x"),
        "carries the label reeve.dev/plugin",
    )?;
    // Another plugin's object.
    stage.kubectl_with(&["create", "-f", "-"], &quota("ann", "other", &others))?;
    let delete =
        |name: &str| stage.kubectl(&["delete", "resourcequota", name, "-n", "ann", "--as", QUOTAS]);
    refused(delete("other"), "another plugin's objects")?;
    // As the agent writes: it has no right to read what it patches.
    let patch = |name: &str, labels: &Value| {
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            "-",
            "--as",
            QUOTAS,
        ];
        stage.kubectl_with(&apply, &quota("ann", name, labels))
    };
    refused(patch("other", &others), "another plugin's objects")?;
    patch("second", &ours)?;
    // Nor does it make its own, or anybody's, another plugin's.
    refused(
        patch("second", &others),
        "the label reeve.dev/plugin of another plugin",
    )?;
    delete("second")?;
    rbac_holds_without_the_agent(stage)
}

/// What the manifest does not declare, RBAC refuses to the plugin's account: kinds of
/// namespaces and of the cluster, the agent's own objects, reads of what is only
/// written; and to the agent's account, to be anybody but that one account.
fn rbac_holds_without_the_agent(stage: &Stage) -> Result<()> {
    let refused = |what: &str, result: Result<String>, expected: &str| match result {
        Ok(done) => bail!("{what} was not refused: {done}"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(
                text.contains(expected),
                "{what}: no `{expected}` in: {text}"
            );
            Ok(())
        }
    };
    let create = |object: &Value| {
        let arguments = ["create", "-f", "-", "--as", QUOTAS];
        stage.kubectl_with(&arguments, &object.to_string())
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    for (api_version, kind, plural, namespace) in [
        ("v1", "ConfigMap", "configmaps", "ann"),
        ("v1", "ConfigMap", "configmaps", NAMESPACE),
        ("v1", "Secret", "secrets", "ann"),
        ("v1", "Namespace", "namespaces", ""),
        (rbac, "Role", "roles", "ann"),
        (rbac, "ClusterRole", "clusterroles", ""),
        ("reeve.dev/v1alpha1", "Plugin", "plugins", NAMESPACE),
        ("reeve.dev/v1alpha1", "Unit", "units", NAMESPACE),
    ] {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "escape"},
            "spec": {"plugin": "x", "primary": {"apiVersion": "v1", "kind": "X", "name": "x"}},
        });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if !api_version.starts_with("reeve") {
            object.as_object_mut().map(|object| object.remove("spec"));
        }
        let expected = format!("cannot create resource \"{plural}\"");
        refused(kind, create(&object), &expected)?;
    }
    for resource in ["secrets", "resourcequotas", "configmaps"] {
        let get = ["get", resource, "-n", "ann", "--as", QUOTAS];
        refused(resource, stage.kubectl(&get), "is forbidden")?;
    }
    // Even an account that may write RBAC objects hands on nothing that it lacks.
    let name = "chart-test-binds";
    let role_ref = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let account = json!({"kind": "ServiceAccount", "name": "quotas", "namespace": NAMESPACE});
    let binding = |name: &str, role: &str| {
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": role_ref(role), "subjects": [account],
        })
    };
    let rule = json!({
        "apiGroups": ["rbac.authorization.k8s.io"], "verbs": ["create"],
        "resources": ["clusterroles", "clusterrolebindings"],
    });
    let role = json!({
        "apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule],
    });
    stage.apply(&[role, binding(name, name)])?;
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let wide = json!({
        "apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "wide"}, "rules": all,
    });
    let escalation = "attempting to grant RBAC permissions not currently held";
    eventually("escalation is what is refused", || {
        refused("a wide ClusterRole", create(&wide), escalation)
    })?;
    let admin = binding("admin", "cluster-admin");
    refused("cluster-admin", create(&admin), escalation)?;
    for kind in ["clusterrolebinding", "clusterrole"] {
        stage.kubectl(&["delete", kind, name])?;
    }
    // Whom the agent may be: the account of the plugin, by name.
    let may_be = |who: &str, namespace: &str| {
        let ask = [
            "auth",
            "can-i",
            "impersonate",
            who,
            "-n",
            namespace,
            "--as",
            AGENT,
        ];
        stage.kubectl(&ask).is_ok()
    };
    ensure!(
        may_be("serviceaccounts/quotas", NAMESPACE),
        "not the plugin's account"
    );
    for (who, namespace) in [
        ("serviceaccounts", NAMESPACE),
        ("serviceaccounts/reeve", NAMESPACE),
        ("serviceaccounts/default", NAMESPACE),
        ("serviceaccounts/quotas", "ann"),
        ("users", NAMESPACE),
        ("users/system:kube-controller-manager", NAMESPACE),
        ("groups", NAMESPACE),
        ("groups/system:masters", NAMESPACE),
        ("userextras.authentication.k8s.io/scopes", NAMESPACE),
        ("uids.authentication.k8s.io", NAMESPACE),
    ] {
        ensure!(
            !may_be(who, namespace),
            "the agent may be {who} of {namespace}"
        );
    }
    Ok(())
}

/// Tenants are told apart by a label, and what was granted before goes.
fn a_narrower_grant_takes_the_place_of_a_wider_one(stage: &Stage) -> Result<()> {
    stage.kubectl(&["label", "namespace", "ann", "tenant=yes"])?;
    // As a manifest that asked for more would have left it.
    let left = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "reeve-plugin-reeve-system.quotas-old",
            "labels": {
                "reeve.dev/granted-to": "quotas", "reeve.dev/granted-in": NAMESPACE,
            },
        },
        "rules": [],
    });
    stage.apply(&[left])?;
    let done = stage.reeve(&[
        "plugin",
        "grant",
        "quotas",
        "--namespace-selector",
        "tenant=yes",
        "--apply",
    ])?;
    ensure!(done.contains("deleted: ClusterRole"), "{done}");
    let old = "reeve-plugin-reeve-system.quotas-old";
    ensure!(stage.get("clusterrole", "", old)?.is_none(), "{old} stays");
    let ours = json!({"reeve.dev/plugin": "quotas"});
    let mut number = 0;
    eventually("the label decides", || {
        number += 1;
        let name = format!("selected-{number}");
        let arguments = ["create", "-f", "-", "--as", QUOTAS];
        match stage.kubectl_with(&arguments, &quota("bob", &name, &ours)) {
            Ok(_) => bail!("it may write where no label is"),
            Err(error) => {
                ensure!(format!("{error:#}").contains("tenant=yes"), "{error:#}");
                Ok(())
            }
        }
    })?;
    // The agent's own writes go on where the label is, and are refused elsewhere.
    stage.kubectl(&[
        "label",
        "profile",
        "ann",
        "--overwrite",
        "quotas.statcan.gc.ca/pods=8",
    ])?;
    stage.wait_for_pods("ann", "8")?;
    stage
        .reeve(&["plugin", "grant", "quotas", "--apply"])
        .map(drop)
}

/// Other settings of the chart: objects stay, and the agent goes on. What becomes of them
/// under other definitions is tried in `definitions`.
fn an_upgrade_loses_nothing(stage: &mut Stage) -> Result<()> {
    let uid = |stage: &Stage| -> Result<Value> {
        let plugin = stage.get("plugin", NAMESPACE, "quotas")?;
        Ok(plugin.context("the Plugin went")?["metadata"]["uid"].clone())
    };
    let before = uid(stage)?;
    stage.helm(
        "upgrade",
        &["--set", "replicas=3", "--set", "config.concurrency=4"],
    )?;
    let deployment = stage.get("deployment", NAMESPACE, "reeve")?;
    let deployment = deployment.context("no Deployment")?;
    ensure!(deployment["spec"]["replicas"] == 3, "{deployment}");
    ensure!(uid(stage)? == before, "the Plugin is another");
    stage.start_agent()?;
    stage.kubectl(&["label", "profile", "bob", "quotas.statcan.gc.ca/pods=9"])?;
    stage.wait_for_pods("bob", "9")
}

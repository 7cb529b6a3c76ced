//! What becomes of values in the words of the controllers' own chart.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::rendered;
use crate::grants::configured;

/// Every plugin that there is.
const ALL: &str = "replicaCount=1";

/// What a plugin is configured with.
fn settings_of(plugin: &str, settings: &[&str]) -> Result<Value> {
    let home = tempfile::tempdir()?;
    let configured = configured(&rendered(home.path(), settings)?);
    let found = configured.iter().find(|(name, _)| name == plugin);
    let (_, text) = found.with_context(|| format!("{plugin} is not installed"))?;
    Ok(serde_saphyr::from_str(text)?)
}

fn check(plugin: &str, setting: &str, expected: &Value) -> Result<()> {
    let found = settings_of(plugin, &[ALL, setting])?;
    ensure!(
        found == *expected,
        "{plugin} with {setting}: {found}, not {expected}"
    );
    Ok(())
}

#[test]
fn variables_become_settings() -> Result<()> {
    check(
        "gitea-unclassified",
        r#"components.giteaUnclassified.env=[
            {"name":"GITEA_CLASSIFICATION","value":"unclassified"},
            {"name":"GITEA_PSQL_HOSTNAME","value":"pg.example.com"},
            {"name":"GITEA_PSQL_PORT","value":5433},
            {"name":"GITEA_SERVICE_URL","value":"git"},
            {"name":"GITEA_SERVICE_PORT","value":"8080"},
            {"name":"GITEA_URL_PREFIX","value":"git"},
            {"name":"GITEA_BANNER_CONFIGMAP_NAME","value":"banner"},
            {"name":"GITEA_ARGOCD_NAMESPACE","value":"argocd"},
            {"name":"GITEA_ARGOCD_PROJECT","value":"tenants"},
            {"name":"GITEA_ARGOCD_SOURCE_REPO_URL","value":"https://git.example.com/x.git"},
            {"name":"GITEA_ARGOCD_SOURCE_TARGET_REVISION","value":"v1"},
            {"name":"GITEA_ARGOCD_SOURCE_PATH","value":"gitea"},
            {"name":"GITEA_SOURCE_CONTROL_ENABLED_LABEL","value":"example.com/git"},
            {"name":"GITEA_KUBEFLOW_ROOT_URL","value":"https://kubeflow.example.com"}]"#,
        &json!({
            "preset": "readme",
            "classification": "unclassified",
            "postgres": {"host": "pg.example.com", "port": 5433},
            "service": {"name": "git", "port": 8080},
            "urlPrefix": "git",
            "bannerConfigMap": "banner",
            "argocdNamespace": "argocd",
            "project": "tenants",
            "source": {
                "repoUrl": "https://git.example.com/x.git", "targetRevision": "v1", "path": "gitea",
            },
            "enabledLabel": "example.com/git",
            "rootUrl": "https://kubeflow.example.com",
        }),
    )?;
    check(
        "s3proxy",
        r#"components.s3proxy.env=[
            {"name":"S3PROXY_ARGOCD_NAMESPACE","value":"argocd"},
            {"name":"S3PROXY_ARGOCD_PROJECT","value":"tenants"},
            {"name":"S3PROXY_ARGOCD_SOURCE_REPO_URL","value":"https://git.example.com/x.git"},
            {"name":"S3PROXY_ARGOCD_SOURCE_TARGET_REVISION","value":"v1"},
            {"name":"S3PROXY_ARGOCD_SOURCE_PATH","value":"s3"},
            {"name":"S3PROXY_KUBEFLOW_ROOT_URL","value":"https://kubeflow.example.com"},
            {"name":"S3PROXY_KUBEFLOW_PREFIX","value":"files"}]"#,
        &json!({
            "preset": "readme",
            "argocdNamespace": "argocd",
            "project": "tenants",
            "source": {
                "repoUrl": "https://git.example.com/x.git", "targetRevision": "v1", "path": "s3",
            },
            "rootUrl": "https://kubeflow.example.com",
            "prefix": "files",
        }),
    )
}

#[test]
fn volumes_are_described_as_before() -> Result<()> {
    check(
        "blobcsi",
        r#"components.blobcsi={
            "config": "{\"name\": \"a\", \"classification\": \"unclassified\", \"secretRef\": \"s/n\", \"capacity\": 10, \"readOnly\": false, \"owner\": \"AAW\"}\n{\"name\": \"b\", \"classification\": \"protected-b\", \"secretRef\": \"s\", \"capacity\": 2, \"readOnly\": true}\n",
            "env": [
                {"name":"BLOB_CSI_FDI_OPA_DAEMON_TICKER_MILLIS","value":2500},
                {"name":"BLOB_CSI_FDI_GLOBAL_SP_TENANTID","value":"tenant"},
                {"name":"FDI_SP_A_AZURE_STORAGE_SPN_CLIENTID","value":"client"},
                {"name":"BLOB_CSI_FDI_UNCLASS_OPA_ENDPOINT","value":"http://opa:8181/v1/data"},
                {"name":"BLOB_CSI_FDI_UNCLASS_STORAGE_ACCOUNT","value":"acct"},
                {"name":"BLOB_CSI_FDI_UNCLASS_RESOURCE_GROUP","value":"rg"},
                {"name":"BLOB_CSI_FDI_UNCLASS_PV_STORAGE_CAP","value":10},
                {"name":"BLOB_CSI_FDI_UNCLASS_AZURE_STORAGE_AUTH_TYPE","value":"spn"},
                {"name":"BLOB_CSI_FDI_UNCLASS_SPN_SECRET_NAME","value":"secret"},
                {"name":"BLOB_CSI_FDI_UNCLASS_SPN_SECRET_NAMESPACE","value":"system"},
                {"name":"BLOB_CSI_FDI_UNCLASS_AZURE_STORAGE_SPN_CLIENTID","value":"own"},
                {"name":"BLOB_CSI_FDI_UNCLASS_SPN_TENANTID","value":"mine"},
                {"name":"BLOB_CSI_FDI_UNCLASS_AZURE_STORAGE_AAD_ENDPOINT","value":"https://login"},
                {"name":"BLOB_CSI_FDI_PROTECTED_B_INTERNAL_STORAGE_ACCOUNT","value":"inside"},
                {"name":"BLOB_CSI_FDI_PROTECTED_B_EXTERNAL_STORAGE_ACCOUNT","value":"outside"},
                {"name":"BLOB_CSI_FDI_PROTECTED_B_CS_RESOURCE_GROUP","value":"rgb"}]}"#,
        &json!({
            "preset": "readme",
            "instances": [
                {"name": "a", "classification": "unclassified", "secretRef": "s/n", "capacity": 10, "readOnly": false},
                {"name": "b", "classification": "protected-b", "secretRef": "s", "capacity": 2, "readOnly": true},
            ],
            "fdi": {
                "pollSeconds": 3,
                "tenantId": "tenant",
                "clientIds": {"fdi-sp-a": "client"},
                "unclassified": {
                    "opaEndpoint": "http://opa:8181/v1/data",
                    "storageAccount": "acct",
                    "resourceGroup": "rg",
                    "capacity": 10,
                    "authType": "spn",
                    "secretNamespace": "system",
                    "principal": {
                        "secretName": "secret", "clientId": "own", "tenantId": "mine",
                        "aadEndpoint": "https://login",
                    },
                },
                "protectedB": {
                    "internalStorageAccount": "inside",
                    "externalStorageAccount": "outside",
                    "resourceGroup": "rgb",
                },
            },
        }),
    )
}

/// All components from one registry.
pub(super) const PULLED: &str = r#"artifacts={
    "repository":"registry.example/reeve","pullSecretName":"login",
    "digests":{
        "authpolicy":"sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "blobcsi":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
        "cloudmain":"sha256:0000000000000000000000000000000000000000000000000000000000000002",
        "gitea":"sha256:0000000000000000000000000000000000000000000000000000000000000003",
        "limitranges":"sha256:0000000000000000000000000000000000000000000000000000000000000004",
        "network":"sha256:0000000000000000000000000000000000000000000000000000000000000005",
        "notebook":"sha256:0000000000000000000000000000000000000000000000000000000000000006",
        "quotas":"sha256:0000000000000000000000000000000000000000000000000000000000000007",
        "rbac":"sha256:0000000000000000000000000000000000000000000000000000000000000008",
        "s3proxy":"sha256:0000000000000000000000000000000000000000000000000000000000000009"
    }}"#;

#[test]
fn components_are_pulled_by_their_digests() -> Result<()> {
    let home = tempfile::tempdir()?;
    let find = |objects: &[Value], kind: &str, name: &str| {
        let mut found = objects.iter().filter(|object| object["kind"] == kind);
        let found = found.find(|object| object["metadata"]["name"] == name);
        found.cloned().with_context(|| format!("no {kind} {name}"))
    };
    let objects = rendered(home.path(), &[ALL, PULLED])?;
    for plugin in ["gitea-unclassified", "gitea-protected-b"] {
        let found = find(&objects, "Plugin", plugin)?;
        let image = format!("registry.example/reeve/gitea@sha256:{:0>64}", 3);
        let expected = json!({"image": image, "pullSecretName": "login"});
        ensure!(found["spec"]["artifact"] == expected, "{found}");
        // So that the agent reads the configuration in it.
        let map = find(&objects, "ConfigMap", plugin)?;
        ensure!(
            map["metadata"]["labels"]["reeve.dev/plugin"] == "true",
            "{map}"
        );
    }
    let own = r#"components.quotas.plugin={"artifact":{"image":"other.example/quotas:1"}}"#;
    let objects = rendered(home.path(), &[PULLED, own])?;
    let found = find(&objects, "Plugin", "quotas")?;
    ensure!(
        found["spec"]["artifact"] == json!({"image": "other.example/quotas:1"}),
        "{found}"
    );
    // Alone, too; and what is delivered becomes a plugin by what is delivered.
    let objects = rendered(home.path(), &[own])?;
    for (plugin, expected) in [("quotas", json!("true")), ("network", Value::Null)] {
        let map = find(&objects, "ConfigMap", plugin)?;
        ensure!(
            map["metadata"]["labels"]["reeve.dev/plugin"] == expected,
            "{map}"
        );
    }
    Ok(())
}

#[test]
fn settings_win_over_all_else() -> Result<()> {
    let groups = r#"components.rbac={"supportGroups":["g"],"settings":{"preset":"readme","role":{"name":"x"}}}"#;
    let expected = json!({"preset": "readme", "supportGroups": ["g"], "role": {"name": "x"}});
    ensure!(settings_of("rbac", &[r#"preset="main""#, groups])? == expected);
    for plugin in ["network", "quotas", "limitranges"] {
        ensure!(settings_of(plugin, &[r#"preset="main""#])? == json!({"preset": "main"}));
    }
    Ok(())
}

#[test]
fn one_label_decides_for_gitea_and_its_policies() -> Result<()> {
    let variable = |of: &str, label: &str| {
        let variable = json!({"name": "GITEA_SOURCE_CONTROL_ENABLED_LABEL", "value": label});
        format!("components.{of}.env=[{variable}]")
    };
    let one = variable("giteaUnclassified", "a.com/git");
    let setting = r#"components.giteaProtectedB.settings={"enabledLabel":"a.com/git"}"#;
    let network = |values: &[&str]| settings_of("network", values);
    let expected = json!({"preset": "readme", "sourceControlLabel": "a.com/git"});
    ensure!(network(&[&one])? == expected);
    ensure!(network(&[setting])? == expected);
    ensure!(network(&[&one, setting])? == expected);
    let other = variable("giteaProtectedB", "b.com/git");
    let Err(error) = network(&[&one, &other]) else {
        bail!("two labels decide");
    };
    let error = format!("{error:#}");
    ensure!(error.contains("is a.com/git and b.com/git"), "{error}");
    let own = r#"components.network.settings={"sourceControlLabel":"c.com/git"}"#;
    ensure!(network(&[&one, &other, own])?["sourceControlLabel"] == "c.com/git");
    Ok(())
}

#[test]
fn counts_and_switches_say_what_is_installed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let usual = [
        "authpolicy",
        "blobcsi",
        "cloudmain",
        "limitranges",
        "network",
        "notebook",
        "quotas",
        "rbac",
    ];
    let only = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let without = |out: &[&str]| {
        usual
            .iter()
            .filter(|name| !out.contains(name))
            .map(|name| (*name).to_owned())
            .collect()
    };
    let cases: [(&[&str], Vec<String>); 5] = [
        (&[], only(&usual)),
        (&["replicaCount.default=0"], only(&["blobcsi", "cloudmain"])),
        (&["replicaCount.blobcsi=0"], without(&["blobcsi"])),
        (
            &["replicaCount=0", "components.giteaProtectedB.enabled=true"],
            only(&["gitea-protected-b"]),
        ),
        (
            &[
                "components.quotas.enabled=false",
                "replicaCount.trino=1",
                "components.trinoschema={}",
            ],
            without(&["quotas"]),
        ),
    ];
    for (settings, expected) in cases {
        let objects = rendered(home.path(), settings)?;
        let mut names: Vec<String> = configured(&objects)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.sort();
        ensure!(names == expected, "{settings:?}: {names:?}");
    }
    Ok(())
}

#[test]
fn plugins_are_told_what_they_may_reach() -> Result<()> {
    let home = tempfile::tempdir()?;
    let spec = |plugin: &str, settings: &[&str]| -> Result<Value> {
        let objects = rendered(home.path(), settings)?;
        let found = objects
            .iter()
            .find(|object| object["kind"] == "Plugin" && object["metadata"]["name"] == plugin);
        Ok(found.context("no Plugin")?["spec"].clone())
    };
    let gitea = [
        "replicaCount.gitea=1",
        r#"plugin={"mode":"PlanOnly","adoption":"IfUnowned"}"#,
        r#"components.giteaUnclassified.plugin={"mode":"Auto"}"#,
    ];
    let expected = json!({
        "mode": "Auto", "adoption": "IfUnowned",
        "capabilities": {"sql": [{
            "name": "gitea-unclassified",
            "secret": {"name": "gitea-postgres-connection-unclassified"},
        }]},
    });
    let found = spec("gitea-unclassified", &gitea)?;
    ensure!(found == expected, "{found}");
    let found = spec("quotas", &gitea)?;
    ensure!(
        found == json!({"mode": "PlanOnly", "adoption": "IfUnowned"}),
        "{found}"
    );
    let blobcsi = [r#"components.blobcsi={
        "accountKeys":{"https://acct.blob.core.windows.net":"azure/acct-key"},
        "settings":{"fdi":{"unclassified":{"opaEndpoint":"http://opa:8181/v1/data","storageAccount":"abc"}}}}"#];
    let expected = json!({"capabilities": {
        "http": [
            {"url": "http://opa:8181/v1/data", "methods": ["GET"]},
            {"url": "https://acct.blob.core.windows.net/", "methods": ["GET", "PUT"], "key": "acct-key"},
        ],
        "keys": [{"name": "acct-key", "type": "AzureSharedKey", "secret": {"name": "acct-key", "namespace": "azure"}}],
    }});
    let found = spec("blobcsi", &blobcsi)?;
    ensure!(found == expected, "{found}");
    // The agent reads that one Secret, and no other.
    let objects = rendered(home.path(), &blobcsi)?;
    let role = objects.iter().find(|object| {
        object["kind"] == "Role"
            && object["metadata"]["name"] == "reeve-plugin-reeve-system.blobcsi-outside"
    });
    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["acct-key"], "verbs": ["get"],
    }]);
    ensure!(role.context("no Role")?["rules"] == rules);
    Ok(())
}

#[test]
fn what_cannot_be_used_is_refused_by_name() -> Result<()> {
    let home = tempfile::tempdir()?;
    let gitea = "components.giteaUnclassified.env";
    for (setting, expected) in [
        (
            format!(r#"{gitea}=[{{"name":"GITEA_PSQL_ADMIN_PASSWD","value":"x"}}]"#),
            "GITEA_PSQL_ADMIN_PASSWD is no variable that is known here; leave it out, or say it in \
             components.giteaUnclassified.settings; who makes databases stands in the Secret that \
             envFrom names",
        ),
        (
            format!(r#"{gitea}=[{{"name":"GITEA_CLASSIFICATION","value":"protected-b"}}]"#),
            "GITEA_CLASSIFICATION is unclassified here",
        ),
        (
            format!(r#"{gitea}=[{{"name":"GITEA_URL_PREFIX","valueFrom":{{}}}}]"#),
            "components.giteaUnclassified.env: GITEA_URL_PREFIX: only a `value` can be read",
        ),
        (
            r#"components.blobcsi.env=[{"name":"BLOB_CSI_FDI_UNCLASS_PV_STORAGE_CAP","value":"10Ti"}]"#
                .to_owned(),
            r#"BLOB_CSI_FDI_UNCLASS_PV_STORAGE_CAP: "10Ti" is no whole number"#,
        ),
        (
            r#"components.blobcsi.config="{""#.to_owned(),
            "components.blobcsi.config: JSON objects are expected, one after the other",
        ),
        (
            r#"artifacts={"repository":"registry.example/reeve","digests":{}}"#.to_owned(),
            "artifacts.digests.authpolicy: the digest of the component is missing, as `reeve plugin \
             push registry.example/reeve/authpolicy:TAG authpolicy.wasm` prints it",
        ),
        (r#"artifacts.digests={"trino":"x"}"#.to_owned(), "'trino' not allowed"),
        (r#"artifacts.digests={"quotas":"1.0"}"#.to_owned(), "/artifacts/digests/quotas"),
        (r#"artifacts.repository="https://a b""#.to_owned(), "/artifacts/repository"),
        (r#"components.trino={}"#.to_owned(), "'trino' not allowed"),
        (r#"preset="both""#.to_owned(), "/preset"),
        (r#"replicaCount="many""#.to_owned(), "/replicaCount"),
        (r#"components.rbac.supportGroups=[""]"#.to_owned(), "supportGroups/0"),
    ] {
        match rendered(home.path(), &[ALL, &setting]) {
            Ok(_) => bail!("{setting} was taken"),
            Err(error) => {
                let text = format!("{error:#}");
                ensure!(text.contains(expected), "no `{expected}` in: {text}");
            }
        }
    }
    Ok(())
}

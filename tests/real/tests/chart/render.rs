//! What each value does to the objects.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use reeve_core::grant::{Subject, agent_base};
use serde_json::{Value, json};

use crate::helm::{chart, helm, template};

/// The container of the agent, in its Deployment.
const CONTAINER: &str = "/spec/template/spec/containers/0";
/// The pod of the agent, in its Deployment.
const POD: &str = "/spec/template/spec";

/// One setting, or several after semicolons: what is set, and what then stands where. Of the object it is said
/// which kind it is of; null stands for nothing, also for no object.
type Case = (&'static str, &'static str, String, Value);

fn case(
    setting: &'static str,
    kind: &'static str,
    pointer: impl Into<String>,
    value: Value,
) -> Case {
    (setting, kind, pointer.into(), value)
}

fn pod(setting: &'static str, pointer: &str, value: Value) -> Case {
    case(setting, "Deployment", format!("{POD}{pointer}"), value)
}

fn container(setting: &'static str, pointer: &str, value: Value) -> Case {
    case(
        setting,
        "Deployment",
        format!("{CONTAINER}{pointer}"),
        value,
    )
}

/// Every value, by the first part of its setting.
fn cases() -> Vec<Case> {
    let label = "app.kubernetes.io~1name";
    let rule = json!({"key": "a", "operator": "Exists"});
    vec![
        case(
            r#"nameOverride="x""#,
            "Service",
            format!("/metadata/labels/{label}"),
            json!("x"),
        ),
        case(
            r#"fullnameOverride="x""#,
            "Deployment",
            "/metadata/name",
            json!("x"),
        ),
        case("replicas=3", "Deployment", "/spec/replicas", json!(3)),
        case("replicas=1", "PodDisruptionBudget", "", Value::Null),
        container(r#"image.repository="r/x""#, "/image", json!("r/x:0.1.0")),
        container(r#"image.tag="7""#, "/image", json!("reeve:7")),
        container(
            r#"image.digest="sha256:0000000000000000000000000000000000000000000000000000000000000000""#,
            "/image",
            json!("reeve@sha256:0000000000000000000000000000000000000000000000000000000000000000"),
        ),
        container(
            r#"image.pullPolicy="Always""#,
            "/imagePullPolicy",
            json!("Always"),
        ),
        pod(
            r#"imagePullSecrets=[{"name":"x"}]"#,
            "/imagePullSecrets/0/name",
            json!("x"),
        ),
        case(
            "config.concurrency=3",
            "ConfigMap",
            "/data/reeve.yaml",
            json!("concurrency: 3\nlog-format: json\nshutdown-grace: 20s\n"),
        ),
        container(
            r#"config.health-address="[::]:9090""#,
            "/ports/0/containerPort",
            json!(9090),
        ),
        case(
            r#"config.lease-name="x""#,
            "Role",
            "/rules/8/resourceNames",
            json!(["x"]),
        ),
        container(
            r#"logFilter="reeve=debug""#,
            "/env/4",
            json!({"name": "RUST_LOG", "value": "reeve=debug"}),
        ),
        container(
            r#"extraEnv=[{"name":"SSL_CERT_FILE","value":"x"}]"#,
            "/env/4",
            json!({"name": "SSL_CERT_FILE", "value": "x"}),
        ),
        pod(
            r#"extraVolumes=[{"name":"x","configMap":{"name":"y"}}]"#,
            "/volumes/2",
            json!({"name": "x", "configMap": {"name": "y"}}),
        ),
        container(
            r#"extraVolumeMounts=[{"name":"x","mountPath":"/y"}]"#,
            "/volumeMounts/2",
            json!({"name": "x", "mountPath": "/y"}),
        ),
        case(
            "serviceAccount.create=false",
            "ServiceAccount",
            "",
            Value::Null,
        ),
        pod(
            "serviceAccount.create=false",
            "/serviceAccountName",
            json!("default"),
        ),
        case(
            r#"serviceAccount.name="x""#,
            "ServiceAccount",
            "/metadata/name",
            json!("x"),
        ),
        case(
            r#"serviceAccount.name="x""#,
            "ClusterRoleBinding",
            "/subjects/0/name",
            json!("x"),
        ),
        case(
            r#"serviceAccount.annotations={"a":"b"}"#,
            "ServiceAccount",
            "/metadata/annotations/a",
            json!("b"),
        ),
        case("rbac.create=false", "Role", "", Value::Null),
        case("rbac.create=false", "ClusterRoleBinding", "", Value::Null),
        pod("cache.enabled=false", "/volumes/1", Value::Null),
        container("cache.enabled=false", "/env/3", Value::Null),
        pod(
            r#"cache.sizeLimit="1Gi""#,
            "/volumes/1/emptyDir/sizeLimit",
            json!("1Gi"),
        ),
        pod(
            r#"cache.medium="Memory""#,
            "/volumes/1/emptyDir/medium",
            json!("Memory"),
        ),
        container(
            r#"resources.limits={"cpu":"2"}"#,
            "/resources/limits/cpu",
            json!("2"),
        ),
        pod(
            "terminationGracePeriodSeconds=60",
            "/terminationGracePeriodSeconds",
            json!(60),
        ),
        container(
            "probes.startupSeconds=60",
            "/startupProbe/failureThreshold",
            json!(12),
        ),
        case(
            r#"service.annotations={"a":"b"}"#,
            "Service",
            "/metadata/annotations/a",
            json!("b"),
        ),
        case(
            "service.port=80",
            "Service",
            "/spec/ports/0/port",
            json!(80),
        ),
        case(
            "podDisruptionBudget.enabled=false",
            "PodDisruptionBudget",
            "",
            Value::Null,
        ),
        case(
            r#"podDisruptionBudget.minAvailable="50%""#,
            "PodDisruptionBudget",
            "/spec/minAvailable",
            json!("50%"),
        ),
        case(
            "networkPolicy.enabled=false",
            "NetworkPolicy",
            "",
            Value::Null,
        ),
        case(
            "networkPolicy.apiServerPorts=[8443]",
            "NetworkPolicy",
            "/spec/egress/1/ports/0/port",
            json!(8443),
        ),
        case(
            r#"networkPolicy.apiServerCIDRs=["10.0.0.1/32"]"#,
            "NetworkPolicy",
            "/spec/egress/1/to/0/ipBlock/cidr",
            json!("10.0.0.1/32"),
        ),
        case(
            r#"networkPolicy.metricsFrom=[{"podSelector":{}}]"#,
            "NetworkPolicy",
            "/spec/ingress/0/from",
            json!([{"podSelector": {}}]),
        ),
        case(
            r#"networkPolicy.egress=[{"ports":[{"port":5432}]}]"#,
            "NetworkPolicy",
            "/spec/egress/2",
            json!({"ports": [{"port": 5432}]}),
        ),
        case(
            "serviceMonitor.enabled=true",
            "ServiceMonitor",
            "/spec/endpoints/0/port",
            json!("metrics"),
        ),
        case(
            r#"serviceMonitor.enabled=true;serviceMonitor.interval="5s""#,
            "ServiceMonitor",
            "/spec/endpoints/0/interval",
            json!("5s"),
        ),
        case(
            r#"serviceMonitor.enabled=true;serviceMonitor.labels={"a":"b"}"#,
            "ServiceMonitor",
            "/metadata/labels/a",
            json!("b"),
        ),
        case(
            r#"dashboard.enabled=true;dashboard.labels={"a":"b"}"#,
            "ConfigMap",
            "/metadata/labels/a",
            json!("b"),
        ),
        case(
            "dashboard.enabled=true",
            "ConfigMap",
            "/metadata/labels/grafana_dashboard",
            json!("1"),
        ),
        case(
            r#"podAnnotations={"a":"b"}"#,
            "Deployment",
            "/spec/template/metadata/annotations/a",
            json!("b"),
        ),
        case(
            r#"podLabels={"a":"b"}"#,
            "Deployment",
            "/spec/template/metadata/labels/a",
            json!("b"),
        ),
        pod(r#"nodeSelector={"a":"b"}"#, "/nodeSelector/a", json!("b")),
        pod(
            r#"tolerations=[{"key":"a","operator":"Exists"}]"#,
            "/tolerations/0",
            rule,
        ),
        pod(
            r#"affinity={"nodeAffinity":{"x":"y"}}"#,
            "/affinity/nodeAffinity/x",
            json!("y"),
        ),
        pod(r#"priorityClassName="x""#, "/priorityClassName", json!("x")),
        pod(
            r#"topologySpreadConstraints=[{"maxSkew":2}]"#,
            "/topologySpreadConstraints",
            json!([{"maxSkew": 2}]),
        ),
    ]
}

/// What is at a place of the first object of a kind that has something there.
pub(crate) fn look(objects: &[Value], kind: &str, pointer: &str) -> Value {
    let of_kind = objects.iter().filter(|object| object["kind"] == kind);
    let mut found = of_kind.filter_map(|object| object.pointer(pointer));
    found.next().cloned().unwrap_or_default()
}

#[test]
fn each_value_does_what_it_says() -> Result<()> {
    let home = tempfile::tempdir()?;
    let values: Value = serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml"))?)?;
    let mut tried = BTreeSet::new();
    for (setting, kind, pointer, expected) in cases() {
        let settings: Vec<&str> = setting.split(';').collect();
        let objects = template(home.path(), &settings)?;
        let found = look(&objects, kind, &pointer);
        ensure!(
            found == expected,
            "{setting}: {kind}{pointer} is {found}, not {expected}"
        );
        let default = look(&template_of_defaults(home.path())?, kind, &pointer);
        ensure!(
            default != expected,
            "{setting} changes nothing of {kind}{pointer}"
        );
        let name = setting.split(['.', '=']).next().unwrap_or_default();
        tried.insert(name.to_owned());
    }
    let all: BTreeSet<String> = values
        .as_object()
        .context("no values")?
        .keys()
        .cloned()
        .collect();
    ensure!(tried == all, "not tried: {:?}", all.difference(&tried));
    Ok(())
}

/// Of two agents without a Lease both would write: a new pod waits for the end of the old.
#[test]
fn without_a_lease_pods_do_not_overlap() -> Result<()> {
    let home = tempfile::tempdir()?;
    let alone = ["replicas=1", "config.leader-elect=false"];
    let strategy = |objects: &[Value]| look(objects, "Deployment", "/spec/strategy/type");
    ensure!(strategy(&template(home.path(), &alone)?) == "Recreate");
    ensure!(strategy(&template_of_defaults(home.path())?).is_null());
    Ok(())
}

fn template_of_defaults(home: &std::path::Path) -> Result<Vec<Value>> {
    use std::sync::OnceLock;
    static DEFAULTS: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(objects) = DEFAULTS.get() {
        return Ok(objects.clone());
    }
    let objects = template(home, &[])?;
    Ok(DEFAULTS.get_or_init(|| objects).clone())
}

#[test]
fn what_is_no_value_is_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    for (setting, expected) in [
        ("replica=2", "replica"),
        (r#"replicas="two""#, "replicas"),
        (r#"image.digest="sha256:0""#, "/image/digest"),
        (r#"config.lease-duration="soon""#, "/config/lease-duration"),
        ("config.lease=1", "lease"),
        ("service.port=0", "/service/port"),
        ("config.leader-elect=false", "config.leader-elect"),
        (r#"config.lease-name="Bad_Name""#, "/config/lease-name"),
        (r#"config.max-limit="memoryBytes""#, "/config/max-limit"),
        (r#"cache.sizeLimit="lots""#, "/cache/sizeLimit"),
        (r#"image.tag="a b""#, "/image/tag"),
        (
            r#"networkPolicy.apiServerCIDRs=["abc"]"#,
            "/networkPolicy/apiServerCIDRs/0",
        ),
        (
            "podDisruptionBudget.minAvailable=2",
            "podDisruptionBudget.minAvailable",
        ),
        (
            r#"podDisruptionBudget.minAvailable="51%""#,
            "podDisruptionBudget.minAvailable: no node",
        ),
        (
            r#"podDisruptionBudget.minAvailable="lots""#,
            "/podDisruptionBudget/minAvailable",
        ),
        (r#"config.lease-name="a..b""#, "/config/lease-name"),
        (
            r#"config.shutdown-grace="30s""#,
            "terminationGracePeriodSeconds: 30 seconds are not longer",
        ),
        (
            "terminationGracePeriodSeconds=20",
            "terminationGracePeriodSeconds: 20 seconds are not longer",
        ),
        (
            r#"config.lease-renew-deadline="13001ms""#,
            "config.lease-renew-deadline: with a lease-duration of 15000ms it can be 13000ms",
        ),
        (
            r#"config={"lease-duration":"200s","lease-renew-deadline":"190s"}"#,
            "config.lease-renew-deadline: with a lease-duration of 200000ms it can be 189000ms",
        ),
        (
            r#"config.lease-duration="1s""#,
            "config.lease-renew-deadline: with a lease-duration of 1000ms it can be 0ms",
        ),
        (
            r#"config.lease-duration="15500ms""#,
            "config.lease-duration: it must be a whole number of seconds",
        ),
        (
            r#"config.lease-duration="0s""#,
            "config.lease-duration: it must be a whole number of seconds",
        ),
        (
            r#"config.lease-duration="600000h""#,
            "config.lease-duration: it must be a whole number of seconds",
        ),
        (
            r#"config.lease-retry-period="0m 5s""#,
            "config.lease-retry-period: it must be more than zero and less than half",
        ),
        (
            r#"config.lease-retry-period="0s""#,
            "config.lease-retry-period: it must be more than zero and less than half",
        ),
        (
            r#"config.compile-timeout="99ms""#,
            "config.compile-timeout: nothing would ever be compiled",
        ),
        (r#"config.shutdown-grace="5s1m""#, "/config/shutdown-grace"),
        (
            r#"config.health-address="127.0.0.1:8081""#,
            "/config/health-address",
        ),
        (
            r#"config.health-address="[::]:65536""#,
            "/config/health-address",
        ),
        (
            r#"podLabels={"app.kubernetes.io/name":"x"}"#,
            "podLabels: the chart itself sets",
        ),
        (
            r#"podLabels={"app.kubernetes.io/version":"x"}"#,
            "podLabels: the chart itself sets",
        ),
        (
            r#"serviceMonitor.labels={"helm.sh/chart":"x"}"#,
            "serviceMonitor.labels: the chart itself sets",
        ),
        (
            r#"dashboard.labels={"helm.sh/chart":"x"}"#,
            "dashboard.labels: the chart itself sets",
        ),
        (
            r#"podAnnotations={"reeve.dev/config":"x"}"#,
            "podAnnotations: the chart itself sets",
        ),
        (
            "networkPolicy.apiServerPorts=null",
            "missing property 'apiServerPorts'",
        ),
        (
            "networkPolicy.apiServerPorts=[]",
            "/networkPolicy/apiServerPorts",
        ),
        (r#"fullnameOverride="Bad_Name""#, "/fullnameOverride"),
        (r#"fullnameOverride="1a""#, "/fullnameOverride"),
        (r#"nameOverride="a b""#, "/nameOverride"),
        (r#"serviceAccount.name="x y""#, "/serviceAccount/name"),
        (r#"serviceAccount.name="x..y""#, "/serviceAccount/name"),
        (
            r#"serviceMonitor.interval="oops""#,
            "/serviceMonitor/interval",
        ),
        (
            r#"networkPolicy.apiServerCIDRs=["999.2.3.4/99"]"#,
            "/networkPolicy/apiServerCIDRs/0",
        ),
        (r#"config.max-limit="hostcalls=5""#, "/config/max-limit"),
        (
            r#"extraEnv=[{"name":"REEVE_LEADER_ELECT","value":"false"}]"#,
            "extraEnv: REEVE_LEADER_ELECT is a setting",
        ),
        (
            r#"extraVolumes=[{"name":"cache","emptyDir":{}}]"#,
            "extraVolumes: there is a volume cache of the chart's own",
        ),
    ] {
        match template(home.path(), &[setting]) {
            Ok(_) => anyhow::bail!("{setting} was taken"),
            Err(error) => {
                let text = format!("{error:#}");
                ensure!(text.contains(expected), "no {expected} in: {text}");
            }
        }
    }
    Ok(())
}

/// Of times that the agent takes, none is refused.
#[test]
fn times_that_fit_together_are_taken() -> Result<()> {
    let home = tempfile::tempdir()?;
    for config in [
        r#"config.lease-renew-deadline="13s""#,
        r#"config={"lease-duration":"200s","lease-renew-deadline":"3m 9s"}"#,
        r#"config={"lease-duration":"4s","lease-renew-deadline":"2s","lease-retry-period":"999ms"}"#,
        r#"config={"lease-duration":"1m 5s","compile-timeout":"100ms"}"#,
    ] {
        template(home.path(), &[config])?;
    }
    Ok(())
}

/// What may be null, which takes away what stands in values.yaml: where nothing means
/// what the empty value does, or what Kubernetes or the agent do by themselves.
const MAY_BE_NOTHING: [&str; 31] = [
    "affinity",
    "cache.medium",
    "config.concurrency",
    "config.log-format",
    "config.shutdown-grace",
    "dashboard.labels",
    "dashboard.labels.grafana_dashboard",
    "extraEnv",
    "extraVolumeMounts",
    "extraVolumes",
    "fullnameOverride",
    "image.digest",
    "image.tag",
    "imagePullSecrets",
    "logFilter",
    "nameOverride",
    "networkPolicy.apiServerCIDRs",
    "networkPolicy.egress",
    "networkPolicy.metricsFrom",
    "nodeSelector",
    "podAnnotations",
    "podLabels",
    "priorityClassName",
    "resources",
    "service.annotations",
    "serviceAccount.annotations",
    "serviceAccount.name",
    "serviceMonitor.interval",
    "serviceMonitor.labels",
    "tolerations",
    "topologySpreadConstraints",
];

/// Every place in these values, by its path.
fn paths(values: &Value, above: &str, into: &mut Vec<String>) {
    for (key, value) in values.as_object().into_iter().flatten() {
        let path = format!("{above}{key}");
        paths(value, &format!("{path}."), into);
        into.push(path);
    }
}

/// Helm takes away what is null before it looks at the schema.
#[test]
fn what_is_needed_cannot_be_taken_away() -> Result<()> {
    let home = tempfile::tempdir()?;
    let values: Value = serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml"))?)?;
    let mut all = Vec::new();
    paths(&values, "", &mut all);
    for path in MAY_BE_NOTHING {
        ensure!(all.iter().any(|one| one == path), "{path} is no value");
    }
    // What is there only on demand is to be looked at, too.
    let every = ["serviceMonitor.enabled=true", "dashboard.enabled=true"];
    for path in all {
        let may_be = MAY_BE_NOTHING.contains(&&*path) || path.starts_with("resources.");
        let nothing = format!("{path}=null");
        let mut settings = every.to_vec();
        settings.push(&nothing);
        match template(home.path(), &settings) {
            Ok(_) => ensure!(may_be, "{nothing} was taken"),
            Err(error) => {
                ensure!(!may_be, "{nothing}: {error:#}");
                let name = path.rsplit('.').next().unwrap_or_default();
                let text = format!("{error:#}");
                ensure!(
                    text.contains(&format!("missing property '{name}'")),
                    "{nothing}: {text}"
                );
            }
        }
    }
    Ok(())
}

/// What YAML would take for a number or a truth is a name all the same.
/// The API server takes no list with a variable twice.
#[test]
fn variables_of_others_take_the_place_of_the_charts() -> Result<()> {
    let home = tempfile::tempdir()?;
    let name = "RUST_LOG";
    let ours = format!(r#"extraEnv=[{{"name":"{name}","value":"4"}}]"#);
    let objects = template(home.path(), &[r#"logFilter="debug""#, &ours])?;
    let variables = look(&objects, "Deployment", &format!("{CONTAINER}/env"));
    let all = variables.as_array().context("no variables")?;
    let found: Vec<&Value> = all.iter().filter(|one| one["name"] == name).collect();
    ensure!(found == [&json!({"name": name, "value": "4"})], "{found:?}");
    Ok(())
}

/// The agent is told once where it is to listen.
#[test]
fn an_address_of_both_kinds_is_the_only_one() -> Result<()> {
    let home = tempfile::tempdir()?;
    let told = |objects: &[Value]| -> (bool, bool) {
        let variables = look(objects, "Deployment", &format!("{CONTAINER}/env"));
        let file = look(objects, "ConfigMap", "/data/reeve.yaml");
        (
            variables.to_string().contains("REEVE_HEALTH_ADDRESS"),
            file.to_string().contains("health-address: '[::]:8081'"),
        )
    };
    ensure!(told(&template_of_defaults(home.path())?) == (true, false));
    let both = template(home.path(), &[r#"config.health-address="[::]:8081""#])?;
    ensure!(told(&both) == (false, true));
    Ok(())
}

#[test]
fn it_lints() -> Result<()> {
    let home = tempfile::tempdir()?;
    let chart = chart();
    let lint = ["lint", "--strict", &chart.to_string_lossy()];
    let text = helm(home.path(), None, &lint)?;
    ensure!(text.contains("0 chart(s) failed"), "{text}");
    let every = ["serviceMonitor.enabled=true", "dashboard.enabled=true"];
    for object in template(home.path(), &every)? {
        let labels = &object["metadata"]["labels"];
        ensure!(labels["app.kubernetes.io/instance"] == "reeve", "{object}");
        if let Some(dashboard) = object.pointer("/data/reeve.json") {
            let dashboard: Value = serde_json::from_str(dashboard.as_str().context("no text")?)?;
            ensure!(
                dashboard["panels"]
                    .as_array()
                    .is_some_and(|panels| !panels.is_empty())
            );
        }
    }
    Ok(())
}

/// The chart grants the agent what the code says that it needs, and no more.
#[test]
fn its_rights_are_those_of_the_code() -> Result<()> {
    let home = tempfile::tempdir()?;
    let rules = |objects: &[Value]| -> BTreeSet<String> {
        let roles = objects.iter().filter(|object| {
            object["kind"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("Role"))
        });
        let rules = roles.flat_map(|role| {
            let kind = role["kind"].clone();
            let rules = role["rules"].as_array().cloned().unwrap_or_default();
            rules.into_iter().map(move |rule| format!("{kind} {rule}"))
        });
        rules.collect()
    };
    let charted = rules(&template(home.path(), &[])?);
    let coded = rules(&agent_base(
        "reeve-system",
        Subject::ServiceAccount("reeve"),
    ));
    ensure!(!coded.is_empty());
    ensure!(
        charted == coded,
        "the chart alone: {:?}; the code alone: {:?}",
        charted.difference(&coded),
        coded.difference(&charted)
    );
    for rule in &charted {
        for wide in ["*", "impersonate", "escalate", "\"bind\""] {
            ensure!(!rule.contains(wide), "{rule}");
        }
    }
    Ok(())
}

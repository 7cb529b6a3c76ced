//! What each Profile should have, by its labels: from the description of the controllers,
//! and not from anything that the plugins are made of.

mod network;
pub(crate) mod routes;
pub(crate) mod volumes;

use serde_json::{Value, json};

use reeve_test_platform::buckets::{PROTECTED_B, UNCLASSIFIED};
use reeve_test_platform::tenants::QUOTA;
use reeve_test_platform::values::rules;
use reeve_test_platform::{Preset, Tenant, World};

pub(crate) const QUOTAS: &str = "resourcequotas";
pub(crate) const LIMIT_RANGES: &str = "limitranges";
pub(crate) const NETWORK_POLICIES: &str = "networkpolicies.networking.k8s.io";
pub(crate) const ROLES: &str = "roles.rbac.authorization.k8s.io";
pub(crate) const ROLE_BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
pub(crate) const POD_DEFAULTS: &str = "poddefaults.kubeflow.org";
pub(crate) const AUTHORIZATION_POLICIES: &str = "authorizationpolicies.security.istio.io";
pub(crate) const VOLUMES: &str = "persistentvolumes";
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const APPLICATIONS: &str = "applications.argoproj.io";
pub(crate) const CONFIG_MAPS: &str = "configmaps";
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const VIRTUAL_SERVICES: &str = "virtualservices.networking.istio.io";
pub(crate) const SERVICE_ENTRIES: &str = "serviceentries.networking.istio.io";
pub(crate) const DESTINATION_RULES: &str = "destinationrules.networking.istio.io";

/// All kinds that the plugins make.
pub(crate) const KINDS: [&str; 15] = [
    QUOTAS,
    LIMIT_RANGES,
    NETWORK_POLICIES,
    ROLES,
    ROLE_BINDINGS,
    POD_DEFAULTS,
    AUTHORIZATION_POLICIES,
    VOLUMES,
    CLAIMS,
    CONFIG_MAPS,
    SECRETS,
    VIRTUAL_SERVICES,
    SERVICE_ENTRIES,
    DESTINATION_RULES,
    APPLICATIONS,
];

/// Version and kind of what plugins make, by the resource.
pub(crate) fn type_of(resource: &str) -> Option<(&'static str, &'static str)> {
    Some(match resource {
        QUOTAS => ("v1", "ResourceQuota"),
        LIMIT_RANGES => ("v1", "LimitRange"),
        NETWORK_POLICIES => ("networking.k8s.io/v1", "NetworkPolicy"),
        ROLES => ("rbac.authorization.k8s.io/v1", "Role"),
        ROLE_BINDINGS => ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        POD_DEFAULTS => ("kubeflow.org/v1alpha1", "PodDefault"),
        AUTHORIZATION_POLICIES => ("security.istio.io/v1beta1", "AuthorizationPolicy"),
        VOLUMES => ("v1", "PersistentVolume"),
        CLAIMS => ("v1", "PersistentVolumeClaim"),
        CONFIG_MAPS => ("v1", "ConfigMap"),
        SECRETS => ("v1", "Secret"),
        VIRTUAL_SERVICES => ("networking.istio.io/v1beta1", "VirtualService"),
        SERVICE_ENTRIES => ("networking.istio.io/v1beta1", "ServiceEntry"),
        DESTINATION_RULES => ("networking.istio.io/v1beta1", "DestinationRule"),
        APPLICATIONS => ("argoproj.io/v1alpha1", "Application"),
        _ => return None,
    })
}

/// An object that should be there.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The resource, with its group.
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What it has at least.
    pub(crate) fields: Value,
    /// All of its spec, where that is known.
    spec: Option<Value>,
}

impl Wanted {
    fn new(kind: &'static str, namespace: &str, name: &str, fields: Value) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            fields,
            spec: None,
        }
    }

    /// One that has just this spec.
    fn exactly(kind: &'static str, namespace: &str, name: &str, spec: Value) -> Self {
        Self {
            spec: Some(spec),
            ..Self::new(kind, namespace, name, json!({}))
        }
    }

    /// All that is known of it, but for its kind and its name.
    pub(crate) fn whole(&self) -> Value {
        let mut object = self.fields.clone();
        if let Some(spec) = &self.spec {
            object["spec"] = spec.clone();
        }
        object
    }

    /// What an object has otherwise, if anything.
    pub(crate) fn difference(&self, found: &Value) -> Option<String> {
        if let Some(spec) = &self.spec
            && found["spec"] != *spec
        {
            return Some(format!("spec is {}, not {spec}", found["spec"]));
        }
        difference(found, &self.fields, "")
    }
}

/// Where a value lacks something of another: fields of a map, or any item of a list.
fn difference(found: &Value, wanted: &Value, at: &str) -> Option<String> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().find_map(|(key, wanted)| {
            let found = found.get(key).unwrap_or(&Value::Null);
            difference(found, wanted, &format!("{at}.{key}"))
        }),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(index, (item, other))| {
                difference(item, other, &format!("{at}[{index}]"))
            })
        }
        _ if found == wanted => None,
        _ => Some(format!("{at} is {found}, not {wanted}")),
    }
}

/// All that a Profile should have.
pub(crate) fn of(tenant: &Tenant, world: &World) -> Vec<Wanted> {
    let profile = &tenant.name;
    let mut wanted = vec![quota(tenant), limits(tenant)];
    for (name, spec) in network::policies(tenant, world.preset) {
        wanted.push(Wanted::exactly(NETWORK_POLICIES, profile, name, spec));
    }
    wanted.extend(access(tenant, world));
    wanted.push(Wanted::exactly(
        POD_DEFAULTS,
        profile,
        "protected-b",
        json!({
            "desc": "Run a Protected B notebook / Exécuter un bloc-notes protégé B",
            "selector": {"matchLabels": {"notebook.statcan.gc.ca/protected-b": "true"}},
            "labels": {"data.statcan.gc.ca/classification": "protected-b"},
        }),
    ));
    wanted.extend(authorization(tenant, world));
    wanted.extend(volumes::of(tenant, world));
    wanted.extend(routes::cloudmain(tenant));
    for class in [UNCLASSIFIED, PROTECTED_B] {
        wanted.extend(routes::gitea(tenant, world, class));
    }
    wanted.extend(routes::s3proxy(tenant));
    wanted
}

fn quota(tenant: &Tenant) -> Wanted {
    const DEFAULTS: [(&str, &str, &str); 9] = [
        ("requests.cpu", "70", "requests.cpu"),
        ("limits.cpu", "70", "limits.cpu"),
        ("requests.memory", "368G", "requests.memory"),
        ("limits.memory", "368G", "limits.memory"),
        ("requests.storage", "100T", "requests.storage"),
        ("requests.nvidia.com/gpu", "2", "gpu"),
        ("pods", "100", "pods"),
        ("services.nodeports", "0", "services.nodeports"),
        ("services.loadbalancers", "0", "services.loadbalancers"),
    ];
    let mut hard = json!({});
    for (resource, default, label) in DEFAULTS {
        let said = tenant.labels.get(&format!("{QUOTA}{label}"));
        hard[resource] = match said.map(String::as_str) {
            // A label that is no number: no GPU, and of all else the default.
            Some("many") if label == "gpu" => json!("0"),
            Some("two") | None => json!(default),
            Some(said) => json!(said),
        };
    }
    Wanted::exactly(QUOTAS, &tenant.name, "quotas", json!({"hard": hard}))
}

fn limits(tenant: &Tenant) -> Wanted {
    let amounts = json!({"cpu": "250m", "memory": "256M"});
    let item = json!({"type": "Container", "default": amounts, "defaultRequest": amounts});
    let name = "default-container-limits";
    Wanted::exactly(LIMIT_RANGES, &tenant.name, name, json!({"limits": [item]}))
}

fn access(tenant: &Tenant, world: &World) -> Vec<Wanted> {
    let group = "rbac.authorization.k8s.io";
    let binding = |name: &str, subjects: Value| {
        let role = json!({"apiGroup": group, "kind": "ClusterRole", "name": name});
        let fields = json!({"roleRef": role, "subjects": subjects});
        Wanted::new(ROLE_BINDINGS, &tenant.name, name, fields)
    };
    let mut wanted = Vec::new();
    if world.preset == Preset::Readme {
        let rules = json!({"rules": rules()});
        wanted.push(Wanted::new(ROLES, &tenant.name, "profile", rules));
        if tenant.owner == "User" {
            let owner = format!("{}@example.com", tenant.name);
            let owner = json!([{"apiGroup": group, "kind": "User", "name": owner}]);
            wanted.push(binding("ml-pipeline", owner));
        }
    }
    let mut groups = world.groups.to_vec();
    groups.sort_unstable();
    groups.dedup();
    if !groups.is_empty() {
        let subject = |name: &&str| json!({"apiGroup": group, "kind": "Group", "name": name});
        let subjects = groups.iter().map(subject).collect();
        wanted.push(binding("profile-support", subjects));
    }
    wanted
}

fn authorization(tenant: &Tenant, world: &World) -> Vec<Wanted> {
    let profile = &tenant.name;
    let mut wanted = Vec::new();
    // The name of a Notebook has to fit into a label.
    for notebook in tenant.notebooks.iter().filter(|name| name.len() <= 63) {
        let denied = |method: &str, path: &str| {
            let path = format!("/notebook/{profile}/{notebook}{path}");
            json!({"operation": {"methods": [method], "paths": [path]}})
        };
        let spec = json!({
            "action": "DENY",
            "selector": {"matchLabels": {
                "notebook-name": notebook,
                "data.statcan.gc.ca/classification": "protected-b",
            }},
            "rules": [{"to": [
                denied("POST", "/rstudio/upload"),
                denied("GET", "/rstudio/export*"),
                denied("GET", "/files*"),
                denied("GET", "/nbconvert*"),
            ]}],
        });
        let name = format!("{notebook}-protected-b-block");
        wanted.push(Wanted::exactly(
            AUTHORIZATION_POLICIES,
            profile,
            &name,
            spec,
        ));
    }
    if world.preset == Preset::Main {
        let editors = world.editors.iter().filter(|(of, _)| of == profile);
        let mut users: Vec<String> = editors.map(|(_, user)| user.clone()).collect();
        users.sort();
        users.insert(0, format!("{profile}@example.com"));
        let controller = "cluster.local/ns/kubeflow/sa/notebook-controller-service-account";
        let spec = json!({"rules": [
            {"when": [{"key": "request.headers[kubeflow-userid]", "values": users}]},
            {"when": [{"key": "source.namespace", "values": [profile]}]},
            {"to": [{"operation": {"paths": ["/healthz", "/metrics", "/wait-for-drain"]}}]},
            {
                "from": [{"source": {"principals": [controller]}}],
                "to": [{"operation": {"methods": ["GET"], "paths": ["*/api/status"]}}],
            },
        ]});
        let name = "namespace-owner-access-istio";
        wanted.push(Wanted::exactly(AUTHORIZATION_POLICIES, profile, name, spec));
    }
    wanted
}

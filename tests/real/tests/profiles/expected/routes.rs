//! What leads to things: objects of Istio, Applications of Argo CD, and what configures
//! them.

use serde_json::{Value, json};

use reeve_test_platform::buckets::{PROTECTED_B, UNCLASSIFIED};
use reeve_test_platform::tenants::{GUESTS, S3};
use reeve_test_platform::values::{ARGOCD, REPOSITORY, REVISION, ROOT};
use reeve_test_platform::{Preset, Tenant, World};

use super::{
    APPLICATIONS, CONFIG_MAPS, DESTINATION_RULES, SECRETS, SERVICE_ENTRIES, VIRTUAL_SERVICES,
    Wanted,
};

/// The ways through cloud-main, for who is known to have no guests.
pub(super) fn cloudmain(tenant: &Tenant) -> Vec<Wanted> {
    const NAME: &str = "direct-through-cloud-main-egress-gateway";
    const HOST: &str = "gitlab.k8s.cloud.statcan.ca";
    const SERVICE: &str = "cloud-main-egress-gateway.cloud-main-system.svc.cluster.local";
    const GATEWAY: &str = "cloud-main-system/cloud-main-egress-gateway";
    if tenant.flag(GUESTS) != Some(false) {
        return Vec::new();
    }
    let profile = &tenant.name;
    let seen_by = json!([profile, "cloud-main-system"]);
    let from = |gateway: &str| json!([{"gateways": [gateway], "port": 443, "sniHosts": [HOST]}]);
    let through = json!({"host": SERVICE, "subset": "cloud-main-hosts", "port": {"number": 443}});
    let out = json!({"host": HOST, "port": {"number": 443}});
    let service = json!({
        "hosts": [HOST],
        "gateways": ["mesh", GATEWAY],
        "exportTo": seen_by,
        "tls": [
            {"match": from("mesh"), "route": [{"destination": through}]},
            {"match": from(GATEWAY), "route": [{"destination": out, "weight": 100}]},
        ],
    });
    let entry = json!({
        "hosts": [HOST],
        "ports": [{"number": 443, "name": "tls", "protocol": "TLS"}],
        "resolution": "DNS",
        "exportTo": seen_by,
    });
    let rule = json!({
        "host": SERVICE, "subsets": [{"name": "cloud-main-hosts"}], "exportTo": seen_by,
    });
    vec![
        Wanted::exactly(VIRTUAL_SERVICES, profile, NAME, service),
        Wanted::exactly(SERVICE_ENTRIES, profile, "cloud-main-hosts", entry),
        Wanted::exactly(DESTINATION_RULES, profile, NAME, rule),
    ]
}

/// Gitea of one classification.
pub(super) fn gitea(tenant: &Tenant, world: &World, class: &'static str) -> Vec<Wanted> {
    let profile = &tenant.name;
    let mut wanted = Vec::new();
    let has_routes = tenant.has_gitea() || world.preset == Preset::Main;
    if has_routes && class == UNCLASSIFIED {
        wanted.push(gitea_routes(profile));
    }
    if !tenant.has_gitea() {
        return wanted;
    }
    let (words, port) = match class {
        PROTECTED_B => ("Protected-b / Protégé-b", world.ports[1]),
        _ => ("Unclassified / Non classifié", world.ports[0]),
    };
    let application = json!({
        "project": "default",
        "destination": {"name": "in-cluster", "namespace": profile},
        "source": {
            "repoURL": REPOSITORY, "targetRevision": REVISION, "path": format!("gitea/{class}"),
        },
        "syncPolicy": {},
    });
    let entry = json!({
        "exportTo": ["."],
        "hosts": ["localhost"],
        "ports": [{"name": "tcp-pgsql", "protocol": "TCP", "number": port}],
        "resolution": "DNS",
    });
    let name = |what: &str| format!("gitea-{what}-{class}");
    let banner = json!({"data": {"body_inner_pre.tmpl": words}});
    wanted.extend([
        Wanted::exactly(APPLICATIONS, ARGOCD, &name(profile), application),
        Wanted::new(CONFIG_MAPS, profile, &name("banner"), banner),
        Wanted::exactly(
            SERVICE_ENTRIES,
            profile,
            &name("postgresql-service-entry"),
            entry,
        ),
        // What is in it is tried.
        Wanted::new(
            SECRETS,
            profile,
            &name("postgresql-secret"),
            json!({"type": "Opaque"}),
        ),
    ]);
    wanted
}

/// The routes match the query, as the description says, and the referer, as the code does.
fn gitea_routes(profile: &str) -> Wanted {
    let home = format!("/gitea-unclassified/{profile}/");
    let route = json!({
        "name": "gitea-route-unclassified",
        "match": [{"uri": {"prefix": home}}],
        "rewrite": {"uri": "/"},
        "route": [{"destination": {
            "host": format!("gitea-unclassified-http.{profile}.svc.cluster.local"),
            "port": {"number": 80},
        }}],
    });
    let referer = format!("{ROOT}/_/gitea-unclassified/?ns={profile}");
    let redirect = json!({
        "name": "gitea-redirect-unclassified",
        "match": [
            {"uri": {"exact": "/gitea-unclassified/"}, "queryParams": {"ns": {"exact": profile}}},
            {"headers": {"referer": {"exact": referer}}},
        ],
        "redirect": {"uri": home},
    });
    let spec = json!({
        "gateways": ["kubeflow/kubeflow-gateway"], "hosts": ["*"], "http": [route, redirect],
    });
    let name = "gitea-virtualservice-unclassified";
    Wanted::exactly(VIRTUAL_SERVICES, profile, name, spec)
}

/// The proxy to S3, for who asks for it.
pub(super) fn s3proxy(tenant: &Tenant) -> Vec<Wanted> {
    if tenant.flag(S3) != Some(true) {
        return Vec::new();
    }
    let profile = &tenant.name;
    let application = json!({
        "project": "default",
        "destination": {"name": "in-cluster", "namespace": profile},
        "source": {
            "repoURL": REPOSITORY, "targetRevision": REVISION, "path": "s3proxy",
            "directory": {
                "recurse": true,
                "jsonnet": {"extVars": [{"name": "userNamespace", "value": profile}]},
            },
        },
        "syncPolicy": {"automated": {}},
    });
    let (home, route) = (
        format!("/s3/{profile}/"),
        json!([{"destination": {
            "host": format!("s3proxy-web.{profile}.svc.cluster.local"), "port": {"number": 80},
        }}]),
    );
    let referer = |url: String| json!({"referer": {"exact": url}});
    let bucket = |name: &str, path: &str| -> Value {
        let page = |page: &str| {
            json!({
                "headers": referer(format!("{ROOT}{home}{page}")), "uri": {"prefix": path},
            })
        };
        json!({
            "name": name, "match": [page("index.html"), page("sw_modify_header.js")],
            "route": route,
        })
    };
    let service = json!({
        "hosts": ["kubeflow.example.com"],
        "gateways": ["kubeflow/kubeflow-gateway"],
        "exportTo": [profile, "istio-system", "ingress-general-system"],
        "http": [
            {
                "name": "s3-route-s3proxy-requests",
                "match": [{"uri": {"prefix": home}}], "route": route,
            },
            {
                "name": "s3-uri-redirect",
                "match": [{"headers": referer(format!("{ROOT}/_/s3/?ns={profile}"))}],
                "redirect": {"uri": format!("{home}index.html")},
            },
            bucket("s3-unclassified-bucket", "/unclassified"),
            bucket("s3-unclassified-ro-bucket", "/unclassified-ro"),
            bucket("s3-protected-b-bucket", "/protected-b"),
        ],
    });
    let name = format!("s3proxy-{profile}");
    vec![
        Wanted::exactly(APPLICATIONS, ARGOCD, &name, application),
        Wanted::new(CONFIG_MAPS, profile, "s3proxy-nginx-conf", json!({})),
        Wanted::exactly(VIRTUAL_SERVICES, profile, "s3-virtualservice", service),
    ]
}

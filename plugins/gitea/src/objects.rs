//! What deploys Gitea, and what it needs beside its database.

use reeve_sdk::prelude::*;

use crate::config::Config;
use crate::{APPLICATION, CONFIG_MAP, SERVICE_ENTRY, VIRTUAL_SERVICE};

/// What Argo CD's Application of a Profile is called.
pub(crate) fn application_of(profile: &str, config: &Config) -> ObjectReference {
    APPLICATION
        .object(format!("gitea-{profile}-{}", config.classification))
        .in_namespace(&config.argocd_namespace)
}

/// What Argo CD deploys, as soon as somebody has it do so: it does not by itself,
/// which is why nobody waits for it.
pub(crate) fn application(profile: &str, config: &Config) -> Object<Value> {
    let mut application = Object::new(
        application_of(profile, config),
        json!({
            "project": config.project,
            "destination": {"name": "in-cluster", "namespace": profile},
            "source": {
                "repoURL": config.source.repo_url,
                "targetRevision": config.source.target_revision,
                "path": config.source.path,
            },
            "syncPolicy": {},
        }),
    );
    let annotations = &mut application.metadata.annotations;
    annotations.insert("reeve.dev/ignore-healthcheck".to_owned(), "true".to_owned());
    application
}

/// The line at the top of every page: what may be kept here, in both languages.
pub(crate) fn banner(profile: &str, config: &Config) -> ConfigMap {
    let (english, french) = match config.has_routes() {
        true => ("Unclassified", "Non classifié"),
        false => ("Protected-b", "Protégé-b"),
    };
    let mut line = format!("{english} / {french}");
    if !config.login_hint.is_empty() {
        line.push_str(". ");
        line.push_str(&config.login_hint);
    }
    ConfigMap {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: CONFIG_MAP
            .object(config.banner_config_map())
            .in_namespace(profile)
            .into(),
        data: json!({"body_inner_pre.tmpl": line}),
    }
}

/// A ConfigMap.
#[output]
pub(crate) struct ConfigMap {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    data: Value,
}

/// The routes from Kubeflow's gateway to Gitea. The dashboard asks for it with the
/// namespace in the query, and shows it in a frame whose requests say so only in
/// their referer.
pub(crate) fn virtual_service(profile: &str, config: &Config) -> Object<Value> {
    let (prefix, class) = (config.url_prefix(), &config.classification);
    let home = format!("/{prefix}/{profile}/");
    let referer = format!("{}/_/{prefix}/?ns={profile}", config.root_url);
    Object::new(
        VIRTUAL_SERVICE
            .object(format!("gitea-virtualservice-{class}"))
            .in_namespace(profile),
        json!({
            "hosts": ["*"],
            "gateways": ["kubeflow/kubeflow-gateway"],
            "http": [
                {
                    "name": format!("gitea-route-{class}"),
                    "match": [{"uri": {"prefix": home}}],
                    "rewrite": {"uri": "/"},
                    "route": [{"destination": {
                        "host": format!("{}.{profile}.svc.cluster.local", config.service()),
                        "port": {"number": config.service_port()},
                    }}],
                },
                {
                    "name": format!("gitea-redirect-{class}"),
                    "match": [
                        {
                            "uri": {"exact": format!("/{prefix}/")},
                            "queryParams": {"ns": {"exact": profile}},
                        },
                        {"headers": {"referer": {"exact": referer}}},
                    ],
                    "redirect": {"uri": home},
                },
            ],
        }),
    )
}

/// That the database's server exists, for the mesh.
pub(crate) fn service_entry(profile: &str, config: &Config) -> Object<Value> {
    Object::new(
        SERVICE_ENTRY
            .object(format!(
                "gitea-postgresql-service-entry-{}",
                config.classification
            ))
            .in_namespace(profile),
        json!({
            "exportTo": ["."],
            "hosts": [config.postgres.host],
            "ports": [{
                "name": "tcp-pgsql", "protocol": "TCP", "number": config.postgres.port,
            }],
            "resolution": "DNS",
        }),
    )
}

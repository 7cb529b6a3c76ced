//! The routes from Kubeflow's gateway to the proxy.

use reeve_sdk::prelude::*;

use crate::VIRTUAL_SERVICE;
use crate::config::Complete;

/// The buckets, and the names of the rules for them.
const BUCKETS: [(&str, &str); 3] = [
    ("s3-unclassified-bucket", "/unclassified"),
    ("s3-unclassified-ro-bucket", "/unclassified-ro"),
    ("s3-protected-b-bucket", "/protected-b"),
];

/// Who may ask for a bucket: the page of the explorer, and its service worker.
const PAGES: [&str; 2] = ["index.html", "sw_modify_header.js"];

/// The routes of one Profile. All share a host, and a request for a bucket does not
/// say whose it is: the page that it comes from does.
pub(crate) fn virtual_service(profile: &str, complete: &Complete<'_>) -> Object<Value> {
    let Complete {
        config,
        root_url,
        host,
        ..
    } = complete;
    let home = format!("/{}/{profile}/", config.prefix);
    let route = json!([{"destination": {
        "host": format!("s3proxy-web.{profile}.svc.cluster.local"),
        "port": {"number": 80},
    }}]);
    let mut rules = vec![
        json!({
            "name": "s3-route-s3proxy-requests",
            "match": [{"uri": {"prefix": home}}],
            "route": route,
        }),
        json!({
            "name": "s3-uri-redirect",
            "match": [{"headers": {"referer": {
                "exact": format!("{root_url}/_/{}/?ns={profile}", config.prefix),
            }}}],
            "redirect": {"uri": format!("{home}index.html")},
        }),
    ];
    for (name, bucket) in BUCKETS {
        let pages = PAGES.map(|page| {
            json!({
                "headers": {"referer": {"exact": format!("{root_url}{home}{page}")}},
                "uri": {"prefix": bucket},
            })
        });
        rules.push(json!({"name": name, "match": pages, "route": route}));
    }
    let mut export_to = vec![profile];
    export_to.extend(config.gateway_namespaces.iter().map(String::as_str));
    Object::new(
        VIRTUAL_SERVICE
            .object("s3-virtualservice")
            .in_namespace(profile),
        json!({
            "hosts": [host],
            "gateways": ["kubeflow/kubeflow-gateway"],
            "exportTo": export_to,
            "http": rules,
        }),
    )
}

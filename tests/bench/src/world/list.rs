//! Reading all objects of a kind.

use anyhow::{Context as _, Result};
use kube::Resource as _;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use reeve_cluster::Resource;
use reeve_core::KindNames;
use serde_json::Value;

/// What a list holds.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) objects: usize,
    /// Their JSON.
    pub(crate) bytes: usize,
    /// The same without `managedFields`.
    pub(crate) bare_bytes: usize,
}

/// A kind as kube knows it.
pub(crate) fn api_resource(resource: &Resource) -> ApiResource {
    let KindNames {
        group,
        version,
        kind,
    } = &*resource.kind;
    let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&kind, &resource.plural)
}

/// Reads all objects of a kind, in pages, for what they weigh.
pub(crate) async fn list(
    client: &kube::Client,
    resource: &Resource,
    namespace: Option<&str>,
    params: ListParams,
) -> Result<Listed> {
    let path = DynamicObject::url_path(&api_resource(resource), namespace);
    let mut params = params.limit(1000);
    let mut listed = Listed::default();
    loop {
        let request = kube::core::Request::new(&path).list(&params)?;
        let page = client.request_text(request).await?;
        let mut page: Value = serde_json::from_str(&page)?;
        for item in page["items"].as_array_mut().context("no items")? {
            listed.objects += 1;
            listed.bytes += item.to_string().len();
            if let Some(metadata) = item["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            listed.bare_bytes += item.to_string().len();
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => params.continue_token = Some(token.to_owned()),
            _ => return Ok(listed),
        }
    }
}

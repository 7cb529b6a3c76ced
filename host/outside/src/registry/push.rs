//! Writing an artifact: its blobs first, so that no manifest names what is not there.

use super::exchange::{Ask, shown};
use super::manifest::{MANIFEST, WASM, WASM_CONFIG};
use super::{Registry, RegistryError, Wanted};
use bytes::Bytes;
use http::header::LOCATION;
use http::{Method, StatusCode};
use reeve_core::Digest;
use serde_json::{Value, json};

/// Media type of a blob under way.
const BYTES: &str = "application/octet-stream";

impl Registry {
    /// Pushes a component under a tag, in the layout of the CNCF. The same component
    /// always becomes the same manifest. Returns its digest.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached or refuses it.
    pub async fn push(
        &self,
        tag: &str,
        component: &Bytes,
        imports: &[String],
        exports: &[String],
    ) -> Result<Digest, RegistryError> {
        let layer = Digest::of(component);
        let config = json!({
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.to_string()],
            "component": {"imports": imports, "exports": exports, "target": null},
        });
        let layers = [(component.clone(), WASM, None)];
        self.push_manifest(tag, &config, WASM_CONFIG, &layers).await
    }

    /// Pushes blobs and the manifest that names them.
    pub(super) async fn push_manifest(
        &self,
        tag: &str,
        config: &Value,
        config_type: &str,
        layers: &[(Bytes, &str, Option<Value>)],
    ) -> Result<Digest, RegistryError> {
        let config = Bytes::from(config.to_string());
        self.push_blob(&config).await?;
        let mut described = Vec::with_capacity(layers.len());
        for (layer, media_type, annotations) in layers {
            self.push_blob(layer).await?;
            let mut one = descriptor(layer, media_type);
            if let Some(annotations) = annotations {
                one["annotations"] = annotations.clone();
            }
            described.push(one);
        }
        let manifest = Bytes::from(
            json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": descriptor(&config, config_type),
                "layers": described,
            })
            .to_string(),
        );
        let wanted = Wanted::Tag(tag.to_owned());
        let ask = Ask {
            body: Some((manifest.clone(), MANIFEST)),
            ..Ask::new(Method::PUT, self.url(&format!("manifests/{wanted}"))?)
        };
        let answer = self.ask(ask).await?;
        match answer.status {
            StatusCode::CREATED | StatusCode::OK => Ok(Digest::of(&manifest)),
            _ => Err(self.unexpected(&answer)),
        }
    }

    async fn push_blob(&self, bytes: &Bytes) -> Result<(), RegistryError> {
        let digest = Digest::of(bytes);
        let there = Ask {
            // It tells how long the blob is, and sends none of it.
            limit: u64::MAX,
            ..Ask::new(Method::HEAD, self.url(&format!("blobs/{digest}"))?)
        };
        if self.ask(there).await?.status == StatusCode::OK {
            return Ok(());
        }
        let begin = self.url("blobs/uploads/")?;
        let ask = Ask {
            body: Some((Bytes::new(), BYTES)),
            ..Ask::new(Method::POST, begin.clone())
        };
        let answer = self.ask(ask).await?;
        if answer.status != StatusCode::ACCEPTED || !answer.headers.contains_key(LOCATION) {
            return Err(self.unexpected(&answer));
        }
        let mut upload = self.redirected(&begin, &answer.headers)?;
        let query = format!("digest={digest}");
        let query = match upload.query() {
            Some(before) if !before.is_empty() => format!("{before}&{query}"),
            _ => query,
        };
        upload.set_query(Some(&query));
        let ask = Ask {
            body: Some((bytes.clone(), BYTES)),
            ..Ask::new(Method::PUT, upload.clone())
        };
        let answer = self.ask(ask).await?;
        match answer.status {
            StatusCode::CREATED => Ok(()),
            StatusCode::PAYLOAD_TOO_LARGE => {
                Err(self.protocol(format!("{} takes no {} bytes", shown(&upload), bytes.len())))
            }
            _ => Err(self.unexpected(&answer)),
        }
    }
}

fn descriptor(bytes: &Bytes, media_type: &str) -> Value {
    json!({
        "mediaType": media_type,
        "digest": Digest::of(bytes).to_string(),
        "size": bytes.len(),
    })
}

//! ConfigMaps that deliver nothing that can run.

use std::fs;

use anyhow::Result;
use reeve_test_support::component;
use serde_json::{Value, json};

use crate::ground::{Said, chameleon, create, grant_of, package, wait_until_said};
use crate::stage::{NAMESPACE, Stage};

/// The limit for an unpacked component, as messages have it.
const LIMIT: &str = "33554432 bytes";

/// Twice the limit of zeros, written through an encoder.
fn bomb<W: std::io::Write>(mut encoder: W) -> Result<W> {
    let megabyte = vec![0; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&megabyte)?;
    }
    Ok(encoder)
}

/// A component that imports `evil:host/door`, and exports nothing.
fn importing_a_door() -> Vec<u8> {
    let name = b"evil:host/door";
    let mut section = vec![1, 0, 14];
    section.extend(name);
    section.extend([5, 0]);
    let mut component = b"\0asm\x0d\0\x01\0\x07\x03\x01\x42\0\x0a\x13".to_vec();
    component.extend(section);
    component
}

/// Delivers each case under its name, and returns what is to be said of it.
pub(crate) fn deliver(stage: &Stage) -> Result<Vec<Said>> {
    let quotas = fs::read(component("quotas"))?;
    let mut cut = zstd::encode_all(&quotas[..], 3)?;
    cut.truncate(cut.len() / 2);
    let zstd_bomb = bomb(zstd::Encoder::new(Vec::new(), 1)?)?.finish()?;
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let gzip_bomb = bomb(gzip)?.finish()?;

    let mut objects: Vec<Value> = Vec::new();
    let mut said: Vec<Said> = Vec::new();
    let plain = |bytes: &[u8]| vec![("plugin.wasm", bytes.to_vec())];
    for (name, data, config, reason, texts) in [
        (
            "no-component",
            vec![],
            None,
            "ComponentAbsent",
            &["plugin.wasm"][..],
        ),
        (
            "no-wasm",
            plain(b"hello"),
            None,
            "NotAComponent",
            &["no WebAssembly component", "name the built `.wasm` file"],
        ),
        (
            "other-key",
            vec![("quotas.wasm", quotas.clone())],
            None,
            "ComponentAbsent",
            &[
                "nobody reads \"quotas.wasm\"",
                "--from-file=plugin.wasm=quotas.wasm",
            ],
        ),
        (
            "core-module",
            plain(b"\0asm\x01\0\0\0"),
            None,
            "NotAComponent",
            &["core WebAssembly module", "wasm-tools component new"],
        ),
        (
            "other-world",
            plain(&importing_a_door()),
            None,
            "WrongWorld",
            &[
                "imports `evil:host/door`",
                "does not export `reeve:plugin/controller-api",
            ],
        ),
        (
            "no-zstd",
            vec![("plugin.wasm.zst", b"x".to_vec())],
            None,
            "DecompressionFailed",
            &["plugin.wasm.zst", "compress the component again"],
        ),
        (
            "cut-zstd",
            vec![("plugin.wasm.zst", cut)],
            None,
            "DecompressionFailed",
            &["plugin.wasm.zst", "compress the component again"],
        ),
        (
            "zstd-bomb",
            vec![("plugin.wasm.zst", zstd_bomb)],
            None,
            "TooLarge",
            &["plugin.wasm.zst", LIMIT, "build it smaller"],
        ),
        (
            "gzip-bomb",
            vec![("plugin.wasm.gz", gzip_bomb)],
            None,
            "TooLarge",
            &["plugin.wasm.gz", LIMIT, "build it smaller"],
        ),
        (
            "no-yaml",
            plain(&quotas),
            Some("hard: ["),
            "ConfigInvalid",
            &["config.yaml", "line 1", "as YAML or JSON"],
        ),
        (
            "no-fit",
            plain(&quotas),
            Some("hard: {pods: 7}"),
            "ConfigInvalid",
            &["/hard/pods"],
        ),
        // Nobody has made these accounts.
        (
            "no-account",
            plain(&quotas),
            None,
            "ServiceAccountUnusable",
            &["no-account does not exist", "reeve.dev/plugin: no-account"],
        ),
        (
            "not-agreed",
            plain(&quotas),
            None,
            "ServiceAccountUnusable",
            &["does not agree", "reeve.dev/plugin: not-agreed"],
        ),
        (
            "no-rights",
            plain(&quotas),
            None,
            "Forbidden",
            &[
                "system:serviceaccount:reeve-system:no-rights",
                "get, list, watch profiles.kubeflow.org cluster-wide",
                "create, delete, patch resourcequotas",
            ],
        ),
    ] {
        objects.push(package(name, &data, config));
        said.push(Said::new(name, reason, texts));
    }
    for (name, describe, reason, texts) in [
        (
            "trap",
            "trap",
            "DescribeFailed",
            &[
                "describe",
                "unreachable",
                "mend the plugin and deliver it again",
            ][..],
        ),
        ("panic", "panic", "DescribeFailed", &["panicked, as told"]),
        ("loop", "loop", "DescribeFailed", &["2 s"]),
        (
            "bad-kind",
            "invalid-kind",
            "ManifestInvalid",
            &["writes[0].kind.kind", "not a kind"],
        ),
        (
            "refuse",
            "refuse",
            "ConfigInvalid",
            &["/describe", "refused, as told"],
        ),
    ] {
        let name = format!("describe-{name}");
        objects.push(chameleon(&name, &json!({"describe": describe}))?);
        said.push(Said::new(&name, reason, texts));
    }
    // Where `kubectl create configmap --from-file` puts a file of text.
    objects.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"plugin.wasm": "hello"},
        "metadata": {
            "name": "text", "namespace": NAMESPACE, "labels": {"reeve.dev/plugin": "true"},
        },
    }));
    let texts = ["ConfigMap text: plugin.wasm", "name the built file"];
    said.push(Said::new("text", "NotAComponent", &texts));
    objects.push(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "not-agreed", "namespace": NAMESPACE},
    }));
    create(stage, &objects)?;
    let mut account = grant_of("no-rights", "ResourceQuota")?;
    account.retain(|object| object["kind"] == "ServiceAccount");
    stage.apply(&account)?;
    Ok(said)
}

/// Each says what is wrong with it.
pub(crate) fn check(stage: &Stage, said: &[Said]) -> Result<()> {
    let name = |plugin: &Value| plugin["metadata"]["name"].as_str().map(str::to_owned);
    wait_until_said(stage, "plugins", name, said)
}

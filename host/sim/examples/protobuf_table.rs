//! Writes the table of protobuf messages that the server decodes:
//! `cargo run -p reeve-sim --example protobuf_table -- DIR > src/protobuf/table.txt`
//! where DIR holds the Go modules `api@…`, `apimachinery@…` and `kube-aggregator@…` of
//! Kubernetes.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The packages with the kinds that clients send as protobuf.
const PACKAGES: &[(&str, &str)] = &[
    ("apimachinery@", "pkg/api/resource"),
    ("apimachinery@", "pkg/apis/meta/v1"),
    ("apimachinery@", "pkg/runtime"),
    ("apimachinery@", "pkg/util/intstr"),
    ("api@", "admissionregistration/v1"),
    ("api@", "apps/v1"),
    ("api@", "authentication/v1"),
    ("api@", "authorization/v1"),
    ("api@", "autoscaling/v1"),
    ("api@", "autoscaling/v2"),
    ("api@", "batch/v1"),
    ("api@", "certificates/v1"),
    ("api@", "coordination/v1"),
    ("api@", "core/v1"),
    ("api@", "discovery/v1"),
    ("api@", "events/v1"),
    ("api@", "flowcontrol/v1"),
    ("api@", "networking/v1"),
    ("api@", "node/v1"),
    ("api@", "policy/v1"),
    ("api@", "rbac/v1"),
    ("api@", "resource/v1"),
    ("api@", "scheduling/v1"),
    ("api@", "storage/v1"),
    ("kube-aggregator@", "pkg/apis/apiregistration/v1"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let modules = PathBuf::from(std::env::args().nth(1).ok_or("usage: protobuf_table DIR")?);
    let mut table = String::new();
    for (module, package) in PACKAGES {
        let file = newest(&modules, module)?
            .join(package)
            .join("generated.proto");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        convert(&text, &mut table)?;
    }
    print!("{table}");
    Ok(())
}

/// The module of that name with the greatest version.
fn newest(modules: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(modules)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(name))
        })
        .collect();
    found.sort();
    Ok(found.pop().ok_or_else(|| format!("no module {name}"))?)
}

/// One line a message, one indented line a field: number, name, and type, after
/// `[]` for a list and `{}` for a map from text.
fn convert(proto: &str, table: &mut String) -> Result<(), Box<dyn Error>> {
    let mut package = String::new();
    for line in proto.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("package ") {
            package = short(name.trim_end_matches(';'));
        } else if let Some(name) = line.strip_prefix("message ") {
            writeln!(table, "{package}.{}", name.trim_end_matches(" {"))?;
        } else if let Some((kind, rest)) = field(line) {
            let (name, number) = rest
                .trim_end_matches(';')
                .split_once(" = ")
                .ok_or("no number")?;
            writeln!(table, " {number} {name} {}", typed(&package, &kind))?;
        }
    }
    Ok(())
}

/// The type of a field, and what comes after it.
fn field(line: &str) -> Option<(String, &str)> {
    if let Some(rest) = line.strip_prefix("map<string, ") {
        let (kind, rest) = rest.split_once("> ")?;
        return Some((format!("{{}}{kind}"), rest));
    }
    let (label, rest) = line.split_once(' ')?;
    let (kind, rest) = rest.split_once(' ')?;
    match label {
        "optional" | "required" => Some((kind.to_owned(), rest)),
        "repeated" => Some((format!("[]{kind}"), rest)),
        _ => None,
    }
}

fn typed(package: &str, kind: &str) -> String {
    let (many, one) = match kind.get(..2) {
        Some(many @ ("[]" | "{}")) => (many, kind.get(2..).unwrap_or_default()),
        _ => ("", kind),
    };
    let scalar = matches!(
        one,
        "string" | "bytes" | "bool" | "int32" | "int64" | "double"
    );
    let one = if scalar {
        one.to_owned()
    } else if one.contains('.') {
        short(one)
    } else {
        format!("{package}.{one}")
    };
    format!("{many}{one}")
}

/// `core.v1.Pod` for `.k8s.io.api.core.v1.Pod`.
fn short(name: &str) -> String {
    let name = name.trim_start_matches('.');
    for prefix in [
        "k8s.io.apimachinery.pkg.apis.",
        "k8s.io.apimachinery.pkg.",
        "k8s.io.api.",
        "k8s.io.kube_aggregator.pkg.apis.",
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return rest.to_owned();
        }
    }
    name.to_owned()
}

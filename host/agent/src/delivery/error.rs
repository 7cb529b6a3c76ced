//! Why ConfigMaps deliver nothing.

use super::{COMPONENT, CONFIG, GZIP, MAX_COMPONENT_BYTES, PLAIN, ZSTD};
use reeve_api::Reason;
use reeve_core::Digest;

/// Why ConfigMaps deliver nothing. Each names the key and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// None of the keys is there.
    #[error(
        "ConfigMap {config_map} has no component{}: put it under binaryData[\"{PLAIN}\"], [\"{ZSTD}\"] or [\"{GZIP}\"], for example with `kubectl create configmap {config_map} --from-file={} --dry-run=client -o json | kubectl patch configmap {config_map} --type=merge --patch-file=/dev/stdin`, in the agent's namespace",
        not_read(found),
        file(found)
    )]
    Absent {
        /// Name of the ConfigMap.
        config_map: String,
        /// Keys that it has instead, and that nobody reads.
        found: Vec<String>,
    },
    /// The component stands where only text can.
    #[error(
        "ConfigMap {config_map}: {key} is in `data`, so it is text or empty, and no component; take it out there, and name the built file in `kubectl create configmap {config_map} --from-file={key}=FILE --dry-run=client -o json | kubectl patch configmap {config_map} --type=merge --patch-file=/dev/stdin`, in the agent's namespace; that puts a component into `binaryData`"
    )]
    Text {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
    },
    /// More than one of the keys is there.
    #[error("ConfigMap {config_map} has {first} and {second}: keep one of the two")]
    Ambiguous {
        /// Name of the ConfigMap.
        config_map: String,
        /// One key.
        first: &'static str,
        /// Another key.
        second: &'static str,
    },
    /// The component is empty.
    #[error("ConfigMap {config_map}: {key} is empty; put the built component there")]
    Empty {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
    },
    /// The compressed stream is broken.
    #[error(
        "ConfigMap {config_map}: {key} does not decompress: {problem}; compress the component again"
    )]
    Corrupt {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
        /// What the decompressor says.
        problem: String,
    },
    /// The component is too large.
    #[error(
        "ConfigMap {config_map}: {key} holds more than {most} bytes after decompression; build it smaller{}",
        more(*most)
    )]
    TooLarge {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
        /// What it may have.
        most: usize,
    },
    /// The ConfigMap itself is not there.
    #[error("ConfigMap {config_map} does not exist")]
    NoConfigMap {
        /// Name of the ConfigMap.
        config_map: String,
    },
    /// The component of another plugin is asked for, and that is none.
    #[error("ConfigMap {config_map}: data[\"{COMPONENT}\"] names {other}, {problem}")]
    OtherUnusable {
        /// Name of the ConfigMap.
        config_map: String,
        /// What it names.
        other: String,
        /// Why that is of no use, and what to do.
        problem: &'static str,
    },
    /// A component in parts is not described as it should be.
    #[error("ConfigMap {config_map}: data[\"{key}\"]: `{value}` is not {expected}")]
    PartsMalformed {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// Parts are not there yet, or no more.
    #[error(
        "ConfigMap {config_map}: part {missing} of {count} of generation {generation} is missing{others}; apply all ConfigMaps that `reeve plugin package` wrote"
    )]
    PartsMissing {
        /// Name of the ConfigMap.
        config_map: String,
        /// Numbers of those that are missing.
        missing: String,
        /// How many there are to be.
        count: usize,
        /// Start of the generation.
        generation: String,
        /// What is there instead.
        others: String,
    },
    /// Two ConfigMaps are the same part.
    #[error(
        "ConfigMap {config_map}: part {part} is in ConfigMap {first} and in {second}: delete one of the two"
    )]
    PartTwice {
        /// Name of the ConfigMap.
        config_map: String,
        /// Number of the part.
        part: usize,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// The parts are not those that were packed.
    #[error(
        "ConfigMap {config_map}: the joined parts have digest {found}, and the generation is {generation}; package the component again"
    )]
    PartsDiffer {
        /// Name of the ConfigMap.
        config_map: String,
        /// Digest of what is there.
        found: Digest,
        /// Digest of what was packed.
        generation: Digest,
    },
    /// There is a component, and the policy names an artifact.
    #[error(
        "ConfigMap {config_map} has a component, and Plugin spec.artifact names another: keep one of the two; beside an artifact the ConfigMap holds data[\"{CONFIG}\"] alone"
    )]
    Twice {
        /// Name of the ConfigMap.
        config_map: String,
    },
    /// A signature cannot be read.
    #[error(
        "ConfigMap {config_map}: {key} is no signature: {problem}; put there what `cosign sign-blob` or `openssl dgst -sha256 -sign` writes"
    )]
    SignatureMalformed {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// The configuration is no YAML.
    #[error(
        "ConfigMap {config_map}: data[\"{CONFIG}\"] is no YAML: {problem}; write the settings as YAML or JSON"
    )]
    ConfigSyntax {
        /// Name of the ConfigMap.
        config_map: String,
        /// What the parser says, with line and column.
        problem: String,
    },
    /// A key that looks like that of the configuration, and that nobody reads.
    #[error(
        "ConfigMap {config_map}: nobody reads the key \"{key}\"; the configuration of a plugin is data[\"{CONFIG}\"], in YAML or JSON: rename the key, or take it out"
    )]
    ConfigMisnamed {
        /// Name of the ConfigMap.
        config_map: String,
        /// The key.
        key: String,
    },
}

/// Where a plugin has less than it could, it can have more.
fn more(most: usize) -> &'static str {
    match most < MAX_COMPONENT_BYTES {
        true => ", or raise `spec.limits.componentBytes` of its Plugin",
        false => "",
    }
}

impl DeliveryError {
    /// The reason that stands in the condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoConfigMap { .. } => Reason::ConfigMapAbsent,
            Self::Absent { .. } | Self::Empty { .. } | Self::OtherUnusable { .. } => {
                Reason::ComponentAbsent
            }
            Self::Text { .. } => Reason::NotAComponent,
            Self::Ambiguous { .. } | Self::PartTwice { .. } | Self::Twice { .. } => {
                Reason::ComponentAmbiguous
            }
            Self::PartsMalformed { .. } => Reason::PartsMalformed,
            Self::PartsMissing { .. } => Reason::PartsMissing,
            Self::Corrupt { .. } | Self::PartsDiffer { .. } => Reason::DecompressionFailed,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::SignatureMalformed { .. } => Reason::SignatureInvalid,
            Self::ConfigSyntax { .. } | Self::ConfigMisnamed { .. } => Reason::ConfigInvalid,
        }
    }
}

/// Keys named at most.
const NAMED: usize = 3;

fn not_read(found: &[String]) -> String {
    let names: Vec<String> = found
        .iter()
        .take(NAMED)
        .map(|key| format!("{key:?}"))
        .collect();
    let more = if found.len() > NAMED { ", ..." } else { "" };
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            " (nobody reads {}{more}; take that out first)",
            names.join(", ")
        ),
    }
}

/// What names the file that somebody has delivered under another key, if one looks like it.
fn file(found: &[String]) -> String {
    let component = found
        .iter()
        .find(|key| key.to_ascii_lowercase().contains(".wasm"));
    let Some(file) = component else {
        return PLAIN.to_owned();
    };
    let lower = file.to_ascii_lowercase();
    let ends = |endings: [&str; 2]| endings.iter().any(|ending| lower.ends_with(ending));
    let key = if ends([".zst", ".zstd"]) {
        ZSTD
    } else if ends([".gz", ".gzip"]) {
        GZIP
    } else {
        PLAIN
    };
    format!("{key}={file}")
}

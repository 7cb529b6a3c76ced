//! `reeve plugin inspect`.

use super::describe::{Described, describe};
use super::outside;
use super::source::{self, Source};
use crate::compile::CacheArgs;
use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::bail;
use clap::{Args, ValueEnum};
use reeve_agent::needs::Need;
use reeve_core::manifest::is_wildcard;
use reeve_core::printable::{is_printable, printable};
use reeve_core::{Asks, Manifest, chain, grant};
use reeve_engine::{CompileLimits, interfaces};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what a plugin is, and what it would be able to do
///
/// The plugin is a file (a component, one compressed with zstd or gzip, or the
/// ConfigMaps that deliver it) or the name of one that is installed. It is compiled
/// and asked who it is and what it asks for with its configuration, in the sandbox
/// and within the limits of the agent; it never sees a cluster.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// A file, or the name of an installed plugin
    #[arg(value_name = "FILE|NAME")]
    plugin: String,
    /// Configuration to describe itself with, in place of what is delivered
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which plugin, where a file holds several
    #[arg(long)]
    name: Option<String>,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) async fn run(args: InspectArgs) -> anyhow::Result<ExitCode> {
    let path = Path::new(&args.plugin);
    let namespace = &args.connection.namespace;
    let mut policy = None;
    // A folder may have the name of the plugin that is made in it.
    let source = if path.exists() && !path.is_dir() {
        source::from_file(path, args.name.as_deref(), args.config.as_deref())?
    } else if args.plugin.contains(['/', '.']) {
        bail!("there is no file {}", args.plugin);
    } else {
        let client = args.connection.client().await?;
        let found = outside::policy(&client, namespace, &args.plugin).await?;
        policy = Some(found.unwrap_or_default());
        let mut source = source::from_cluster(&client, namespace, &args.plugin).await?;
        if let Some(config) = &args.config {
            source.package.config = source::read_config(config)?.into();
        }
        source
    };
    let mut inspection = Inspection::of(&source, &args.cache).await;
    if let Some(manifest) = &inspection.manifest {
        let capabilities = policy
            .as_ref()
            .and_then(|policy| policy.capabilities.as_ref());
        inspection.needs = outside::needs(manifest, capabilities, namespace);
    }
    inspection.policy_is_known = policy.is_some();
    match args.output {
        Output::Text => print(inspection.text())?,
        Output::Json => print(format_args!(
            "{}\n",
            escaped(&serde_json::to_string_pretty(&inspection.json())?)
        ))?,
    }
    Ok(ExitCode::from(u8::from(!inspection.problems.is_empty())))
}

struct Inspection<'a> {
    source: &'a Source,
    imports: Vec<String>,
    exports: Vec<String>,
    described: Option<Described>,
    manifest: Option<Manifest>,
    schema: Value,
    /// What it needs of the outside.
    needs: Vec<Need>,
    /// Whether it is known what of that is granted: a file has no policy.
    policy_is_known: bool,
    problems: Vec<String>,
}

impl<'a> Inspection<'a> {
    /// Finds out as much as there is to find out; what goes wrong is a part of it.
    async fn of(source: &'a Source, cache: &CacheArgs) -> Self {
        let mut problems = Vec::new();
        let mut keep = |error: anyhow::Error| problems.push(chain(error.as_ref()));
        let (imports, exports) = match interfaces(&source.package.component) {
            Ok(found) => (found.imports, found.exports),
            Err(error) => {
                keep(error.into());
                (Vec::new(), Vec::new())
            }
        };
        let described = match describe(source, cache).await {
            Ok(described) => Some(described),
            Err(error) => {
                keep(error);
                None
            }
        };
        let manifest = match &described {
            None => None,
            Some(described) => described.declared(source).await.map_err(&mut keep).ok(),
        };
        let schema = described
            .as_ref()
            .map(|described| &described.metadata.config_schema);
        let schema = schema.and_then(|schema| serde_json::from_slice(schema).ok());
        Self {
            source,
            imports,
            exports,
            described,
            manifest,
            schema: schema.unwrap_or_default(),
            needs: Vec::new(),
            policy_is_known: false,
            problems,
        }
    }

    fn cautions(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else {
            return Vec::new();
        };
        let mut cautions = grant::cautions(manifest);
        if manifest.kinds().iter().any(|kind| is_wildcard(kind)) {
            cautions.push(
                "declares every kind of a group and version at once, which an agent refuses \
                 unless it runs with --allow-wildcards"
                    .to_owned(),
            );
        }
        cautions
    }

    fn json(&self) -> Value {
        let package = &self.source.package;
        let metadata = self.described.as_ref().map(|described| &described.metadata);
        json!({
            "source": self.source.origin,
            "plugin": self.source.name,
            "name": metadata.map(|metadata| &metadata.name),
            "version": metadata.map(|metadata| &metadata.version),
            "digest": package.digest.to_string(),
            "bytes": package.component.len(),
            "imports": self.imports,
            "exports": self.exports,
            "manifest": self.manifest,
            "asks": self.manifest.as_ref().map(|manifest| Asks::of(manifest).lines()),
            "outside": outside::in_json(&self.needs, self.policy_is_known),
            "cautions": self.cautions(),
            "configSchema": self.schema,
            "problems": self.problems,
        })
    }

    fn text(&self) -> String {
        let package = &self.source.package;
        let mut text = String::new();
        let mut row = |title: &str, lines: &[String]| {
            for (index, line) in lines.iter().enumerate() {
                let title = if index == 0 { title } else { "" };
                // Nothing that is in a file may look like an answer of ours. Writing to a
                // String cannot fail.
                let _ = writeln!(text, "{title:<10}{}", printable(line.clone()));
            }
        };
        let one = |line: String| [line];
        row(
            "plugin",
            &one(format!("{} ({})", self.source.name, self.source.origin)),
        );
        if let Some(Described {
            metadata,
            component,
        }) = &self.described
        {
            row(
                "component",
                &one(format!("{} {}", metadata.name, metadata.version)),
            );
            row("contract", &one(component.generation().to_string()));
        }
        row("digest", &one(package.digest.to_string()));
        row("size", &one(format!("{} bytes", package.component.len())));
        row("imports", &first(&self.imports, CompileLimits::IMPORTS));
        row("exports", &first(&self.exports, CompileLimits::EXPORTS));
        if let Some(manifest) = &self.manifest {
            row("asks to", &or_nothing(&Asks::of(manifest).lines()));
            row(
                "outside",
                &outside::lines(&self.needs, self.policy_is_known),
            );
        }
        if self.described.is_some() {
            row("config", &or_nothing(&schema_lines(&self.schema)));
        }
        row("caution", &self.cautions());
        row("problem", &self.problems);
        text
    }
}

fn or_nothing(lines: &[String]) -> Vec<String> {
    match lines {
        [] => vec!["none".to_owned()],
        lines => lines.to_vec(),
    }
}

/// As many as a component may have, and how many more there are.
fn first(lines: &[String], most: u64) -> Vec<String> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut first = or_nothing(&lines[..lines.len().min(most)]);
    if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
        first.push(format!("and {more} more, beyond what is loaded"));
    }
    first
}

/// JSON with escapes for what JSON may have as it is and terminals act on.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        // Between values, no other character than a line break needs one.
        if character == '\n' || is_printable(character.encode_utf8(&mut [0; 4])) {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

/// The fields of a configuration, one a line: its name, type, default and the
/// first sentence about it.
fn schema_lines(schema: &Value) -> Vec<String> {
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|found| found == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|(name, property)| {
            let mut line = name.clone();
            let kind = match &property["type"] {
                Value::String(kind) => kind.clone(),
                Value::Array(kinds) => {
                    let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                    kinds.join(" or ")
                }
                _ => "any".to_owned(),
            };
            let needed = match property.get("default") {
                Some(default) => format!(", default {default}"),
                None if required(name) => ", required".to_owned(),
                None => String::new(),
            };
            let _ = write!(line, " ({kind}{needed})");
            let about = property["description"].as_str().unwrap_or_default();
            if let Some(sentence) = about.split(". ").next().filter(|text| !text.is_empty()) {
                let sentence = crate::output::on_one_line(sentence);
                let _ = write!(line, ": {}", sentence.trim_end_matches('.'));
            }
            printable(line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_a_line_for_each_field() {
        let schema = json!({
            "required": ["host"],
            "properties": {
                "host": {"type": "string", "description": "Where to.\nAnd more. Not this."},
                "pods": {"type": ["integer", "null"], "default": 7},
                "x": {"$ref": "#/a"},
            },
        });
        assert_eq!(
            schema_lines(&schema),
            [
                "host (string, required): Where to. And more",
                "pods (integer or null, default 7)",
                "x (any)",
            ]
        );
        assert_eq!(schema_lines(&json!(true)), Vec::<String>::new());
        let forged = json!({"properties": {"a\u{1b}[2J\nproblem": {"type": "\u{9b}1m"}}});
        assert_eq!(schema_lines(&forged), ["a\\u{1b}[2J\\nproblem (\\u{9b}1m)"]);
    }

    #[test]
    fn long_lists_end() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(first(&names, 3), ["a", "b", "c"]);
        assert_eq!(first(&names, 1), ["a", "and 2 more, beyond what is loaded"]);
        assert_eq!(first(&[], 1), ["none"]);
    }

    #[test]
    fn json_means_the_same_without_what_terminals_act_on() {
        let value = json!({"a\u{1b}\"": ["\u{9b}2J\u{202e}", "é\n\t", "\u{e0001}"]});
        let text = escaped(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.lines().all(is_printable), "{text}");
        assert!(text.contains("\\u009b2J\\u202e"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}

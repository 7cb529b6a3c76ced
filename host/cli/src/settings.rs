//! Settings of `reeve run` from flags, the environment and a file, under the same
//! names.
//!
//! A setting of the file takes the place of the default of its flag, so that it is
//! read and checked just as the flag is; the environment wins over the file, and
//! the command line over both.

use anyhow::{Context as _, anyhow, bail};
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;
use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The subcommand whose settings these are.
const RUN: &str = "run";
/// With which the variables of all settings begin.
const PREFIX: &str = "REEVE_";
/// What concerns where settings come from, and is none itself.
const NO_SETTINGS: [&str; 4] = ["config", "print_config", "help", "version"];

/// What the command line, the environment and the file say together.
///
/// The inner error is clap's, about the command line, or its help.
///
/// # Errors
///
/// When the file cannot be read, or something in it is no setting.
pub(crate) fn matches(command: Command) -> anyhow::Result<Result<ArgMatches, clap::Error>> {
    let given = match command.clone().try_get_matches() {
        Ok(given) => given,
        Err(error) => return Ok(Err(error)),
    };
    let Some((RUN, run)) = given.subcommand() else {
        return Ok(Ok(given));
    };
    let Some(path) = run.get_one::<PathBuf>("config") else {
        return Ok(Ok(given));
    };
    let settings = read(&command, path)?;
    let command = command.mut_subcommand(RUN, |run| {
        settings.into_iter().fold(run, |run, (id, value)| {
            // Defaults are kept for as long as the command is, which is as long as
            // the process; there is one of a few bytes for each setting.
            let value: &'static str = value.leak();
            run.mut_arg(id, |arg| arg.default_value(value))
        })
    });
    Ok(command.try_get_matches())
}

/// Variables of the environment that look like settings and that nothing reads. Others may
/// have some under the same prefix, as Kubernetes has for a Service (`REEVE_SERVICE_HOST`,
/// `REEVE_PORT_8080_TCP`), which are passed over: so they are worth a word and no error.
pub(crate) fn unread(command: &Command) -> Vec<String> {
    let set = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    unread_of(command, set)
}

fn unread_of(command: &Command, set: impl Iterator<Item = String>) -> Vec<String> {
    fn read(command: &Command, known: &mut BTreeSet<String>) {
        known.extend(command.get_arguments().filter_map(variable));
        for below in command.get_subcommands() {
            read(below, known);
        }
    }
    let mut known = BTreeSet::new();
    read(command, &mut known);
    let is_of_a_service = |name: &str| {
        let mut words = name.split('_');
        words.any(|word| word == "SERVICE" || word == "PORT")
    };
    set.filter(|name| name.starts_with(PREFIX) && !known.contains(name))
        .filter(|name| !is_of_a_service(name))
        .map(|name| format!("{name} is no setting of reeve, and nothing reads it"))
        .collect()
}

/// Which variable of the environment an error is about, whose text names a flag that nobody may
/// have given.
pub(crate) fn variable_of(
    command: &Command,
    error: &clap::Error,
    given: impl Iterator<Item = String>,
) -> Option<String> {
    let ContextValue::String(about) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let mut given = given.skip(1);
    let command = command.find_subcommand(given.next()?)?;
    let is_meant = |arg: &&Arg| {
        let flag = arg.get_long().map(|name| format!("--{name}"));
        flag.is_some_and(|flag| about.split([' ', '[', '=']).next() == Some(&*flag))
    };
    let arg = command.get_arguments().find(is_meant)?;
    let flag = format!("--{}", arg.get_long()?);
    let is_given = |word: String| word.split('=').next() == Some(&*flag);
    let name = variable(arg).filter(|name| std::env::var_os(name).is_some())?;
    (!given.any(is_given)).then_some(name)
}

/// All settings as a file for `--config`, each with where it comes from.
pub(crate) fn print(command: &Command, matches: &ArgMatches) -> String {
    let mut text = String::new();
    let Some((RUN, run)) = matches.subcommand() else {
        return text;
    };
    let in_file = run
        .get_one::<PathBuf>("config")
        .and_then(|path| read(command, path).ok())
        .unwrap_or_default();
    for arg in settings_of(command) {
        let id = arg.get_id().as_str();
        let name = arg.get_long().unwrap_or(id);
        let values = run.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values.map(|v| v.to_string_lossy().into_owned()).collect();
        let from = match run.value_source(id) {
            Some(ValueSource::CommandLine) => "flag".to_owned(),
            Some(ValueSource::EnvVariable) => {
                format!("environment, {}", variable(arg).unwrap_or_default())
            }
            _ if in_file.contains_key(id) => "file".to_owned(),
            _ => "default".to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = match &values[..] {
            [] => writeln!(text, "# {name}: # not set"),
            [value] => writeln!(text, "{name}: {} # {from}", scalar(value)),
            several => writeln!(text, "{name}: {} # {from}", scalar(&several.join(","))),
        };
    }
    for line in unread(command) {
        text.push_str(&format!("# {line}\n"));
    }
    text
}

/// Text as YAML: what a reader would take for something else is quoted.
fn scalar(value: &str) -> String {
    let plain = value.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.'))
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':'))
        && !value.ends_with(':');
    // Such as `007`, `yes`, `null` and `1e3`.
    let read = serde_saphyr::from_str(value).ok().and_then(text_of);
    if plain && read.as_deref() == Some(value) {
        value.to_owned()
    } else {
        Value::from(value).to_string()
    }
}

fn settings_of(command: &Command) -> impl Iterator<Item = &Arg> {
    let run = command.find_subcommand(RUN);
    run.into_iter()
        .flat_map(Command::get_arguments)
        .filter(|arg| !NO_SETTINGS.contains(&arg.get_id().as_str()))
}

fn variable(arg: &Arg) -> Option<String> {
    Some(arg.get_env()?.to_string_lossy().into_owned())
}

/// The settings of a file, by the id of their flags; each one has been checked.
fn read(command: &Command, path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    let parsed: Value = serde_saphyr::from_str(&text).map_err(|error| {
        let plain = serde_saphyr::render_options! { snippets: serde_saphyr::SnippetMode::Off };
        anyhow!("{file} is no YAML: {}", error.render_with_options(plain))
    })?;
    let entries = match parsed {
        Value::Null => return Ok(BTreeMap::new()),
        Value::Object(entries) => entries,
        _ => bail!("{file}: expected settings, one `name: value` a line"),
    };
    let written: Option<BTreeMap<String, Option<String>>> = serde_saphyr::from_str(&text).ok();
    let written = written.into_iter().flatten();
    let written: BTreeMap<String, String> = written
        .filter_map(|(name, text)| Some((name, text?)))
        .collect();
    let mut settings = BTreeMap::new();
    for (name, value) in entries {
        let found = settings_of(command).find(|arg| arg.get_long() == Some(&name));
        let Some(arg) = found else {
            let known: Vec<&str> = settings_of(command).filter_map(Arg::get_long).collect();
            bail!(
                "{file}: `{name}` is no setting; there are {}",
                known.join(", ")
            );
        };
        if value.is_array() || value.is_object() {
            bail!("{file}: {name}: expected one value, not a list or a map");
        }
        // None is as if it were not there.
        let Some(mut value) = text_of(value) else {
            continue;
        };
        // What is a number for YAML, such as `007`, may be a name all the same.
        if let Some(written) = written.get(&name).filter(|_| takes_text(arg)) {
            value.clone_from(written);
        }
        check(command, arg, &value).map_err(|why| anyhow!("{file}: {name}: {why}"))?;
        settings.insert(arg.get_id().as_str().to_owned(), value);
    }
    Ok(settings)
}

/// A value of YAML as that of a flag; none of nothing.
fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// Whether any text is a value of a flag, so that none is like another.
fn takes_text(arg: &Arg) -> bool {
    let kind = arg.get_value_parser().type_id();
    kind == TypeId::of::<String>() || kind == TypeId::of::<PathBuf>()
}

/// Checks a value as the flag itself would be.
fn check(command: &Command, arg: &Arg, value: &str) -> Result<(), String> {
    let name = arg.get_long().unwrap_or_default();
    // What the environment says is checked with the rest.
    let alone = settings_of(command).map(|arg| arg.clone().env(Resettable::Reset));
    let command = Command::new(RUN).no_binary_name(true).args(alone);
    match command.try_get_matches_from([format!("--{name}={value}")]) {
        Ok(_) => Ok(()),
        // Another setting that it needs may be in the file too.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
        Err(error) => {
            let values = error.get(ContextKind::ValidValue);
            let expected = values.map(|values| format!("; possible values: {values}"));
            let why = std::error::Error::source(&error).map(|source| format!(": {source}"));
            Err(format!(
                "`{value}` is not valid{}{}",
                why.unwrap_or_default(),
                expected.unwrap_or_default()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn what_nothing_reads_is_told() {
        let set = [
            "REEVE_NAMESPACE",
            "REEVE_NAMESPCAE",
            "REEVE_CACHE",
            "REEVE_SERVICE_HOST",
            "REEVE_METRICS_SERVICE_PORT_HTTP",
            "REEVE_PORT_8081_TCP_ADDR",
            "PATH",
        ];
        let found = unread_of(&crate::Cli::command(), set.map(str::to_owned).into_iter());
        let [found] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(
            found.starts_with("REEVE_NAMESPCAE is no setting"),
            "{found}"
        );
    }

    #[test]
    fn names_of_a_file_are_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reeve.yaml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&crate::Cli::command(), &path).unwrap()
        };
        let text = "lease-name: 007\ncontext: 1.10\nkubeconfig: yes\nconcurrency: 16\ncache: 0x10\n\
                    leader-elect: true\nnamespace: null\n";
        let found = read(text);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(id, value)| (id.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("cache", "0x10"),
                ("concurrency", "16"),
                ("context", "1.10"),
                ("kubeconfig", "yes"),
                ("leader_elect", "true"),
                ("lease_name", "007"),
            ]
        );
    }

    #[test]
    fn text_that_could_be_something_else_is_quoted() {
        for (value, expected) in [
            ("127.0.0.1:8081", "127.0.0.1:8081"),
            ("/var/cache", "/var/cache"),
            ("15s", "15s"),
            ("", "\"\""),
            ("a: b", "\"a: b\""),
            ("*", "\"*\""),
            ("a:", "\"a:\""),
            ("16", "16"),
            ("true", "true"),
            ("007", "\"007\""),
            ("yes", "\"yes\""),
            ("null", "\"null\""),
            ("1e3", "\"1e3\""),
            ("0x10", "\"0x10\""),
            ("1.10", "\"1.10\""),
        ] {
            assert_eq!(scalar(value), expected);
        }
    }
}

//! What a guest sees of an object, cut out of its text.
//!
//! What guests read they read again and again. To take an object apart into a tree, to
//! copy parts of that and to print them takes many times what it takes to find these parts
//! in the text.

use super::{BOOKKEEPING, HIDDEN, Projection};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The members of a JSON object, each as it was written.
type Members<'a> = BTreeMap<Text<'a>, &'a RawValue>;

/// Text that is borrowed where it can be. A plain `Cow` as a key never is.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What is always there.
static ALWAYS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let metadata = ["name", "namespace", "uid"].map(|field| vec!["metadata", field]);
    let paths = [vec!["apiVersion"], vec!["kind"]].into_iter();
    let owned = |path: Vec<&str>| path.into_iter().map(str::to_owned).collect();
    paths.chain(metadata).map(owned).collect()
});

/// What is wanted of a value: what stands at these paths. An empty one stands for all.
type Paths<'a> = [&'a [String]];

impl Projection {
    /// What [`Projection::apply`] shows of an object of which this is the text. Members are
    /// in the order of their names as deep as parts are told apart, and further down as
    /// they were written.
    ///
    /// # Errors
    ///
    /// When the text is no JSON object.
    pub fn show(&self, json: &str) -> Result<String, serde_json::Error> {
        let mut shown = String::new();
        let members: Members<'_> = serde_json::from_str(json)?;
        if self.is_default() {
            shown.reserve(json.len());
            let is_shown = |key: &str| key != "status";
            write(&mut shown, &members, &is_shown, |out, key, value| {
                let hidden = if key == "metadata" { BOOKKEEPING } else { &[] };
                write_parts(out, value, &[&[]], hidden)
            })?;
            return Ok(shown);
        }
        let paths: Vec<&[String]> = ALWAYS.iter().chain(&self.pointers).map(|p| &**p).collect();
        let is_shown = |key: &str| is_wanted(&paths, key);
        write(&mut shown, &members, &is_shown, |out, key, value| {
            let hidden = if key == "metadata" { HIDDEN } else { &[] };
            write_parts(out, value, &below(&paths, key), hidden)
        })?;
        Ok(shown)
    }
}

/// Writes what is wanted of a value, without members that are hidden. What is no object
/// is written whole.
fn write_parts(
    out: &mut String,
    value: &RawValue,
    paths: &Paths<'_>,
    hidden: &[&str],
) -> Result<(), serde_json::Error> {
    let all = paths.iter().any(|path| path.is_empty());
    if (all && hidden.is_empty()) || !value.get().starts_with('{') {
        out.push_str(value.get());
        return Ok(());
    }
    let members: Members<'_> = serde_json::from_str(value.get())?;
    let is_shown = |key: &str| !hidden.contains(&key) && (all || is_wanted(paths, key));
    write(out, &members, &is_shown, |out, key, value| match all {
        true => {
            out.push_str(value.get());
            Ok(())
        }
        false => write_parts(out, value, &below(paths, key), &[]),
    })
}

fn write(
    out: &mut String,
    members: &Members<'_>,
    is_shown: &dyn Fn(&str) -> bool,
    write_value: impl Fn(&mut String, &str, &RawValue) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let mut separator = '{';
    for (Text(key), value) in members.iter().filter(|(key, _)| is_shown(&key.0)) {
        out.push(std::mem::replace(&mut separator, ','));
        out.push_str(&serde_json::to_string(key)?);
        out.push(':');
        write_value(out, key, value)?;
    }
    if separator == '{' {
        out.push('{');
    }
    out.push('}');
    Ok(())
}

fn is_wanted(paths: &Paths<'_>, key: &str) -> bool {
    paths
        .iter()
        .any(|path| path.first().is_some_and(|first| first == key))
}

/// What is wanted of a member.
fn below<'a>(paths: &Paths<'a>, key: &str) -> Vec<&'a [String]> {
    let deeper = paths.iter().filter_map(|path| path.split_first());
    let deeper = deeper.filter(|(first, _)| *first == key);
    deeper.map(|(_, rest)| rest).collect()
}

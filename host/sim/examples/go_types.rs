//! Writes the table of the types that built-in kinds are decoded into:
//! `cargo run -p reeve-sim --example go_types -- DIR VERSION > src/decode/types.txt`
//! where DIR holds the Go modules of Kubernetes, `api@…` and the others, and VERSION
//! is theirs: `v0.36.3`. The grammar of the table is described in
//! `src/decode/types.rs`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The packages with the kinds: the module, and the folder in it, whose last two
/// parts name the package in the table.
const PACKAGES: &[(&str, &str)] = &[
    ("apimachinery", "pkg/apis/meta/v1"),
    ("api", "admissionregistration/v1"),
    ("api", "apps/v1"),
    ("api", "authentication/v1"),
    ("api", "authorization/v1"),
    ("api", "autoscaling/v1"),
    ("api", "autoscaling/v2"),
    ("api", "batch/v1"),
    ("api", "certificates/v1"),
    ("api", "coordination/v1"),
    ("api", "core/v1"),
    ("api", "discovery/v1"),
    ("api", "events/v1"),
    ("api", "flowcontrol/v1"),
    ("api", "networking/v1"),
    ("api", "node/v1"),
    ("api", "policy/v1"),
    ("api", "rbac/v1"),
    ("api", "resource/v1"),
    ("api", "scheduling/v1"),
    ("api", "storage/v1"),
    ("apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    ("kube-aggregator", "pkg/apis/apiregistration/v1"),
];

fn main() -> Result<()> {
    let usage = "usage: go_types DIR VERSION";
    let mut arguments = std::env::args().skip(1);
    let modules = PathBuf::from(arguments.next().ok_or(usage)?);
    let version = arguments.next().ok_or(usage)?;
    let mut types = BTreeMap::new();
    for (module, folder) in PACKAGES {
        let folder = modules.join(format!("{module}@{version}")).join(folder);
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<_>>()?;
        files.sort();
        for file in files.iter().filter(|file| is_source(file)) {
            read(&package(&folder), &fs::read_to_string(file)?, &mut types)?;
        }
    }
    println!("# Types of built-in kinds; written by examples/go_types.rs, do not edit.");
    for (name, text) in types {
        print!("{name}{text}");
    }
    Ok(())
}

fn is_source(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated")
}

/// `apps/v1` for a folder that ends so.
fn package(folder: &Path) -> String {
    let parts: Vec<_> = folder.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

/// Adds the types of one file: all that follows their names in the table.
fn read(package: &str, source: &str, types: &mut BTreeMap<String, String>) -> Result<()> {
    let imports = imports(source);
    let resolve = |text: &str| expression(text, package, &imports);
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("type ") else {
            continue;
        };
        let rest = rest.split("//").next().unwrap_or_default().trim();
        let (name, rest) = rest.split_once(' ').ok_or("a type without a body")?;
        let name = format!("{package}.{name}");
        let is_open = rest.ends_with('{');
        if rest == "struct {" {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            types.insert(name, fields(&body, &resolve));
        } else if is_open || rest.starts_with("func") {
            continue;
        } else {
            let target = resolve(rest.trim_start_matches("= "));
            types.insert(name, format!(" = {target}\n"));
        }
    }
    Ok(())
}

/// The names under which a file knows other packages.
fn imports(source: &str) -> BTreeMap<String, String> {
    let lines = source.lines().map(str::trim);
    let mut imports = BTreeMap::new();
    for line in lines.take_while(|line| !line.starts_with("type ")) {
        let Some((alias, path)) = line.split_once('"') else {
            continue;
        };
        let path = path.trim_end_matches('"');
        let parts: Vec<&str> = path.rsplit('/').take(2).collect();
        let [last, before] = parts[..] else {
            continue;
        };
        let versioned = last.starts_with('v') && last[1..].parse::<u8>().is_ok();
        let package = if versioned {
            format!("{before}/{last}")
        } else {
            last.to_owned()
        };
        let alias = match alias.trim().trim_start_matches("import").trim() {
            "" => last,
            alias => alias,
        };
        imports.insert(alias.to_owned(), package);
    }
    imports
}

/// One indented line a field; `~` and a type for one whose fields stand in its
/// place, `!` behind a field that is written even when it is empty, and how a
/// strategic patch merges it.
fn fields(body: &[&str], resolve: &impl Fn(&str) -> String) -> String {
    let mut out = "\n".to_owned();
    for line in body.iter().map(|line| line.trim()) {
        let Some((declaration, tags)) = line.split_once('`') else {
            continue;
        };
        if line.starts_with("//") {
            continue;
        }
        let Some(tag) = tag_of(tags, "json") else {
            continue;
        };
        let name = tag.split(',').next().unwrap_or_default();
        let words: Vec<&str> = declaration.split_whitespace().collect();
        let omitted = tag
            .split(',')
            .any(|word| matches!(word, "omitempty" | "omitzero"));
        let mark = if omitted { "" } else { " !" };
        let mark = format!("{mark}{}", merging(tags));
        match (name, words.as_slice()) {
            ("-", _) => {}
            // Embedded, and named nevertheless.
            (name, [ty]) if !name.is_empty() => {
                out.push_str(&format!(" {name} {}{mark}\n", resolve(ty)));
            }
            (_, [ty]) => out.push_str(&format!(" ~ {}\n", resolve(ty))),
            (name, [_, ty @ ..]) => {
                out.push_str(&format!(" {name} {}{mark}\n", resolve(&ty.concat())));
            }
            _ => {}
        }
    }
    out
}

/// What a tag says under a name.
fn tag_of<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let (_, tag) = tags.split_once(&format!("{name}:\""))?;
    tag.split('"').next()
}

/// `+key` for a list that is merged by a key, `+` for one that is merged as a set, `-`
/// for a field that is replaced as a whole.
fn merging(tags: &str) -> String {
    let strategies = tag_of(tags, "patchStrategy").unwrap_or_default();
    let has = |strategy: &str| strategies.split(',').any(|one| one == strategy);
    match (has("merge"), has("replace")) {
        (true, _) => format!(" +{}", tag_of(tags, "patchMergeKey").unwrap_or_default()),
        (_, true) => " -".to_owned(),
        _ => String::new(),
    }
}

/// A Go type in the table's grammar.
fn expression(text: &str, package: &str, imports: &BTreeMap<String, String>) -> String {
    let again = |text: &str| expression(text, package, imports);
    let text = text.trim_start_matches('*');
    if text == "[]byte" {
        return "bytes".to_owned();
    }
    if let Some(item) = text.strip_prefix("[]") {
        return format!("[]{}", again(item));
    }
    if let Some((key, value)) = text
        .strip_prefix("map[")
        .and_then(|rest| rest.split_once(']'))
    {
        return format!("{{{}}}{}", again(key), again(value));
    }
    const BASIC: &[&str] = &[
        "string",
        "bool",
        "int",
        "int32",
        "int64",
        "float64",
        "interface{}",
    ];
    if BASIC.contains(&text) {
        return text.to_owned();
    }
    match text.split_once('.') {
        Some((alias, name)) => match imports.get(alias) {
            Some(package) => format!("{package}.{name}"),
            None => text.to_owned(),
        },
        None => format!("{package}.{text}"),
    }
}

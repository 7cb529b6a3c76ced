//! The tables of the documentation. `REEVE_UPDATE_GOLDEN=1` writes them anew.

use std::path::Path;

use crate::catalog::{PACKS, When};
use crate::cloud::Cloud;
use crate::keys::{By, Form, KEYS};

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

fn keys() -> String {
    let mut table =
        "| AWS | Google Cloud | Azure | Holds | Needed by | Reaches |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for key in KEYS {
        let [aws, gcp, azure] = Cloud::ALL.map(|cloud| key.path(cloud));
        let path = |path: &str, block: &str| code(path.strip_prefix(block).unwrap_or(path));
        let [first, second, third] = if aws == gcp {
            [code(aws), "the same".to_owned(), "the same".to_owned()]
        } else {
            [path(aws, ""), path(gcp, ""), path(azure, "")]
        };
        let holds = match key.form {
            Form::Text => "text",
            Form::Bool => "boolean",
            Form::Url => "`https` URL",
            Form::Host => "host name",
            Form::Oci => "`oci` URL",
            Form::OneOf(values) => &values.join(", "),
            Form::Json => "JSON, or a text with it",
            Form::Pem => "PEM in base64",
        };
        let secret = if key.secret { ", secret" } else { "" };
        let reaches = match key.by {
            By::Every => "every release".to_owned(),
            By::Packs => String::new(),
            By::Releases(names) if names.len() > 3 => {
                "`istio-gateway`, and all of `sgp-apps`".to_owned()
            }
            By::Releases(names) => names.iter().map(|n| code(n)).collect::<Vec<_>>().join(", "),
        };
        let needed = match key.needed_by.len() {
            7.. => unreachable!(),
            5 => "all with releases".to_owned(),
            6 => "all but `flux`".to_owned(),
            _ => key
                .needed_by
                .iter()
                .map(|n| code(n))
                .collect::<Vec<_>>()
                .join(", "),
        };
        table.push_str(&format!(
            "| {first} | {second} | {third} | {holds}{secret} | {needed} | {reaches} |\n"
        ));
    }
    table
}

fn packs() -> String {
    let mut table = "| Pack | Wave | Needs | Releases (chart) |\n|---|---|---|---|\n".to_owned();
    for pack in &PACKS {
        let needs: Vec<String> = pack.needs.iter().map(|name| code(name)).collect();
        let release = |release: &crate::catalog::Release| {
            let chart = match release.chart == release.name {
                true => String::new(),
                false => format!(" (`{}`)", release.chart),
            };
            let when = match release.when {
                When::Always => String::new(),
                When::Flag(key) => format!(" if `{key}`"),
                When::Configured => " if configured".to_owned(),
            };
            format!("`{}/{}`{chart}{when}", release.namespace, release.name)
        };
        let releases: Vec<String> = pack.releases.iter().map(release).collect();
        table.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            pack.name,
            pack.wave,
            needs.join(", "),
            releases.join(", ")
        ));
    }
    table
}

#[test]
fn the_tables_say_what_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packs.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, table) in [("packs", packs()), ("keys", keys())] {
        let start = format!("<!-- {name} -->\n");
        let from = text.find(&start).unwrap() + start.len();
        let to = from + text[from..].find("<!-- end -->").unwrap();
        if std::env::var_os("REEVE_UPDATE_GOLDEN").is_some() {
            text.replace_range(from..to, &table);
            std::fs::write(&path, &text).unwrap();
        } else {
            assert_eq!(text[from..to], table);
        }
    }
}

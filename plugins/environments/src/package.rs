//! The packages of models: where each is, and what it has to be.

use reeve_sdk::prelude::*;

use crate::config::{Config, PACKAGES_SOURCE};
use crate::entry::{Described, Entry, Said};
use crate::fields::Fields;
use crate::names::{is_sha256, is_url, without_query};

/// A model as a file.
#[output]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) url: String,
    /// Its SHA-256, in lower-case hexadecimal.
    pub(crate) sha256: String,
    pub(crate) size_bytes: Option<u64>,
}

/// A package, and the format of the model in it if it is said.
pub(crate) type Found = (Package, Option<String>);

/// The index of packages.
pub(crate) struct Index {
    url: String,
    packages: Json,
}

impl Index {
    /// Reads the index, if there is one.
    pub(crate) fn read(config: &Config, cx: &Context) -> Result<Option<Self>, Failure> {
        let url = &config.supervisor.packages.url;
        if url.is_empty() {
            return Ok(None);
        }
        let url = without_query(url);
        let document = cx.source(PACKAGES_SOURCE)?;
        let packages: Json = document.json().or_retry(url)?;
        if !packages.is_object() {
            return Err(Failure::retry(format!(
                "{url}: no JSON object of packages by id"
            )));
        }
        Ok(Some(Self {
            url: url.to_owned(),
            packages,
        }))
    }

    /// What it says of the first of these ids that it has, and the id.
    fn described<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Option<(&'a str, Described)> {
        ids.into_iter().find_map(|id| {
            let value = self.packages.get(id)?;
            let said = |pointer: &str| Said::at(value, pointer);
            let described = Described {
                url: said("/url"),
                sha256: said("/sha256"),
                size: said("/sizeBytes"),
                format: said("/format"),
            };
            (!value.is_null()).then_some((id, described))
        })
    }
}

/// The package of a deployment's model: what the entry says itself, or else the index.
/// The error says where it is to be put right.
pub(crate) fn of_entry(
    entry: &Entry,
    fields: &Fields,
    index: Option<&Index>,
) -> Result<Found, String> {
    let own = &entry.described;
    if own.url != Said::Nothing || own.sha256 != Said::Nothing {
        return checked(own, |part| {
            match part {
                Part::Url => &fields.package_url,
                Part::Sha256 => &fields.package_sha256,
                Part::Size => &fields.package_size_bytes,
                Part::Format => &fields.model_format,
            }
            .clone()
        });
    }
    let ids = || entry.package.text().into_iter().chain(entry.model.text());
    let Some(index) = index else {
        return Err(
            "nothing says where its package is; set /supervisor/fields/packageUrl and \
             packageSha256, or /supervisor/packages/url"
                .to_owned(),
        );
    };
    let Some((id, mut described)) = index.described(ids()) else {
        let ids: Vec<String> = ids().map(|id| format!("`{id}`")).collect();
        return Err(format!(
            "{} has no package {}; add it, with its url and sha256",
            index.url,
            ids.join(" or ")
        ));
    };
    if described.format == Said::Nothing {
        described.format = own.format.clone();
    }
    checked(&described, |part| {
        let key = match part {
            Part::Url => "url",
            Part::Sha256 => "sha256",
            Part::Size => "sizeBytes",
            Part::Format => "format",
        };
        format!("{key} of `{id}` in {}", index.url)
    })
}

/// A part of a description.
#[derive(Clone, Copy)]
enum Part {
    Url,
    Sha256,
    Size,
    Format,
}

/// The package that is described. `place` says where a part stands.
fn checked(described: &Described, place: impl Fn(Part) -> String) -> Result<Found, String> {
    let wrong = |part: Part, what: &str| Err(format!("{}: {what}", place(part)));
    let Some(url) = described.url.text().filter(|url| is_url(url)) else {
        let what = "no http or https URL; say the whole of it, and escape what cannot stand in one";
        return wrong(Part::Url, what);
    };
    let sha256 = described.sha256.text().map(str::to_ascii_lowercase);
    let Some(sha256) = sha256.filter(|sha256| is_sha256(sha256)) else {
        let what = "expected 64 hexadecimal digits, as sha256sum prints them";
        return wrong(Part::Sha256, what);
    };
    let size = match &described.size {
        Said::Nothing => None,
        said => {
            let size = said.text().and_then(|text| text.parse::<u64>().ok());
            // The API server has whole numbers up to this.
            match size.filter(|size| i64::try_from(*size).is_ok()) {
                None => return wrong(Part::Size, "expected a whole number of bytes"),
                size => size,
            }
        }
    };
    if described.format == Said::Odd {
        return wrong(
            Part::Format,
            "expected the name of a format, such as datarobot",
        );
    }
    let package = Package {
        url: url.to_owned(),
        sha256,
        size_bytes: size,
    };
    Ok((package, described.format.text().map(str::to_owned)))
}

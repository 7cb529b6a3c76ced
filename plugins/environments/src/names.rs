//! Kinds, labels and names, and what of a text can be one.

use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

pub(crate) const API_VERSION: &str = "models.reeve.dev/v1alpha1";
pub(crate) const ENVIRONMENT: Kind = Kind::new(API_VERSION, "PredictionEnvironment");
pub(crate) const MODEL_DEPLOYMENT: Kind = Kind::new(API_VERSION, "ModelDeployment");

/// Label of a ModelDeployment: id of the prediction environment that it is listed for.
pub(crate) const OF: &str = "models.reeve.dev/prediction-environment";

/// The longest name of a ModelDeployment.
pub(crate) const LONGEST_NAME: usize = 52;

/// The longest id of a model, which becomes part of a tag.
pub(crate) const LONGEST_MODEL_ID: usize = 115;

/// Name of the ModelDeployment of a deployment, if its id makes one: as
/// `reeve model start` calls it.
pub(crate) fn name_of(id: &str) -> Option<String> {
    let plain = id.to_ascii_lowercase().replace('_', "-");
    let name = match plain.starts_with(|char: char| char.is_ascii_lowercase()) {
        true => plain,
        false => format!("deployment-{plain}"),
    };
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = name.len() <= LONGEST_NAME && name.bytes().all(fits) && !name.ends_with('-');
    is_name.then_some(name)
}

/// Whether a text can be the id of a deployment: part of a path as it is.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && check_label_value(text).is_ok() && !text.contains('.')
}

/// Whether a text can be the id of a model: part of a tag as it is.
pub(crate) fn is_model_id(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let first = text.bytes().next();
    text.len() <= LONGEST_MODEL_ID
        && text.bytes().all(inner)
        && first.is_some_and(|byte| byte != b'.' && byte != b'-')
}

/// Whether a text is a SHA-256 in lower-case hexadecimal.
pub(crate) fn is_sha256(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(digit)
}

/// Whether a text is an http or https URL that can stand on a line.
pub(crate) fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        is_host(host) && is_plain(rest)
    })
}

/// Whether a text can stand in a URL as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = |char: char| char.is_ascii_graphic() && !"\"'`\\<>{}|^".contains(char);
    text.chars().all(plain)
}

/// Whether a text is a host, and perhaps a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    host.bytes().all(inner)
        && ends(host.bytes().next())
        && ends(host.bytes().next_back())
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// A URL without its query, which may hold a credential.
pub(crate) fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

//! Fetching a document, and not fetching it again when it has not changed.

use crate::http::{Http, HttpError};
use crate::rule::{shown, without_query};
use ::http::header::{
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION,
};
use ::http::uri::PathAndQuery;
use ::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use bytes::Bytes;

/// Redirects that are followed: from a short name to a canonical one, to a mirror,
/// to another scheme. More is a loop.
const REDIRECTS: usize = 5;

/// A document as a server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its body.
    pub body: Bytes,
    /// Its media type, empty if the server did not say.
    pub media_type: String,
}

/// By what a server tells whether a document has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Whence they are: another URL would understand them otherwise.
    url: String,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

/// What a fetch gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The document is as it was when the validators were given.
    Unchanged,
    /// The document.
    Document(Document, Validators),
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There was no response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server answers, but not with the document.
    #[error("{url} answers {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// The server redirects to something that is no URL.
    #[error("{url} redirects to what is no URL")]
    Location {
        /// The URL.
        url: String,
    },
    /// The server redirects again and again.
    #[error("{url} redirects more than {REDIRECTS} times")]
    Redirects {
        /// The URL that was asked first.
        url: String,
    },
    /// What is to be fetched is no URL.
    #[error("`{url}` is no URL")]
    Url {
        /// The text.
        url: String,
    },
}

/// Fetches a document with GET. Redirects are followed, each looked at as the first
/// request is: where a redirect leads to must be granted, too.
///
/// # Errors
///
/// When there is no document.
pub async fn fetch(http: &Http, url: &str, known: &Validators) -> Result<Fetched, FetchError> {
    let mut uri: Uri = url
        .parse()
        .map_err(|_| FetchError::Url { url: shown(url) })?;
    let first = without_query(&uri);
    for _ in 0..=REDIRECTS {
        let response = http.send(request(&uri, known)).await?;
        let here = without_query(&uri);
        match response.status() {
            StatusCode::OK => {
                let validators = validators(&uri, response.headers());
                return Ok(Fetched::Document(document(response), validators));
            }
            StatusCode::NOT_MODIFIED if known.is_for(&uri) => return Ok(Fetched::Unchanged),
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                let location = response.headers().get(LOCATION);
                let location = location.and_then(|location| location.to_str().ok());
                let next = location.and_then(|location| join(&uri, location));
                uri = next.ok_or(FetchError::Location { url: here })?;
            }
            status => return Err(FetchError::Status { url: here, status }),
        }
    }
    Err(FetchError::Redirects { url: first })
}

fn request(uri: &Uri, known: &Validators) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    if known.is_for(uri) {
        let mut set = |name: HeaderName, value: &Option<HeaderValue>| {
            if let Some(value) = value {
                request.headers_mut().insert(name, value.clone());
            }
        };
        set(IF_NONE_MATCH, &known.etag);
        set(IF_MODIFIED_SINCE, &known.last_modified);
    }
    request
}

fn document(response: Response<Bytes>) -> Document {
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    Document {
        media_type: media_type.unwrap_or_default().to_owned(),
        body: response.into_body(),
    }
}

fn validators(uri: &Uri, headers: &HeaderMap) -> Validators {
    Validators {
        url: uri.to_string(),
        etag: headers.get(ETAG).cloned(),
        last_modified: headers.get(LAST_MODIFIED).cloned(),
    }
}

impl Validators {
    fn is_for(&self, uri: &Uri) -> bool {
        let known = self.etag.is_some() || self.last_modified.is_some();
        known && self.url == uri.to_string()
    }
}

/// Where a reference leads from here: a URL, `//host/path`, `/path` or a path beside
/// this one (RFC 3986).
fn join(here: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    if reference.is_empty() {
        return Some(here.clone());
    }
    if reference.starts_with("http://") || reference.starts_with("https://") {
        return reference.parse().ok();
    }
    if let Some(rest) = reference.strip_prefix("//") {
        return format!("{}://{rest}", here.scheme_str()?).parse().ok();
    }
    // Another scheme.
    let colon = reference.find(':');
    if colon.is_some_and(|colon| !reference[..colon].contains(['/', '?'])) {
        return None;
    }
    let path = match reference.chars().next()? {
        '/' => reference.to_owned(),
        '?' => format!("{}{reference}", here.path()),
        _ => {
            let folder = here
                .path()
                .rsplit_once('/')
                .map_or("", |(folder, _)| folder);
            format!("{folder}/{reference}")
        }
    };
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*path, None),
    };
    let mut path = without_dots(path);
    if let Some(query) = query {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = here.clone().into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// A path with its `.` and `..` carried out.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for part in path.split('/').skip(1) {
        ends_in_folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if ends_in_folder {
        parts.push("");
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_they_say() {
        for (reference, expected) in [
            ("https://b.example/x", Some("https://b.example/x")),
            ("//b.example/x", Some("http://b.example/x")),
            ("/x?y", Some("http://a.example:81/x?y")),
            ("x", Some("http://a.example:81/v1/x")),
            ("../x", Some("http://a.example:81/x")),
            ("../../../x", Some("http://a.example:81/x")),
            ("./", Some("http://a.example:81/v1/")),
            ("?z", Some("http://a.example:81/v1/data?z")),
            ("#f", Some("http://a.example:81/v1/data?q")),
            ("file:///etc/passwd", None),
            ("javascript:x", None),
        ] {
            let here = "http://a.example:81/v1/data?q".parse().unwrap();
            let found = join(&here, reference).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{reference}");
        }
    }
}

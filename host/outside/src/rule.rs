//! Where HTTP requests may go: what an operator has granted.

use crate::address::{Networks, literal};
use crate::path::{self, Ambiguous};
use crate::tls::Roots;
use ::http::{Method, Uri};
use std::fmt;

/// One grant: requests to one host, below one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    scheme: Scheme,
    /// In lower case; an IPv6 address in brackets.
    host: String,
    port: u16,
    prefix: String,
    /// Methods that may be used; all if there are none.
    pub methods: Vec<Method>,
    /// Addresses that may be connected to.
    pub networks: Networks,
    /// Whom to trust for TLS.
    pub roots: Roots,
    /// The name of the key with which requests are signed.
    pub key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn of(uri: &Uri) -> Option<Self> {
        match uri.scheme_str()? {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A URL that grants nothing, or that no grant could cover.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is no URL of HTTP.
    #[error("`{url}` is no URL such as `https://example.com/v1/`: {problem}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Its path has more than one meaning.
    #[error("`{url}`")]
    Path {
        /// The text.
        url: String,
        /// Why.
        source: Ambiguous,
    },
}

/// The parts of a URL that say where a request goes.
struct Place<'a> {
    scheme: Scheme,
    host: String,
    port: u16,
    path: &'a str,
}

impl<'a> Place<'a> {
    fn of(uri: &'a Uri) -> Result<Self, RuleError> {
        let error = |problem| {
            Err(RuleError::Url {
                url: without_query(uri),
                problem,
            })
        };
        let Some(scheme) = Scheme::of(uri) else {
            return error("it needs the scheme http or https");
        };
        let Some(authority) = uri.authority() else {
            return error("it needs a host");
        };
        if authority.as_str().contains('@') {
            return error("it holds a user; credentials belong into a key");
        }
        let host = authority.host().to_ascii_lowercase();
        // A trailing dot is another spelling of the same name.
        let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
        if host.is_empty() || host.contains('%') {
            return error("it needs a host");
        }
        // 127.1, 0x7f.1 and the like are addresses for some resolvers.
        if literal(&host).is_none() && looks_numeric(&host) {
            return error("its host looks like an address and is none");
        }
        let port = authority.port_u16();
        let bare = authority.as_str().len() == authority.host().len();
        if !bare && port.is_none_or(|port| port == 0) {
            return error("its port is no number from 1 to 65535");
        }
        Ok(Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.port()),
            path: uri.path(),
        })
    }
}

/// Whether the last label of a host begins as a number does: no such name can be
/// registered, and resolvers take it for an address.
fn looks_numeric(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    last.starts_with(|c: char| c.is_ascii_digit())
}

/// A text that was to be a URL, without what may hold a credential.
pub(crate) fn shown(url: &str) -> String {
    let bare = reeve_core::manifest::without_query(url);
    let (scheme, rest) = bare.split_once("://").unwrap_or(("", bare));
    let host = rest.rsplit('@').next().unwrap_or_default();
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

/// A URL without what may hold a credential.
pub fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let bare = authority.rsplit('@').next().unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or_default();
    format!("{scheme}://{bare}{}", uri.path())
}

impl Rule {
    /// Grants requests to URLs that begin with this one: the same scheme, host and
    /// port, and a path below its path. All methods, ordinary addresses, the roots
    /// of the machine, no key.
    ///
    /// # Errors
    ///
    /// When it is no URL of HTTP, or has a query.
    pub fn new(url: &str) -> Result<Self, RuleError> {
        let error = |problem| RuleError::Url {
            url: shown(url),
            problem,
        };
        let uri: Uri = url.parse().map_err(|_| error("it does not parse"))?;
        let place = Place::of(&uri)?;
        if uri.query().is_some() || url.contains('#') {
            return Err(error("a grant has no query and no fragment"));
        }
        if path::is_ambiguous(place.path) {
            return Err(RuleError::Path {
                url: shown(url),
                source: Ambiguous,
            });
        }
        Ok(Self {
            scheme: place.scheme,
            host: place.host,
            port: place.port,
            prefix: place.path.to_owned(),
            methods: Vec::new(),
            networks: Networks::default(),
            roots: Roots::System,
            key: None,
        })
    }

    /// Whether a request falls under this grant.
    ///
    /// # Errors
    ///
    /// When its URL is no URL of HTTP, or its path has more than one meaning.
    pub fn covers(&self, method: &Method, uri: &Uri) -> Result<bool, RuleError> {
        if !self.methods.is_empty() && !self.methods.contains(method) {
            // Malformed is malformed whatever the method.
            return Place::of(uri).map(|_| false);
        }
        self.is_above(uri)
    }

    /// Whether a request to a URL falls under this grant but for its method.
    pub fn covers_place(&self, uri: &Uri) -> bool {
        self.is_above(uri).unwrap_or(false)
    }

    fn is_above(&self, uri: &Uri) -> Result<bool, RuleError> {
        let place = Place::of(uri)?;
        if (place.scheme, &place.host, place.port) != (self.scheme, &self.host, self.port) {
            return Ok(false);
        }
        path::is_below(place.path, &self.prefix).map_err(|source| RuleError::Path {
            url: without_query(uri),
            source,
        })
    }

    /// Whether everything below a URL falls under this grant, with any of the
    /// methods that it names.
    pub fn covers_all_below(&self, other: &Self) -> bool {
        let same = (other.scheme, &other.host, other.port) == (self.scheme, &self.host, self.port);
        same && path::is_below(&other.prefix, &self.prefix).unwrap_or(false)
    }

    /// The host, as a certificate names it.
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// The URL that is granted.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_cover_what_they_name() {
        for (grant, url, expected) in [
            ("https://a.example", "https://a.example/x?y=z", "yes"),
            ("https://a.example/", "https://A.EXAMPLE:443/", "yes"),
            ("https://a.example", "https://a.example./", "yes"),
            ("https://a.example", "http://a.example/", "no"),
            ("https://a.example", "https://a.example:8443/", "no"),
            ("https://a.example", "https://b.a.example/", "no"),
            ("https://a.example", "https://a.example.evil.test/", "no"),
            (
                "https://a.example",
                "https://u@a.example/",
                "it holds a user",
            ),
            ("https://a.example/v1", "https://a.example/v1/x", "yes"),
            ("https://a.example/v1", "https://a.example/v10", "no"),
            ("https://a.example/v1", "https://a.example/v1/../x", "`..`"),
            ("http://[::1]:8181", "http://[::1]:8181/v1", "yes"),
            ("http://127.0.0.1", "http://127.1/", "looks like an address"),
            ("http://127.0.0.1", "http://0x7f.0.0.1/", "no"),
            (
                "http://127.0.0.1",
                "http://2130706433/",
                "looks like an address",
            ),
            ("https://a.example", "/v1", "needs the scheme"),
            ("https://a.example", "ftp://a.example/", "needs the scheme"),
        ] {
            let rule = Rule::new(grant).unwrap();
            let found = match rule.covers(&Method::GET, &url.parse().unwrap()) {
                Ok(true) => "yes".to_owned(),
                Ok(false) => "no".to_owned(),
                Err(error) => reeve_core::chain(&error),
            };
            assert!(found.contains(expected), "{grant} {url}: {found}");
        }
    }

    #[test]
    fn methods_narrow_a_grant() {
        let mut rule = Rule::new("https://a.example").unwrap();
        rule.methods = vec![Method::GET];
        let uri = "https://a.example/".parse().unwrap();
        assert_eq!(rule.covers(&Method::GET, &uri), Ok(true));
        assert_eq!(rule.covers(&Method::PUT, &uri), Ok(false));
    }

    #[test]
    fn a_url_that_grants_nothing_is_refused() {
        for url in [
            "",
            "a.example",
            "https://",
            "https://a.example/?x=y",
            "https://a.example/../x",
            "https://u:p@a.example",
            "https://a.example:0",
            "https://a.example:99999",
            "https://10.1/",
            "gopher://a.example",
        ] {
            assert!(Rule::new(url).is_err(), "{url}");
        }
        let rule = Rule::new("HTTPS://A.example:443").unwrap();
        assert_eq!(rule.to_string(), "https://a.example/");
    }

    #[test]
    fn no_text_of_a_url_shows_a_credential() {
        let uri: Uri = "https://user:hunter2@a.example/x?sig=hunter2"
            .parse()
            .unwrap();
        assert_eq!(without_query(&uri), "https://a.example/x");
        for url in [
            "https://user:hunter2@a.example/x?sig=hunter2",
            "https://user:hunter2@a.example:x/",
            "https://a.example/?sig=hunter2",
            "user:hunter2@a.example/#hunter2",
        ] {
            let refused = Rule::new(url).unwrap_err();
            assert!(
                !reeve_core::chain(&refused).contains("hunter2"),
                "{refused}"
            );
        }
    }
}

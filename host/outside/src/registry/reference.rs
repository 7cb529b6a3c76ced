//! Names of artifacts: `registry.example:5000/team/app:1.2@sha256:…`.

use super::Wanted;
use reeve_core::Digest;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest name of a repository that registries accept.
const MAX_REPOSITORY: usize = 255;
/// The longest tag (distribution specification, "Pulling manifests").
const MAX_TAG: usize = 128;

/// Names an artifact: a registry, a repository in it, and a tag or a digest or both, of
/// which the digest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Why a text names no artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no artifact: {problem}, as in registry.example/team/plugin:1.0")]
pub struct ReferenceError {
    text: String,
    problem: &'static str,
}

impl ImageReference {
    /// The registry, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// What is asked for: the digest if there is one, and the tag otherwise.
    pub fn wanted(&self) -> Wanted {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Wanted::Digest(*digest),
            // One of the two is there.
            (None, tag) => Wanted::Tag(tag.clone().unwrap_or_default()),
        }
    }

    /// Whether it names one artifact for ever.
    pub fn is_pinned(&self) -> bool {
        self.digest.is_some()
    }

    /// Whether the registry is on this machine, by its name.
    pub fn is_loopback(&self) -> bool {
        let host = match self.host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => self.host.split(':').next().unwrap_or_default(),
        };
        let address = host.parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for ImageReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem| ReferenceError {
            text: text.to_owned(),
            problem,
        };
        // As Helm and Flux write it.
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let (bare, digest) = match bare.split_once('@') {
            None => (bare, None),
            Some((bare, digest)) => {
                let digest = digest.parse::<Digest>();
                let expected = "after `@` stands a digest, `sha256:` and 64 digits";
                (bare, Some(digest.map_err(|_| error(expected))?))
            }
        };
        let Some((host, rest)) = bare.split_once('/') else {
            return Err(error("it begins with a registry and `/`"));
        };
        if !is_registry(host) {
            return Err(error(
                "it begins with a registry, a host name with a dot or a port, or localhost",
            ));
        }
        let (repository, tag) = match rest.split_once(':') {
            None => (rest, None),
            Some((repository, tag)) => (repository, Some(tag)),
        };
        if !is_repository(repository) {
            return Err(error(
                "a repository is of lower-case letters and digits, with `.`, `_` or `-` between \
                 them, and `/` between its parts",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(error(
                "a tag is of up to 128 letters, digits, `_`, `.` and `-`",
            ));
        }
        if tag.is_none() && digest.is_none() {
            return Err(error("it ends with a tag or a digest"));
        }
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else {
                return false;
            };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            (
                "localhost",
                port.strip_prefix(':').filter(|_| !port.is_empty()),
            )
        }
        None => match text.split_once(':') {
            None => (text, None),
            Some((host, port)) => (host, Some(port)),
        },
    };
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // Without one of these it is the first part of a repository on Docker Hub, which
    // others read into it and we do not.
    let told_apart = host == "localhost" || host.contains('.') || port.is_some();
    let port = port.is_none_or(|port| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        digits && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    told_apart && port && host.split('.').all(label)
}

fn is_repository(text: &str) -> bool {
    text.len() <= MAX_REPOSITORY && text.split('/').all(is_part)
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`.
fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    if !ends.is_some_and(|(first, last)| plain(*first) && plain(*last)) {
        return false;
    }
    let separators = bytes
        .split(|byte| plain(*byte))
        .filter(|one| !one.is_empty());
    separators.into_iter().all(|separator| {
        matches!(separator, b"." | b"_" | b"__") || separator.iter().all(|byte| *byte == b'-')
    })
}

fn is_tag(text: &str) -> bool {
    let first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let rest = |byte: u8| first(&byte) || byte == b'.' || byte == b'-';
    text.len() <= MAX_TAG && text.as_bytes().first().is_some_and(first) && text.bytes().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_an_artifact_is_read_and_written() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, host, repository, wanted, loopback) in [
            ("ghcr.io/a/b:1", "ghcr.io", "a/b", "1", false),
            ("localhost/a:x", "localhost", "a", "x", true),
            (
                "127.0.0.1:5000/a.b/c__d:_x",
                "127.0.0.1:5000",
                "a.b/c__d",
                "_x",
                true,
            ),
            ("[::1]:5000/a:1", "[::1]:5000", "a", "1", true),
            (
                "reg:5000/a--b:1.0-rc.1",
                "reg:5000",
                "a--b",
                "1.0-rc.1",
                false,
            ),
        ] {
            let found: ImageReference = text.parse().unwrap();
            let parts = (found.host(), found.repository(), found.wanted().to_string());
            assert_eq!(parts, (host, repository, wanted.to_owned()), "{text}");
            assert_eq!((found.is_loopback(), found.is_pinned()), (loopback, false));
            assert_eq!(found.to_string(), text);
            let pinned: ImageReference = format!("oci://{text}@{digest}").parse().unwrap();
            assert_eq!(pinned.wanted().to_string(), digest);
            assert!(pinned.is_pinned());
        }
    }

    #[test]
    fn what_does_not_says_what_is_wrong() {
        for (text, says) in [
            ("quotas:1", "it begins with a registry and `/`"),
            ("team/quotas:1", "it begins with a registry, a host name"),
            ("ghcr.io/a", "it ends with a tag or a digest"),
            ("ghcr.io/A:1", "a repository is of lower-case"),
            ("ghcr.io/a//b:1", "a repository is of lower-case"),
            ("ghcr.io/../b:1", "a repository is of lower-case"),
            ("ghcr.io/a%2fb:1", "a repository is of lower-case"),
            ("ghcr.io/a:", "a tag is of"),
            ("ghcr.io/a:.x", "a tag is of"),
            ("ghcr.io/a:x/y", "a tag is of"),
            ("ghcr.io/a:1@sha256:12", "after `@` stands a digest"),
            ("ghcr.io:99999/a:1", "it begins with a registry"),
            ("u:p@ghcr.io/a:1", "after `@` stands a digest"),
            ("https://ghcr.io/a:1", "it begins with a registry"),
            ("-x.io/a:1", "it begins with a registry"),
            ("[::1/a:1", "it begins with a registry"),
        ] {
            let error = text.parse::<ImageReference>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.contains(text), "{error}");
        }
    }
}

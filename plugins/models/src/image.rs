//! Names of images, as registries understand them.

use std::fmt;

/// The digest of a manifest: `sha256:` and 64 hexadecimal digits in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest(String);

impl Digest {
    /// Reads a digest; blanks around it, which a program may have written after it,
    /// do not count.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let hex = text.strip_prefix("sha256:")?;
        is_sha256(hex).then(|| Self(text.to_owned()))
    }

    /// As much of it as the value of a label holds: 63 of the 64 digits.
    pub(crate) fn label(&self) -> &str {
        let hex = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        hex.get(..63).unwrap_or(hex)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether this is a SHA-256 in hexadecimal, in lower case.
pub(crate) fn is_sha256(hex: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hex.len() == 64 && hex.bytes().all(digit)
}

/// An image: where it is, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Registry and repository, as written.
    pub(crate) repository: String,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<Digest>,
}

impl Image {
    /// Reads `registry/repository:tag@digest`, of which only the repository must be
    /// there. The error says what is wrong, as part of a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, digest) = match text.split_once('@') {
            None => (text, None),
            Some((name, digest)) => {
                let read = Digest::parse(digest).filter(|read| read.as_str() == digest);
                let problem = || {
                    format!(
                        "`{digest}` is no digest; expected `sha256:` and 64 hexadecimal digits in lower case"
                    )
                };
                (name, Some(read.ok_or_else(problem)?))
            }
        };
        let last = name.rfind('/').map_or(0, |at| at + 1);
        let (repository, tag) = match name.get(last..).and_then(|part| part.split_once(':')) {
            // A port belongs to a registry, and that has a repository behind it.
            Some((_, tag)) => {
                let end = name.len() - tag.len() - 1;
                (name.get(..end).unwrap_or_default(), Some(tag))
            }
            None => (name, None),
        };
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(format!(
                "`{tag}` is no tag; expected at most 128 letters, digits, `_`, `.` and `-`, \
                 the first no `.` or `-`"
            ));
        }
        check_repository(repository)?;
        Ok(Self {
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Whether it is this very image, whatever tag either has.
    pub(crate) fn is_the_same_as(&self, other: &Self) -> bool {
        (&self.repository, &self.digest) == (&other.repository, &other.digest)
    }

    /// The same repository, by digest.
    pub(crate) fn at(&self, digest: Digest) -> Self {
        Self {
            repository: self.repository.clone(),
            tag: None,
            digest: Some(digest),
        }
    }

    /// The same repository, by tag.
    pub(crate) fn tagged(&self, tag: String) -> Self {
        Self {
            repository: self.repository.clone(),
            tag: Some(tag),
            digest: None,
        }
    }

    /// The registry, with its port; Docker Hub where none is written.
    pub(crate) fn registry(&self) -> &str {
        match self.repository.split_once('/') {
            Some((first, _)) if is_registry(first) => first,
            _ => "docker.io",
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{}", digest.as_str())?;
        }
        Ok(())
    }
}

/// Whether the first part of a name is a registry: by the rule of all clients.
fn is_registry(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost"
}

/// Whether a text is a host with or without a port.
pub(crate) fn is_host(text: &str) -> bool {
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

/// Whether a text can be the tag of an image.
pub(crate) fn is_tag(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let first = text.bytes().next();
    text.len() <= 128
        && text.bytes().all(inner)
        && first.is_some_and(|byte| byte != b'.' && byte != b'-')
}

fn check_repository(repository: &str) -> Result<(), String> {
    if repository.is_empty() {
        return Err("no repository; expected such as `registry.example.com/team/image`".to_owned());
    }
    let mut parts = repository.split('/').peekable();
    let first = parts.peek().copied().unwrap_or_default();
    if is_registry(first) && repository.contains('/') {
        if !is_host(first) {
            return Err(format!("`{first}` is no host of a registry"));
        }
        parts.next();
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        part.bytes()
            .all(|byte| inner(byte) || b"._-".contains(&byte))
            && part.bytes().next().is_some_and(inner)
            && part.bytes().next_back().is_some_and(inner)
    };
    match parts.find(|part| !is_part(part)) {
        Some(part) => Err(format!(
            "`{part}` is no part of a repository; expected lower-case letters, digits, `.`, `_` \
             and `-`, with a letter or digit at both ends"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn names_are_taken_apart_and_written_as_they_were() {
        let digest = format!("sha256:{HEX}");
        for (text, registry, repository, tag, has_digest) in [
            ("a".to_owned(), "docker.io", "a", None, false),
            (
                "team/a:1".to_owned(),
                "docker.io",
                "team/a",
                Some("1"),
                false,
            ),
            (
                "r.example.com/a/b:v1.2".to_owned(),
                "r.example.com",
                "r.example.com/a/b",
                Some("v1.2"),
                false,
            ),
            ("r:5000/a".to_owned(), "r:5000", "r:5000/a", None, false),
            (
                "localhost/a:x".to_owned(),
                "localhost",
                "localhost/a",
                Some("x"),
                false,
            ),
            (
                format!("r:5000/a:1@{digest}"),
                "r:5000",
                "r:5000/a",
                Some("1"),
                true,
            ),
            (format!("r.io/a@{digest}"), "r.io", "r.io/a", None, true),
        ] {
            let image = Image::parse(&text).unwrap();
            assert_eq!(image.registry(), registry, "{text}");
            assert_eq!(image.repository, repository, "{text}");
            assert_eq!(image.tag.as_deref(), tag, "{text}");
            assert_eq!(image.digest.is_some(), has_digest, "{text}");
            assert_eq!(image.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_name_says_why() {
        for (text, problem) in [
            ("", "no repository"),
            (":1", "no repository"),
            ("a b", "`a b` is no part of a repository"),
            ("A/b", "`A` is no part"),
            ("a//b", "`` is no part"),
            ("r_x:5000/a", "`r_x:5000` is no host"),
            ("r:99999/a", "`r:99999` is no host"),
            ("a:", "`` is no tag"),
            ("a:-x", "`-x` is no tag"),
            ("a@sha256:12", "`sha256:12` is no digest"),
            ("a@md5:12", "`md5:12` is no digest"),
            ("https://r.io/a", "no host"),
        ] {
            let error = Image::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_whole_digest_is_one() {
        let text = format!(" sha256:{HEX}\n");
        let digest = Digest::parse(&text).unwrap();
        assert_eq!(digest.as_str(), text.trim());
        assert_eq!(digest.label(), &HEX[..63]);
        for text in [
            "",
            "sha256:",
            HEX,
            &format!("sha256:{}", &HEX[1..]),
            &format!("sha256:{HEX}0"),
            &format!("sha256:{}", HEX.to_uppercase()),
            &format!("SHA256:{HEX}"),
            &format!("sha512:{HEX}"),
            &format!("sha256:{HEX} done"),
        ] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
    }
}

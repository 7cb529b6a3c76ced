//! Names of images: `nginx`, `registry.example.com:5000/team/app:1.2@sha256:…`.

/// When an image is pulled unless a client says so: one that moves, each time.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// The tag of an image: without another and without a digest it is `latest`. None for an
/// image that is told by a digest alone, and for what is no name of an image.
fn tag(image: &str) -> Option<&str> {
    const IDENTIFIER: usize = 64;
    if image.len() == IDENTIFIER && image.bytes().all(is_lower_hex) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (domain, rest) = split_domain(name);
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let is_named = is_path(path)
        && domain.is_none_or(|domain| is_domain(domain) || is_component(domain))
        && path.len() <= PATH_MAX;
    if !is_named || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

const PATH_MAX: usize = 255;

/// What comes before the first slash is a registry where it looks like one.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((domain, rest))
            if domain == "localhost"
                || domain.contains(['.', ':'])
                || domain.chars().any(char::is_uppercase) =>
        {
            (Some(domain), rest)
        }
        _ => (None, name),
    }
}

fn is_domain(domain: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    if let Some(address) = domain.strip_prefix('[') {
        return address.split_once(']').is_some_and(|(address, rest)| {
            let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            !address.is_empty()
                && address.bytes().all(is_address)
                && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
        });
    }
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    let is_label = |label: &str| {
        let is_edge = |c: char| c.is_ascii_alphanumeric();
        label.starts_with(is_edge)
            && label.ends_with(is_edge)
            && label.chars().all(|c| is_edge(c) || c == '-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_path(path: &str) -> bool {
    path.split('/').all(is_component)
}

/// Whether a text is made of words with separators between them: a point, one or two
/// underscores, or dashes.
fn is_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    text.starts_with(is_word) && text.ends_with(is_word) && text.split(is_word).all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    const LONGEST: usize = 128;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= LONGEST
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, encoded)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    encoded.len() == length && encoded.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_tags() {
        let digest = format!("sha256:{}", "e".repeat(64));
        for image in [
            "nginx",
            "nginx:latest",
            "host:5000/nginx",
            "host:5000/nginx:latest",
            "localhost/nginx",
            "Host/nginx",
            "[::1]:5000/nginx",
            "a.b/c__d/e---f",
            "a_b.c/nginx",
            &format!("nginx:latest@{digest}"),
        ] {
            assert_eq!(tag(image), Some("latest"), "{image}");
            assert_eq!(pull_policy(image), "Always");
        }
        assert_eq!(tag("nginx:1"), Some("1"));
        assert_eq!(tag(&format!("nginx:1.2_3@{digest}")), Some("1.2_3"));
        assert_eq!(tag(&format!("nginx@{digest}")), None);
    }

    #[test]
    fn what_is_no_image_is_not_latest() {
        let digest = "e".repeat(64);
        for image in [
            "",
            "Nginx",
            "nginx:",
            "nginx:latest:latest",
            "nginx:.latest",
            " nginx",
            "http://nginx",
            "a//b",
            "a.b/",
            "a-/b",
            "a..b",
            "host:/nginx",
            "-host:5/nginx",
            "nginx@sha256:0",
            "nginx:latest@md5:00000000000000000000000000000000",
            &format!("nginx:latest@sha256:{}", "E".repeat(64)),
            &digest,
            &format!("a/{}", "b".repeat(300)),
        ] {
            assert_eq!(tag(image), None, "{image}");
            assert_eq!(pull_policy(image), "IfNotPresent");
        }
    }
}

//! Paths of URLs, compared as a careful server reads them.

/// A path that a prefix cannot bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path has `.` or `..` as a part, a backslash, or an encoded slash, backslash or dot, which servers read in different ways; write it out"
)]
pub struct Ambiguous;

/// Whether a path lies below a prefix: `/v1` covers `/v1` and `/v1/a`, not `/v1a`;
/// `/v1/` covers what begins with it.
///
/// # Errors
///
/// When a server might understand the path otherwise than it is written. With the
/// prefix `/`, which covers everything, that does not matter.
pub fn is_below(path: &str, prefix: &str) -> Result<bool, Ambiguous> {
    if prefix.is_empty() || prefix == "/" {
        return Ok(true);
    }
    if is_ambiguous(path) {
        return Err(Ambiguous);
    }
    let Some(rest) = path.strip_prefix(prefix) else {
        return Ok(false);
    };
    Ok(rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// Whether servers might differ on what the path names.
pub fn is_ambiguous(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let encoded = ["%2e", "%2f", "%5c", "%00"];
    let dots = |part: &str| matches!(part, "." | "..") || part.starts_with("..;");
    path.contains('\\')
        || encoded.iter().any(|one| lower.contains(one))
        || path.split('/').any(dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_a_slash() {
        for (path, prefix, expected) in [
            ("/v1", "/v1", Ok(true)),
            ("/v1/a", "/v1", Ok(true)),
            ("/v1a", "/v1", Ok(false)),
            ("/v1/", "/v1/", Ok(true)),
            ("/v1", "/v1/", Ok(false)),
            ("/v2", "/v1", Ok(false)),
            ("/anything/../x", "/", Ok(true)),
            ("/v1/../admin", "/v1", Err(Ambiguous)),
            ("/v1/%2e%2E/admin", "/v1", Err(Ambiguous)),
            ("/v1%2f..%2fadmin", "/v1", Err(Ambiguous)),
            ("/v1\\..\\admin", "/v1", Err(Ambiguous)),
            ("/v1/..;/admin", "/v1", Err(Ambiguous)),
            ("/v1/.", "/v1", Err(Ambiguous)),
            ("/v1/a..b", "/v1", Ok(true)),
        ] {
            assert_eq!(is_below(path, prefix), expected, "{path} {prefix}");
        }
    }
}

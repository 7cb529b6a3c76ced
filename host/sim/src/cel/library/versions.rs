//! What is wrong with a version, in the words of the real server's library
//! (`blang/semver`).

use kube_cel::cel::{ResolveResult, Value};

use super::failed;
use crate::field::quoted;

/// What these functions say of texts that they cannot take; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let why = match (name, arguments) {
        ("semver", [Value::String(text)] | [Value::String(text), Value::Bool(false)]) => {
            refused(text)?
        }
        ("semver", [Value::String(text), Value::Bool(true)]) => match normal(text) {
            Ok(normal) => refused(&normal)?,
            Err(why) => why.to_owned(),
        },
        _ => return None,
    };
    Some(Err(failed(name, why)))
}

/// A version that is written in short, at full length.
fn normal(text: &str) -> Result<String, &'static str> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let bare = part.trim_start_matches('0');
            match bare.starts_with(|c: char| c.is_ascii_digit()) {
                _ if part.len() < 2 => part.to_owned(),
                true => bare.to_owned(),
                false => format!("0{bare}"),
            }
        })
        .collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data");
    }
    parts.resize(parts.len().max(3), "0".to_owned());
    Ok(parts.join("."))
}

/// Why a text is no version.
fn refused(text: &str) -> Option<String> {
    check(text).err()
}

fn check(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let &[major, minor, patch] = parts.as_slice() else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    check_number(major, "Major number", "major number")?;
    check_number(minor, "Minor number", "minor number")?;
    let (patch, build) = match patch.split_once('+') {
        Some((patch, build)) => (patch, Some(build)),
        None => (patch, None),
    };
    let (patch, before) = match patch.split_once('-') {
        Some((patch, before)) => (patch, Some(before)),
        None => (patch, None),
    };
    check_number(patch, "Patch number", "patch number")?;
    for part in before.into_iter().flat_map(|before| before.split('.')) {
        if part.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if part.bytes().all(|b| b.is_ascii_digit()) {
            check_number(part, "Numeric PreRelease version", "prerelease")?;
        }
        check_letters(part, "prerelease")?;
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        check_letters(part, "build meta data")?;
    }
    Ok(())
}

fn check_number(text: &str, subject: &str, place: &str) -> Result<(), String> {
    let shown = quoted(text);
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {place} {shown}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{subject} must not contain leading zeroes {shown}"));
    }
    match text.parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) if text.is_empty() => Err(format!(
            "strconv.ParseUint: parsing {shown}: invalid syntax"
        )),
        Err(_) => Err(format!(
            "strconv.ParseUint: parsing {shown}: value out of range"
        )),
    }
}

fn check_letters(text: &str, place: &str) -> Result<(), String> {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Ok(());
    }
    let shown = quoted(text);
    Err(format!("Invalid character(s) found in {place} {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_refused_as_by_the_library() {
        for (text, expected) in [
            ("a", "No Major.Minor.Patch elements found"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("", "Version string empty"),
            ("a.b.c", "Invalid character(s) found in major number \"a\""),
            (
                "v1.2.3",
                "Invalid character(s) found in major number \"v1\"",
            ),
            ("1.b.c", "Invalid character(s) found in minor number \"b\""),
            ("1.2.c", "Invalid character(s) found in patch number \"c\""),
            (
                "1.2.3.4",
                "Invalid character(s) found in patch number \"3.4\"",
            ),
            (
                "01.2.3",
                "Major number must not contain leading zeroes \"01\"",
            ),
            (
                "1.02.3",
                "Minor number must not contain leading zeroes \"02\"",
            ),
            (
                "1.2.03",
                "Patch number must not contain leading zeroes \"03\"",
            ),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-a..b", "Prerelease is empty"),
            ("1.2.3+", "Build meta data is empty"),
            (
                "1.2.3-01",
                "Numeric PreRelease version must not contain leading zeroes \"01\"",
            ),
            (
                "1.2.3-a_b",
                "Invalid character(s) found in prerelease \"a_b\"",
            ),
            (
                "1.2.3+a_b",
                "Invalid character(s) found in build meta data \"a_b\"",
            ),
            (
                "1.2.99999999999999999999",
                "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            assert_eq!(refused(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(refused("1.2.3-a.1+b.01"), None);
    }

    #[test]
    fn short_versions_are_completed() {
        for (text, expected) in [
            ("v1", Ok("1.0.0")),
            ("01.002", Ok("1.2.0")),
            ("00", Ok("0.0.0")),
            ("x", Ok("x.0.0")),
            ("1.2.03-a", Ok("1.2.3-a")),
            (
                "v1-a",
                Err("short version cannot contain PreRelease/Build meta data"),
            ),
        ] {
            assert_eq!(normal(text).as_deref().map_err(|why| *why), expected);
        }
    }
}

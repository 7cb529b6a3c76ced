//! Which revision a source has, where there is nothing to ask: the annotation says it,
//! or what the object asks for, made exact.

use serde_json::Value;

use super::super::script::Script;
use super::hash;
use crate::kinds::edit::{text, text_at};

/// What stands for the version of a chart of which nothing is said.
const FIRST: &str = "1.0.0";

/// The revision of a Git repository: `main@sha1:…`.
pub(super) fn git(object: &Value, script: &Script) -> String {
    let url = text_at(object, "/spec/url");
    if let Some(told) = &script.revision {
        return with_hash(told, "sha1:", 40, url);
    }
    let reference = |field: &str| text_at(object, &format!("/spec/ref/{field}"));
    let (name, commit) = (reference("name"), reference("commit"));
    let semver = reference("semver");
    let branch = match (reference("tag"), reference("branch")) {
        _ if !name.is_empty() => name.to_owned(),
        _ if !semver.is_empty() => version(semver),
        ("", "") if !commit.is_empty() => return format!("sha1:{commit}"),
        ("", "") => "master".to_owned(),
        ("", branch) => branch.to_owned(),
        (tag, _) => tag.to_owned(),
    };
    if commit.is_empty() {
        with_hash(&branch, "sha1:", 40, url)
    } else {
        format!("{branch}@sha1:{commit}")
    }
}

/// The revision of an OCI repository: `1.2.3@sha256:…`.
pub(super) fn oci(object: &Value, script: &Script) -> String {
    let url = text_at(object, "/spec/url");
    if let Some(told) = &script.revision {
        return with_hash(told, "sha256:", 64, url);
    }
    let reference = |field: &str| text_at(object, &format!("/spec/ref/{field}"));
    match (reference("digest"), reference("semver"), reference("tag")) {
        ("", "", "") => with_hash("latest", "sha256:", 64, url),
        ("", "", tag) => with_hash(tag, "sha256:", 64, url),
        ("", semver, _) => with_hash(&version(semver), "sha256:", 64, url),
        (digest, _, _) => digest.to_owned(),
    }
}

/// The revision of what is an index or a bucket: `sha256:…`.
pub(super) fn digest(object: &Value, script: &Script) -> String {
    let told = script.revision.as_deref().unwrap_or_default();
    if told.starts_with("sha256:") {
        return told.to_owned();
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let parts = ["url", "endpoint", "bucketName", "prefix"].map(|field| text(spec, field));
    format!("sha256:{}", hash(&format!("{} {told}", parts.join(" "))))
}

/// The version of a chart of which this is asked for.
pub(super) fn chart(wanted: &str, script: &Script) -> String {
    match &script.revision {
        Some(told) => told.clone(),
        None => version(wanted),
    }
}

/// The commit of a source of Argo CD: `targetRevision` where that is a commit or the
/// version of a chart.
pub(super) fn commit(source: &Value, script: &Script) -> String {
    let target = match (&script.revision, text(source, "targetRevision")) {
        (Some(told), _) => told.as_str(),
        (None, "") => "HEAD",
        (None, target) => target,
    };
    let is_commit = target.len() == 40 && target.chars().all(|c| c.is_ascii_hexdigit());
    if is_commit {
        return target.to_owned();
    }
    if !text(source, "chart").is_empty() {
        return version(target);
    }
    shortened(&hash(&format!("{} {target}", text(source, "repoURL"))), 40)
}

fn with_hash(name: &str, algorithm: &str, length: usize, salt: &str) -> String {
    if name.contains(':') {
        return name.to_owned();
    }
    let digits = shortened(&hash(&format!("{salt} {name}")), length);
    format!("{name}@{algorithm}{digits}")
}

fn shortened(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

/// The lowest version that a range of versions takes, as far as its first bound says:
/// what is no range is a version itself.
pub(super) fn version(range: &str) -> String {
    let bounds = range
        .split([',', ' ', '|'])
        .filter(|bound| !bound.is_empty());
    let lower = bounds
        .skip_while(|bound| bound.starts_with('<') || bound.starts_with('!'))
        .find(|bound| bound.contains(|c: char| c.is_ascii_digit()));
    let Some(bound) = lower else {
        return FIRST.to_owned();
    };
    let given = bound.trim_start_matches(|c: char| "=~^>v".contains(c));
    let (numbers, rest) = match given.find(['-', '+']) {
        Some(at) => given.split_at(at),
        None => (given, ""),
    };
    let number = |part: &str| part.parse::<u64>().ok();
    let parts: Vec<u64> = numbers.split('.').map_while(number).collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or(0);
    let above = bound.starts_with('>') && !bound.starts_with(">=");
    let patch = part(2) + u64::from(above);
    format!("{}.{}.{patch}{rest}", part(0), part(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::Actors;
    use super::*;

    #[test]
    fn ranges_are_met_by_their_lowest_version() {
        for (range, expected) in [
            ("*", "1.0.0"),
            ("", "1.0.0"),
            ("6.5.4", "6.5.4"),
            ("v1.2.3-rc.1", "1.2.3-rc.1"),
            (">=6.0.0 <7.0.0", "6.0.0"),
            (">6.0.0", "6.0.1"),
            ("^2.1", "2.1.0"),
            ("~1.4.x", "1.4.0"),
            ("6.x", "6.0.0"),
            ("<2.0.0 >=1.5.0", "1.5.0"),
            ("<2.0.0", "1.0.0"),
        ] {
            assert_eq!(version(range), expected, "{range}");
        }
    }

    #[test]
    fn revisions_are_exact_and_the_same_each_time() {
        let plain = Script::of(&Actors::default());
        let told = |revision: &str| Script {
            revision: Some(revision.to_owned()),
            ..plain.clone()
        };
        let git_of = |reference: Value, script: &Script| {
            let object = json!({"spec": {"url": "https://git.example.com/a", "ref": reference}});
            git(&object, script)
        };
        let main = git_of(json!({"branch": "main"}), &plain);
        assert!(main.starts_with("main@sha1:") && main.len() == 50, "{main}");
        assert_eq!(git_of(json!({"branch": "main"}), &plain), main);
        assert_eq!(
            git_of(json!({"branch": "main", "commit": "c0ffee"}), &plain),
            "main@sha1:c0ffee"
        );
        assert_eq!(git_of(json!({"commit": "c0ffee"}), &plain), "sha1:c0ffee");
        assert_ne!(git_of(json!({"branch": "main"}), &told("next")), main);
        assert_eq!(git_of(json!({}), &told("a@sha1:b")), "a@sha1:b");
        let charts = json!({"spec": {"url": "oci://example.com/web", "ref": {"semver": ">=2.1"}}});
        let found = oci(&charts, &plain);
        assert!(
            found.starts_with("2.1.0@sha256:") && found.len() == 77,
            "{found}"
        );
        let source = json!({"repoURL": "https://git.example.com/a", "targetRevision": "main"});
        assert_eq!(commit(&source, &plain).len(), 40);
        let chart =
            json!({"repoURL": "https://c.example.com", "chart": "web", "targetRevision": "1.x"});
        assert_eq!(commit(&chart, &plain), "1.0.0");
    }
}

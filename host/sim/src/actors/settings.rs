//! How actors are asked for.

use std::str::FromStr;
use std::time::Duration;

/// What the actors of a server are like. `Actors::default()` is one node, on
/// which pods are ready a second after they were scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actors {
    /// How many nodes there are, named `node-1` and so on.
    pub nodes: usize,
    /// How long pods, claims, load balancers and custom resources take to become
    /// ready, unless an annotation says otherwise.
    pub ready_after: Duration,
    /// How long pods run that are to complete, unless an annotation says otherwise.
    pub complete_after: Duration,
    /// The custom kinds that somebody acts for, as `Kind.group`.
    pub kinds: Vec<CustomKind>,
}

/// A custom kind, in whichever version. Read from texts such as
/// `HelmRelease.helm.toolkit.fluxcd.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomKind {
    kind: String,
    group: String,
}

/// A text that names no custom kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no custom kind; write the kind and its group, such as HelmRelease.helm.toolkit.fluxcd.io"
)]
pub struct NotAKind(String);

impl Default for Actors {
    fn default() -> Self {
        Actors {
            nodes: 1,
            ready_after: Duration::from_secs(1),
            complete_after: Duration::from_secs(1),
            kinds: Vec::new(),
        }
    }
}

impl FromStr for CustomKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<Self, NotAKind> {
        let not = || NotAKind(text.to_owned());
        let (kind, group) = text.split_once('.').ok_or_else(not)?;
        let is_kind = kind.chars().next().is_some_and(|c| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_kind || !crate::names::dns1123_subdomain(group).is_empty() {
            return Err(not());
        }
        Ok(CustomKind {
            kind: kind.to_owned(),
            group: group.to_owned(),
        })
    }
}

impl Actors {
    /// Whether somebody acts for all objects of a custom kind.
    pub(super) fn act_for(&self, kind: &str, group: &str) -> bool {
        self.kinds
            .iter()
            .any(|k| k.kind == kind && k.group == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_kinds_are_named_with_their_group() {
        let actors = Actors {
            kinds: vec!["Widget.example.com".parse().unwrap()],
            ..Actors::default()
        };
        assert!(actors.act_for("Widget", "example.com"));
        assert!(!actors.act_for("Widget", "example.org"));
        for text in [
            "",
            "Widget",
            "widget.example.com",
            "Widget.",
            "Widget.Example.com",
            "W/x.y",
        ] {
            let error = text.parse::<CustomKind>().unwrap_err().to_string();
            assert!(
                error.contains("names no custom kind; write the kind and its group"),
                "{error}"
            );
        }
    }
}

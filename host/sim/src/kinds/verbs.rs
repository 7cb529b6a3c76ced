//! What can be done with a resource, and with its subresources.

/// What can be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbs {
    /// Everything.
    All,
    /// Everything but deleting many at once.
    NoDeleteCollection,
    /// Only asking: the object is a question and its status the answer.
    Create,
    /// Only reading.
    Read,
}

impl Verbs {
    /// The verbs as discovery lists them.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Verbs::All => &[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ],
            Verbs::NoDeleteCollection => &[
                "create", "delete", "get", "list", "patch", "update", "watch",
            ],
            Verbs::Create => &["create"],
            Verbs::Read => &["get", "list"],
        }
    }
}

/// Where a kind's scale subresource finds its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// JSON pointer of the wanted replicas.
    pub spec_replicas: &'static str,
    /// JSON pointer of the present replicas.
    pub status_replicas: &'static str,
    /// JSON pointer of the selector: a `LabelSelector`, or a map of labels.
    pub selector: &'static str,
}

/// A part of an object, or an action on it, with a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subresource {
    /// The last step of the path.
    pub name: &'static str,
    /// Group, version and kind of its body where they are not the object's.
    pub body: Option<(&'static str, &'static str, &'static str)>,
    /// Its verbs, as discovery lists them.
    pub verbs: &'static [&'static str],
}

const READ_WRITE: &[&str] = &["get", "patch", "update"];

impl Subresource {
    pub(super) const STATUS: Subresource = Subresource::of("status", READ_WRITE);
    pub(super) const SCALE: Subresource =
        Subresource::of("scale", READ_WRITE).with_body("autoscaling", "v1", "Scale");

    pub(super) const fn of(name: &'static str, verbs: &'static [&'static str]) -> Self {
        Subresource {
            name,
            body: None,
            verbs,
        }
    }

    pub(super) const fn with_body(
        mut self,
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) -> Self {
        self.body = Some((group, version, kind));
        self
    }
}

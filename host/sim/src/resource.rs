//! A resource as it is served: what discovery says of it, where its objects are
//! stored, and which rules they follow.

use std::sync::{Arc, LazyLock, OnceLock};

use reeve_ssa::Schema;

use crate::kinds::{Kind, Subresource, Verbs};
use crate::registry::custom::{Custom, Storage};
use crate::selector::FieldLabels;
use crate::status::About;
use crate::store::TableName;

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The API group; empty for core.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// `apiVersion` of its objects.
    pub(crate) api_version: String,
    /// The name in paths.
    pub(crate) plural: String,
    /// The name of one.
    pub(crate) singular: String,
    /// `kind` of its objects.
    pub(crate) kind: String,
    /// `kind` of a list of them.
    pub(crate) list_kind: String,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// What kubectl also understands.
    pub(crate) short_names: Vec<String>,
    /// Groups of resources, such as `all`.
    pub(crate) categories: Vec<String>,
    /// What can be done with it.
    pub(crate) verbs: Verbs,
    /// Its subresources.
    pub(crate) subresources: Vec<Subresource>,
    /// The fields that it can be selected by.
    pub(crate) fields: Arc<FieldLabels>,
    /// Where its objects are stored.
    pub(crate) table: TableName,
    /// Whose rules its objects follow.
    pub(crate) nature: Nature,
    /// How the objects of a built-in kind merge, once that was looked up.
    pub(crate) merging: OnceLock<&'static Schema>,
}

/// Whose rules the objects of a resource follow.
#[derive(Debug)]
pub(crate) enum Nature {
    /// The table of built-in kinds.
    Builtin(&'static Kind),
    /// A version of a CustomResourceDefinition.
    Custom(Box<Custom>),
}

impl Resource {
    /// The object `name` of this resource, for a message.
    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            resource: &self.plural,
            name,
        }
    }

    /// The object `name` of this kind, for the messages that name the kind.
    pub(crate) fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            resource: &self.kind,
            name,
        }
    }

    /// The binding of the object `name`, for a message.
    pub(crate) fn about_binding<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            resource: "pods/binding",
            name,
        }
    }

    /// The key of an object in the table.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// Whether objects are kept; reviews and the like are answered and forgotten.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.verbs, Verbs::All | Verbs::NoDeleteCollection)
    }

    /// Whether a deletion is answered with the object that is gone.
    pub(crate) fn returns_deleted(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(kind) if kind.returns_deleted)
    }

    /// Whether only who has read an object may replace it.
    pub(crate) fn is_conditional(&self) -> bool {
        match &self.nature {
            Nature::Builtin(kind) => kind.conditional,
            Nature::Custom(_) => true,
        }
    }

    /// Whether replacing an object that is not there makes it.
    pub(crate) fn creates_on_update(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(kind) if kind.created_on_update)
    }

    /// What callers are told who use it nevertheless.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match &self.nature {
            Nature::Builtin(kind) => kind.deprecation,
            Nature::Custom(custom) => custom.deprecation.as_deref(),
        }
    }

    /// The subresource `name`.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// How its objects merge.
    pub(crate) fn schema(&self) -> &Schema {
        static UNTYPED: LazyLock<Schema> = LazyLock::new(Schema::untyped);
        match &self.nature {
            Nature::Builtin(kind) => self.merging.get_or_init(|| {
                reeve_ssa::builtin::schema(kind.group, kind.version, kind.kind).unwrap_or(&UNTYPED)
            }),
            Nature::Custom(custom) => &custom.merge,
        }
    }

    /// The version that its objects are stored in, where that is another one.
    pub(crate) fn storage(&self) -> Option<&Storage> {
        match &self.nature {
            Nature::Builtin(_) => None,
            Nature::Custom(custom) => custom.storage.as_deref(),
        }
    }

    /// Whether it is defined by a CustomResourceDefinition.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.nature, Nature::Custom(_))
    }
}

//! What is not done, and why.

use super::policy::Adoption;
use super::taken::Taken;
use crate::kind::ObjectReference;

/// Something that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The object carries this unit's label, but is another unit's: it was
    /// relabelled, or the labels of both have one hash.
    #[error(
        "{object} belongs to {owner}, though it carries this unit's label; it is left alone. \
         Give the label reeve.dev/unit back to it, or return another name"
    )]
    OtherUnit {
        /// The object.
        object: ObjectReference,
        /// What its annotation `reeve.dev/primary` says.
        owner: String,
    },
    /// Another unit, of this plugin or of another, had the object first.
    #[error(
        "{object} is wanted by plugin {plugin} for {primary}, and held by plugin {holder}{}, \
         which had it first; it is left alone. Return another name for each", for_primary(.holder_primary)
    )]
    Held {
        /// The object.
        object: ObjectReference,
        /// The plugin that does not get it.
        plugin: String,
        /// The primary for which it does not.
        primary: String,
        /// The plugin that has it.
        holder: String,
        /// The primary for which it has it; empty when that is not known.
        holder_primary: String,
    },
    /// Others apply fields that the unit wants to contribute.
    #[error(
        "{object}: plugin {plugin} for {primary} wants fields that others had first: {}; they \
         are left alone. Return other fields, or have the others give them up", listed(.fields)
    )]
    FieldsHeld {
        /// The object.
        object: ObjectReference,
        /// The plugin that does not get them.
        plugin: String,
        /// The primary for which it does not.
        primary: String,
        /// The fields, and who has them.
        fields: Vec<Taken>,
    },
    /// Somebody else made the object, and the policy does not give it away.
    #[error(
        "{object} exists already and is not this unit's: {}; it is left alone. {}, delete it, \
         or return another name", .signs.join(", "), advice(.plugin, *.adoption, *.unowned)
    )]
    Foreign {
        /// The object.
        object: ObjectReference,
        /// The plugin that wants it.
        plugin: String,
        /// The plugin's policy.
        adoption: Adoption,
        /// Whether nothing shows that it is anybody's.
        unowned: bool,
        /// What is known of its owners, in words.
        signs: Vec<String>,
    },
}

fn listed(fields: &[Taken]) -> String {
    let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
    fields.join(", ")
}

fn for_primary(primary: &str) -> String {
    if primary.is_empty() {
        String::new()
    } else {
        format!(" for {primary}")
    }
}

fn advice(plugin: &str, adoption: Adoption, unowned: bool) -> String {
    let enough = if unowned {
        "IfUnowned or Always"
    } else {
        "Always"
    };
    format!("Set spec.adoption of Plugin {plugin} to {enough} (it is {adoption}) to take it over")
}

//! ControllerRevisions: the versions of the templates of StatefulSets and
//! DaemonSets.

use serde_json::{Value, json};

use super::context::{Context, MANAGER};
use super::tables::REVISIONS;
use super::{hash, template as templates};
use crate::kinds::edit::{integer, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// The label of pods that names their revision.
pub(super) const LABEL: &str = "controller-revision-hash";
/// The label of revisions that has their hash.
const HASH: &str = "controller.kubernetes.io/hash";

/// The revisions of a workload.
#[derive(Debug)]
pub(super) struct Revisions {
    /// That of the present template.
    pub(super) new: Value,
    /// All, oldest first, the new one included.
    all: Vec<Value>,
}

impl Revisions {
    /// The revisions of `owner`, of which one is made when its template is new. A
    /// template that comes back gets its old revision, as the newest.
    pub(super) fn of(context: &Context<'_>, owner: &Value) -> Result<Self, ApiError> {
        let mut all = context.controlled(owner, REVISIONS);
        all.sort_by_key(number);
        let data = data(owner);
        let latest = all.last().map_or(0, number);
        let at = all.iter().position(|revision| revision["data"] == data);
        let new = match at {
            Some(at) if at + 1 == all.len() => all.remove(at),
            Some(at) => {
                let mut revision = all.remove(at);
                context.change(REVISIONS, &revision, MANAGER, |revision| {
                    revision["revision"] = json!(latest + 1);
                })?;
                revision["revision"] = json!(latest + 1);
                revision
            }
            None => make(context, owner, &data, latest + 1)?,
        };
        all.push(new.clone());
        Ok(Revisions { new, all })
    }

    /// The revision of this name.
    pub(super) fn named(&self, name: &str) -> Option<&Value> {
        self.all
            .iter()
            .find(|revision| meta::text(revision, "name") == name)
    }

    /// Deletes the oldest revisions that are not in use, beyond those to be kept.
    pub(super) fn clean_up(
        &self,
        context: &Context<'_>,
        owner: &Value,
        in_use: &dyn Fn(&Value) -> bool,
    ) -> Result<(), ApiError> {
        let limit = integer(&owner["spec"], "revisionHistoryLimit");
        let limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(10);
        let new = meta::text(&self.new, "name");
        let idle: Vec<&Value> = self
            .all
            .iter()
            .filter(|revision| meta::text(revision, "name") != new && !in_use(revision))
            .collect();
        let surplus = idle.len().saturating_sub(limit);
        for revision in idle.into_iter().take(surplus) {
            context.delete(REVISIONS, revision)?;
        }
        Ok(())
    }
}

fn number(revision: &Value) -> i64 {
    integer(revision, "revision").unwrap_or(0)
}

/// What of a workload makes a revision.
fn data(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template of a revision.
pub(super) fn template(revision: &Value) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    template
}

/// The hash of a revision, which is the value of the label where the kind labels
/// its pods with hashes.
pub(super) fn hash_of(revision: &Value) -> &str {
    let labels = revision.pointer("/metadata/labels");
    labels.map_or("", |labels| crate::kinds::edit::text(labels, HASH))
}

fn make(
    context: &Context<'_>,
    owner: &Value,
    data: &Value,
    number: i64,
) -> Result<Value, ApiError> {
    let collisions = integer(&owner["status"], "collisionCount").filter(|count| *count > 0);
    let hash = hash::of(data, collisions);
    let mut labels = owner
        .pointer("/spec/template/metadata/labels")
        .cloned()
        .unwrap_or_else(|| json!({}));
    labels[HASH] = json!(hash);
    let revision = json!({
        "metadata": {
            "name": format!("{}-{hash}", text_at(owner, "/metadata/name")),
            "labels": labels,
            "ownerReferences": [templates::controller_reference(owner)],
        },
        "data": data,
        "revision": number,
    });
    context.create(REVISIONS, meta::text(owner, "namespace"), MANAGER, revision)
}

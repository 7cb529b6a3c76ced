//! Names of hooks that were returned without one.
//!
//! A hook is made anew for each sync, and its author may leave naming it to
//! whoever runs it. An object that is no hook needs a name of its own: it is the
//! same from one answer to the next.

use crate::digest::Digest;
use crate::waves::{Options, Role, hook_name};
use serde_json::{Value, json};
use std::cell::OnceCell;

/// Gives names within one answer.
pub(super) struct HookNames<'a> {
    objects: &'a [Vec<u8>],
    revision: OnceCell<String>,
}

impl<'a> HookNames<'a> {
    /// For an answer with these objects, as they were written.
    pub(super) fn of(objects: &'a [Vec<u8>]) -> Self {
        Self {
            objects,
            revision: OnceCell::new(),
        }
    }

    /// Names a hook that has no name, and says whether it did. Everything else stays as it is.
    pub(super) fn name(&self, body: &mut Value) -> bool {
        let named = match body.pointer("/metadata/name") {
            None | Some(Value::Null) => false,
            Some(name) => name != "",
        };
        if named {
            return false;
        }
        let Role::Hook(hook) = Options::of(body).0.role else {
            return false;
        };
        let Some(phase) = hook.phases.first() else {
            return false;
        };
        let name = hook_name(body, *phase, self.revision());
        let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else {
            return false;
        };
        metadata.remove("generateName");
        metadata.insert("name".to_owned(), json!(name));
        true
    }

    /// What a sync of this answer is one of, in whatever order the objects stand.
    fn revision(&self) -> &str {
        self.revision.get_or_init(|| {
            let mut objects: Vec<&[u8]> = self.objects.iter().map(Vec::as_slice).collect();
            objects.sort_unstable();
            Digest::of_parts(objects).to_string()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(objects: &[Value]) -> Vec<Value> {
        let written: Vec<_> = objects.iter().map(|o| o.to_string().into_bytes()).collect();
        let names = HookNames::of(&written);
        let mut objects = objects.to_vec();
        for object in &mut objects {
            names.name(object);
        }
        let name = |object: &Value| object["metadata"]["name"].clone();
        objects.iter().map(name).collect()
    }

    fn hook(more: Value) -> Value {
        let mut metadata = json!({"annotations": {"helm.sh/hook": "pre-install"}});
        if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
            metadata.extend(more);
        }
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata})
    }

    #[test]
    fn a_hook_is_named_by_the_answer_it_is_in() {
        let one = hook(json!({"generateName": "migrate-"}));
        let other = json!({"kind": "ConfigMap", "metadata": {"name": "a"}});
        let alone = named(std::slice::from_ref(&one));
        let both = named(&[one.clone(), other.clone()]);
        assert!(alone[0].as_str().unwrap().starts_with("migrate-"));
        assert_ne!(alone[0], both[0], "another sync, another hook");
        assert_eq!(both[1], "a");
        let turned = named(&[other, one]);
        assert_eq!(both[0], turned[1], "order means nothing");
    }

    #[test]
    fn only_hooks_without_a_name_are_named() {
        for (object, name) in [
            (hook(json!({"name": "mine"})), json!("mine")),
            (hook(json!({"name": 3})), json!(3)),
            (json!({"kind": "Job", "metadata": {}}), json!(null)),
            (json!({"kind": "Job"}), json!(null)),
            (json!([]), json!(null)),
        ] {
            assert_eq!(named(&[object]), [name]);
        }
        for metadata in [json!({}), json!({"name": ""}), json!({"name": null})] {
            let name = named(&[hook(metadata)]);
            assert!(name[0].as_str().unwrap().starts_with("job-"), "{name:?}");
        }
    }
}

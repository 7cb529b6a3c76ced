//! Who may enter the namespace of a Profile.

use std::collections::BTreeSet;

use reeve_sdk::prelude::*;

/// Whose Profile it is.
#[input]
pub(crate) struct Owner {
    kind: Option<String>,
    name: Option<String>,
}

/// The part of a RoleBinding that is read.
#[input]
pub(crate) struct Binding {
    metadata: Metadata,
    #[serde(default)]
    subjects: Vec<Subject>,
}

#[input]
struct Subject {
    kind: String,
    api_group: Option<String>,
    name: String,
}

impl Binding {
    /// Whether the access management of Kubeflow made it for an editor.
    fn is_for_editors(&self) -> bool {
        let role = self.metadata.annotations.get("role");
        role.is_some_and(|role| role == "edit")
    }
}

impl Subject {
    fn is_user(&self) -> bool {
        self.kind == "User" && self.api_group.as_deref() == Some("rbac.authorization.k8s.io")
    }
}

/// The owner, then the editors: sorted, and nobody twice. Who cannot be let in
/// alone is left out and told of.
pub(crate) fn access(
    owner: Option<&Owner>,
    bindings: &[Binding],
    problems: &mut Problems,
) -> Vec<String> {
    let owner = problems.take(check_owner(owner));
    let mut editors = BTreeSet::new();
    for binding in bindings.iter().filter(|binding| binding.is_for_editors()) {
        for subject in binding.subjects.iter().filter(|subject| subject.is_user()) {
            match check_user(&subject.name) {
                Ok(()) => {
                    editors.insert(subject.name.as_str());
                }
                Err(problem) => problems.add(format_args!(
                    "RoleBinding {}: the user {:?} in its subjects {problem}; it is left out, \
                     change or remove it",
                    binding.metadata.name, subject.name
                )),
            }
        }
    }
    let mut users: Vec<String> = owner.map(str::to_owned).into_iter().collect();
    users.extend(
        editors
            .into_iter()
            .filter(|editor| owner != Some(editor))
            .map(str::to_owned),
    );
    users
}

/// The user who owns a Profile.
fn check_owner(owner: Option<&Owner>) -> Result<&str, String> {
    let kind = owner.and_then(|owner| owner.kind.as_deref());
    let name = owner.and_then(|owner| owner.name.as_deref());
    match (kind.unwrap_or("User"), name.unwrap_or_default()) {
        ("User", name) => check_user(name).map(|()| name).map_err(|problem| {
            format!(
                "spec.owner.name {name:?} {problem}, so the owner is not let in; set it to the \
                 name of the user who owns the Profile"
            )
        }),
        (kind, _) => Err(format!(
            "spec.owner.kind is {kind}, but only a User can be told by the header of a request, \
             so the owner is not let in; set it to User"
        )),
    }
}

/// Istio takes a `*` at an end of a value as a pattern, and an empty value as a
/// header that is not there: neither names one user.
fn check_user(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("is empty")
    } else if name.starts_with('*') || name.ends_with('*') {
        Err("would let in everybody whose name fits the pattern")
    } else {
        Ok(())
    }
}

//! What expressions ask about rights: `authorizer`, as in the real server's library
//! (`k8s.io/apiserver/pkg/cel/library/authz.go`).

use std::fmt;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::Opaque;

use crate::authz::{Access, Attributes};
use crate::identity::Identity;
use crate::names;

/// The variable that asks about anything.
pub(super) const AUTHORIZER: &str = "authorizer";
/// What asks about what the request itself is about: a variable with a dot in its name.
pub(super) const OF_REQUEST: &str = "authorizer.requestResource";

/// Who knows what users may do.
pub(crate) trait Rights: Send + Sync + fmt::Debug {
    /// Whether a user may do something with a resource, and why.
    fn of_resource(&self, user: &Identity, asked: &Attributes<'_>) -> Access;
    /// Whether a user may do something with a path that is no resource, and why.
    fn of_path(&self, user: &Identity, verb: &str, path: &str) -> Access;
}

/// A user about whom is asked.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) rights: Arc<dyn Rights>,
    pub(crate) user: Identity,
}

impl Eq for Asking {}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rights, &other.rights) && self.user == other.user
    }
}

/// A resource that is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A question as far as it has come, or the answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    Authorizer(Asking),
    Path(Asking, String),
    Group(Asking, String),
    Resource(Asking, Target),
    Decision(Access),
}

impl Opaque for Question {
    fn runtime_type_name(&self) -> &str {
        match self {
            Question::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Question::Path(..) => "kubernetes.authorization.PathCheck",
            Question::Group(..) => "kubernetes.authorization.GroupCheck",
            Question::Resource(..) => "kubernetes.authorization.ResourceCheck",
            Question::Decision(_) => "kubernetes.authorization.Decision",
        }
    }
}

impl Question {
    fn value(self) -> Value {
        Value::Opaque(Arc::new(self))
    }
}

/// The value of `authorizer`, and that of `authorizer.requestResource`.
pub(super) fn variables(asking: &Asking, about: Target) -> [(&'static str, Value); 2] {
    [
        (AUTHORIZER, Question::Authorizer(asking.clone()).value()),
        (
            OF_REQUEST,
            Question::Resource(asking.clone(), about).value(),
        ),
    ]
}

/// What comes of a call, or why nothing does; none where it is no question of these.
pub(super) fn called(name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
    let [Value::Opaque(of), given @ ..] = arguments else {
        return None;
    };
    let question = of.downcast_ref::<Question>()?;
    let mut texts = given.iter().map(|value| match value {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    });
    let made = match (question, name, texts.next(), texts.next()) {
        (Question::Decision(access), _, None, None) => return decided(access, name).map(Ok),
        (Question::Authorizer(asking), "path", Some(Some(path)), None) => match path.trim() {
            "" => return Some(Err("path must not be empty".to_owned())),
            _ => Question::Path(asking.clone(), path.to_owned()),
        },
        (Question::Authorizer(asking), "group", Some(Some(group)), None) => {
            Question::Group(asking.clone(), group.to_owned())
        }
        (
            Question::Authorizer(asking),
            "serviceAccount",
            Some(Some(namespace)),
            Some(Some(account)),
        ) => {
            if !names::dns1123_subdomain(account).is_empty() {
                return Some(Err("Invalid service account name".to_owned()));
            }
            if !names::dns1123_label(namespace).is_empty() {
                return Some(Err("Invalid service account namespace".to_owned()));
            }
            Question::Authorizer(Asking {
                user: Identity::service_account(namespace, account),
                ..asking.clone()
            })
        }
        (Question::Group(asking, group), "resource", Some(Some(resource)), None) => {
            if resource.trim().is_empty() {
                return Some(Err("resource must not be empty".to_owned()));
            }
            let target = Target {
                group: group.clone(),
                resource: resource.to_owned(),
                ..Target::default()
            };
            Question::Resource(asking.clone(), target)
        }
        (Question::Path(asking, path), "check", Some(Some(verb)), None) => {
            Question::Decision(asking.rights.of_path(&asking.user, verb, path))
        }
        (Question::Resource(asking, target), name, Some(Some(text)), None) => {
            let mut target = target.clone();
            match name {
                "subresource" => text.clone_into(&mut target.subresource),
                "namespace" => text.clone_into(&mut target.namespace),
                "name" => text.clone_into(&mut target.name),
                // No role is limited to what a selector selects.
                "fieldSelector" | "labelSelector" => {}
                "check" => return Some(Ok(checked(asking, &target, text).value())),
                _ => return None,
            }
            Question::Resource(asking.clone(), target)
        }
        _ => return None,
    };
    Some(Ok(made.value()))
}

fn checked(asking: &Asking, target: &Target, verb: &str) -> Question {
    let asked = Attributes {
        verb,
        group: &target.group,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
    };
    Question::Decision(asking.rights.of_resource(&asking.user, &asked))
}

/// What a decision says of itself. None goes wrong here.
fn decided(access: &Access, name: &str) -> Option<Value> {
    let (Access::Allowed(reason) | Access::Denied(reason)) = access;
    Some(match name {
        "allowed" => Value::Bool(access.is_allowed()),
        "reason" => Value::String(Arc::new(reason.clone())),
        "errored" => Value::Bool(false),
        "error" => Value::String(Arc::new(String::new())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::{Outcome, Scope};

    /// Where users may do what they are called.
    #[derive(Debug)]
    struct ByName;

    impl Rights for ByName {
        fn of_resource(&self, user: &Identity, asked: &Attributes<'_>) -> Access {
            let Attributes {
                verb,
                group,
                resource,
                subresource,
                namespace,
                name,
            } = asked;
            let wanted = format!("{verb} {group}/{resource}/{subresource} {namespace}/{name}");
            match user.name == wanted {
                true => Access::Allowed(wanted),
                false => Access::Denied(wanted),
            }
        }

        fn of_path(&self, user: &Identity, verb: &str, path: &str) -> Access {
            match user.name == format!("{verb} {path}") {
                true => Access::Allowed(String::new()),
                false => Access::Denied(String::new()),
            }
        }
    }

    #[track_caller]
    fn check(user: &str, expression: &str, expected: Result<Outcome, &str>) {
        let user = Identity::user(user.to_owned(), Vec::<String>::new());
        let rights: Arc<dyn Rights> = Arc::new(ByName);
        let object = json!({"verb": "get"});
        let mut scope = Scope::new([("object", &object)]);
        let about = Target {
            resource: "pods".to_owned(),
            namespace: "n".to_owned(),
            ..Target::default()
        };
        scope.ask(&Asking { rights, user }, about);
        let found = scope.evaluate(expression);
        assert_eq!(found, expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn rights_are_asked_for() {
        let yes = || Ok(Outcome::Bool(true));
        let no = || Ok(Outcome::Bool(false));
        let whole = "authorizer.group('g').resource('r').subresource('s').namespace('n').name('x')";
        let all = format!("{whole}.check(object.verb).allowed()");
        check("get g/r/s n/x", &all, yes());
        check("list g/r/s n/x", &all, no());
        let reason = format!("{whole}.check('get').reason()");
        check(
            "ann",
            &reason,
            Ok(Outcome::Text("get g/r/s n/x".to_owned())),
        );
        let own = "authorizer.requestResource.check('create').allowed()";
        check("create /pods/ n/", own, yes());
        check(
            "get /healthz",
            "authorizer.path('/healthz').check('get').allowed()",
            yes(),
        );
        let account = "authorizer.serviceAccount('n', 'a').path('/x').check('get').reason() == ''";
        check("ann", account, yes());
        for (wrong, why) in [
            (
                "authorizer.path(' ').check('get').allowed()",
                "path must not be empty",
            ),
            (
                "authorizer.group('').resource('').check('get').allowed()",
                "resource must not be empty",
            ),
            (
                "authorizer.serviceAccount('n', 'A_').path('/').check('get').allowed()",
                "Invalid service account name",
            ),
        ] {
            check("ann", wrong, Err(why));
        }
        // It costs so much that it is done twice at most.
        let one = "authorizer.path('/').check('get').allowed()";
        check("ann", &format!("{one} || {one}"), no());
        let thrice = format!("{one} || {one} || {one}");
        check(
            "ann",
            &thrice,
            Err("operation cancelled: actual cost limit exceeded"),
        );
    }
}

//! The expressions of webhooks and admission policies: what they know, and what must
//! come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::Object;
use super::{Environment, Type, made};

/// What an expression knows besides the request and its objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// The parameters of a policy.
    pub(crate) has_params: bool,
    /// What can be asked about rights.
    pub(crate) has_authorizer: bool,
}

/// What must come out of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expects {
    Bool,
    Text,
    TextOrNull,
    /// What is applied to an object.
    Object,
    /// Operations on an object.
    Patch,
    Anything,
}

/// What an expression may refer to.
pub(crate) fn environment(known: Known) -> Environment {
    let mut environment = Environment::default()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("request", request())
        .with("namespaceObject", namespace());
    if known.has_params {
        environment = environment.with("params", Type::Dyn);
    }
    if known.has_authorizer {
        let authorizer = Type::Opaque("kubernetes.authorization.Authorizer");
        let check = Type::Opaque("kubernetes.authorization.ResourceCheck");
        environment = environment
            .with("authorizer", authorizer)
            .with("authorizer.requestResource", check);
    }
    environment
}

/// The type of an expression.
///
/// # Errors
///
/// What is wrong with it, or that it is of another type than is expected.
pub(crate) fn compile(
    text: &str,
    environment: &Environment,
    expects: Expects,
) -> Result<Type, String> {
    let checked = super::parse(text).and_then(|parsed| super::check(&parsed, text, environment));
    let ty = checked.map_err(|why| format!("compilation failed: {why}"))?;
    let wanted = match (expects, &ty) {
        (Expects::Anything, _)
        | (Expects::Bool, Type::Bool)
        | (Expects::Text | Expects::TextOrNull, Type::Text)
        | (Expects::TextOrNull, Type::Null)
        | (Expects::Object, Type::Opaque(made::OBJECT)) => return Ok(ty),
        (Expects::Patch, Type::List(item)) if is_patch(item) => return Ok(ty),
        (Expects::Bool, _) => "bool",
        (Expects::Text, _) => "string",
        (Expects::TextOrNull, _) => "one of [string null_type]",
        (Expects::Object, _) => "Object",
        (Expects::Patch, _) => "list(JSONPatch)",
    };
    // Values call some types otherwise than messages about parts do.
    let found = match ty {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        other => other.to_string(),
    };
    Err(format!("must evaluate to {wanted} but got {found}"))
}

fn is_patch(item: &Type) -> bool {
    matches!(item, Type::Opaque(made::PATCH) | Type::Dyn)
}

/// The variables of a policy.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Type>);

impl Variables {
    /// Adds a variable, which knows those before it.
    ///
    /// # Errors
    ///
    /// What is wrong with its expression; it is then of any type.
    pub(crate) fn add(&mut self, name: &str, text: &str, known: Known) -> Result<(), String> {
        let compiled = compile(text, &self.environment(known), Expects::Anything);
        let (ty, outcome) = match compiled {
            Ok(ty) => (kept(&ty), Ok(())),
            Err(why) => (Type::Dyn, Err(why)),
        };
        self.0.insert(name.to_owned(), ty);
        outcome
    }

    /// What an expression may refer to besides: nothing more without variables.
    pub(crate) fn environment(&self, known: Known) -> Environment {
        let environment = environment(known);
        if self.0.is_empty() {
            return environment;
        }
        let variables = Object {
            name: "kubernetes.variables".to_owned(),
            fields: self.0.clone(),
        };
        environment.with("variables", Type::Object(Arc::new(variables)))
    }
}

/// What is known of the type of a variable where it is used.
fn kept(ty: &Type) -> Type {
    match ty {
        Type::Object(_) | Type::Opaque(_) | Type::Optional(_) | Type::Meta(_) => Type::Dyn,
        other => other.with_parts(kept),
    }
}

/// Whether a name is one that expressions can write.
pub(crate) fn is_identifier(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && !super::RESERVED.contains(&name)
}

fn request() -> Type {
    let texts = |name: &str, fields: &[&'static str]| {
        Type::object(name, fields.iter().map(|field| (*field, Type::Text)))
    };
    let kind = texts("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = texts(
        "kubernetes.GroupVersionResource",
        &["group", "version", "resource"],
    );
    let user = Type::object(
        "kubernetes.UserInfo",
        [
            ("username", Type::Text),
            ("uid", Type::Text),
            ("groups", Type::list(Type::Text)),
            ("extra", Type::map(Type::list(Type::Text))),
        ],
    );
    Type::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::Text),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::Text),
            ("name", Type::Text),
            ("namespace", Type::Text),
            ("operation", Type::Text),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace() -> Type {
    let texts = || Type::map(Type::Text);
    let metadata = Type::object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::Text),
            ("generateName", Type::Text),
            ("namespace", Type::Text),
            ("labels", texts()),
            ("annotations", texts()),
            ("UID", Type::Text),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::Text),
            ("finalizers", Type::list(Type::Text)),
        ],
    );
    let spec = Type::object(
        "kubernetes.NamespaceSpec",
        [("finalizers", Type::list(Type::Text))],
    );
    let condition = Type::object(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::Text),
            ("type", Type::Text),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::Text),
            ("reason", Type::Text),
        ],
    );
    let status = Type::object(
        "kubernetes.NamespaceStatus",
        [("conditions", Type::list(condition)), ("phase", Type::Text)],
    );
    Type::object(
        "kubernetes.Namespace",
        [("metadata", metadata), ("spec", spec), ("status", status)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expects: Expects, expected: Result<&str, &str>) {
        let known = Known {
            has_params: false,
            has_authorizer: true,
        };
        let mut variables = Variables::default();
        variables
            .add("size", "size(object.spec.items)", known)
            .unwrap();
        variables.add("twice", "variables.size * 2", known).unwrap();
        let compiled = compile(text, &variables.environment(known), expects);
        let compiled = compiled.map(|ty| ty.to_string());
        match expected {
            Ok(ty) => assert_eq!(compiled.as_deref(), Ok(ty), "{text}"),
            Err(why) => {
                let refused = compiled.unwrap_err();
                assert!(refused.starts_with(why), "{text}: {refused}");
            }
        }
    }

    #[test]
    fn expressions_know_the_request_and_its_objects() {
        let bool = Expects::Bool;
        check("object.spec.replicas <= 5", bool, Ok("bool"));
        check("variables.twice > 4 && request.dryRun", bool, Ok("bool"));
        check(
            "namespaceObject.metadata.labels['a'] == 'b'",
            bool,
            Ok("bool"),
        );
        check(
            "authorizer.group('').resource('pods').check('get').allowed()",
            bool,
            Ok("bool"),
        );
        check("'a' + request.name", Expects::Text, Ok("string"));
        check("null", Expects::TextOrNull, Ok("null"));
        check(
            "object.spec.replicas",
            bool,
            Err("must evaluate to bool but got dyn"),
        );
        check(
            "1",
            Expects::TextOrNull,
            Err("must evaluate to one of [string null_type] but got int"),
        );
        check(
            "request.nam == 'a'",
            bool,
            Err("compilation failed: ERROR: <input>:1:8: undefined field 'nam'"),
        );
        check(
            "params.x == 1",
            bool,
            Err("compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'"),
        );
        check(
            "variables.no",
            bool,
            Err("compilation failed: ERROR: <input>:1:10: undefined field 'no'"),
        );
    }

    #[test]
    fn names_of_variables_are_identifiers() {
        for (name, expected) in [
            ("a_1", true),
            ("_", true),
            ("1a", false),
            ("in", false),
            ("a-b", false),
            ("", false),
        ] {
            assert_eq!(is_identifier(name), expected, "{name}");
        }
    }
}

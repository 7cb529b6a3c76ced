//! The policy that is narrower than RBAC can be.
//!
//! RBAC names namespaces that exist or may exist; it cannot say "where a primary
//! is" or "all but this one". A ValidatingAdmissionPolicy can, for the requests of
//! one account. It is the second layer behind the host's own check of a manifest,
//! and holds where that one fails.

use super::Grantee;
use super::rules::Served;
use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope, secret_kind};
use crate::ownership::{GENERATED_BY_ANNOTATION, PLUGIN_LABEL, plugin_label};
use crate::selector::Selector;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How the policy treats one resource that RBAC lets the account write everywhere.
#[derive(Default)]
struct Place {
    /// Whether the manifest says: everywhere.
    everywhere: bool,
    /// Namespaces that the manifest names.
    named: Vec<String>,
}

/// What the policy has to say of Secrets, where it says anything of them.
struct Secrets {
    /// Name of the resource.
    plural: String,
    /// Whether the plugin has some generated.
    generated: bool,
}

/// The ValidatingAdmissionPolicy and its binding for what a manifest writes in
/// namespaces that RBAC cannot name, generated Secrets included; none when RBAC can name
/// them all.
///
/// The policy concerns requests of the plugin's account alone. It refuses what the
/// account writes in the agent's namespace; what it writes in namespaces whose
/// names begin with `kube-` (which Kubernetes keeps for itself) or that `tenants`
/// does not select, unless the manifest names them or asks for all; objects made
/// without the plugin's label; changes to another plugin's objects; and giving
/// objects another plugin's label. A namespace that is selected and has no primary
/// remains the host's to refuse.
///
/// Generated Secrets have no label, since what has one is the plugin's to sweep and
/// prune. They have an annotation with its name, and that stands for the label: only of a
/// plugin that has Secrets generated, and of Secrets alone.
///
/// Nothing refuses a `get`, which is not admitted but authorized.
///
/// It needs Kubernetes 1.30 or newer, where the kind is stable.
pub fn admission_policy(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
    tenants: &Selector,
) -> Vec<Value> {
    let mut places: BTreeMap<(String, String), Place> = BTreeMap::new();
    for (kind, scope) in manifest.written() {
        let resource = served(kind);
        if !resource.namespaced {
            continue;
        }
        let key = (kind.group.clone(), resource.plural);
        let place = places.entry(key).or_default();
        match scope {
            Scope::Cluster => place.everywhere = true,
            Scope::Namespaces(names) => place.named.extend(names.iter().cloned()),
            Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary => {}
        }
    }
    // Where every namespace is named, RBAC is as narrow as the manifest.
    places.retain(|(group, plural), _| {
        manifest.written().any(|(kind, scope)| {
            !matches!(scope, Scope::Namespaces(_))
                && kind.group == *group
                && served(kind).plural == *plural
        })
    });
    if places.is_empty() {
        return Vec::new();
    }
    let rules: Vec<Value> = places
        .keys()
        .map(|(group, plural)| {
            json!({
                "apiGroups": [group],
                // A restriction is to miss nothing: a version that the cluster
                // serves later is restricted too.
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": [plural],
                "scope": "Namespaced",
            })
        })
        .collect();
    let mut validations = of_places(grantee, &places, tenants);
    let secret = secret_kind();
    let secrets = (secret.group.clone(), served(secret).plural);
    let secrets = Some(secrets).filter(|secrets| places.contains_key(secrets));
    let secrets = secrets.map(|(_, plural)| Secrets {
        plural,
        generated: manifest.generates_secrets(),
    });
    validations.extend(of_marks(grantee, secrets.as_ref()));
    policy_and_binding(grantee, &grantee.role_name(), &rules, &validations)
}

/// A policy for the requests of the plugin's account, and its binding.
pub(super) fn policy_and_binding(
    grantee: &Grantee<'_>,
    name: &str,
    rules: &[Value],
    validations: &[Value],
) -> Vec<Value> {
    let api_version = "admissionregistration.k8s.io/v1";
    let metadata = json!({"name": name, "labels": grantee.labels()});
    vec![
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{
                    "name": "account",
                    "expression": format!("request.userInfo.username == {}", quoted(&grantee.user())),
                }],
                "validations": validations,
            },
        }),
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

/// An expression that has to hold, and what is said where it does not.
fn validation(grantee: &Grantee<'_>, expression: &str, message: &str) -> Value {
    json!({
        "expression": expression,
        "message": format!("plugin {}: {message}", grantee.plugin),
        "reason": "Forbidden",
    })
}

/// Where the account may write.
fn of_places(
    grantee: &Grantee<'_>,
    places: &BTreeMap<(String, String), Place>,
    tenants: &Selector,
) -> Vec<Value> {
    let validation =
        |expression: String, message: String| validation(grantee, &expression, &message);
    let agent = grantee.namespace;
    let mut validations = vec![validation(
        format!("request.namespace != {}", quoted(agent)),
        format!(
            "its account may not write in namespace {agent}, which decides what the agent runs"
        ),
    )];
    for ((group, plural), place) in places {
        if place.everywhere {
            continue;
        }
        let mut allowed = String::from("!request.namespace.startsWith('kube-')");
        if !tenants.is_empty() {
            allowed.push_str(" && ");
            allowed.push_str(&tenants.to_cel("namespaceObject.metadata.labels"));
        }
        if !place.named.is_empty() {
            let named: Vec<String> = place.named.iter().map(|name| quoted(name)).collect();
            allowed = format!("request.namespace in [{}] || ({allowed})", named.join(", "));
        }
        let selected = if tenants.is_empty() {
            "no namespace whose name begins with `kube-`".to_owned()
        } else {
            format!(
                "only namespaces that `{tenants}` selects, and none whose name begins with `kube-`"
            )
        };
        validations.push(validation(
            format!(
                "request.resource.group != {} || request.resource.resource != {} || ({allowed})",
                quoted(group),
                quoted(plural)
            ),
            format!("its account may write {plural} in {selected}"),
        ));
    }
    validations
}

/// What the account may make, and what of others it may not change, by their marks.
fn of_marks(grantee: &Grantee<'_>, secrets: Option<&Secrets>) -> Vec<Value> {
    let validation =
        |expression: String, message: String| validation(grantee, &expression, &message);
    let label = Mark {
        field: "labels",
        key: quoted(PLUGIN_LABEL),
        ours: quoted(&plugin_label(grantee.plugin)),
    };
    let by = Mark {
        field: "annotations",
        key: quoted(GENERATED_BY_ANNOTATION),
        ours: quoted(grantee.plugin),
    };
    let mut made = format!(
        "request.operation != 'CREATE' || ({})",
        label.is_ours("object")
    );
    let mut told = format!("what its account makes carries the label {PLUGIN_LABEL} with its name");
    if let Some(Secrets { plural, .. }) = secrets.filter(|secrets| secrets.generated) {
        made.push_str(&format!(
            " || (request.resource.group == '' && request.resource.resource == {} && {})",
            quoted(plural),
            by.is_ours("object")
        ));
        told.push_str(&format!(
            ", or, of a generated Secret, the annotation {GENERATED_BY_ANNOTATION}"
        ));
    }
    let mut validations = vec![
        validation(made, told),
        validation(
            format!(
                "request.operation == 'CREATE' || {}",
                label.is_no_others("oldObject")
            ),
            "its account may not change or delete another plugin's objects".to_owned(),
        ),
        // A foreign object may be contributed to, and is not thereby another plugin's.
        validation(
            format!(
                "request.operation != 'UPDATE' || {}",
                label.is_no_others("object")
            ),
            format!("its account may not give objects the label {PLUGIN_LABEL} of another plugin"),
        ),
    ];
    if secrets.is_some() {
        validations.push(validation(
            format!(
                "request.operation == 'CREATE' || {}",
                by.is_no_others("oldObject")
            ),
            "its account may not change or delete Secrets that were generated for another plugin"
                .to_owned(),
        ));
        validations.push(validation(
            format!(
                "request.operation == 'DELETE' || {}",
                by.is_no_others("object")
            ),
            format!(
                "its account may not give Secrets the annotation {GENERATED_BY_ANNOTATION} of another plugin"
            ),
        ));
    }
    validations
}

/// A label or annotation that has the name of the plugin to which an object belongs.
/// Texts are literals of CEL.
struct Mark {
    field: &'static str,
    key: String,
    ours: String,
}

impl Mark {
    fn is_there(&self, object: &str) -> String {
        let Self { field, key, .. } = self;
        format!("has({object}.metadata.{field}) && {key} in {object}.metadata.{field}")
    }

    fn names_us(&self, object: &str) -> String {
        let Self { field, key, ours } = self;
        format!("{object}.metadata.{field}[{key}] == {ours}")
    }

    fn is_ours(&self, object: &str) -> String {
        format!("{} && {}", self.is_there(object), self.names_us(object))
    }

    fn is_no_others(&self, object: &str) -> String {
        format!("!({}) || {}", self.is_there(object), self.names_us(object))
    }
}

/// Text as a literal of CEL. Names of Kubernetes hold neither quotes nor
/// backslashes; a plugin's name might.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::super::rules::tests::{manifest, served};
    use super::*;
    use crate::manifest::ActionRule;

    fn policy(scope: Scope, tenants: &str) -> Vec<Value> {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        admission_policy(
            &grantee,
            &manifest(scope),
            served,
            &tenants.parse().unwrap(),
        )
    }

    #[test]
    fn where_rbac_names_the_namespaces_no_policy_is_needed() {
        let named = Scope::Namespaces(vec!["a".into()]);
        assert_eq!(policy(named, ""), Vec::<Value>::new());
    }

    #[test]
    fn namespaces_are_narrowed_only_where_they_follow_from_primaries() {
        let narrowed = "request.resource.group != '' || \
            request.resource.resource != 'resourcequotas' || \
            (!request.namespace.startsWith('kube-')";
        for (scope, tenants, expected) in [
            (Scope::Cluster, "team=a", None),
            (Scope::PrimaryNamespace, "", Some(format!("{narrowed})"))),
            (
                Scope::NamespaceNamedLikePrimary,
                "team=a",
                Some(format!(
                    "{narrowed} && ('team' in namespaceObject.metadata.labels && \
                     namespaceObject.metadata.labels['team'] in ['a']))"
                )),
            ),
        ] {
            let objects = policy(scope, tenants);
            let found: Vec<&str> = objects[0]["spec"]["validations"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|validation| validation["expression"].as_str())
                .collect();
            assert_eq!(found[0], "request.namespace != 'reeve-system'");
            let narrowed = found.iter().find(|e| e.contains("kube-"));
            assert_eq!(narrowed.copied(), expected.as_deref());
            assert_eq!(
                objects[1]["spec"]["policyName"],
                objects[0]["metadata"]["name"]
            );
        }
    }

    fn generating(scope: Scope) -> Vec<ActionRule> {
        vec![ActionRule {
            name: "database".into(),
            description: String::new(),
            http: vec![],
            sql: vec![],
            secrets: vec![scope],
        }]
    }

    fn expressions(manifest: &Manifest) -> (Vec<String>, Vec<String>) {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        let objects = admission_policy(&grantee, manifest, served, &Selector::default());
        let Some(policy) = objects.first() else {
            return Default::default();
        };
        let texts = |pointer: &str, field: &str| {
            let all = policy.pointer(pointer).and_then(Value::as_array).unwrap();
            let texts = all.iter().map(|one| match &one[field] {
                Value::String(text) => text.clone(),
                other => other[0].as_str().unwrap().to_owned(),
            });
            texts.collect::<Vec<_>>()
        };
        (
            texts("/spec/matchConstraints/resourceRules", "resources"),
            texts("/spec/validations", "expression"),
        )
    }

    /// RBAC lets the account write any Secret where it may have one generated.
    #[test]
    fn generated_secrets_have_their_places() {
        let derived = || Scope::NamespaceNamedLikePrimary;
        let named = |name: &str| Scope::Namespaces(vec![name.into()]);
        for (writes, generates, expected) in [
            (named("a"), derived(), &["secrets"][..]),
            (derived(), derived(), &["resourcequotas", "secrets"]),
            (derived(), named("a"), &["resourcequotas"]),
            (named("a"), named("a"), &[]),
        ] {
            let mut manifest = manifest(writes);
            manifest.actions = generating(generates.clone());
            let (resources, expressions) = expressions(&manifest);
            assert_eq!(resources, expected);
            let narrowed = "request.resource.group != '' || request.resource.resource != \
                'secrets' || (!request.namespace.startsWith('kube-'))";
            let is_narrowed = expressions.iter().any(|one| one == narrowed);
            assert_eq!(is_narrowed, generates == derived(), "{expressions:?}");
        }
        // A Secret that is written elsewhere may be generated there, too.
        let mut manifest = manifest(named("kube-a"));
        manifest.writes[0].kind = secret_kind().clone();
        manifest.actions = generating(derived());
        let (resources, expressions) = expressions(&manifest);
        assert_eq!(resources, ["secrets"]);
        let narrowed = "request.resource.group != '' || request.resource.resource != 'secrets' \
            || (request.namespace in ['kube-a'] || (!request.namespace.startsWith('kube-')))";
        assert!(
            expressions.iter().any(|one| one == narrowed),
            "{expressions:?}"
        );
    }

    /// They have no label; what nobody has generated has one.
    #[test]
    fn a_generated_secret_is_made_by_the_annotation() {
        let derived = || Scope::NamespaceNamedLikePrimary;
        let exempt = "|| (request.resource.group == '' && request.resource.resource == 'secrets' \
            && has(object.metadata.annotations) && 'reeve.dev/generated-by' in \
            object.metadata.annotations && \
            object.metadata.annotations['reeve.dev/generated-by'] == 'quotas')";
        let others = "request.operation == 'CREATE' || !(has(oldObject.metadata.annotations) && \
            'reeve.dev/generated-by' in oldObject.metadata.annotations) || \
            oldObject.metadata.annotations['reeve.dev/generated-by'] == 'quotas'";
        let both = |writes_secrets: bool, generates: bool| {
            let mut manifest = manifest(derived());
            if writes_secrets {
                manifest.writes[0].kind = secret_kind().clone();
            }
            if generates {
                manifest.actions = generating(derived());
            }
            let (_, expressions) = expressions(&manifest);
            let creates = expressions
                .iter()
                .find(|one| one.starts_with("request.operation != 'CREATE'"));
            let exempts = creates.unwrap().ends_with(exempt);
            let guards = expressions.iter().any(|one| one == others);
            (exempts, guards)
        };
        assert_eq!(both(false, false), (false, false));
        assert_eq!(both(true, false), (false, true));
        assert_eq!(both(false, true), (true, true));
        assert_eq!(both(true, true), (true, true));
    }

    #[test]
    fn text_stays_text_in_an_expression() {
        assert_eq!(quoted(r"a'b\c"), r"'a\'b\\c'");
    }
}

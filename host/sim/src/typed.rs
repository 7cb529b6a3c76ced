//! Objects of built-in types that are not those of the path's resource: the `Scale`
//! of a Deployment, the `TokenRequest` of a ServiceAccount; and what both have in
//! common with those that are.

use std::sync::LazyLock;

use reeve_ssa::{Schema, builtin};

use crate::decode::{self, Decoded, Document};
use crate::status::ApiError;

/// A built-in type that a request is read into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    /// The API group; empty for core.
    pub(crate) group: &'a str,
    /// `group/version`.
    pub(crate) api_version: &'a str,
    /// The kind.
    pub(crate) kind: &'a str,
}

/// What the scale subresource of every resource speaks.
pub(crate) const SCALE: Typed<'static> = Typed {
    group: "autoscaling",
    api_version: "autoscaling/v1",
    kind: "Scale",
};

/// What a service account's token is asked for with.
pub(crate) const TOKEN_REQUEST: Typed<'static> = Typed {
    group: "authentication.k8s.io",
    api_version: "authentication.k8s.io/v1",
    kind: "TokenRequest",
};

/// What gives a pod its node.
pub(crate) const BINDING: Typed<'static> = Typed {
    group: "",
    api_version: "v1",
    kind: "Binding",
};

/// What asks for a pod to go.
pub(crate) const EVICTION: Typed<'static> = Typed {
    group: "policy",
    api_version: "policy/v1",
    kind: "Eviction",
};

impl Typed<'_> {
    /// The version in its group.
    pub(crate) fn version(&self) -> &str {
        version_in(self.api_version)
    }

    /// How its objects merge.
    pub(crate) fn schema(&self) -> &'static Schema {
        static UNTYPED: LazyLock<Schema> = LazyLock::new(Schema::untyped);
        builtin::schema(self.group, self.version(), self.kind).unwrap_or(&UNTYPED)
    }

    /// Reads an object that was sent as one of this type.
    ///
    /// # Errors
    ///
    /// 400 when it says that it is of another type, or a value in it is of the
    /// wrong one.
    pub(crate) fn read(&self, document: Document) -> Result<Decoded, ApiError> {
        let text = |field: &str| match document.get(field) {
            Some(Document::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if let Err(why) = self.check(&api_version, &kind) {
            // It is read as what it is before it is found to be something else.
            let read = decode::builtin(&api_version, &kind, document);
            return Err(self.unconvertible(&api_version, &kind, &read.err().unwrap_or(why)));
        }
        let decoded = decode::builtin(self.api_version, self.kind, document);
        let mut decoded = decoded.map_err(|why| self.unreadable(&why))?;
        if !decoded.object.is_object() {
            decoded.object = serde_json::json!({});
        }
        decoded.object["apiVersion"] = self.api_version.into();
        decoded.object["kind"] = self.kind.into();
        Ok(decoded)
    }

    /// Says why an object of another type is none of this; one that does not say
    /// its type is.
    pub(crate) fn check(&self, api_version: &str, kind: &str) -> Result<(), String> {
        let version = version_in(api_version);
        if !kind.is_empty() && kind != self.kind {
            let package = match self.group {
                "" => "core",
                group => group.split('.').next().unwrap_or_default(),
            };
            return Err(format!(
                "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
                self.kind
            ));
        }
        if !api_version.is_empty() && api_version != self.api_version {
            return Err(format!(
                "no kind \"{}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\"",
                self.kind
            ));
        }
        Ok(())
    }

    /// 400: a value is of the wrong type, or a field is not known.
    pub(crate) fn unreadable(&self, why: &str) -> ApiError {
        self.unconvertible(self.api_version, self.kind, why)
    }

    /// 400: an object of another type.
    pub(crate) fn unconvertible(&self, api_version: &str, kind: &str, why: &str) -> ApiError {
        let kind = if kind.is_empty() { self.kind } else { kind };
        ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {}: {why}",
            version_in(api_version),
            self.kind
        ))
    }
}

/// The version in an `apiVersion`.
fn version_in(api_version: &str) -> &str {
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(_, version)| version)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_fits_the_type_is_read() {
        let check = |sent: serde_json::Value, expected: Result<serde_json::Value, &str>| {
            let read = SCALE.read(Document::from(sent.clone()));
            let read = read.map(|decoded| decoded.object);
            let read = read.map_err(|error| (error.code(), error.to_string()));
            assert_eq!(
                read,
                expected.map_err(|why| (400, why.to_owned())),
                "{sent}"
            );
        };
        let scale = |replicas: serde_json::Value| {
            json!({
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "a"},
                "spec": {"replicas": replicas},
            })
        };
        check(scale(json!(2)), Ok(scale(json!(2))));
        check(
            json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}, "more": 1}),
            Ok(scale(json!(2))),
        );
        check(
            scale(json!("abc")),
            Err(
                "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32",
            ),
        );
        check(
            scale(json!(3_000_000_000_u32)),
            Err(
                "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal number 3000000000 into Go struct field ScaleSpec.spec.replicas of type int32",
            ),
        );
        check(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
            Err(
                "ConfigMap in version \"v1\" cannot be handled as a Scale: converting (v1.ConfigMap) to (autoscaling.Scale): unknown conversion",
            ),
        );
    }
}

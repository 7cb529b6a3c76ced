//! Admission of what is sent to parts of objects that are of a kind of their own: a `Scale`,
//! a `Binding`, the options of a connection.

use serde_json::{Map, Value, json};

use super::{Call, Writer, meta, scale};
use crate::admission;
use crate::admission::policy::{self, Operation, Request, Sent};
use crate::decode::{self, Document};
use crate::status::ApiError;
use crate::typed::{SCALE, Typed};

impl Call {
    /// Has policies and webhooks change what is sent to the object `name`, or to the one that
    /// the path names where that is empty. `old` is what it takes the place of.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it, or cannot be carried out.
    pub(crate) fn change_sent(
        &self,
        operation: Operation,
        typed: Typed<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let namespace = self.namespace();
        let is_created = operation == Operation::Create && !namespace.is_empty();
        if is_created && meta::text(object, "namespace").is_empty() {
            meta::of_mut(object).insert("namespace".to_owned(), json!(namespace));
        }
        if !admission::may_change(&self.server) {
            return Ok(());
        }
        let settle = |changed: &mut Value, _| {
            let document = Document::from(std::mem::take(changed));
            let read = decode::builtin(typed.api_version, typed.kind, document);
            *changed = read.map_err(|why| ApiError::internal_error(&why))?.object;
            Ok(())
        };
        let request = self.sent(operation, typed, object, old);
        if let Some(changed) = admission::change(request, settle, |warning| self.warn(warning))? {
            *object = changed;
        }
        Ok(())
    }

    /// Asks policies and webhooks about what is sent.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(crate) fn check_sent(
        &self,
        operation: Operation,
        typed: Typed<'_>,
        object: &Value,
    ) -> Result<(), ApiError> {
        let request = self.sent(operation, typed, object, None);
        admission::ask(&request, |warning| self.warn(warning))
    }

    /// Asks about a connection, which has parameters and no body.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(super) fn check_connection(&self) -> Result<(), ApiError> {
        let name = self.subresource().unwrap_or_default();
        let Some(part) = self.resource.subresource(name) else {
            return Ok(());
        };
        // All are of the first version of the core group.
        let Some((group, api_version, kind)) = part.body else {
            return Ok(());
        };
        let typed = Typed {
            group,
            api_version,
            kind,
        };
        let mut options = self.connection(name);
        self.change_sent(Operation::Connect, typed, &mut options, None)?;
        self.check_sent(Operation::Connect, typed, &options)
    }

    /// The parameters of a connection, as the object that they are.
    fn connection(&self, part: &str) -> Value {
        let mut options = Map::new();
        if matches!(part, "exec" | "attach") {
            for flag in ["stdin", "stdout", "stderr", "tty"] {
                if self.query.flag(flag) {
                    options.insert(flag.to_owned(), json!(true));
                }
            }
            if let Some(container) = self.query.get("container") {
                options.insert("container".to_owned(), json!(container));
            }
        }
        if part == "exec" {
            let command: Vec<&str> = self.query.all("command").collect();
            options.insert("command".to_owned(), json!(command));
        }
        if part == "portforward" {
            let ports = self.query.all("ports").flat_map(|ports| ports.split(','));
            let ports: Vec<i64> = ports.filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                options.insert("ports".to_owned(), json!(ports));
            }
        }
        Value::Object(options)
    }

    fn sent<'r>(
        &'r self,
        operation: Operation,
        typed: Typed<'r>,
        object: &'r Value,
        old: Option<&'r Value>,
    ) -> Request<'r> {
        // What is posted to no object is one by its own name.
        let name = match self.name() {
            "" => meta::text(object, "name"),
            name => name,
        };
        Request {
            server: &self.server,
            resource: &self.resource,
            subresource: self.subresource().unwrap_or_default(),
            user: &self.user,
            operation,
            object: Some(object),
            old,
            dry_run: self.query.dry_run(),
            sent: Some(Sent {
                typed,
                namespace: self.namespace(),
                name,
            }),
        }
    }
}

impl Writer<'_> {
    /// Asks policies and webhooks about the scale of an object that is to be written.
    ///
    /// # Errors
    ///
    /// What the first says that does not allow it.
    pub(super) fn ask_about_scale(&self, object: &Value, old: &Value) -> Result<(), ApiError> {
        let may_ask = policy::has_validating(self.server) || admission::may_ask(self.server);
        let Some(user) = self.user.filter(|_| may_ask) else {
            return Ok(());
        };
        let scale = scale::read(self.resource, object)?;
        let before = scale::read(self.resource, old)?;
        let request = Request {
            server: self.server,
            resource: self.resource,
            subresource: self.part.subresource().unwrap_or_default(),
            user,
            operation: Operation::Update,
            object: Some(&scale),
            old: Some(&before),
            dry_run: self.dry_run,
            sent: Some(Sent {
                typed: SCALE,
                namespace: meta::text(object, "namespace"),
                name: meta::text(object, "name"),
            }),
        };
        admission::ask(&request, |warning| self.warn(std::iter::once(warning)))
    }
}

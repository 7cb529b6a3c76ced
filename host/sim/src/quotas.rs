//! ResourceQuotas: what objects use of them, and how much of them is used.
//!
//! As in a real cluster two share the work: admission charges a new object before it is
//! stored ([`charge()`]), and a controller counts again what is there ([`count`]), since
//! nobody is asked when objects go.

mod charge;
mod count;
mod scope;
mod usage;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::amounts::{self, Amounts};
use crate::resource::Resource;
use crate::rest::write::{Part, Writer};
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Object, Range};

pub(crate) use charge::{Charge, Charged, charge, is_charged_again};
pub(crate) use count::{concerns, count};

/// The table of ResourceQuotas.
pub(crate) const TABLE: &str = "resourcequotas";

/// What is counted, and how much of it there may be and is.
struct Status {
    hard: Amounts,
    used: Amounts,
}

impl Status {
    fn of(quota: &Value) -> Self {
        let status = quota.get("status").unwrap_or(&Value::Null);
        Status {
            hard: amounts::read(status, "hard"),
            used: amounts::read(status, "used"),
        }
    }

    fn write(&self) -> Value {
        let written = |amounts: &Amounts| -> Map<String, Value> {
            let amounts = amounts.iter();
            amounts
                .map(|(name, amount)| (name.clone(), amount.to_string().into()))
                .collect()
        };
        let fields = [("hard", &self.hard), ("used", &self.used)];
        let fields = fields.into_iter().filter(|(_, all)| !all.is_empty());
        let fields = fields.map(|(field, all)| (field.to_owned(), written(all).into()));
        Value::Object(fields.collect())
    }
}

/// Whether a change of a quota leaves room where there may have been none.
pub(crate) fn gives_room(before: Option<&Value>, after: &Value) -> bool {
    let Some(before) = before.map(Status::of) else {
        return false;
    };
    let after = Status::of(after);
    let is_wider = before.hard.iter().any(|(name, hard)| {
        let now = after.hard.get(name);
        now.is_none_or(|now| now > hard)
    });
    let is_emptier = before.used.iter().any(|(name, used)| {
        let now = after.used.get(name);
        now.is_none_or(|now| now < used)
    });
    is_wider || is_emptier
}

/// Whether anything in a namespace is bounded.
pub(crate) fn bounds_any(shared: &Shared, namespace: &str) -> bool {
    let prefix = format!("{namespace}/");
    let range = Range {
        prefix: &prefix,
        ..Range::default()
    };
    !namespace.is_empty() && shared.store.any(TABLE, &range)
}

/// The ResourceQuotas of a namespace.
fn in_namespace(shared: &Shared, namespace: &str) -> Vec<Arc<Object>> {
    shared.store.in_namespace(TABLE, namespace)
}

/// Writes the status of a quota as `next` has it; none leaves it alone. One that is gone
/// is nobody's loss.
fn write_status(
    shared: &Arc<Shared>,
    resource: &Resource,
    manager: &str,
    key: &str,
    mut next: impl FnMut(&Value) -> Result<Option<Status>, ApiError>,
) -> Result<(), ApiError> {
    let writer = Writer::of_server(shared, resource, Part::Status, manager);
    writer.amend(key, |live| {
        if let Some(status) = next(live)? {
            live["status"] = status.write();
        }
        Ok(())
    })
}

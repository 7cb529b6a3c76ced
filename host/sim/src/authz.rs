//! RBAC, as pure functions over roles and bindings.
//!
//! [`Policy`] is an index of the roles and bindings of a cluster; [`RoleStore`]
//! is what a decision reads of it, so that something else can serve it.
//! [`authorize`] and [`authorize_path`] decide, [`check_role`] and
//! [`check_binding`] keep users from granting what they do not have, and
//! [`aggregate`] makes the rules of an aggregated ClusterRole.

mod aggregation;
mod escalation;
mod policy;
mod rbac;
mod review;
mod rule;

pub use aggregation::{aggregate, gathered};
pub use escalation::{BindingRefused, check_binding, check_role};
pub use policy::{Binding, Named, Personal, Policy, RoleRef, RoleStore, Subject};
pub use rbac::{Access, Attributes, authorize, authorize_path, path_refusal, permit, rules_for};
pub use review::rules_review;
pub use rule::Rule;

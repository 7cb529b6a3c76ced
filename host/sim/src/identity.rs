//! Who makes a request.

use std::collections::BTreeMap;

use crate::status::{About, ApiError};

/// A known caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The user name.
    pub name: String,
    /// The user's UID; empty where there is none.
    pub uid: String,
    /// The groups, `system:authenticated` included.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of everybody who is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// Who brings no credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The group of whoever brings none.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub(crate) const MASTERS: &str = "system:masters";

impl Identity {
    /// How much is known of the caller, about as it lies in memory.
    pub(crate) fn bytes(&self) -> usize {
        let all = |texts: &[String]| {
            texts
                .iter()
                .map(|text| size_of::<String>() + text.len())
                .sum::<usize>()
        };
        let extra = self.extra.iter();
        let extra = extra.map(|(name, values)| 2 * size_of::<String>() + name.len() + all(values));
        self.name.len() + self.uid.len() + all(&self.groups) + extra.sum::<usize>()
    }

    /// A user in `groups` and in `system:authenticated`.
    pub fn user<G: Into<String>>(
        name: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Identity {
            name: name.into(),
            groups,
            ..Identity::default()
        }
    }

    /// The administrator: in `system:masters`, whom no rule binds.
    pub fn admin() -> Self {
        Identity::user("kubernetes-admin", [MASTERS])
    }

    /// Somebody without credentials.
    pub(crate) fn anonymous() -> Self {
        Identity {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Identity::default()
        }
    }

    /// A service account, with the groups that it always has.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Identity::user(
            format!("system:serviceaccount:{namespace}:{name}"),
            service_account_groups(namespace),
        )
    }

    /// The namespace and name of the service account that `name` means.
    pub(crate) fn parse_service_account(name: &str) -> Option<(&str, &str)> {
        let (namespace, account) = name
            .strip_prefix("system:serviceaccount:")?
            .split_once(':')?;
        (!namespace.is_empty() && !account.is_empty()).then_some((namespace, account))
    }

    /// Refuses everybody whom rules bind; `may` says what only the others may do.
    pub(crate) fn check_is_master(&self, may: &str) -> Result<(), ApiError> {
        if self.is_master() {
            return Ok(());
        }
        let nothing = About {
            group: "",
            resource: "",
            name: "",
        };
        let why = format!(
            "user {:?} is no administrator: only those may {may}",
            self.name
        );
        Err(ApiError::forbidden(nothing, &why))
    }

    /// Whether no rule binds this caller.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// The groups of every service account of a namespace.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_users_with_groups() {
        let sa = Identity::service_account("ns", "bot");
        assert_eq!(sa.name, "system:serviceaccount:ns:bot");
        assert_eq!(
            sa.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                AUTHENTICATED
            ]
        );
        assert_eq!(
            Identity::parse_service_account(&sa.name),
            Some(("ns", "bot"))
        );
        assert_eq!(
            Identity::parse_service_account("system:serviceaccount:ns:"),
            None
        );
        assert_eq!(Identity::parse_service_account("joe"), None);
        assert!(Identity::admin().is_master());
    }
}

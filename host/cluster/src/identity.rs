//! On whose behalf a request is sent.

use std::fmt;

/// A user of the API server, as impersonation and access reviews name one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Name of the user.
    pub user: String,
    /// Groups, all of them: a review adds none by itself.
    pub groups: Vec<String>,
}

impl Identity {
    /// A ServiceAccount with the groups that the API server gives to its tokens.
    ///
    /// Rights are often bound to these groups; a review without them would judge
    /// by less than the account has.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }

    pub(crate) fn is_service_account(&self) -> bool {
        self.user.starts_with("system:serviceaccount:")
    }
}

/// The user's name.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)
    }
}

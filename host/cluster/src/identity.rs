//! On whose behalf a request is sent.

use std::fmt;

/// A user of the API server, as impersonation and access reviews name one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Name of the user.
    pub user: String,
    /// Groups, all of them: the API server adds none but `system:authenticated`.
    pub groups: Vec<String>,
}

impl Identity {
    /// A ServiceAccount with the groups that the API server gives to its tokens.
    ///
    /// Rights are often bound to these groups; a request or review without them
    /// would be judged by less than the account has.
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
}

/// The user's name.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)
    }
}

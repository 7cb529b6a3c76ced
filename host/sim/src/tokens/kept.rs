//! Tokens in the form in which a state keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{BINDABLE, Bound, Grant, Tokens};
use crate::identity::Identity;
use crate::state::Journal;

/// The table of service accounts, which every token of one is bound to.
const ACCOUNTS: &str = "serviceaccounts";

/// A token and what it means.
#[derive(Debug, Serialize, Deserialize)]
struct KeptGrant {
    token: String,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
    /// In milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bound: Vec<KeptBound>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptBound {
    table: String,
    key: String,
    uid: String,
}

/// A token and what it means, in JSON.
pub(super) fn text(token: &str, grant: &Grant) -> Vec<u8> {
    let Identity {
        name,
        uid,
        groups,
        extra,
    } = Identity::clone(&grant.identity);
    let milliseconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    let bound = grant.bound.iter().map(|bound| KeptBound {
        table: bound.table.to_owned(),
        key: bound.key.clone(),
        uid: bound.uid.clone(),
    });
    let kept = KeptGrant {
        token: token.to_owned(),
        name,
        uid,
        groups,
        extra,
        expires: grant.expires.map(milliseconds),
        bound: bound.collect(),
        audiences: grant.audiences.clone(),
    };
    // Texts and numbers can always be written.
    serde_json::to_vec(&kept).unwrap_or_default()
}

impl KeptGrant {
    /// What is bound to something unknown holds for nobody.
    fn grant(self) -> Option<(String, Grant)> {
        let table = |name: &str| {
            let bindable = BINDABLE.iter().map(|(_, table, _)| *table);
            bindable.chain([ACCOUNTS]).find(|table| *table == name)
        };
        let bound = self.bound.into_iter().map(|bound| {
            Some(Bound {
                table: table(&bound.table)?,
                key: bound.key,
                uid: bound.uid,
            })
        });
        let expires = self.expires.map(Duration::from_millis);
        let grant = Grant {
            identity: Arc::new(Identity {
                name: self.name,
                uid: self.uid,
                groups: self.groups,
                extra: self.extra,
            }),
            // Later than any time is never.
            expires: expires.and_then(|since| UNIX_EPOCH.checked_add(since)),
            bound: bound.collect::<Option<_>>()?,
            audiences: self.audiences,
        };
        Some((self.token, grant))
    }
}

impl Tokens {
    /// Takes in tokens that were kept; those that nobody can read hold for nobody.
    pub(crate) fn restore(&self, kept: &[Vec<u8>], now: SystemTime) {
        let read = kept.iter().filter_map(|text| {
            let kept: KeptGrant = serde_json::from_slice(text).ok()?;
            kept.grant()
        });
        let holds = |(_, grant): &(String, Grant)| grant.holds(now);
        self.grants.lock().tokens.extend(read.filter(holds));
    }

    /// Keeps every token from here on in `journal` before anybody has it.
    pub(crate) fn keep_in(&self, journal: Arc<Journal>) {
        // There is one journal, which is set when the server is made.
        let _ = self.journal.set(journal);
    }

    /// Notes the tokens that hold, and does something before there is another one.
    pub(crate) fn image<T>(&self, now: SystemTime, then: impl FnOnce() -> T) -> (Vec<Vec<u8>>, T) {
        let grants = self.grants.lock();
        let kept = grants.tokens.iter().filter(|(_, grant)| grant.holds(now));
        let kept = kept.map(|(token, grant)| text(token, grant)).collect();
        (kept, then())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Store, TableName};

    #[test]
    fn tokens_come_back_as_they_were() {
        let store = Store::new(1);
        let account = json!({"metadata": {"name": "a", "uid": "u1"}});
        let table = TableName::from(ACCOUNTS);
        store.create(&table, "default/a", account).unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let bound = |uid: &str| {
            vec![Bound {
                table: ACCOUNTS,
                key: "default/a".to_owned(),
                uid: uid.to_owned(),
            }]
        };
        let mut identity = Identity::service_account("default", "a");
        identity.uid = "u1".to_owned();
        identity.extra.insert("k".to_owned(), vec!["v".to_owned()]);
        let tokens = Tokens::default();
        for (token, expires, bound) in [
            ("holds", Some(at(20)), bound("u1")),
            ("ends", Some(at(10)), bound("u1")),
            ("of-another", Some(at(20)), bound("u2")),
            ("for-ever", None, Vec::new()),
        ] {
            let identity = identity.clone();
            let granted = tokens.grant(
                token.to_owned(),
                identity,
                expires,
                bound,
                Vec::new(),
                at(0),
            );
            assert_eq!(granted, Ok(()));
        }
        let (kept, done) = tokens.image(at(5), || "done");
        assert_eq!((kept.len(), done), (4, "done"));
        let again = Tokens::default();
        again.restore(&kept, at(12));
        let whose = |token| again.identify(token, &store, at(12));
        assert_eq!(whose("holds"), Some(identity.clone()));
        assert_eq!(whose("for-ever"), Some(identity));
        assert_eq!(whose("ends"), None);
        assert_eq!(whose("of-another"), None);
        assert_eq!(again.identify("holds", &store, at(20)), None);
    }
}

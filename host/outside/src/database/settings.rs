//! How a database is reached, from the entries of a Secret.

use crate::address::Networks;
use crate::secret::Secret;
use crate::tls::Roots;
use std::collections::BTreeMap;

/// How a database is reached, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Host name, which its certificate must have.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Role as which we log in.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Database to which we connect.
    pub database: String,
    /// Whom to trust for TLS.
    pub roots: Roots,
    /// Addresses that may be connected to.
    pub networks: Networks,
}

/// Entries of the Secret. They are those of many operators of PostgreSQL.
const HOST: &str = "host";
const PORT: &str = "port";
const USER: &str = "username";
const PASSWORD: &str = "password";
const DATABASE: &str = "database";
const CA: &str = "ca.crt";

/// PostgreSQL's own.
const DEFAULT_PORT: u16 = 5432;
/// The database that every server has, meant to be connected to.
const DEFAULT_DATABASE: &str = "postgres";

/// A Secret that does not say how to reach a database. Names the entry, never what
/// stands in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "entry `{entry}` {problem}; the Secret needs `host`, `username` and `password`, and may have `port`, `database` and `ca.crt`"
)]
pub struct SettingsError {
    /// The entry.
    pub entry: &'static str,
    /// What is wrong.
    pub problem: &'static str,
}

impl Settings {
    /// Reads the entries of a Secret: `host`, `username` and `password`, and if they
    /// are there `port`, `database` and `ca.crt`, the only certificate authorities
    /// that are then trusted.
    ///
    /// # Errors
    ///
    /// When one is missing or malformed.
    pub fn read(
        entries: &BTreeMap<String, Vec<u8>>,
        networks: Networks,
    ) -> Result<Self, SettingsError> {
        let optional = |entry: &'static str| {
            let error = |problem| SettingsError { entry, problem };
            let Some(bytes) = entries.get(entry) else {
                return Ok(None);
            };
            let text = std::str::from_utf8(bytes).map_err(|_| error("is no UTF-8"))?;
            let text = text.trim_end_matches(['\r', '\n']);
            if text.is_empty() {
                return Err(error("is empty"));
            }
            if entry != CA && text.contains(['\0', '\n', '\r']) {
                return Err(error("has more than one line"));
            }
            Ok(Some(text.to_owned()))
        };
        let required = |entry: &'static str| {
            let missing = SettingsError {
                entry,
                problem: "is missing",
            };
            optional(entry)?.ok_or(missing)
        };
        let port = match optional(PORT)? {
            None => DEFAULT_PORT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or(SettingsError {
                    entry: PORT,
                    problem: "is no port from 1 to 65535",
                })?,
        };
        let host = required(HOST)?;
        // A socket's folder has no certificate.
        if host.contains(['/', ',', ' ']) {
            return Err(SettingsError {
                entry: HOST,
                problem: "is no single host name",
            });
        }
        Ok(Self {
            host,
            port,
            user: required(USER)?,
            password: Secret::new(required(PASSWORD)?),
            database: optional(DATABASE)?.unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
            roots: optional(CA)?.map_or(Roots::System, Roots::Only),
            networks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&str, &str)], expected: &str) {
        let pairs = pairs.iter();
        let entries = pairs
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        let found = match Settings::read(&entries, Networks::default()) {
            Ok(settings) => format!("{settings:?}"),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("hunter2"), "{found}");
    }

    #[test]
    fn secrets_are_read_strictly_and_shown_never() {
        let full = [
            ("host", "db.example\n"),
            ("username", "admin"),
            ("password", "hunter2"),
        ];
        check(&full, r#"host: "db.example", port: 5432"#);
        check(&full[..2], "entry `password` is missing; the Secret needs");
        for (entry, value, expected) in [
            ("host", "a,b", "`host` is no single host name"),
            ("host", "/run/postgresql", "is no single host name"),
            ("port", "0", "`port` is no port"),
            ("port", "hunter2", "`port` is no port"),
            ("username", "", "`username` is empty"),
            (
                "password",
                "hunter2\nx",
                "`password` has more than one line",
            ),
        ] {
            let mut entries = full.to_vec();
            entries.retain(|(name, _)| *name != entry);
            entries.push((entry, value));
            check(&entries, expected);
        }
    }
}

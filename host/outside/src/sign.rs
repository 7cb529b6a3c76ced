//! Signing requests with keys that whoever asked for the request never sees.

mod azure;
mod sigv4;

use crate::secret::Secret;
use ::http::header::{AUTHORIZATION, HeaderValue};
use ::http::{HeaderName, Request};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A key, and how it signs.
#[derive(Clone, Debug)]
pub enum Signer {
    /// A token that is sent as it is (RFC 6750).
    Bearer(Secret),
    /// The shared key of an Azure storage account.
    AzureSharedKey {
        /// Name of the account.
        account: String,
        /// The key, decoded.
        key: AzureKey,
    },
    /// An access key of AWS, for version 4 of its signature.
    AwsSigV4 {
        /// Id of the access key.
        id: String,
        /// The secret access key.
        secret: Secret,
        /// Token of a temporary session.
        session: Option<Secret>,
        /// Region, such as `us-east-1`.
        region: String,
        /// Service, such as `s3`.
        service: String,
    },
}

/// A key of Azure storage: bytes, in base64 where people see it.
#[derive(Clone)]
pub struct AzureKey(Vec<u8>);

impl std::fmt::Debug for AzureKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("\"…\"")
    }
}

/// Why there is no key. Names what is missing, never what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No key of this name is granted.
    #[error("no key `{0}` is granted; add it to Plugin spec.capabilities.keys")]
    NotGranted(String),
    /// The Secret lacks an entry, or its content is not what it should be.
    #[error("key `{key}`: entry `{entry}` of the Secret {problem}")]
    Entry {
        /// Name of the key.
        key: String,
        /// The entry.
        entry: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The Secret cannot be read.
    #[error("key `{key}`: {problem}")]
    Unreadable {
        /// Name of the key.
        key: String,
        /// Why.
        problem: String,
    },
}

/// How a key signs, and what of that is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// See [`Signer::Bearer`].
    Bearer {
        /// Entry of the Secret that is the token, usually [`Self::TOKEN`].
        entry: String,
    },
    /// See [`Signer::AzureSharedKey`].
    AzureSharedKey,
    /// See [`Signer::AwsSigV4`].
    AwsSigV4 {
        /// Region.
        region: String,
        /// Service.
        service: String,
    },
}

/// Entries of a Secret in which keys stand. Those of Azure are those of the CSI
/// drivers, those of AWS the variables of its tools.
const AZURE_ACCOUNT: &str = "azurestorageaccountname";
const AZURE_KEY: &str = "azurestorageaccountkey";
const AWS_ID: &str = "AWS_ACCESS_KEY_ID";
const AWS_SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const AWS_SESSION: &str = "AWS_SESSION_TOKEN";

impl Scheme {
    /// Entry that is a token, unless something else is said.
    pub const TOKEN: &str = "token";

    /// The signer for a key whose Secret has these entries.
    ///
    /// # Errors
    ///
    /// When an entry is missing or malformed.
    pub fn signer(
        &self,
        key: &str,
        entries: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Signer, KeyError> {
        let error = |entry: &str, problem| KeyError::Entry {
            key: key.to_owned(),
            entry: entry.to_owned(),
            problem,
        };
        let text = |entry: &str| {
            let bytes = entries.get(entry).ok_or(error(entry, "is missing"))?;
            let text = std::str::from_utf8(bytes).map_err(|_| error(entry, "is no UTF-8"))?;
            // Files that people make end with a line break.
            let text = text.trim_end_matches(['\r', '\n']);
            match text {
                "" => Err(error(entry, "is empty")),
                _ if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
                    Err(error(entry, "has characters that no header can hold"))
                }
                _ => Ok(text.to_owned()),
            }
        };
        Ok(match self {
            Self::Bearer { entry } => Signer::Bearer(Secret::new(text(entry)?)),
            Self::AzureSharedKey => Signer::AzureSharedKey {
                account: text(AZURE_ACCOUNT)?,
                key: azure::decode(&text(AZURE_KEY)?)
                    .map(AzureKey)
                    .ok_or(error(AZURE_KEY, "is no base64"))?,
            },
            Self::AwsSigV4 { region, service } => Signer::AwsSigV4 {
                id: text(AWS_ID)?,
                secret: Secret::new(text(AWS_SECRET)?),
                session: match entries.contains_key(AWS_SESSION) {
                    true => Some(Secret::new(text(AWS_SESSION)?)),
                    false => None,
                },
                region: region.clone(),
                service: service.clone(),
            },
        })
    }
}

impl Signer {
    /// Signs a request that is complete but for this. Headers that the signature
    /// consists of are replaced.
    pub fn sign(&self, request: &mut Request<Bytes>, now: SystemTime) {
        match self {
            Self::Bearer(token) => {
                set(
                    request,
                    AUTHORIZATION,
                    &format!("Bearer {}", token.expose()),
                );
            }
            Self::AzureSharedKey { account, key } => azure::sign(request, account, &key.0, now),
            Self::AwsSigV4 {
                id,
                secret,
                session,
                region,
                service,
            } => {
                let scope = sigv4::Scope { region, service };
                let session = session.as_ref().map(Secret::expose);
                sigv4::sign(request, id, secret.expose(), session, scope, now);
            }
        }
    }
}

/// Sets a header that is shown nowhere.
fn set(request: &mut Request<Bytes>, name: HeaderName, value: &str) {
    // Every character that can get here has been looked at when the key was read.
    if let Ok(mut value) = HeaderValue::from_str(value) {
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
}

/// Percent-encoded, but for what RFC 3986 leaves unreserved and what is in `keep`.
fn encode(text: &[u8], keep: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || keep.contains(byte);
        if plain {
            encoded.push(char::from(*byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// What percent-encoding stands for.
fn decode(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                decoded.push(byte);
                rest = &after[2..];
            }
            _ => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

/// The pairs of a query, decoded.
fn query_pairs(query: Option<&str>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = query.unwrap_or_default().split('&');
    pairs
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect()
    }

    fn bearer(entry: &str) -> Scheme {
        let entry = entry.to_owned();
        Scheme::Bearer { entry }
    }

    #[test]
    fn a_secret_that_is_no_key_is_named_without_its_content() {
        let aws = Scheme::AwsSigV4 {
            region: "r".into(),
            service: "s".into(),
        };
        for (scheme, pairs, expected) in [
            (
                bearer("token"),
                vec![],
                "entry `token` of the Secret is missing",
            ),
            (
                bearer("secret"),
                vec![("token", "t")],
                "entry `secret` of the Secret is missing",
            ),
            (bearer("token"), vec![("token", "")], "is empty"),
            (
                bearer("token"),
                vec![("token", "hunter2\nX-Evil: 1")],
                "no header can hold",
            ),
            (
                Scheme::AzureSharedKey,
                vec![(AZURE_ACCOUNT, "a"), (AZURE_KEY, "hunter2!")],
                "is no base64",
            ),
            (aws, vec![(AWS_ID, "a")], "AWS_SECRET_ACCESS_KEY"),
        ] {
            let error = scheme
                .signer("k", &entries(&pairs))
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_bearer_token_is_sent_and_never_printed() {
        let signer = bearer("secret")
            .signer("k", &entries(&[("secret", "hunter2\n"), ("token", "t")]))
            .unwrap();
        let mut request = Request::new(Bytes::new());
        signer.sign(&mut request, SystemTime::UNIX_EPOCH);
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer hunter2");
        for text in [format!("{request:?}"), format!("{signer:?}")] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

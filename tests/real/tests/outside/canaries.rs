//! Credentials, and looking for them where they must not be.

use anyhow::{Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// So much of a credential is as good as all of it to whoever looks for it.
const PART: usize = 12;

/// The credentials of a test.
#[derive(Debug, Default)]
pub(crate) struct Canaries {
    /// Of the database's superuser.
    pub(crate) admin_password: String,
    /// Of the account of the storage, in base64.
    pub(crate) storage_key: String,
    /// One that was never right.
    pub(crate) wrong_storage_key: String,
    more: Vec<String>,
}

impl Canaries {
    pub(crate) fn new() -> Self {
        Self {
            admin_password: "canary-admin-9b1deb4d-3b7d".to_owned(),
            storage_key: STANDARD
                .encode(b"canary storage 4bad 9bdd 2b0d 7b3d cb6d of 64 bytes, no fewer"),
            wrong_storage_key: STANDARD
                .encode(b"mistaken storage key 7c9e6679 7425 40de 944b of 64 bytes"),
            more: Vec::new(),
        }
    }

    /// Just these.
    pub(crate) fn of(texts: &[&str]) -> Self {
        Self {
            more: texts.iter().map(|&text| text.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// One more that must not show.
    pub(crate) fn know(&mut self, text: &str) {
        self.more.push(text.to_owned());
    }

    /// Checks texts, each with what it is.
    pub(crate) fn are_not_in(&self, texts: &[(String, String)]) -> Result<()> {
        let known = [
            &self.admin_password,
            &self.storage_key,
            &self.wrong_storage_key,
        ];
        let known = known.into_iter().chain(&self.more);
        for canary in known.filter(|canary| !canary.is_empty()) {
            ensure!(
                canary.get(..PART).is_some(),
                "a credential is too short to look for"
            );
            // As it is, as the API shows a Secret, and as bytes of a key.
            let encoded = STANDARD.encode(canary);
            let decoded = STANDARD.decode(canary).unwrap_or_default();
            let decoded = String::from_utf8(decoded).unwrap_or_default();
            for form in [canary.as_str(), &encoded, &decoded] {
                let Some(part) = form.get(..PART) else {
                    continue;
                };
                for (what, text) in texts {
                    if let Some(at) = text.find(part) {
                        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
                        let line: String = text[start..].chars().take(400).collect();
                        bail!("a credential is in {what}: {line}");
                    }
                }
            }
        }
        Ok(())
    }
}

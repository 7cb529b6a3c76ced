//! The configuration of the platform: `system-manager-config.json`.

use reeve_sdk::prelude::*;
use serde_json::Map;

use crate::catalog::{Release, When};
use crate::certificate::{self, Pair};
use crate::cloud::Cloud;
use crate::findings::{Findings, below};
use crate::forms::{self, host_of};
use crate::json;
use crate::keys::{At, KEYS, Key, Place};

/// What people call the document.
pub(crate) const DOCUMENT: &str = "system-manager-config.json";

/// A configuration in which every value is what its key may hold.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) cloud: Cloud,
    given: Vec<Given>,
}

/// A key that is given, and not empty.
pub(crate) struct Given {
    pub(crate) key: &'static Key,
    /// Where it stands.
    pub(crate) path: String,
    pub(crate) value: Value,
}

// Values may be secrets: none is ever printed.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)
    }
}

impl Configuration {
    /// Reads a configuration, noting all that is wrong with it. There is one as soon as
    /// the cloud is known; it is good for nothing while there are errors.
    pub(crate) fn parse(text: &str, findings: &mut Findings) -> Option<Self> {
        let document = match json::parse(text) {
            Ok(document) => document,
            // It says where, and quotes nothing.
            Err(error) => {
                findings.error(error.path(), error.message());
                return None;
            }
        };
        let Value::Object(document) = document else {
            findings.error("", "expected a JSON object");
            return None;
        };
        let cloud = cloud_of(&document, findings)?;
        let mut configuration = Self {
            cloud,
            given: Vec::new(),
        };
        configuration.take("", document, &Place::whole(cloud), findings);
        configuration.check_whole(findings);
        Some(configuration)
    }

    /// Takes in what stands at a path, and below it.
    fn take(
        &mut self,
        path: &str,
        object: Map<String, Value>,
        place: &Place,
        findings: &mut Findings,
    ) {
        for (name, value) in object {
            let path = below(path, &name);
            if value.is_null() || self.is_other_block(&path, findings) {
                continue;
            }
            match place.at(&name) {
                At::Key(key) => match forms::check(key, &value) {
                    Err(problem) => findings.error(&path, problem),
                    Ok(()) if value.as_str() == Some("") => {}
                    Ok(()) => self.given.push(Given { key, path, value }),
                },
                At::Inside(place) => match value {
                    Value::Object(inner) => self.take(&path, inner, &place, findings),
                    _ => findings.error(&path, "expected an object"),
                },
                At::Unknown => findings.warn(
                    &path,
                    "this version does not know the key, and leaves it where it is",
                ),
            }
        }
    }

    fn is_other_block(&self, path: &str, findings: &mut Findings) -> bool {
        let block = path.strip_prefix('/').and_then(Cloud::parse);
        let other = block.is_some_and(|block| block != self.cloud);
        if other {
            findings.error(
                path,
                format_args!(
                    "cloudProvider is {}; remove the block of another cloud",
                    self.cloud.name()
                ),
            );
        }
        other
    }

    /// What concerns several keys.
    fn check_whole(&self, findings: &mut Findings) {
        for (kind, flag) in [("saml", "/samlSetupEnabled"), ("oidc", "/oidcSetupEnabled")] {
            if self.text("/authType") == Some(kind) && !self.is_true(flag) {
                findings.warn(
                    flag,
                    format_args!("not true, though authType is {kind}: nobody can log in yet"),
                );
            }
        }
        let pem = |id: &str| self.text(id).and_then(forms::decode);
        let key = pem("/frontDoorSSLKeyB64");
        let Some(chain) = pem("/frontDoorSSLCertB64") else {
            return;
        };
        let Some(certificate) = certificate::parse(&chain) else {
            findings.error(
                "/frontDoorSSLCertB64",
                "expected base64 of a certificate in PEM",
            );
            return;
        };
        match key.map(|key| certificate.pair(&key)) {
            Some(Pair::Unreadable) => findings.error(
                "/frontDoorSSLKeyB64",
                "expected base64 of an unencrypted private key in PEM",
            ),
            Some(Pair::Other) => findings.error(
                "/frontDoorSSLKeyB64",
                "not the key of the certificate in /frontDoorSSLCertB64; put in the two that \
                 belong together",
            ),
            Some(Pair::Matches | Pair::Unknown) | None => {}
        }
        if let Some(host) = self.host()
            && !certificate.covers(host)
        {
            findings.warn(
                "/frontDoorSSLCertB64",
                format_args!("the certificate is not for {host}, the host of deploymentURL"),
            );
        }
    }

    /// The value of a key, by its [`Key::id`].
    fn find(&self, id: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.key.id() == id)
    }

    pub(crate) fn text(&self, id: &str) -> Option<&str> {
        self.find(id)?.value.as_str()
    }

    pub(crate) fn is_true(&self, id: &str) -> bool {
        self.find(id).is_some_and(|given| given.value == true)
    }

    /// The state that the platform begins with.
    pub(crate) fn initial_state(&self) -> Option<String> {
        let value = &self.find("/initialDesiredState")?.value;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }

    /// The host of `deploymentURL`.
    pub(crate) fn host(&self) -> Option<&str> {
        host_of(self.text("/deploymentURL")?, "https://")
    }

    /// What a release gets.
    pub(crate) fn values_of(&self, release: &str) -> impl Iterator<Item = &Given> {
        self.given
            .iter()
            .filter(move |given| given.key.reaches(release))
    }

    /// Whether a release is wanted.
    pub(crate) fn wants(&self, release: &Release) -> bool {
        match release.when {
            When::Always => true,
            When::Flag(id) => self.is_true(id),
            When::Configured => self.given.iter().any(|given| {
                matches!(given.key.by, crate::keys::By::Releases([only]) if *only == release.name)
            }),
        }
    }

    /// The places of secrets in it.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        let secrets = self.given.iter().filter(|given| given.key.secret);
        secrets.map(|given| given.path.as_str()).collect()
    }

    /// Notes what a pack needs and does not have.
    pub(crate) fn check_for(&self, pack: &str, findings: &mut Findings) {
        for key in KEYS.iter().filter(|key| key.needed_by.contains(&pack)) {
            let path = key.path(self.cloud);
            if !path.is_empty() && self.find(key.id()).is_none() {
                findings.error(path, format_args!("pack {pack} needs it; set it"));
            }
        }
    }
}

fn cloud_of(document: &Map<String, Value>, findings: &mut Findings) -> Option<Cloud> {
    let path = "/cloudProvider";
    let named = document.get("cloudProvider").and_then(Value::as_str);
    let Some(cloud) = named.and_then(Cloud::parse) else {
        findings.error(path, "expected one of aws, gcp, azure");
        return None;
    };
    if !document.contains_key(cloud.name()) {
        let path = below("", cloud.name());
        findings.error(&path, "cloudProvider names this block; add it");
    }
    Some(cloud)
}

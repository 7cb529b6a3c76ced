//! The configuration.

use reeve_sdk::names::{check_dns_label, check_dns_subdomain, check_label_key};
use reeve_sdk::prelude::*;

/// What is reached, and through what.
#[config]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// Whether objects of our names are deleted, whoever made them, where they
    /// should not be. The preset main does so, readme does not.
    remove_foreign: Option<bool>,
    /// The label of a Profile that says whether anybody in it is no user of
    /// cloud-main. Only where it is false, there is a way through.
    pub(crate) non_employee_label: String,
    /// The host that is reached, gitlab.k8s.cloud.statcan.ca unless set.
    pub(crate) host: String,
    /// The namespace of the egress gateway, cloud-main-system unless set.
    pub(crate) gateway_namespace: String,
    /// The name of the egress gateway and of its Service,
    /// cloud-main-egress-gateway unless set.
    pub(crate) gateway: String,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default, PartialEq)]
enum Preset {
    /// Its README, which does not speak of it: nothing of others is deleted.
    #[default]
    Readme,
    /// Its code.
    Main,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            remove_foreign: None,
            non_employee_label: "state.aaw.statcan.gc.ca/exists-non-cloud-main-user".to_owned(),
            host: "gitlab.k8s.cloud.statcan.ca".to_owned(),
            gateway_namespace: "cloud-main-system".to_owned(),
            gateway: "cloud-main-egress-gateway".to_owned(),
        }
    }
}

impl Config {
    pub(crate) fn removes_foreign(&self) -> bool {
        self.remove_foreign.unwrap_or(self.preset == Preset::Main)
    }

    /// What the API server or Istio would refuse is refused here, where it has a
    /// path.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (path, checked) in [
            (
                "/nonEmployeeLabel",
                check_label_key(&self.non_employee_label),
            ),
            ("/host", check_dns_subdomain(&self.host)),
            (
                "/gatewayNamespace",
                check_dns_label(&self.gateway_namespace),
            ),
            ("/gateway", check_dns_label(&self.gateway)),
        ] {
            checked.map_err(|error| ConfigError::new(path, error.to_string()))?;
        }
        Ok(())
    }
}

//! The configuration.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use reeve_sdk::names::check_label_key;
use reeve_sdk::pointer::below;
use reeve_sdk::prelude::*;

use crate::policy::Policy;
use crate::table::POLICIES;

/// Which policies there are.
#[config]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// Single policies by name, turned on or off whatever the preset says. What a
    /// label of the Profile decides, it still decides.
    policies: BTreeMap<String, bool>,
    /// Whether policies that a Profile owns, and that are neither ours nor wanted,
    /// are deleted. The preset main does so, readme does not.
    remove_strays: Option<bool>,
    /// Whether policies of earlier versions of the original controller are
    /// deleted, whoever made them. The preset main does so, readme does not.
    remove_former: Option<bool>,
    /// The label of a Profile that asks for the policies of Gitea.
    pub(crate) source_control_label: String,
    /// The label of a Profile that asks for the policy of s3proxy.
    pub(crate) s3_label: String,
    /// The label of a Profile that says whether anybody in it is no user of
    /// cloud-main. Only where it is false, the policy for cloud-main is there.
    pub(crate) non_employee_label: String,
    /// Where the database of Gitea may be, as IPv4 blocks; 0.0.0.0/0 unless set.
    pub(crate) postgres_blocks: Vec<String>,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            policies: BTreeMap::new(),
            remove_strays: None,
            remove_former: None,
            source_control_label: "sourcecontrol.statcan.gc.ca/enabled".to_owned(),
            s3_label: "s3.statcan.gc.ca/enabled".to_owned(),
            non_employee_label: "state.aaw.statcan.gc.ca/exists-non-cloud-main-user".to_owned(),
            postgres_blocks: vec!["0.0.0.0/0".to_owned()],
        }
    }
}

impl Config {
    pub(crate) fn wants(&self, policy: &Policy) -> bool {
        let single = self.policies.get(policy.name);
        single.copied().unwrap_or(match self.preset {
            Preset::Readme => policy.readme,
            Preset::Main => policy.main,
        })
    }

    pub(crate) fn removes_strays(&self) -> bool {
        self.remove_strays.unwrap_or(self.preset == Preset::Main)
    }

    pub(crate) fn removes_former(&self) -> bool {
        self.remove_former.unwrap_or(self.preset == Preset::Main)
    }

    /// What the API server would refuse is refused here, where it has a path.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for name in self.policies.keys() {
            if !POLICIES.iter().any(|policy| policy.name == name) {
                let names: Vec<_> = POLICIES.iter().map(|policy| policy.name).collect();
                return Err(ConfigError::new(
                    below("/policies", name),
                    format!("no policy has this name; there are {}", names.join(", ")),
                ));
            }
        }
        for (path, label) in [
            ("/sourceControlLabel", &self.source_control_label),
            ("/s3Label", &self.s3_label),
            ("/nonEmployeeLabel", &self.non_employee_label),
        ] {
            check_label_key(label).map_err(|error| ConfigError::new(path, error.to_string()))?;
        }
        if self.postgres_blocks.is_empty() {
            return Err(ConfigError::new(
                "/postgresBlocks",
                "empty, which Kubernetes takes as everywhere; name a block such as 10.1.2.3/32",
            ));
        }
        for (index, block) in self.postgres_blocks.iter().enumerate() {
            if !is_block(block) {
                return Err(ConfigError::new(
                    format!("/postgresBlocks/{index}"),
                    "not an IPv4 block; expected one such as 10.1.2.3/32",
                ));
            }
        }
        Ok(())
    }
}

/// Whether this is an IPv4 block in the form that the API server takes.
fn is_block(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let plain = length == "0" || !length.starts_with(['0', '+']);
    plain
        && address.parse::<Ipv4Addr>().is_ok()
        && length.parse::<u8>().is_ok_and(|length| length <= 32)
}

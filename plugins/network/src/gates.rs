//! The labels of a Profile that decide over policies.

use reeve_sdk::prelude::*;

use crate::config::Config;

/// What must hold for a policy to be there.
#[derive(Clone, Copy)]
pub(crate) enum Gate {
    /// Nothing.
    Always,
    /// The Profile asks for source control.
    SourceControl,
    /// The Profile asks for S3.
    S3,
    /// Everybody in the Profile is known to be a user of cloud-main.
    Employees,
}

/// What the labels of one Profile say.
pub(crate) struct Gates {
    source_control: bool,
    s3: bool,
    employees: bool,
}

impl Gates {
    /// A label that is no boolean opens nothing, and is told of.
    pub(crate) fn read(profile: &Metadata, config: &Config, problems: &mut Problems) -> Self {
        let mut flag = |label: &str| problems.take(profile.flag(label)).flatten();
        Self {
            source_control: flag(&config.source_control_label) == Some(true),
            s3: flag(&config.s3_label) == Some(true),
            employees: flag(&config.non_employee_label) == Some(false),
        }
    }

    pub(crate) fn is_open(&self, gate: Gate) -> bool {
        match gate {
            Gate::Always => true,
            Gate::SourceControl => self.source_control,
            Gate::S3 => self.s3,
            Gate::Employees => self.employees,
        }
    }
}

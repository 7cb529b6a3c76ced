//! The Profiles: whose they are, and what their labels ask for.

use std::collections::BTreeMap;

use reeve_test_support::samples;
use serde_json::{Value, json};

use crate::buckets::MISNAMED;

/// The label that asks for Gitea.
pub const SOURCE_CONTROL: &str = "sourcecontrol.statcan.gc.ca/enabled";
/// The label that asks for a proxy to S3.
pub const S3: &str = "s3.statcan.gc.ca/enabled";
/// The label that says whether there are guests.
pub const GUESTS: &str = "state.aaw.statcan.gc.ca/exists-non-cloud-main-user";
/// What labels begin with that change a quota.
pub const QUOTA: &str = "quotas.statcan.gc.ca/";

/// The longest name that a role or a database has.
const LONGEST_DATABASE: usize = 63;

/// A Profile, with what belongs to it.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its name, and that of its namespace.
    pub name: String,
    /// Of the Profile.
    pub labels: BTreeMap<String, String>,
    /// The kind of its owner.
    pub owner: &'static str,
    /// What people have made in its namespace.
    pub notebooks: Vec<String>,
    /// What its units have to say: of which plugin, in which condition, in which words.
    pub told: Vec<(&'static str, &'static str, String)>,
    /// Whether the container that is called as it is belongs to another.
    pub is_twin: bool,
    /// Whether it had a Gitea when it ceased to ask for one.
    pub has_opted_out: bool,
}

impl Tenant {
    /// One that asks for nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            owner: "User",
            notebooks: Vec::new(),
            told: Vec::new(),
            is_twin: false,
            has_opted_out: false,
        }
    }

    /// With a label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// With a notebook.
    pub fn notebook(mut self, name: impl Into<String>) -> Self {
        self.notebooks.push(name.into());
        self
    }

    /// A unit of its says these words.
    fn told(mut self, plugin: &'static str, condition: &'static str, words: &str) -> Self {
        self.told.push((plugin, condition, words.to_owned()));
        self
    }

    /// A label that is a boolean, as Go reads one.
    pub fn flag(&self, label: &str) -> Option<bool> {
        match self.labels.get(label)?.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
            _ => None,
        }
    }

    /// Role and database.
    pub fn database(&self) -> String {
        format!("gitea_{}", self.name.replace('-', "_"))
    }

    /// Whether it asks for Gitea and can have one, or has kept it.
    pub fn has_gitea(&self) -> bool {
        let asks = self.flag(SOURCE_CONTROL) == Some(true);
        (asks || self.has_opted_out) && self.database().len() <= LONGEST_DATABASE
    }

    /// Its container in each storage account. What a Kubernetes name cannot have does not
    /// come up here.
    pub fn container(&self) -> String {
        let mut name = self.name.clone();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        format!("{name:a<3}")
    }

    /// Profile, namespace, and what people have made in it.
    pub fn objects(&self) -> Vec<Value> {
        let mut profile = samples::profile(&self.name);
        profile["metadata"]["labels"] = json!(self.labels);
        profile["spec"]["owner"]["kind"] = json!(self.owner);
        let notebooks = self.notebooks.iter().map(|notebook| {
            json!({
                "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
                "metadata": {"name": notebook, "namespace": self.name},
                "spec": {"template": {"spec": {"containers": [{"name": "lab", "image": "lab"}]}}},
            })
        });
        let mut objects = vec![samples::namespace(&self.name), profile];
        objects.extend(notebooks);
        objects
    }
}

/// Ninety that mix labels, and ten that are odd or wrong.
pub fn hundred() -> Vec<Tenant> {
    let mut tenants = mixed(90);
    tenants.extend(odd());
    tenants
}

/// So many that mix labels.
pub fn mixed(count: usize) -> Vec<Tenant> {
    const TRUE: [&str; 6] = ["true", "1", "t", "TRUE", "True", "T"];
    const FALSE: [&str; 6] = ["false", "0", "f", "FALSE", "False", "F"];
    let nth = |words: [&'static str; 6], index: usize| words[index % words.len()];
    (0..count)
        .map(|index| {
            let mut tenant = Tenant::new(format!("team-{index:02}"));
            match index % 8 {
                0 => tenant = tenant.label(SOURCE_CONTROL, nth(TRUE, index / 8)),
                4 => tenant = tenant.label(SOURCE_CONTROL, nth(FALSE, index / 8)),
                _ => {}
            }
            match index % 5 {
                1 => tenant = tenant.label(S3, nth(TRUE, index / 5)),
                2 => tenant = tenant.label(S3, nth(FALSE, index / 5)),
                _ => {}
            }
            match index % 4 {
                0 => tenant = tenant.label(GUESTS, nth(FALSE, index / 4)),
                1 => tenant = tenant.label(GUESTS, nth(TRUE, index / 4)),
                _ => {}
            }
            match index % 9 {
                3 => {
                    tenant = tenant
                        .label(format!("{QUOTA}pods"), index.to_string())
                        .label(format!("{QUOTA}requests.cpu"), "96")
                        .label(format!("{QUOTA}requests.storage"), "500Gi");
                }
                5 => tenant = tenant.label(format!("{QUOTA}gpu"), "4"),
                7 => tenant = tenant.label(format!("{QUOTA}unknown"), "many"),
                _ => {}
            }
            if index % 4 == 0 {
                tenant = tenant.notebook("lab");
            }
            if index % 12 == 0 {
                tenant = tenant.notebook("second");
            }
            if index == 2 {
                // It may read the one whose name is none.
                tenant = tenant.told("blobcsi", "BucketsUsable", MISNAMED.1);
            }
            tenant
        })
        .collect()
}

/// What is wrong with them costs nothing else, and is told.
fn odd() -> [Tenant; 10] {
    let pods = format!("{QUOTA}pods");
    let too_long = "n".repeat(60);
    let notebook = "n".repeat(70);
    let mut owned_by_group = Tenant::new("odd-owner").told("rbac", "OwnerUsable", "is Group");
    owned_by_group.owner = "Group";
    let mut twin = Tenant::new("twin--a").told("blobcsi", "Ready", "is that of Profile twin-a");
    twin.is_twin = true;
    [
        Tenant::new("twin-a"),
        // Too short for a container.
        Tenant::new("ab"),
        // As long as can be.
        Tenant::new("l".repeat(63)),
        Tenant::new("odd-quota")
            .label(&pods, "two")
            .label(format!("{QUOTA}gpu"), "many")
            .label(format!("{QUOTA}limits.memory"), "10G")
            .told("quotas", "LabelsUsable", &format!("{pods}=two")),
        Tenant::new("odd-source-control")
            .label(SOURCE_CONTROL, "yes")
            .told("gitea-unclassified", "Ready", SOURCE_CONTROL)
            .told("gitea-protected-b", "Ready", SOURCE_CONTROL)
            .told("network", "LabelsUsable", SOURCE_CONTROL),
        Tenant::new("odd-switches")
            .label(S3, "on")
            .label(GUESTS, "perhaps")
            .told("s3proxy", "LabelsUsable", S3)
            .told("cloudmain", "LabelsUsable", GUESTS)
            .told("network", "LabelsUsable", GUESTS),
        owned_by_group,
        Tenant::new(&too_long)
            .label(SOURCE_CONTROL, "true")
            .told("gitea-unclassified", "Ready", "a shorter name")
            .told("gitea-protected-b", "Ready", "a shorter name"),
        Tenant::new("odd-notebook")
            .notebook("lab")
            .notebook(&notebook)
            .told("authpolicy", "NotebooksUsable", &notebook),
        twin,
    ]
}

/// One for each combination of three labels, and some that are wrong.
pub fn every_gate() -> Vec<Tenant> {
    let mut tenants: Vec<Tenant> = (0..8)
        .map(|index| {
            let word = |bit: usize| match index >> bit & 1 {
                0 => "false",
                _ => "true",
            };
            Tenant::new(format!("code-{index}"))
                .label(SOURCE_CONTROL, word(0))
                .label(S3, word(1))
                .label(GUESTS, word(2))
                .notebook("lab")
        })
        .collect();
    tenants.extend([
        Tenant::new("code-plain"),
        Tenant::new("code-odd")
            .label(GUESTS, "perhaps")
            .told("cloudmain", "LabelsUsable", GUESTS)
            .told("network", "LabelsUsable", GUESTS),
    ]);
    tenants
}

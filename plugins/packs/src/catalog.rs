//! The packs that there are: what each needs, and the releases in it.

use crate::kinds::FLUX_NAMESPACE;

/// A pack.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    /// The id of its ApplySet; see [`crate::applyset`].
    pub(crate) set: &'static str,
    /// Its place in the order of packs, for people and for removal.
    pub(crate) wave: i64,
    /// The packs that have to be ready before it.
    pub(crate) needs: &'static [&'static str],
    /// Where its objects are. It makes those namespaces that nobody else has made.
    pub(crate) namespaces: &'static [&'static str],
    pub(crate) releases: &'static [Release],
}

/// A release of a chart.
pub(crate) struct Release {
    /// Its name, in Flux and in Helm.
    pub(crate) name: &'static str,
    pub(crate) namespace: &'static str,
    /// The chart's name in the base repository.
    pub(crate) chart: &'static str,
    /// The one of the same pack that comes before it.
    pub(crate) after: Option<&'static str>,
    pub(crate) when: When,
}

/// Whether a release is wanted.
#[derive(Clone, Copy)]
pub(crate) enum When {
    Always,
    /// A key of the configuration is true; see [`crate::keys::Key::id`].
    Flag(&'static str),
    /// Something is configured that only this release uses.
    Configured,
}

const fn release(name: &'static str, namespace: &'static str) -> Release {
    Release {
        name,
        namespace,
        chart: name,
        after: None,
        when: When::Always,
    }
}

impl Release {
    const fn chart(mut self, chart: &'static str) -> Self {
        self.chart = chart;
        self
    }

    const fn after(mut self, other: &'static str) -> Self {
        self.after = Some(other);
        self
    }

    const fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }
}

pub(crate) const FLUX: &str = "flux";
pub(crate) const REPOSITORY: &str = "sgp-helm-repository";
pub(crate) const ISTIO: &str = "istio";
pub(crate) const SPICEDB: &str = "spicedb";
pub(crate) const IDENTITY: &str = "identity-service";
pub(crate) const TEMPORAL: &str = "temporalf";
pub(crate) const APPS: &str = "sgp-apps";

/// The namespace of the front door.
pub(crate) const INGRESS: &str = "istio-ingress";
const SYSTEM: &str = "istio-system";
const SGP: &str = "sgp";

/// All packs, each after those that it needs.
pub(crate) const PACKS: [Definition; 7] = [
    Definition {
        name: FLUX,
        set: "applyset-ajiHB2fplifvhJ7XTXSNhelLQWatBEZ7ijTYwRYSeIQ-v1",
        wave: -100,
        needs: &[],
        namespaces: &[FLUX_NAMESPACE],
        releases: &[],
    },
    Definition {
        name: REPOSITORY,
        set: "applyset-xE7pztGmbCT47vlym9eN4QywlAi0M45mv2HFToowOk4-v1",
        wave: -90,
        needs: &[FLUX],
        namespaces: &[],
        releases: &[],
    },
    Definition {
        name: ISTIO,
        set: "applyset-zrw3PV87LCZCY4-GxFTrGRKYXK7vP_AV7rYdLjgzKj8-v1",
        wave: -80,
        needs: &[REPOSITORY],
        namespaces: &[SYSTEM, INGRESS],
        releases: &[
            release("istio-base", SYSTEM).chart("base"),
            release("istiod", SYSTEM).after("istio-base"),
            release("istio-gateway", INGRESS)
                .chart("gateway")
                .after("istiod"),
        ],
    },
    Definition {
        name: SPICEDB,
        set: "applyset-oCwBoGzuXs9HE5m9_6TJEG3Wvmp1aWwKv2qnJYYDsZ0-v1",
        wave: -60,
        needs: &[REPOSITORY],
        namespaces: &[SPICEDB],
        releases: &[release("spicedb", SPICEDB)],
    },
    Definition {
        name: IDENTITY,
        set: "applyset-OyOhzDNiKk-QBdLFo3T60t95h9j2LEtWyzWeObqbjSM-v1",
        wave: -40,
        needs: &[ISTIO, SPICEDB],
        namespaces: &[IDENTITY],
        releases: &[release("identity-service", IDENTITY)],
    },
    Definition {
        name: TEMPORAL,
        set: "applyset-Usy4lhA3QwaGoHDCNleitBzvH3Zu0EBuq-FoHVMXnCc-v1",
        wave: -40,
        needs: &[REPOSITORY],
        namespaces: &[TEMPORAL],
        releases: &[release("temporalf", TEMPORAL)],
    },
    Definition {
        name: APPS,
        set: "applyset-OEixi8Gp1AjVYWgOMCxcEWgkgI56nQRLCM1MsYHqIE8-v1",
        wave: 0,
        needs: &[IDENTITY, TEMPORAL],
        namespaces: &[SGP],
        releases: &[
            release("sgp", SGP),
            release("agentex", SGP).when(When::Flag("/deployAgentex")),
            release("sae", SGP).when(When::Flag("/deploySae")),
            release("cloud-deploy", SGP).when(When::Flag("/aws/cloudDeployEnabled")),
            release("compass", SGP).when(When::Configured),
            release("datadog", SGP).when(When::Flag("/datadog/enabled")),
            release("dex", SGP).when(When::Configured),
            release("model-engine", SGP).when(When::Configured),
            release("reducto", SGP).when(When::Configured),
            release("registry-proxy", SGP).when(When::Configured),
            release("train", SGP).when(When::Configured),
        ],
    },
];

/// The pack of this name.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    PACKS.iter().find(|pack| pack.name == name)
}

/// What is said of a name that is no pack's.
pub(crate) fn unknown() -> String {
    let names: Vec<&str> = PACKS.iter().map(|pack| pack.name).collect();
    format!("there is no such pack; there are {}", names.join(", "))
}

/// The namespaces of all packs but Flux's.
pub(crate) fn namespaces() -> Vec<String> {
    PACKS
        .iter()
        .filter(|pack| pack.name != FLUX)
        .flat_map(|pack| pack.namespaces)
        .map(|name| (*name).to_owned())
        .collect()
}

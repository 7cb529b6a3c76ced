//! A cluster with the plugin quotas in it, and replicas of the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::jiff::Timestamp;
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, User, eventually};
use reeve_test_support::{component, samples};
use serde_json::Value;

/// Each replica is a user of its own, so that the audit log tells them apart.
const USERS: [&str; 2] = ["reeve-one", "reeve-two"];
const NAMESPACE: &str = "reeve-system";
/// The label of a Profile that sets its quota of pods.
const PODS: &str = "quotas.statcan.gc.ca/pods";
pub(crate) const PROFILES: [&str; 4] = ["ann", "bob", "cleo", "dan"];

/// A short lease: tests wait for its end.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
pub(crate) const RETRY: Duration = Duration::from_millis(500);
const ELECTION: [&str; 4] = [
    "--leader-elect",
    "--lease-duration=4s",
    "--lease-renew-deadline=2s",
    "--lease-retry-period=500ms",
];

/// What a new leader needs to read everything anew, with some seconds to spare on
/// a busy machine.
pub(crate) const TAKEOVER: Duration = Duration::from_secs(8);

/// What a leader counts.
const LEADING: &str = "\nreeve_leader 1\n";

pub(crate) struct Stage {
    cluster: Arc<ControlPlane>,
}

/// A replica, and as whom it runs.
pub(crate) struct Replica {
    pub(crate) agent: Agent,
    pub(crate) user: &'static str,
}

/// What stands in the Lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease {
    /// When its holder renewed it last, by the holder's clock.
    pub(crate) renewed: Timestamp,
    /// How often another has come to hold it.
    pub(crate) transitions: u64,
}

/// A write of one of the replicas, as the API server noted it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) at: String,
    pub(crate) user: String,
    pub(crate) what: String,
}

impl Stage {
    /// A cluster with all that replicas need, and none of them.
    pub(crate) fn new() -> Result<Self> {
        let mut builder = ControlPlane::builder().audited().controllers([]);
        for user in USERS {
            builder = builder.user(User::new(user));
        }
        let cluster = builder.start()?;
        cluster.install_kinds()?;
        let stage = Self {
            cluster: Arc::new(cluster),
        };
        stage.cluster.establish(&samples::profile_crd())?;
        stage.apply(&[samples::namespace(NAMESPACE)])?;
        stage.apply(&for_both(grant::agent_base(
            NAMESPACE,
            Subject::User(USERS[0]),
        )))?;
        for name in PROFILES {
            stage.apply(&[samples::profile(name), samples::namespace(name)])?;
        }
        let cluster = &stage.cluster;
        cluster.deliver(NAMESPACE, "quotas", &component("quotas"), None)?;
        stage.grant()?;
        Ok(stage)
    }

    /// Grants the plugin what its manifest asks for, and both replicas to act for it.
    fn grant(&self) -> Result<()> {
        let grant = ["plugin", "grant", "quotas", "--namespace", NAMESPACE];
        let to = ["--agent-user", USERS[0], "-o", "json"];
        let list = self.cluster.reeve(&[&grant[..], &to].concat())?;
        let list: Value = serde_json::from_str(&list)?;
        let objects = list["items"].as_array().context("no list of objects")?;
        self.apply(&for_both(objects.clone()))
    }

    fn apply(&self, objects: &[Value]) -> Result<()> {
        self.cluster.apply_objects(objects)
    }

    /// Starts the replica `one` or `two`.
    pub(crate) fn start(&self, name: &'static str) -> Result<Replica> {
        let user = if name == "one" { USERS[0] } else { USERS[1] };
        let namespace = format!("--namespace={NAMESPACE}");
        let election = ELECTION.map(str::to_owned);
        let arguments: Vec<String> = election.into_iter().chain([namespace]).collect();
        let kubeconfig = self.cluster.kubeconfig_of(user)?;
        let agent = Agent::start_named(&self.cluster, name, &kubeconfig, &arguments)?;
        Ok(Replica { agent, user })
    }

    pub(crate) fn wait_until_leading(&self, replica: &Replica) -> Result<()> {
        // What it counts, since it leads only when it has read everything anew.
        self.wait_for_answer(replica, "/metrics", LEADING)
    }

    /// Whether a replica leads, and has read everything.
    pub(crate) fn leads(&self, replica: &Replica) -> Result<bool> {
        let (_, body) = replica.agent.ask("/metrics")?;
        Ok(body.contains(LEADING))
    }

    pub(crate) fn wait_until_following(&self, replica: &Replica) -> Result<()> {
        self.wait_for_answer(replica, "/readyz", "\nfollower of ")
    }

    fn wait_for_answer(&self, replica: &Replica, path: &str, text: &str) -> Result<()> {
        let what = format!("{path} of {} has {text:?}", replica.user);
        let waited = eventually(&what, || {
            let (_, body) = replica.agent.ask(path)?;
            ensure!(body.contains(text), "it is {body:?}");
            Ok(())
        });
        waited.map_err(|error| error.context(replica.agent.log_tail()))
    }

    /// Who holds the lease, and since when.
    pub(crate) fn lease(&self) -> Result<Lease> {
        let leases = self.cluster.list("leases", NAMESPACE)?;
        let spec = &leases.first().context("there is no lease")?["spec"];
        let renewed = spec["renewTime"].as_str().context("it was not renewed")?;
        Ok(Lease {
            renewed: renewed.parse()?,
            transitions: spec["leaseTransitions"].as_u64().unwrap_or_default(),
        })
    }

    /// Has somebody elsewhere hold the lease.
    pub(crate) fn lead_elsewhere(&self) -> Result<()> {
        let leases = self.cluster.list("leases", NAMESPACE)?;
        let mut lease = leases.into_iter().next().context("there is no lease")?;
        let transitions = lease["spec"]["leaseTransitions"].as_u64();
        lease["spec"]["leaseTransitions"] = (transitions.unwrap_or_default() + 1).into();
        lease["spec"]["holderIdentity"] = "elsewhere".into();
        lease["spec"]["renewTime"] = format!("{:.6}", Timestamp::now()).into();
        let replace = ["replace", "-f", "-"];
        let text = lease.to_string();
        self.cluster
            .kubectl_with(reeve_real::ADMIN, &replace, &text)
            .map(drop)
    }

    /// When a replica renewed the lease, or came to hold it, by the clock of the API
    /// server.
    pub(crate) fn renewals(&self, user: &str) -> Result<Vec<Timestamp>> {
        let log = self.cluster.audit_log()?;
        let renewals = log.iter().filter(|event| {
            event["objectRef"]["resource"] == "leases"
                && event["user"]["username"] == user
                && event["verb"] == "update"
                && event["responseStatus"]["code"] == 200
        });
        let times = renewals.filter_map(|event| event["requestReceivedTimestamp"].as_str());
        let times: Result<Vec<Timestamp>, _> = times.map(str::parse).collect();
        let mut times = times?;
        times.sort();
        Ok(times)
    }

    /// Edits all quotas by hand.
    pub(crate) fn edit_all(&self) -> Result<()> {
        PROFILES.iter().try_for_each(|profile| self.edit(profile))
    }

    /// Edits a quota by hand, which the leader puts right.
    pub(crate) fn edit(&self, profile: &str) -> Result<()> {
        let patch = r#"{"spec":{"hard":{"pods":"7"}}}"#;
        let edit = [
            "patch",
            "resourcequota",
            "quotas",
            "-n",
            profile,
            "-p",
            patch,
        ];
        self.cluster.kubectl(&edit).map(drop)
    }

    /// Waits until all quotas are as they should be.
    pub(crate) fn wait_for_repair(&self) -> Result<()> {
        for profile in PROFILES {
            eventually(&format!("the quota of {profile} is right"), || {
                let quota = self.cluster.get("resourcequota", profile, "quotas")?;
                let pods = &quota.context("there is none")?["spec"]["hard"]["pods"];
                ensure!(pods == "100", "it has {pods}");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Keeps asking for other quotas until it is told to stop.
    pub(crate) fn meddle(&self) -> Meddler {
        let (cluster, end) = (self.cluster.clone(), Arc::new(AtomicBool::new(false)));
        let ended = end.clone();
        let thread = thread::spawn(move || {
            for pods in (1..90).cycle() {
                for profile in PROFILES {
                    if ended.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    let label = format!("{PODS}={pods}");
                    let label = ["label", "profile", profile, &label, "--overwrite"];
                    cluster.kubectl(&label)?;
                }
            }
            Ok(())
        });
        let cluster = self.cluster.clone();
        Meddler {
            cluster,
            end,
            thread,
        }
    }

    /// What the replicas have written, in the order in which the API server got it:
    /// not the lease, and not questions.
    pub(crate) fn writers(&self) -> Result<Vec<Write>> {
        let mut writes: Vec<Write> = Vec::new();
        for event in self.cluster.audit_log()? {
            let text = |pointer: &str| {
                let value = event.pointer(pointer).and_then(Value::as_str);
                value.unwrap_or_default().to_owned()
            };
            let group = text("/objectRef/apiGroup");
            let user = text("/user/username");
            let ours = USERS.contains(&user.as_str());
            if !ours || ["coordination.k8s.io", "authorization.k8s.io"].contains(&group.as_str()) {
                continue;
            }
            let words = [
                "/verb",
                "/objectRef/resource",
                "/objectRef/namespace",
                "/objectRef/name",
            ];
            writes.push(Write {
                at: text("/requestReceivedTimestamp"),
                user,
                what: words.map(text).join(" "),
            });
        }
        // They are noted when they are answered.
        writes.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(writes)
    }
}

/// Somebody who keeps asking for other quotas.
pub(crate) struct Meddler {
    cluster: Arc<ControlPlane>,
    end: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Meddler {
    pub(crate) fn stop(self) -> Result<()> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("it panicked"))??;
        let default = format!("{PODS}-");
        let label = ["label", "profile", "--all", &default];
        self.cluster.kubectl(&label).map(drop)
    }
}

/// Binds to both replicas what binds to the first.
fn for_both(mut objects: Vec<Value>) -> Vec<Value> {
    for subjects in objects
        .iter_mut()
        .filter_map(|object| object["subjects"].as_array_mut())
    {
        if subjects[0]["name"] == USERS[0] {
            let mut other = subjects[0].clone();
            other["name"] = USERS[1].into();
            subjects.push(other);
        }
    }
    objects
}

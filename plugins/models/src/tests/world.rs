//! A cluster in which what the plugin returns comes to be, and tests play the
//! controllers.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use reeve_sdk::prelude::*;

use super::{digest, run, secret};

/// Kind and name.
type Key = (String, String);

/// A namespace with ModelDeployments.
pub(super) struct World {
    pub(super) config: Value,
    /// Everything that is there, and whose it is, if a deployment's.
    objects: BTreeMap<Key, (Value, Option<String>)>,
    specs: BTreeMap<String, Value>,
    statuses: BTreeMap<String, Value>,
    pub(super) events: Vec<String>,
    /// What the supervisor was told, each once.
    pub(super) reports: Vec<Value>,
    created: u32,
    now: SystemTime,
}

impl World {
    pub(super) fn new(config: Value) -> Self {
        let mut world = Self {
            config,
            objects: BTreeMap::new(),
            specs: BTreeMap::new(),
            statuses: BTreeMap::new(),
            events: Vec::new(),
            reports: Vec::new(),
            created: 0,
            now: humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap(),
        };
        world.put(secret("mlops-api-key", "Opaque"));
        world
    }

    /// Somebody else's object.
    pub(super) fn put(&mut self, object: Value) {
        self.objects.insert(key(&object), (object, None));
    }

    pub(super) fn delete(&mut self, kind: &str, name: &str) {
        let found = self.objects.remove(&(kind.to_owned(), name.to_owned()));
        assert!(found.is_some(), "no {kind} {name}");
    }

    /// Sets the spec of a deployment, and lets the plugin answer.
    pub(super) fn wants(&mut self, name: &str, mut spec: Value) {
        // Each has an id of its own, unless it is about that.
        if spec["deploymentId"] == "64f0" && name != "churn" {
            spec["deploymentId"] = json!(format!("64f0-{name}"));
        }
        self.specs_as_they_are(name, spec);
    }

    /// The same, whatever id it has.
    pub(super) fn specs_as_they_are(&mut self, name: &str, spec: Value) {
        self.specs.insert(name.to_owned(), spec);
        self.settle();
    }

    /// Deletes a deployment, and with it what is its.
    pub(super) fn ends(&mut self, name: &str) {
        self.specs.remove(name);
        self.statuses.remove(name);
        self.objects
            .retain(|_, (_, owner)| owner.as_deref() != Some(name));
        self.settle();
    }

    /// Lets the plugin answer until nothing changes.
    pub(super) fn settle(&mut self) {
        for _ in 0..10 {
            let before = (self.objects.clone(), self.statuses.clone());
            for (name, spec) in self.specs.clone() {
                self.reconcile(&name, &spec);
            }
            if before == (self.objects.clone(), self.statuses.clone()) {
                return;
            }
        }
        panic!("it does not settle");
    }

    /// What the plugin is shown of all objects but the records of this name.
    pub(super) fn shown_without(&self, record: &str) -> Context {
        let objects = self.objects.values().map(|(object, _)| object);
        let shown = objects.filter(|object| object["metadata"]["name"] != record);
        shown.fold(Context::test().at(self.now), Context::with_object)
    }

    fn reconcile(&mut self, name: &str, spec: &Value) {
        let cx = self.shown_without("");
        let outcome = run(name, spec, &self.config, cx).unwrap();
        for event in outcome.events() {
            let text = format!("{}: {}", event.reason, event.message);
            if !self.events.contains(&text) {
                self.events.push(text);
            }
        }
        for action in outcome.actions() {
            let report: Json = Actuation::new(action, Verb::Apply).input().unwrap();
            let mut before = self.reports.iter().rev();
            let same = before.find(|one| one["deploymentId"] == report["deploymentId"]);
            if same != Some(&*report) {
                self.reports.push(report.0);
            }
        }
        let mut wanted = Vec::new();
        for object in outcome.objects_json() {
            if object["kind"] == "ModelDeployment" {
                self.statuses
                    .insert(name.to_owned(), object["status"].clone());
                continue;
            }
            wanted.push(key(&object));
            self.apply(name, object);
        }
        self.objects.retain(|key, (object, owner)| {
            owner.as_deref() != Some(name)
                || wanted.contains(key)
                || object["metadata"]["annotations"]["reeve.dev/delete"] == "never"
        });
    }

    /// As the host applies: what belongs to another is left alone, a Job's template
    /// cannot be changed, and controllers have their status.
    fn apply(&mut self, name: &str, mut object: Value) {
        let key = key(&object);
        match self.objects.get_mut(&key) {
            Some((_, owner)) if owner.as_deref() != Some(name) => {}
            Some((live, _)) => {
                if key.0 == "Job" {
                    let template = &live["spec"]["template"];
                    assert_eq!(template, &object["spec"]["template"], "{key:?}");
                }
                for kept in ["uid", "creationTimestamp", "generation"] {
                    object["metadata"][kept] = live["metadata"][kept].clone();
                }
                if live["spec"] != object["spec"] {
                    let generation = live["metadata"]["generation"].as_i64();
                    object["metadata"]["generation"] = json!(generation.unwrap_or(1) + 1);
                }
                object["status"] = live["status"].clone();
                *live = object;
            }
            None => {
                self.created += 1;
                object["metadata"]["uid"] = json!(format!("uid-{}", self.created));
                object["metadata"]["generation"] = json!(1);
                object["metadata"]["creationTimestamp"] =
                    json!(format!("2026-01-01T00:00:{:02}Z", self.created));
                object["status"] = json!({});
                self.objects.insert(key, (object, Some(name.to_owned())));
            }
        }
    }

    pub(super) fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        let found = self.objects.get(&(kind.to_owned(), name.to_owned()));
        found.map(|(object, _)| object)
    }

    pub(super) fn edit(&mut self, kind: &str, name: &str) -> &mut Value {
        let key = (kind.to_owned(), name.to_owned());
        let (object, _) = self.objects.get_mut(&key).expect("it is there");
        object
    }

    /// The names of all objects of a kind.
    pub(super) fn names(&self, kind: &str) -> Vec<String> {
        let keys = self.objects.keys().filter(|(known, _)| known == kind);
        keys.map(|(_, name)| name.clone()).collect()
    }

    /// The one build that is not over.
    pub(super) fn active_job(&self) -> String {
        let is_active = |name: &&String| {
            let job = self.get("Job", name).expect("it is there");
            job["status"]["conditions"].is_null()
        };
        let names = self.names("Job");
        let active: Vec<&String> = names.iter().filter(is_active).collect();
        assert_eq!(active.len(), 1, "{names:?}");
        active[0].clone()
    }

    pub(super) fn status(&self, name: &str) -> &Value {
        &self.statuses[name]
    }

    /// Phase, status and reason.
    pub(super) fn told(&self, name: &str) -> (&str, &str, &str) {
        let status = self.status(name);
        let text = |field: &str| status[field].as_str().unwrap_or_default();
        (text("phase"), text("status"), text("reason"))
    }

    fn finish(&mut self, job: &str, kind: &str, reason: &str) {
        let condition =
            json!({"type": kind, "status": "True", "reason": reason, "message": "over"});
        self.edit("Job", job)["status"] = json!({"conditions": [condition]});
    }

    fn pod(&mut self, job: &str, status: &Value) {
        let labels = self.edit("Job", job)["spec"]["template"]["metadata"]["labels"].clone();
        let count = self.names("Pod").len();
        self.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{job}-{count}"), "namespace": "models", "labels": labels},
            "status": status,
        }));
    }

    fn ended(&mut self, job: &str, phase: &str, container: &str, code: i64, said: &str) {
        let state = json!({"terminated": {"exitCode": code, "message": said}});
        let list = match container {
            "fetch" => "initContainerStatuses",
            _ => "containerStatuses",
        };
        self.pod(
            job,
            &json!({"phase": phase, list: [{"name": container, "state": state}]}),
        );
    }

    /// The build succeeds, and says this.
    pub(super) fn succeeds(&mut self, job: &str, said: &str) {
        self.ended(job, "Succeeded", "build", 0, said);
        self.finish(job, "Complete", "CompletionsReached");
        self.settle();
    }

    /// The build fails: this container ends so.
    pub(super) fn fails(&mut self, job: &str, container: &str, code: i64, said: &str) {
        self.ended(job, "Failed", container, code, said);
        self.finish(job, "Failed", "BackoffLimitExceeded");
        self.settle();
    }

    /// Its pods are evicted, until it fails.
    pub(super) fn is_evicted(&mut self, job: &str) {
        self.pod(
            job,
            &json!({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"}),
        );
        self.finish(job, "Failed", "BackoffLimitExceeded");
        self.settle();
    }

    /// Its pod waits.
    pub(super) fn waits(&mut self, job: &str, reason: &str) {
        let state = json!({"waiting": {"reason": reason, "message": "so it is"}});
        self.pod(
            job,
            &json!({"phase": "Pending", "containerStatuses": [{"name": "build", "state": state}]}),
        );
        self.settle();
    }

    /// The Job ends well, and nobody can read what it said.
    pub(super) fn loses_its_pod(&mut self, job: &str) {
        self.finish(job, "Complete", "CompletionsReached");
        self.settle();
    }

    /// The Deployment controller has done its part: a ReplicaSet for what is wanted is
    /// all that answers. Two older ones are kept.
    pub(super) fn rolls_out(&mut self, name: &str) {
        self.rolls_out_with(name, 1);
    }

    /// The same with so many servers.
    pub(super) fn rolls_out_with(&mut self, name: &str, servers: u32) {
        self.roll(name, servers, 0);
        let status = json!({
            "replicas": servers, "updatedReplicas": servers, "availableReplicas": servers,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}],
        });
        self.report(name, status);
    }

    /// The new servers do not come up in time; the old ones answer.
    pub(super) fn is_stuck(&mut self, name: &str) {
        self.roll(name, 0, 1);
        let message = "ReplicaSet has timed out progressing";
        let status = json!({
            "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": message}],
        });
        self.report(name, status);
    }

    /// New servers come up beside old ones.
    pub(super) fn is_rolling(&mut self, name: &str, new: u32, old: u32) {
        self.roll(name, new, old);
        let status = json!({
            "replicas": new + old, "updatedReplicas": new, "availableReplicas": new + old,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}],
        });
        self.report(name, status);
    }

    /// A server that answered does not any more.
    pub(super) fn loses_a_server(&mut self, name: &str) {
        self.roll(name, 0, 0);
        let status = json!({
            "replicas": 1, "updatedReplicas": 1, "availableReplicas": 0,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}],
        });
        self.report(name, status);
    }

    /// So many servers are there, and so many answer: not all of them, from now on.
    pub(super) fn has_servers(&mut self, name: &str, servers: i64, available: u32) {
        self.roll(name, available, 0);
        let now = humantime::format_rfc3339_seconds(self.now).to_string();
        let status = json!({
            "replicas": servers, "updatedReplicas": servers, "availableReplicas": available,
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                {"type": "Available", "status": "False", "lastTransitionTime": now},
            ],
        });
        self.report(name, status);
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.settle();
    }

    fn report(&mut self, name: &str, status: Value) {
        let deployment = self.edit("Deployment", name);
        let generation = deployment["metadata"]["generation"].clone();
        deployment["status"] = status;
        deployment["status"]["observedGeneration"] = generation;
        self.settle();
    }

    fn roll(&mut self, name: &str, new: u32, old: u32) {
        let template = self.edit("Deployment", name)["spec"]["template"].clone();
        let of = |set: &Value| set["metadata"]["labels"]["models.reeve.dev/deployment"] == name;
        let mut sets: Vec<(String, bool)> = self
            .objects
            .values()
            .map(|(object, _)| object)
            .filter(|object| object["kind"] == "ReplicaSet" && of(object))
            .map(|set| {
                let name = set["metadata"]["name"].as_str().unwrap_or_default();
                (name.to_owned(), set["spec"]["template"] == template)
            })
            .collect();
        if !sets.iter().any(|(_, is_new)| *is_new) {
            self.created += 1;
            let set = format!("{name}-{:03}", self.created);
            self.put(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": set, "namespace": "models", "labels": template["metadata"]["labels"]},
                "spec": {"template": template},
            }));
            sets.push((set, true));
        }
        let latest_old = sets.iter().rfind(|(_, is_new)| !is_new).cloned();
        for (set, is_new) in &sets {
            let available = match (
                is_new,
                latest_old.as_ref().is_some_and(|(old, _)| old == set),
            ) {
                (true, _) => new,
                (false, true) => old,
                (false, false) => 0,
            };
            self.edit("ReplicaSet", set)["status"] = json!({"availableReplicas": available});
        }
        // revisionHistoryLimit: 2.
        let surplus = sets.len().saturating_sub(3);
        for (set, _) in sets.iter().filter(|(_, is_new)| !is_new).take(surplus) {
            self.delete("ReplicaSet", set);
        }
    }

    /// Builds what is wanted, with an image of this digit, and rolls it out.
    pub(super) fn completes(&mut self, name: &str, digit: char) {
        let job = self.active_job();
        self.succeeds(&job, &digest(digit));
        self.rolls_out(name);
    }
}

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

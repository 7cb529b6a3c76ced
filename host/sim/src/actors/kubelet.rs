//! The kubelet: what a pod's status says of containers that there are none of.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::conditions;
use super::context::{Context, KUBELET, Kind};
use super::node;
use super::run::{Duty, Moment, State};
use super::script::{Failure, Script};
use super::tables::PODS;
use super::template;
use crate::clock::rfc3339;
use crate::kinds::edit::{flag, integer, items, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// Bytes of a container's last word, of which a kubelet keeps the end.
const MESSAGE: usize = 4096;
/// How a container ends that is killed.
const KILLED: i32 = 137;
/// What an evicted pod is told.
const EVICTED: &str = "The node was low on resource: ephemeral-storage.";

/// Brings the status of a pod on a node up to date. `owner` is its controller.
pub(super) fn run(
    context: &mut Context<'_>,
    pod: &Value,
    script: &Script,
    owner: Option<&Value>,
) -> Result<(), ApiError> {
    let policy = text_at(pod, "/spec/restartPolicy");
    let begun = context.since(pod, "run", text_at(pod, "/status/startTime"));
    let duty = Duty {
        script,
        completes: policy != "Always",
        restarts: policy != "Never",
        fails: fails(context, pod, script, owner),
    };
    let elapsed = context.elapsed(begun);
    let moment = duty.at(elapsed);
    if let Some(next) = moment.next {
        context.wake_at(begun + next);
    }
    let life = Life {
        pod,
        duty,
        begun,
        elapsed,
        moment,
        stuck: stuck(pod, &duty),
        now: context.timestamp(),
        address: address(context, pod),
    };
    let before = pod["status"].clone();
    let after = life.status(&before);
    if before == after {
        return Ok(());
    }
    context.change_status(PODS, pod, KUBELET, |pod| {
        let status = life.status(&pod["status"]);
        set(pod, "status", status);
    })?;
    tell(context, pod, &before, &after);
    Ok(())
}

/// Whether a pod is one of those that fail: all of them, or the first few of its
/// controller. Not all that failed are counted by a Job, nor are all of them still there.
fn fails(context: &Context<'_>, pod: &Value, script: &Script, owner: Option<&Value>) -> bool {
    let wanted = match script.failure {
        Some(Failure::Exit | Failure::CrashLoop) => {
            let name = script.fail_container.as_deref();
            name.is_none_or(|name| has_container(pod, name))
        }
        Some(Failure::Evict) => true,
        _ => false,
    };
    let Some(times) = script.fail_times.filter(|_| wanted) else {
        return wanted;
    };
    let Some(owner) = owner else {
        return times > 0;
    };
    let counted = owner.pointer("/status/failed").and_then(Value::as_i64);
    let pods = context.controlled(owner, PODS);
    let there = pods.iter().filter(|pod| template::phase(pod) == "Failed");
    let there = i64::try_from(there.count()).unwrap_or(i64::MAX);
    there.max(counted.unwrap_or(0)) < times
}

fn has_container(pod: &Value, name: &str) -> bool {
    let lists = ["initContainers", "containers"];
    let mut all = lists.iter().flat_map(|list| items(&pod["spec"], list));
    all.any(|container| text(container, "name") == name)
}

/// The place of the init container that fails: nothing after it begins.
fn stuck(pod: &Value, duty: &Duty<'_>) -> Option<usize> {
    if !duty.fails_by_itself() {
        return None;
    }
    let name = duty.script.fail_container.as_deref()?;
    let mut inits = items(&pod["spec"], "initContainers");
    inits.position(|container| text(container, "name") == name)
}

/// The address of the pod: kept once given, the node's in the host's network.
fn address(context: &mut Context<'_>, pod: &Value) -> String {
    if pod.pointer("/spec/hostNetwork") == Some(&json!(true)) {
        return node::address(text_at(pod, "/spec/nodeName"));
    }
    match text_at(pod, "/status/podIP") {
        "" => context.new_address().to_string(),
        known => known.to_owned(),
    }
}

/// A pod at a moment.
struct Life<'a> {
    pod: &'a Value,
    duty: Duty<'a>,
    begun: SystemTime,
    elapsed: Duration,
    moment: Moment,
    stuck: Option<usize>,
    now: String,
    address: String,
}

impl Life<'_> {
    fn status(&self, before: &Value) -> Value {
        let generation = meta::generation(self.pod);
        let mut status = before.clone();
        set(&mut status, "observedGeneration", generation);
        set(&mut status, "phase", self.phase());
        let host = node::address(text_at(self.pod, "/spec/nodeName"));
        set(&mut status, "hostIP", host.clone());
        set(&mut status, "hostIPs", json!([{"ip": host}]));
        if !matches!(self.moment.state, State::Pulling { .. }) {
            set(&mut status, "podIP", self.address.clone());
            set(&mut status, "podIPs", json!([{"ip": self.address}]));
        }
        set(&mut status, "startTime", rfc3339(self.begun));
        set(
            &mut status,
            "conditions",
            self.conditions(before, generation),
        );
        if self.moment.state == State::Evicted {
            set(&mut status, "reason", "Evicted");
            set(&mut status, "message", EVICTED);
        }
        let inits: Vec<Value> = self
            .containers("initContainers")
            .enumerate()
            .map(|(place, container)| match self.stuck {
                Some(stuck) if place == stuck => self.container(container),
                Some(stuck) if place > stuck => waiting(container),
                _ => self.initialized(container),
            })
            .collect();
        if !inits.is_empty() {
            set(&mut status, "initContainerStatuses", inits);
        }
        let containers: Vec<Value> = self
            .containers("containers")
            .map(|container| match self.stuck {
                Some(_) => waiting(container),
                None => self.container(container),
            })
            .collect();
        set(&mut status, "containerStatuses", containers);
        status
    }

    fn containers(&self, list: &'static str) -> impl Iterator<Item = &Value> {
        items(&self.pod["spec"], list)
    }

    fn phase(&self) -> &'static str {
        match self.moment.state {
            State::Pulling { .. } => "Pending",
            State::Running { .. } | State::BackingOff if self.stuck.is_some() => "Pending",
            State::Running { .. } | State::BackingOff => "Running",
            State::Over { failed: true } | State::Evicted => "Failed",
            State::Over { failed: false } => "Succeeded",
        }
    }

    fn conditions(&self, before: &Value, generation: i64) -> Vec<Value> {
        let ready = self.moment.state == State::Running { ready: true } && self.stuck.is_none();
        let over = matches!(self.moment.state, State::Over { .. } | State::Evicted);
        let names: Vec<&str> = self
            .containers("containers")
            .map(|c| text(c, "name"))
            .collect();
        let unready = match self.moment.state {
            State::Over { failed: false } => Some(("PodCompleted", String::new())),
            State::Over { failed: true } | State::Evicted => Some(("PodFailed", String::new())),
            _ if ready => None,
            _ => Some((
                "ContainersNotReady",
                format!("containers with unready status: [{}]", names.join(" ")),
            )),
        };
        let pulling = matches!(self.moment.state, State::Pulling { .. });
        let initialized = match self.stuck {
            Some(_) if over => Some(("PodFailed", String::new())),
            Some(stuck) => {
                let inits = self.containers("initContainers").skip(stuck);
                let names: Vec<&str> = inits.map(|c| text(c, "name")).collect();
                let message = format!("containers with incomplete status: [{}]", names.join(" "));
                Some(("ContainersNotInitialized", message))
            }
            None if over && self.phase() == "Succeeded" => Some(("PodCompleted", String::new())),
            None => None,
        };
        let mut list = vec![
            ("PodReadyToStartContainers", !over && !pulling, None),
            ("Initialized", self.stuck.is_none(), initialized),
            (
                "Ready",
                ready && self.gates_are_open(before),
                self.readiness(before, ready, &unready),
            ),
            ("ContainersReady", ready, unready.clone()),
        ];
        if self.moment.state == State::Evicted {
            let why = ("TerminationByKubelet", EVICTED.to_owned());
            list.push(("DisruptionTarget", true, Some(why)));
        }
        let mut conditions: Vec<Value> = list
            .into_iter()
            .map(|(kind, status, why)| self.condition(before, kind, status, why, generation))
            .collect();
        let others = items(before, "conditions").filter(|known| {
            !conditions
                .iter()
                .any(|condition| condition["type"] == known["type"])
        });
        let others: Vec<Value> = others.cloned().collect();
        conditions.extend(others);
        conditions
    }

    /// Whether all conditions are true that the pod itself asks for.
    fn gates_are_open(&self, before: &Value) -> bool {
        let mut gates = items(&self.pod["spec"], "readinessGates");
        gates.all(|gate| conditions::is_true(before, text(gate, "conditionType")))
    }

    fn readiness(
        &self,
        before: &Value,
        ready: bool,
        unready: &Option<(&'static str, String)>,
    ) -> Option<(&'static str, String)> {
        if ready && !self.gates_are_open(before) {
            let message = "the status of pod readiness gate is not \"True\"".to_owned();
            return Some(("ReadinessGatesNotReady", message));
        }
        unready.clone()
    }

    fn condition(
        &self,
        before: &Value,
        kind: &str,
        status: bool,
        why: Option<(&'static str, String)>,
        generation: i64,
    ) -> Value {
        let status = if status { "True" } else { "False" };
        let known = conditions::get(before, kind).filter(|known| text(known, "status") == status);
        let transition = known.map_or(json!(self.now), |known| known["lastTransitionTime"].clone());
        let mut condition = json!({
            "type": kind,
            "observedGeneration": generation,
            "status": status,
            "lastProbeTime": null,
            "lastTransitionTime": transition,
        });
        if let Some((reason, message)) = why {
            set(&mut condition, "reason", reason);
            if !message.is_empty() {
                set(&mut condition, "message", message);
            }
        }
        condition
    }

    fn container(&self, container: &Value) -> Value {
        let moment = self.moment_of(container);
        let run = u32::from(moment.restarts > 0) * moment.restarts;
        let id = self.id(container, run);
        let image = text(container, "image");
        let (mut state, mut last, mut started) = (json!({}), json!({}), false);
        match moment.state {
            State::Pulling { backing_off } => {
                state = json!({"waiting": pulling(image, backing_off)})
            }
            State::Running { .. } => {
                started = true;
                state = json!({"running": {"startedAt": self.at(moment.began)}});
                if let Some(ended) = moment.ended {
                    let before = self.id(container, moment.restarts.saturating_sub(1));
                    let code = self.duty.script.exit_code;
                    last = json!({"terminated": self.terminated(container, ended, code, &before)});
                }
            }
            State::BackingOff => {
                let name = text(container, "name");
                let pod = meta::text(self.pod, "name");
                let pause = moment
                    .next
                    .unwrap_or_default()
                    .saturating_sub(moment.ended.map_or(Duration::ZERO, |(_, end)| end));
                let message = format!(
                    "back-off {} restarting failed container={name} pod={pod}_{}({})",
                    crate::span::text(pause),
                    meta::text(self.pod, "namespace"),
                    meta::text(self.pod, "uid"),
                );
                state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
                if let Some(ended) = moment.ended {
                    let code = self.duty.script.exit_code;
                    last = json!({"terminated": self.terminated(container, ended, code, &id)});
                }
            }
            State::Over { .. } | State::Evicted => {
                if let Some(ended) = moment.ended {
                    let code = match moment.state {
                        State::Evicted => KILLED,
                        State::Over { failed: true } => self.duty.script.exit_code,
                        _ => 0,
                    };
                    state = json!({"terminated": self.terminated(container, ended, code, &id)});
                }
            }
        }
        let mut status = Map::new();
        for (field, value) in [
            ("name", container["name"].clone()),
            ("state", state),
            ("lastState", last),
            (
                "ready",
                json!(moment.state == State::Running { ready: true } && self.stuck.is_none()),
            ),
            ("restartCount", json!(moment.restarts)),
            ("image", json!(image)),
            ("started", json!(started)),
            ("resources", container["resources"].clone()),
        ] {
            status.insert(field.to_owned(), value);
        }
        let pulled = !matches!(moment.state, State::Pulling { .. });
        status.insert(
            "imageID".to_owned(),
            json!(if pulled {
                image_id(image)
            } else {
                String::new()
            }),
        );
        if pulled {
            status.insert("containerID".to_owned(), json!(id));
        }
        Value::Object(status)
    }

    /// An init container, which has done its part; before the image of any
    /// container is there, it has not begun.
    fn initialized(&self, container: &Value) -> Value {
        let image = text(container, "image");
        let id = self.id(container, 0);
        let at_once = (Duration::ZERO, Duration::ZERO);
        let state = json!({"terminated": self.ended(at_once, 0, &id)});
        json!({
            "name": container["name"],
            "state": state,
            "lastState": {},
            "ready": true,
            "restartCount": 0,
            "image": image,
            "imageID": image_id(image),
            "containerID": id,
            "started": false,
            "resources": container["resources"],
        })
    }

    /// What one container does. Where another one fails, it does as it would otherwise.
    fn moment_of(&self, container: &Value) -> Moment {
        if self.is_to_fail(container) || !self.duty.fails_by_itself() {
            return self.moment;
        }
        if matches!(self.moment.state, State::Pulling { .. }) {
            return self.moment;
        }
        let over = self.duty.script.complete_after;
        let is_over = self.duty.completes && self.elapsed >= over;
        Moment {
            state: match is_over {
                true => State::Over { failed: false },
                false => State::Running { ready: true },
            },
            restarts: 0,
            began: Duration::ZERO,
            ended: is_over.then_some((Duration::ZERO, over)),
            next: None,
        }
    }

    /// Whether a container is one of those that fail where a pod does.
    fn is_to_fail(&self, container: &Value) -> bool {
        let name = self.duty.script.fail_container.as_deref();
        name.is_none_or(|name| name == text(container, "name"))
    }

    /// How a container ended that has a last word, where one was given: all of them, or
    /// the one that fails.
    fn terminated(
        &self,
        container: &Value,
        span: (Duration, Duration),
        code: i32,
        id: &str,
    ) -> Value {
        let mut ended = self.ended(span, code, id);
        let speaks = self.is_to_fail(container) || !self.duty.fails_by_itself();
        let message = self.duty.script.termination_message.as_deref();
        let message = message.filter(|_| speaks && self.moment.state != State::Evicted);
        if let Some(message) = message {
            set(&mut ended, "message", last(message));
        }
        ended
    }

    fn ended(&self, (began, ended): (Duration, Duration), code: i32, id: &str) -> Value {
        json!({
            "exitCode": code,
            "reason": if code == 0 { "Completed" } else { "Error" },
            "startedAt": self.at(began),
            "finishedAt": self.at(ended),
            "containerID": id,
        })
    }

    fn at(&self, after: Duration) -> String {
        rfc3339(self.begun + after)
    }

    fn id(&self, container: &Value, run: u32) -> String {
        let uid = meta::text(self.pod, "uid");
        let digest = digest(&format!("{uid}/{}/{run}", text(container, "name")));
        format!("containerd://{digest}")
    }
}

/// A container that waits for those before it.
fn waiting(container: &Value) -> Value {
    json!({
        "name": container["name"],
        "state": {"waiting": {"reason": "PodInitializing"}},
        "lastState": {},
        "ready": false,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "",
        "started": false,
    })
}

/// The end of a message that is too long.
fn last(message: &str) -> &str {
    let start = message.len().saturating_sub(MESSAGE);
    let start = (start..).find(|&at| message.is_char_boundary(at));
    start.map_or(message, |start| &message[start..])
}

fn pulling(image: &str, backing_off: bool) -> Value {
    if backing_off {
        let message = format!(
            "Back-off pulling image {image:?}: ErrImagePull: {image}: asked for by annotation"
        );
        json!({"reason": "ImagePullBackOff", "message": message})
    } else {
        let message = format!("failed to pull image {image:?}: asked for by annotation");
        json!({"reason": "ErrImagePull", "message": message})
    }
}

fn image_id(image: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let end = name[slash..].find(':').map_or(name.len(), |at| slash + at);
    format!("{}@sha256:{}", &name[..end], digest(image))
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the events of what happened between two statuses.
fn tell(context: &Context<'_>, pod: &Value, before: &Value, after: &Value) {
    if text(after, "reason") == "Evicted" {
        context.event(
            KUBELET,
            pod,
            Kind::Warning,
            "Evicted",
            text(after, "message"),
        );
    }
    let all = |status| {
        let lists = ["initContainerStatuses", "containerStatuses"];
        lists.into_iter().flat_map(move |list| items(status, list))
    };
    for container in all(after) {
        let name = text(container, "name");
        let known = all(before).find(|known| text(known, "name") == name);
        let waits = |status: &Value| text_at(status, "/state/waiting/reason").to_owned();
        let (was, is) = (known.map(waits).unwrap_or_default(), waits(container));
        let runs = |status: &Value| status.pointer("/state/running/startedAt").cloned();
        if runs(container).is_some() && known.and_then(runs) != runs(container) {
            let message = format!(
                "Container image {:?} already present on machine",
                text(container, "image")
            );
            context.event(KUBELET, pod, Kind::Normal, "Pulled", &message);
            context.event(
                KUBELET,
                pod,
                Kind::Normal,
                "Created",
                &format!("Container created: {name}"),
            );
            context.event(
                KUBELET,
                pod,
                Kind::Normal,
                "Started",
                &format!("Container started: {name}"),
            );
        }
        if is != was && !matches!(&*is, "" | "PodInitializing") {
            let reason = if is == "ErrImagePull" {
                "Failed"
            } else {
                "BackOff"
            };
            let message = text_at(container, "/state/waiting/message");
            context.event(KUBELET, pod, Kind::Warning, reason, message);
        }
        let was_ready = known.is_some_and(|known| flag(known, "ready"));
        let same_run = known.and_then(|known| integer(known, "restartCount"))
            == integer(container, "restartCount");
        if was_ready && !flag(container, "ready") && same_run && runs(container).is_some() {
            let message = "Readiness probe failed: asked for by annotation";
            context.event(KUBELET, pod, Kind::Warning, "Unhealthy", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_message_the_end_is_kept() {
        let long = format!("é{}", "a".repeat(MESSAGE - 1));
        assert_eq!(last(&long), "a".repeat(MESSAGE - 1));
        assert_eq!(last("short"), "short");
    }

    #[test]
    fn images_keep_their_name() {
        let name = |image: &str| image_id(image).split('@').next().unwrap().to_owned();
        assert_eq!(name("nginx:1.27"), "nginx");
        assert_eq!(name("host:5000/a/b:1"), "host:5000/a/b");
        assert_eq!(name("host:5000/a/b"), "host:5000/a/b");
        assert_eq!(name("a@sha256:0"), "a");
    }
}

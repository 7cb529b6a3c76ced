//! Definitions of an older and of a newer version, one after the other, while there are
//! objects of them and the agent is at work.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::{component, samples};
use serde_json::{Map, Value, json};

use crate::helm::{chart_of, helm};
use crate::stage::{NAMESPACE, Stage};

/// Where no agent works: nobody writes its objects but the test.
const ELSEWHERE: &str = "elsewhere";

/// What the older definitions do not know, by the plural of the kind: fields in which
/// objects have something, and fields that no object of the agent has.
const NEW: [(&str, &[&str]); 3] = [
    (
        "plugins",
        &[
            "/spec/upgrade",
            "/spec/limits/deletionPercent",
            "/spec/artifact",
            "/status/canary",
            "/status/lastHandledSyncAt",
        ],
    ),
    (
        "units",
        &[
            "/spec/primary/namespace",
            "/status/secrets",
            "/status/sync/waveSince",
        ],
    ),
    (
        "journalentries",
        &["/spec/omitted", "/spec/primary/namespace"],
    ),
];

/// How operators are told to apply definitions.
const APPLY: [&str; 5] = ["apply", "--server-side", "--force-conflicts", "-f", "-"];

#[test]
fn definitions_come_and_go_under_objects_that_stay() -> Result<()> {
    let mut stage = Stage::new()?;
    let definitions = Definitions::of(&stage)?;
    let older = chart_with(&stage, &definitions.older)?;
    installed_by_an_older_chart(&mut stage, &definitions, &older)?;
    newer_ones_change_no_object(&mut stage, &definitions)?;
    a_policy_may_lose_its_last_field(&stage)?;
    a_release_goes_back_without_them(&mut stage, &definitions)?;
    older_ones_hide_what_is_new_until_it_is_written(&stage, &definitions)?;
    what_cannot_be_written_waits(&stage, &definitions)?;
    another_release_leaves_them_when_told(&stage, &definitions, &older)
}

/// As an installation of some time ago: older definitions, an agent at work under them, and
/// objects of each kind with all that was known then.
fn installed_by_an_older_chart(
    stage: &mut Stage,
    definitions: &Definitions,
    older: &str,
) -> Result<()> {
    // Helm's install goes by its own chart, whatever it has applied before.
    let newer = chart_of("reeve");
    let newer = newer.to_string_lossy();
    let first = ["install", "reeve", &newer, "--namespace", "another"];
    run_helm(stage, &[&first[..], &["--create-namespace"]].concat())?;
    definitions.wait_until_known(stage, true)?;
    let install = ["install", "reeve", older, "--namespace", NAMESPACE];
    run_helm(stage, &[&install[..], &["--create-namespace"]].concat())?;
    definitions.wait_until_known(stage, false)?;

    stage.start_agent()?;
    let cluster = &stage.cluster;
    cluster.deliver(NAMESPACE, "quotas", &component("quotas"), None)?;
    stage.reeve(&["plugin", "grant", "quotas", "--apply"])?;
    set_policy(
        stage,
        &json!({
            "adoption": "IfUnowned",
            "adoptFrom": ["kubectl-client-side-apply"],
            "limits": {"deletionsPerHour": 7},
            "ignore": [{"kind": "ResourceQuota", "jsonPointers": ["/spec/scopes"]}],
        }),
    )?;
    // Something to say of bob, and something of ann to write down.
    label(stage, "bob", "x")?;
    stage.wait_for_pods("ann", "100")?;
    set_pods_by_hand(stage, "3")?;
    stage.kubectl(&["create", "namespace", ELSEWHERE])?;
    definitions.make(stage, "first")?;
    eventually("there is something of each kind", || {
        let objects = Objects::of(stage)?;
        for (kind, _) in NEW {
            for namespace in [NAMESPACE, ELSEWHERE] {
                let mut keys = objects.0.keys();
                let found = keys.any(|key| key.0 == kind && key.1 == namespace);
                ensure!(found, "no {kind} in {namespace}");
            }
        }
        Ok(())
    })
}

/// As the documentation says: Helm leaves definitions alone, and `reeve crds` has those of
/// this version.
fn newer_ones_change_no_object(stage: &mut Stage, definitions: &Definitions) -> Result<()> {
    let before = settled(stage)?;
    stage.helm("upgrade", &["--set", "replicas=3"])?;
    definitions.wait_until_known(stage, false)?;
    stage.kubectl_with(&APPLY, &definitions.newer)?;
    definitions.wait_until_known(stage, true)?;
    // With the agent that was there, and with one that begins.
    works(stage, "7")?;
    before.are(&Objects::of(stage)?)?;
    stage.start_agent()?;
    works(stage, "8")?;
    before.but_made_anew().are(&Objects::of(stage)?)
}

/// Of an empty object that is applied where there was one with fields, server-side apply
/// leaves null.
fn a_policy_may_lose_its_last_field(stage: &Stage) -> Result<()> {
    let with = |spec: Value| {
        json!({
            "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": "emptied", "namespace": ELSEWHERE}, "spec": spec,
        })
    };
    for spec in [json!({"mode": "PlanOnly"}), json!({}), json!(null)] {
        stage.kubectl_with(&APPLY, &with(spec.clone()).to_string())?;
        let found = stage.get("plugin", ELSEWHERE, "emptied")?;
        let found = found.with_context(|| format!("no Plugin after {spec}"))?;
        let kept = found["spec"].as_object().map(Map::len);
        ensure!(
            kept == spec.as_object().map(Map::len).or(Some(0)),
            "{spec}: {found}"
        );
    }
    stage.kubectl(&["delete", "plugin", "emptied", "--namespace", ELSEWHERE])?;
    Ok(())
}

/// The older release under the newer definitions, which its chart does not take back: what
/// is new stays where it is.
fn a_release_goes_back_without_them(stage: &mut Stage, definitions: &Definitions) -> Result<()> {
    for name in ["touched", "untouched"] {
        definitions.make(stage, name)?;
    }
    set_policy(
        stage,
        &json!({"limits": {"deletionPercent": 7}, "upgrade": {"maxDeleted": 7}}),
    )?;
    let before = settled(stage)?;
    run_helm(stage, &["rollback", "reeve", "1", "--namespace", NAMESPACE])?;
    let deployment = stage.get("deployment", NAMESPACE, "reeve")?;
    let replicas = deployment.context("no Deployment")?["spec"]["replicas"].clone();
    ensure!(replicas == 2, "it is the newer release: {replicas}");
    definitions.wait_until_known(stage, true)?;
    stage.start_agent()?;
    works(stage, "9")?;
    before.but_made_anew().are(&Objects::of(stage)?)
}

/// Older definitions take nothing away by themselves. But what is written under them is
/// written without what they do not know.
fn older_ones_hide_what_is_new_until_it_is_written(
    stage: &Stage,
    definitions: &Definitions,
) -> Result<()> {
    let before = settled(stage)?;
    stage.kubectl_with(&APPLY, &definitions.older)?;
    definitions.wait_until_known(stage, false)?;
    works(stage, "10")?;
    let known = before.without_what_is_new();
    ensure!(known.0 != before.0, "nothing is new");
    known.are(&Objects::of(stage)?)?;

    // Somebody's write, however small, and one of the agent.
    for (kind, _) in NEW {
        stage.kubectl(&["label", kind, "touched", "-n", ELSEWHERE, "by=somebody"])?;
    }
    stage.apply(&[samples::namespace("cyd"), samples::profile("cyd")])?;
    wait_for_units(stage, 3)?;

    stage.kubectl_with(&APPLY, &definitions.newer)?;
    definitions.wait_until_known(stage, true)?;
    works(stage, "11")?;
    let after = Objects::of(stage)?;
    let written = |key: &Key| key.2 == "touched" || (&*key.0, &*key.2) == ("plugins", "quotas");
    before.only(|key| !written(key)).are(&after)?;
    let (lost, left) = (known.only(written), after.only(written));
    ensure!(lost.0.len() == 4, "not all kinds: {:?}", lost.0.keys());
    lost.in_content().are(&left.in_content())?;

    // It is said anew.
    let upgrade = json!({"maxDeleted": 7});
    set_policy(stage, &json!({"upgrade": upgrade}))?;
    let plugin = stage.get("plugin", NAMESPACE, "quotas")?;
    let plugin = plugin.context("no Plugin")?;
    ensure!(plugin["spec"]["upgrade"] == upgrade, "{plugin}");
    Ok(())
}

/// An agent whose definitions know less than it writes does its work, and says in its log
/// what it cannot say elsewhere. What it cannot write down before, it does not do.
fn what_cannot_be_written_waits(stage: &Stage, definitions: &Definitions) -> Result<()> {
    let before = settled(stage)?;
    let mut forgotten = definitions.all()?;
    let unknown = [
        (0, "plugins", "/status/writes"),
        (2, "journalentries", "/spec/object/namespace"),
    ];
    for (number, _, field) in unknown {
        take_field(&mut forgotten[number], field)?;
    }
    stage.kubectl_with(&APPLY, &in_documents(&forgotten))?;
    for (_, kind, field) in unknown {
        eventually("the API server goes by these definitions", || {
            let object = stage.get(kind, ELSEWHERE, "untouched")?;
            let value = object.as_ref().and_then(|object| object.pointer(field));
            ensure!(value.is_none(), "{field} is {value:?}");
            Ok(())
        })?;
    }
    stage.apply(&[samples::namespace("dan"), samples::profile("dan")])?;
    stage.wait_for_pods("dan", "100")?;
    eventually("the log says what is not known", || {
        let log = fs::read_to_string(stage.file("reeve.log"))?;
        let says = |line: &str| {
            let known = ".status.writes: field not declared in schema";
            line.contains("report not written") && line.contains(known)
        };
        ensure!(log.lines().any(says), "nothing of it");
        Ok(())
    })?;
    ensure!(units(stage)? == 3, "the status was written");
    set_pods_by_hand(stage, "3")?;
    eventually("the unit says what is not known", || {
        let units = stage.list("units", NAMESPACE)?;
        let said = units.iter().find_map(|unit| {
            let conditions = unit["status"]["conditions"].as_array()?;
            let mut failed = conditions.iter();
            failed.find(|one| one["reason"] == "JournalFailed")
        });
        let said = said.with_context(|| format!("not among {units:?}"))?;
        let message = said["message"].as_str().unwrap_or_default();
        let expected = "unknown field \"spec.object.namespace\"";
        ensure!(message.contains(expected), "{message}");
        Ok(())
    })?;
    stage.wait_for_pods("ann", "3")?;

    stage.kubectl_with(&APPLY, &definitions.newer)?;
    stage.wait_for_pods("ann", "11")?;
    wait_for_units(stage, 4)?;
    let after = Objects::of(stage)?;
    let written = |key: &Key| key.1 == NAMESPACE && key.0 != "journalentries";
    before.only(|key| !written(key)).are(&after)?;
    before.only(written).uids_are(&after)
}

/// One that is installed beside them, or anew, by a chart with other definitions.
fn another_release_leaves_them_when_told(
    stage: &Stage,
    definitions: &Definitions,
    older: &str,
) -> Result<()> {
    let before = settled(stage)?;
    let install = ["install", "reeve", older, "--namespace", "third"];
    let install = [&install[..], &["--create-namespace"]].concat();
    match run_helm(stage, &install) {
        Ok(done) => bail!("Helm took over what kubectl has applied: {done}"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(text.contains("conflict with \"kubectl\""), "{text}");
        }
    }
    run_helm(stage, &[&install[..], &["--skip-crds"]].concat())?;
    definitions.wait_until_known(stage, true)?;
    before.are(&Objects::of(stage)?)
}

fn set_policy(stage: &Stage, spec: &Value) -> Result<()> {
    eventually("the Plugin has this policy", || {
        let patch = json!({"spec": spec}).to_string();
        let plugin = ["patch", "plugin", "quotas", "-n", NAMESPACE];
        stage.kubectl(&[&plugin[..], &["--type=merge", "-p", &patch]].concat())
    })?;
    Ok(())
}

/// Says how many pods somebody may have, or something that is no number.
fn label(stage: &Stage, profile: &str, pods: &str) -> Result<()> {
    let label = format!("quotas.statcan.gc.ca/pods={pods}");
    let command = ["label", "profile", profile, "--overwrite", &label];
    stage.kubectl(&command).map(drop)
}

/// Changes what the agent has made for ann.
fn set_pods_by_hand(stage: &Stage, pods: &str) -> Result<()> {
    let edit = json!({"spec": {"hard": {"pods": pods}}}).to_string();
    let quota = ["patch", "resourcequota", "quotas", "-n", "ann", "-p", &edit];
    stage.kubectl(&quota).map(drop)
}

/// That the agent is at work.
fn works(stage: &Stage, pods: &str) -> Result<()> {
    label(stage, "ann", pods)?;
    stage.wait_for_pods("ann", pods)
}

/// Waits until the agent has said all that it has to say: its status is about the policy of
/// now, and no object of it has changed for a while. Returns what there is then.
fn settled(stage: &Stage) -> Result<Objects> {
    let (mut last, mut times) = (Objects::of(stage)?, 0);
    eventually("nothing changes any more", || {
        let plugin = stage.get("plugin", NAMESPACE, "quotas")?;
        let plugin = plugin.context("no Plugin")?;
        let observed = &plugin["status"]["observedGeneration"];
        ensure!(*observed == plugin["metadata"]["generation"], "{plugin}");
        let now = Objects::of(stage)?;
        times = if now.0 == last.0 { times + 1 } else { 0 };
        last = now;
        ensure!(times > 10, "something has changed");
        Ok(())
    })?;
    Ok(last)
}

/// Of how many units the status of the plugin tells.
fn units(stage: &Stage) -> Result<u64> {
    let plugin = stage.get("plugin", NAMESPACE, "quotas")?;
    let total = plugin.context("no Plugin")?["status"]["units"]["total"].as_u64();
    total.context("no units are told of")
}

fn wait_for_units(stage: &Stage, number: u64) -> Result<()> {
    eventually("the status tells of all units", || {
        let told = units(stage)?;
        ensure!(told == number, "it tells of {told}");
        Ok(())
    })
}

/// The chart of the agent with these definitions in the place of its own.
fn chart_with(stage: &Stage, definitions: &str) -> Result<String> {
    let folder = stage.file("older");
    let copy = [&chart_of("reeve"), &folder];
    let copied = Command::new("cp").arg("-r").args(copy).status()?;
    ensure!(copied.success(), "the chart cannot be copied");
    fs::write(folder.join("crds/reeve.yaml"), definitions)?;
    Ok(folder.to_string_lossy().into_owned())
}

fn run_helm(stage: &Stage, arguments: &[&str]) -> Result<String> {
    let cluster = &stage.cluster;
    helm(cluster.folder(), Some(&cluster.kubeconfig()), arguments)
}

/// Kind, namespace and name.
type Key = (String, String, String);

/// All objects of our kinds, as they are seen.
struct Objects(BTreeMap<Key, Value>);

impl Objects {
    fn of(stage: &Stage) -> Result<Self> {
        let mut objects = BTreeMap::new();
        for (kind, _) in NEW {
            for object in stage.list(kind, "")? {
                let text = |field: &str| {
                    let text = object["metadata"][field].as_str();
                    text.unwrap_or_default().to_owned()
                };
                let key = (kind.to_owned(), text("namespace"), text("name"));
                objects.insert(key, object);
            }
        }
        Ok(Self(objects))
    }

    /// None of these is lost or another, in no byte.
    fn are(&self, after: &Self) -> Result<()> {
        for (key, object) in &self.0 {
            let found = after.0.get(key).unwrap_or(&Value::Null);
            ensure!(found == object, "{key:?}: {object} became {found}");
        }
        Ok(())
    }

    /// None of these is lost or made anew.
    fn uids_are(&self, after: &Self) -> Result<()> {
        let uid = |object: &Value| object["metadata"]["uid"].clone();
        for (key, object) in &self.0 {
            let found = after.0.get(key).map(uid);
            ensure!(found == Some(uid(object)), "{key:?}: {object} is {found:?}");
        }
        Ok(())
    }

    fn only(&self, chosen: impl Fn(&Key) -> bool) -> Self {
        let objects = self.0.iter().filter(|(key, _)| chosen(key));
        Self(
            objects
                .map(|(key, one)| (key.clone(), one.clone()))
                .collect(),
        )
    }

    /// Without those that an agent which begins makes anew, as it has nothing in them to
    /// remember.
    fn but_made_anew(&self) -> Self {
        self.only(|key| (&*key.0, &*key.1) != ("units", NAMESPACE))
    }

    fn without_what_is_new(&self) -> Self {
        let mut known = self.0.clone();
        for ((kind, _, _), object) in &mut known {
            let fields = NEW.iter().filter(|(of, _)| of == kind);
            for field in fields.flat_map(|(_, fields)| *fields) {
                let parent = field.rsplit_once('/');
                if let Some((parent, name)) = parent
                    && let Some(Value::Object(parent)) = object.pointer_mut(parent)
                {
                    parent.remove(name);
                }
            }
        }
        Self(known)
    }

    /// Which objects they are and what they hold, without what any write changes; of what
    /// the agent writes, what is others' to say.
    fn in_content(&self) -> Self {
        let mut content = self.0.clone();
        for ((_, namespace, _), object) in &mut content {
            let metadata = &object["metadata"];
            let same = ["uid", "creationTimestamp", "namespace", "name"];
            let same = same.map(|field| (field.to_owned(), metadata[field].clone()));
            object["metadata"] = Value::Object(Map::from_iter(same));
            if namespace == NAMESPACE {
                object["status"] = Value::Null;
            }
        }
        Self(content)
    }
}

/// What definitions there are, and what they make of objects.
struct Definitions {
    /// As `reeve crds` prints them.
    newer: String,
    /// Those that do not know what is new.
    older: String,
    /// An object of each kind with something in each field, and a name of each kind's.
    filled: Vec<(&'static str, Value)>,
}

impl Definitions {
    fn of(stage: &Stage) -> Result<Self> {
        let newer = stage.reeve(&["crds"])?;
        let mut definitions = Self {
            newer,
            older: String::new(),
            filled: Vec::new(),
        };
        let mut all = definitions.all()?;
        for ((kind, fields), definition) in NEW.iter().zip(&mut all) {
            let named = definition["spec"]["names"]["plural"].clone();
            ensure!(named == *kind, "{kind} is {named}");
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut object = filled(schema);
            object["apiVersion"] = json!("reeve.dev/v1alpha1");
            object["kind"] = definition["spec"]["names"]["kind"].clone();
            definitions.filled.push((kind, object));
            for field in *fields {
                take_field(definition, field)?;
            }
            // What is shown of them is less, too.
            let names = definition["spec"]["names"].as_object_mut();
            names.context("no names")?.remove("shortNames");
            let columns = &mut definition["spec"]["versions"][0]["additionalPrinterColumns"];
            columns.as_array_mut().context("no columns")?.pop();
        }
        definitions.older = in_documents(&all);
        Ok(definitions)
    }

    fn all(&self) -> Result<Vec<Value>> {
        let all: Vec<Value> = serde_saphyr::from_multiple(&self.newer)?;
        ensure!(all.len() == NEW.len(), "there are {} kinds", all.len());
        Ok(all)
    }

    /// Makes an object of each kind, with all that the definitions of the moment know.
    fn make(&self, stage: &Stage, name: &str) -> Result<()> {
        for (kind, object) in &self.filled {
            let mut object = object.clone();
            object["metadata"] = json!({"name": name, "namespace": ELSEWHERE});
            let create = ["create", "--validate=ignore", "-f", "-"];
            stage.kubectl_with(&create, &object.to_string())?;
            if object["status"].is_object() {
                let status = json!({"status": object["status"]}).to_string();
                let patch = ["patch", kind, name, "-n", ELSEWHERE, "--subresource=status"];
                stage.kubectl(&[&patch[..], &["--type=merge", "-p", &status]].concat())?;
            }
        }
        Ok(())
    }

    /// Waits until the API server goes by definitions that know what is new, or by those
    /// that do not.
    fn wait_until_known(&self, stage: &Stage, known: bool) -> Result<()> {
        for (kind, object) in &self.filled {
            let mut object = object.clone();
            object["metadata"] = json!({"name": "probe", "namespace": "default"});
            let object = object.to_string();
            let create = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
            let what = format!("what is new of {kind} is known: {known}");
            eventually(&what, || match stage.kubectl_with(&create, &object) {
                Ok(done) => {
                    ensure!(known, "{done}");
                    Ok(())
                }
                Err(error) => {
                    let text = format!("{error:#}");
                    ensure!(!known && text.contains("unknown field"), "{text}");
                    Ok(())
                }
            })?;
            let shown = stage.kubectl(&["get", kind, "-n", ELSEWHERE])?;
            // Their last column.
            let mut columns = shown.lines().take(1).flat_map(str::split_whitespace);
            let aged = columns.any(|column| column == "AGE");
            ensure!(shown.is_empty() || aged == known, "{shown}");
        }
        Ok(())
    }
}

fn in_documents(definitions: &[Value]) -> String {
    let documents = definitions.iter().map(|one| format!("---\n{one}\n"));
    documents.collect()
}

/// Takes a field out of a definition.
fn take_field(definition: &mut Value, field: &str) -> Result<()> {
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let (parent, name) = field.rsplit_once('/').context("no pointer")?;
    let parent = schema.pointer_mut(&parent.replace('/', "/properties/"));
    let properties = parent.and_then(|parent| parent["properties"].as_object_mut());
    let taken = properties.and_then(|properties| properties.remove(name));
    taken
        .map(drop)
        .with_context(|| format!("there is no {field}"))
}

/// A value with something in each field of a schema, which is not its default.
fn filled(schema: &Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("7%");
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, field)| (name.clone(), filled(field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Some("array") => json!([filled(&schema["items"])]),
        Some("integer") => {
            // Definitions write all of them as fractions.
            let least = schema["minimum"].as_f64().unwrap_or_default().max(7.0);
            json!(format!("{least:.0}").parse::<u64>().unwrap_or(7))
        }
        Some("boolean") => json!(true),
        _ if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ if schema["pattern"].is_string() => json!(format!("sha256:{}", "7".repeat(64))),
        _ => match schema["enum"].as_array().and_then(|all| all.last()) {
            Some(last) => last.clone(),
            None => json!("something"),
        },
    }
}

//! A platform of 23 applications, 28 dependencies and 10 waves: an app of apps as
//! one would roll out GPU clusters, all of it Applications of Argo CD.

use super::{Deletion, Member, Mode, Notice, Sequence, Step, deletion, order};
use crate::health::{Applied, Context, Gate, gate};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::ownership::APPLIED_ANNOTATION;
use crate::text::Written;
use serde::Deserialize;
use serde_json::{Value, json};

/// One application of the table that all tests of this case share.
#[derive(Deserialize)]
struct Row {
    name: String,
    tier: u8,
    wave: i64,
    needs: Vec<String>,
}

fn platform() -> Vec<Row> {
    serde_json::from_str(include_str!("../../../../tests/support/platform.json")).unwrap()
}

const WAVES: [i64; 10] = [-15, -10, -8, -5, -3, -2, -1, 0, 1, 2];

fn application(name: &str) -> ObjectReference {
    let kind = GroupVersionKind::new("argoproj.io", "v1alpha1", "Application");
    ObjectReference::new(kind, Some("argocd".into()), name)
}

fn member(row: &Row) -> Member {
    let Row {
        name, wave, needs, ..
    } = row;
    let needs: Vec<_> = needs
        .iter()
        .map(|need| format!("Application/{need}"))
        .collect();
    let body = json!({"metadata": {"annotations": {
        "argocd.argoproj.io/sync-wave": wave.to_string(),
        "reeve.dev/depends-on": needs.join(","),
    }}});
    let (member, warnings) = Member::of(application(name), &body);
    assert_eq!(warnings, [], "{name}");
    member
}

/// The applications of a cluster: tier 3 is for those with GPUs.
fn cluster(gpu: bool) -> Vec<Member> {
    let rows = platform().into_iter();
    let rows = rows.filter(|row| gpu || row.tier != 3);
    rows.map(|row| member(&row)).collect()
}

fn ordered(mode: Mode) -> Sequence {
    order(&cluster(true), mode).unwrap()
}

fn names<'a>(objects: impl IntoIterator<Item = &'a ObjectReference>) -> Vec<&'a str> {
    objects.into_iter().map(|one| one.name.as_str()).collect()
}

/// The waves of some steps, each once.
fn waves(steps: &[Step]) -> Vec<i64> {
    let mut waves: Vec<_> = steps.iter().filter_map(|step| step.wave).collect();
    waves.dedup();
    waves
}

#[test]
fn clusters_get_their_applications_in_their_waves() {
    let sequence = ordered(Mode::WavesOnly);
    let count = sequence.steps.iter().flat_map(Step::objects).count();
    assert_eq!((count, sequence.steps.len()), (23, 10));
    assert_eq!(waves(&sequence.steps), WAVES);

    let sequence = order(&cluster(false), Mode::WavesOnly).unwrap();
    let count = sequence.steps.iter().flat_map(Step::objects).count();
    assert_eq!((count, sequence.steps.len()), (16, 9));
    let without: Vec<_> = WAVES.into_iter().filter(|wave| *wave != -3).collect();
    assert_eq!(waves(&sequence.steps), without);
}

#[test]
fn one_dependency_is_inside_a_wave() {
    let edges: usize = platform().iter().map(|row| row.needs.len()).sum();
    assert_eq!(edges, 28);
    let inside = |refined| Notice::InsideWave {
        object: application("tetragon"),
        dependency: application("tetragon-catalogsource"),
        phase: super::Phase::Sync,
        wave: -1,
        refined,
    };
    // By dependency: the wave is divided, and only tetragon waits.
    let refined = ordered(Mode::Waves);
    assert_eq!(refined.notices, [inside(true)]);
    let divided: Vec<_> = refined
        .steps
        .iter()
        .filter(|step| step.wave == Some(-1))
        .map(|step| names(step.objects()))
        .collect();
    let first = vec![
        "cilium-config",
        "clickhouse-operator",
        "lvms-operator",
        "tetragon-catalogsource",
    ];
    assert_eq!(divided, [first, vec!["tetragon"]]);
    assert_eq!(waves(&refined.steps), WAVES);
    // By waves alone it passes, and is told.
    assert_eq!(ordered(Mode::WavesOnly).notices, [inside(false)]);
}

#[test]
fn prose_is_no_dependency() {
    let sequence = ordered(Mode::Waves);
    let step = sequence
        .steps
        .iter()
        .find(|step| step.wave == Some(1))
        .unwrap();
    let together = step
        .groups
        .iter()
        .find(|group| group.contains(&application("nim-operator")));
    assert!(
        together
            .unwrap()
            .contains(&application("gpu-cluster-policy"))
    );
    // Tiers 5 and 6 have no rows, and so no applications.
    assert!(platform().iter().all(|row| (1..=4).contains(&row.tier)));
}

#[test]
fn dependencies_alone_need_fewer_steps() {
    let sequence = ordered(Mode::Dependencies);
    assert_eq!(sequence.steps.len(), 7);
    let longest = [
        "argocd-config",
        "platform-idms",
        "platform-catalogsources",
        "nfd-operator",
        "gpu-operator",
        "gpu-cluster-policy",
        "nim-llm",
    ];
    for (step, name) in sequence.steps.iter().zip(longest) {
        assert!(names(step.objects()).contains(&name), "{name}");
    }
}

#[test]
fn a_degraded_operator_holds_up_what_the_mode_says() {
    let gpu_operator = application("gpu-operator");
    for mode in [Mode::Waves, Mode::WavesOnly] {
        let sequence = ordered(mode);
        let mut held = names(sequence.held_by(&gpu_operator));
        let all = platform();
        let later = all.iter().filter(|row| row.wave >= -1);
        let mut later: Vec<_> = later.map(|row| row.name.as_str()).collect();
        held.sort_unstable();
        later.sort_unstable();
        assert_eq!(held, later);
        // All others of its wave and before are done: there is nothing to start.
        let healthy = |one: &ObjectReference| {
            *one != gpu_operator && all.iter().any(|row| row.name == one.name && row.wave <= -2)
        };
        assert_eq!(
            names(
                sequence
                    .startable(|_, one| healthy(one))
                    .iter()
                    .map(|open| open.object)
            ),
            ["gpu-operator"]
        );
    }
    let held = ordered(Mode::Dependencies);
    let held = names(held.held_by(&gpu_operator));
    assert_eq!(held, ["gpu-cluster-policy", "nim-operator", "nim-llm"]);
}

#[test]
fn all_of_it_goes_in_reverse() {
    let Deletion {
        steps,
        last,
        ignored,
    } = deletion(&cluster(true));
    let reverse: Vec<_> = WAVES.into_iter().rev().collect();
    assert_eq!(waves(&steps), reverse);
    assert_eq!((last, ignored), (vec![], vec![]));
    let place = |name: &str| {
        let holds = |step: &Step| step.objects().any(|one| one.name == name);
        steps.iter().position(holds).unwrap()
    };
    for row in platform() {
        let mut needs = row.needs.iter();
        assert!(
            needs.all(|need| place(&row.name) < place(need)),
            "{}",
            row.name
        );
    }
}

#[test]
fn old_health_does_not_pass_the_gate() {
    let source =
        |revision: &str| json!({"repoURL": "https://git.example.com", "targetRevision": revision});
    let body = |revision: &str| json!({"spec": {"source": source(revision)}});
    let live = |applied: &str, compared: &str, health: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"annotations": {APPLIED_ANNOTATION: applied}},
            "spec": {"source": source(applied)},
            "status": {"health": {"status": health},
                "sync": {"status": "Synced", "comparedTo": {"source": source(compared)}}},
        })
    };
    let changed = ["splunk-otel", "splunk-reporter"];
    let sequence = ordered(Mode::Waves);
    let context = Context::at("2026-11-21T12:00:00Z".parse().unwrap());
    // What may start, when splunk-otel looks like this and all else is as before.
    let startable = |otel: &Value| -> Vec<String> {
        let passes = |one: &ObjectReference| {
            let is_changed = changed.contains(&one.name.as_str());
            let (revision, object) = match (is_changed, one.name.as_str()) {
                (true, "splunk-otel") => ("v2", otel.clone()),
                (true, _) => ("v2", live("v1", "v1", "Healthy")),
                (false, _) => ("v1", live("v1", "v1", "Healthy")),
            };
            let body = Written::from(body(revision));
            let applied = Applied {
                generation: None,
                digest: revision,
                body: &body,
            };
            gate(Some(&object), Some(applied), &context) == Gate::Pass
        };
        names(
            sequence
                .startable(|_, one| passes(one))
                .iter()
                .map(|open| open.object),
        )
        .into_iter()
        .map(str::to_owned)
        .collect()
    };
    for (otel, expected) in [
        (live("v1", "v1", "Healthy"), "splunk-otel"),
        (live("v2", "v1", "Healthy"), "splunk-otel"),
        (live("v2", "v2", "Progressing"), "splunk-otel"),
        (live("v2", "v2", "Healthy"), "splunk-reporter"),
    ] {
        assert_eq!(startable(&otel), [expected], "{otel:#}");
    }
}

#[test]
fn operators_have_waves_of_their_own() {
    let row = |kind: (&str, &str), name: &str, annotations: &[(&str, &str)]| {
        let clustered = matches!(kind.1, "Namespace" | "ClusterRole");
        let annotations: serde_json::Map<_, _> = annotations
            .iter()
            .map(|(k, v)| ((*k).to_owned(), json!(v)))
            .collect();
        let kind = GroupVersionKind::new(kind.0, "v1", kind.1);
        let namespace = (!clustered).then(|| "openshift-nfd".into());
        let reference = ObjectReference::new(kind, namespace, name);
        Member::of(
            reference,
            &json!({"metadata": {"annotations": annotations}}),
        )
        .0
    };
    let wave = "argocd.argoproj.io/sync-wave";
    let nfd = [
        row(("operators.coreos.com", "Subscription"), "nfd", &[]),
        row(
            ("batch", "Job"),
            "seccomp-fix",
            &[("argocd.argoproj.io/hook", "PostSync")],
        ),
        row(
            ("rbac.authorization.k8s.io", "ClusterRole"),
            "patcher",
            &[(wave, "1")],
        ),
        row(
            ("operators.coreos.com", "OperatorGroup"),
            "nfd",
            &[(wave, "-1")],
        ),
        row(("", "Namespace"), "openshift-nfd", &[(wave, "-2")]),
    ];
    let sequence = order(&nfd, Mode::Waves).unwrap();
    let kinds: Vec<_> = sequence
        .steps
        .iter()
        .flat_map(Step::objects)
        .map(|one| one.kind.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "OperatorGroup",
            "Subscription",
            "ClusterRole",
            "Job"
        ]
    );
    assert_eq!(sequence.steps.len(), 5);
}

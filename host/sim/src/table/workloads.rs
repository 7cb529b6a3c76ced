//! Workloads, and what scales and guards them.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE, elapsed, parse_time};
use super::duration::human;
use crate::kinds::edit::text;

const TEMPLATE: &str = "/spec/template/spec";
const SELECTOR: &str = "/spec/selector";

/// The columns of the scale of a custom resource.
pub(super) static CUSTOM_SCALE: Layout = Layout::of(
    "autoscaling",
    "Scale",
    &[
        Column::NAME,
        Column::number("Desired"),
        Column::number("Available"),
        Column::of("Age", "date"),
    ],
    scale,
);

/// The columns of the scale of a built-in kind.
pub(super) static SCALE: Layout = Layout::of(
    "autoscaling",
    "Scale",
    &[
        Column::NAME,
        Column::number("Desired"),
        Column::number("Available"),
        Column::AGE,
    ],
    scale,
);

fn scale(o: &Cells<'_>) -> Vec<Value> {
    vec![
        o.name(),
        json!(o.number("/spec/replicas")),
        json!(o.number("/status/replicas")),
        o.age(),
    ]
}

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "apps",
        "Deployment",
        &[
            Column::NAME,
            Column::text("Ready"),
            Column::text("Up-to-date"),
            Column::text("Available"),
            Column::AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        |o| {
            let cells = vec![
                o.name(),
                ready(o),
                json!(o.number("/status/updatedReplicas")),
                json!(o.number("/status/availableReplicas")),
                o.age(),
            ];
            with_template(o, cells, TEMPLATE, Some(SELECTOR))
        },
    ),
    Layout::of("apps", "ReplicaSet", REPLICAS, |o| {
        with_template(o, replicas(o), TEMPLATE, Some(SELECTOR))
    }),
    Layout::of("", "ReplicationController", REPLICAS, |o| {
        let mut cells = with_template(o, replicas(o), TEMPLATE, None);
        cells.push(json!(o.labels(SELECTOR)));
        cells
    }),
    Layout::of(
        "apps",
        "StatefulSet",
        &[
            Column::NAME,
            Column::text("Ready"),
            Column::AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
        ],
        |o| with_template(o, vec![o.name(), ready(o), o.age()], TEMPLATE, None),
    ),
    Layout::of(
        "apps",
        "ControllerRevision",
        &[
            Column::NAME,
            Column::text("Controller"),
            Column::text("Revision"),
            Column::AGE,
        ],
        |o| {
            vec![
                o.name(),
                json!(controller(o)),
                json!(o.number("/revision")),
                o.age(),
            ]
        },
    ),
    Layout::of(
        "",
        "PodTemplate",
        &[
            Column::NAME,
            Column::text("Containers"),
            Column::text("Images"),
            Column::text("Pod Labels"),
        ],
        |o| {
            let [names, images] = o.containers("/template/spec");
            let labels = o.labels("/template/metadata/labels");
            vec![o.name(), names, images, json!(labels)]
        },
    ),
    Layout::of(
        "apps",
        "DaemonSet",
        &[
            Column::NAME,
            Column::number("Desired"),
            Column::number("Current"),
            Column::number("Ready"),
            Column::number("Up-to-date"),
            Column::number("Available"),
            Column::text("Node Selector"),
            Column::AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        |o| {
            let cells = vec![
                o.name(),
                json!(o.number("/status/desiredNumberScheduled")),
                json!(o.number("/status/currentNumberScheduled")),
                json!(o.number("/status/numberReady")),
                json!(o.number("/status/updatedNumberScheduled")),
                json!(o.number("/status/numberAvailable")),
                json!(o.labels("/spec/template/spec/nodeSelector")),
                o.age(),
            ];
            with_template(o, cells, TEMPLATE, Some(SELECTOR))
        },
    ),
    Layout::of(
        "batch",
        "Job",
        &[
            Column::NAME,
            Column::text("Status"),
            Column::text("Completions"),
            Column::text("Duration"),
            Column::AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        job,
    ),
    Layout::of(
        "batch",
        "CronJob",
        &[
            Column::NAME,
            Column::text("Schedule"),
            Column::text("Timezone"),
            Column::flag("Suspend"),
            Column::number("Active"),
            Column::text("Last Schedule"),
            Column::AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cron_job,
    ),
    Layout::of(
        "policy",
        "PodDisruptionBudget",
        &[
            Column::NAME,
            Column::text("Min Available"),
            Column::text("Max Unavailable"),
            Column::number("Allowed Disruptions"),
            Column::AGE,
        ],
        |o| {
            let share = |pointer: &str| match o.at(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "N/A".to_owned(),
            };
            vec![
                o.name(),
                json!(share("/spec/minAvailable")),
                json!(share("/spec/maxUnavailable")),
                json!(o.number("/status/disruptionsAllowed")),
                o.age(),
            ]
        },
    ),
    Layout::of(
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[
            Column::NAME,
            Column::text("Reference"),
            Column::text("Targets"),
            Column::text("MinPods"),
            Column::text("MaxPods"),
            Column::text("Replicas"),
            Column::AGE,
        ],
        autoscaler,
    ),
];

/// What an object is controlled by: `statefulset.apps/web`.
fn controller(o: &Cells<'_>) -> String {
    let mut owners = o.list("/metadata/ownerReferences");
    let Some(owner) = owners.find(|owner| owner.get("controller") == Some(&json!(true))) else {
        return NONE.to_owned();
    };
    let kind = text(owner, "kind").to_lowercase();
    let name = text(owner, "name");
    match text(owner, "apiVersion").rsplit_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    }
}

const REPLICAS: &[Column] = &[
    Column::NAME,
    Column::number("Desired"),
    Column::number("Current"),
    Column::number("Ready"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

fn ready(o: &Cells<'_>) -> Value {
    json!(format!(
        "{}/{}",
        o.number("/status/readyReplicas"),
        o.number("/spec/replicas")
    ))
}

fn replicas(o: &Cells<'_>) -> Vec<Value> {
    vec![
        o.name(),
        json!(o.number("/spec/replicas")),
        json!(o.number("/status/replicas")),
        json!(o.number("/status/readyReplicas")),
        o.age(),
    ]
}

fn with_template(
    o: &Cells<'_>,
    mut cells: Vec<Value>,
    pod_spec: &str,
    selector: Option<&str>,
) -> Vec<Value> {
    cells.extend(o.containers(pod_spec));
    if let Some(selector) = selector {
        cells.push(json!(o.selector(selector)));
    }
    cells
}

fn job(o: &Cells<'_>) -> Vec<Value> {
    let holds = |kind: &str| {
        o.list("/status/conditions")
            .any(|c| text(c, "type") == kind && text(c, "status") == "True")
    };
    let status = if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if o.is_ending() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
            .into_iter()
            .find(|kind| holds(kind))
            .unwrap_or("Running")
    };
    let succeeded = o.number("/status/succeeded");
    let completions = match o.at("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match o.number("/spec/parallelism") {
            many if many > 1 => format!("{succeeded}/1 of {many}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let took = parse_time(o.text("/status/startTime")).map_or_else(String::new, |start| {
        let end = parse_time(o.text("/status/completionTime")).unwrap_or(o.now);
        human(elapsed(start, end))
    });
    let cells = vec![
        o.name(),
        json!(status),
        json!(completions),
        json!(took),
        o.age(),
    ];
    with_template(o, cells, TEMPLATE, Some(SELECTOR))
}

fn cron_job(o: &Cells<'_>) -> Vec<Value> {
    let last = match o.text("/status/lastScheduleTime") {
        "" => NONE.to_owned(),
        time => o.since_text(time),
    };
    let cells = vec![
        o.name(),
        json!(o.text("/spec/schedule")),
        json!(o.text_or("/spec/timeZone", NONE)),
        // A text in a column of booleans, as the server has it.
        json!(match o.at("/spec/suspend") {
            Some(Value::Bool(true)) => "True",
            Some(Value::Bool(false)) => "False",
            _ => "<unset>",
        }),
        json!(o.len("/status/active")),
        json!(last),
        o.age(),
    ];
    let template = "/spec/jobTemplate/spec/template/spec";
    with_template(o, cells, template, Some("/spec/jobTemplate/spec/selector"))
}

fn autoscaler(o: &Cells<'_>) -> Vec<Value> {
    let min = match o.at("/spec/minReplicas") {
        Some(min) => min.to_string(),
        None => "<unset>".to_owned(),
    };
    vec![
        o.name(),
        json!(format!(
            "{}/{}",
            o.text("/spec/scaleTargetRef/kind"),
            o.text("/spec/scaleTargetRef/name")
        )),
        json!(targets(o)),
        json!(min),
        json!(o.number("/spec/maxReplicas")),
        json!(o.number("/status/currentReplicas")),
        o.age(),
    ]
}

/// How many metrics of an autoscaler are shown in a cell.
const METRICS: usize = 2;

/// Present and wanted values of the metrics.
fn targets(o: &Cells<'_>) -> String {
    let percent = o.at("/spec/targetCPUUtilizationPercentage");
    let percent = percent.map(|wanted| {
        let present = o.at("/status/currentCPUUtilizationPercentage");
        let present = present.map_or(UNKNOWN.to_owned(), |n| format!("{n}%"));
        format!("cpu: {present}/{wanted}%")
    });
    let measured: Vec<&Value> = o.list("/status/currentMetrics").collect();
    let metrics = o.list("/spec/metrics").enumerate();
    let metrics = metrics.map(|(index, metric)| target(metric, measured.get(index).copied()));
    let targets: Vec<String> = percent.into_iter().chain(metrics).collect();
    match targets.len() {
        0 => NONE.to_owned(),
        n if n > METRICS => {
            format!(
                "{} + {} more...",
                targets[..METRICS].join(", "),
                n - METRICS
            )
        }
        _ => targets.join(", "),
    }
}

/// What is shown of a value that nobody has measured.
const UNKNOWN: &str = "<unknown>";

/// Present and wanted value of a metric.
fn target(metric: &Value, measured: Option<&Value>) -> String {
    let (field, by_name) = match text(metric, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (of, now) = (metric.get(field), measured.and_then(|it| it.get(field)));
    let wanted = |name: &str| of.and_then(|of| of.get("target")?.get(name));
    let present = |name: &str| now.and_then(|now| now.get("current")?.get(name));
    let amount = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    // A status without the value that is looked for shows that it has none.
    let amount_now = |name: &str| match (now, present(name)) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(_), Some(value)) => amount(value),
        (Some(_), None) => "<nil>".to_owned(),
    };
    let average = wanted("averageValue").map(amount);
    if by_name {
        let name = of.map_or("", |of| text(of, "name"));
        let percent = |of: Option<&Value>, absent: &str| {
            of.map_or_else(|| absent.to_owned(), |n| format!("{n}%"))
        };
        return match average {
            Some(average) => format!("{name}: {}/{average}", amount_now("averageValue")),
            None => format!(
                "{name}: {}/{}",
                percent(present("averageUtilization"), UNKNOWN),
                percent(wanted("averageUtilization"), "<auto>")
            ),
        };
    }
    match average {
        Some(average) if field == "pods" => format!("{}/{average}", amount_now("averageValue")),
        Some(average) => {
            let now = present("averageValue").map_or(UNKNOWN.to_owned(), amount);
            format!("{now}/{average} (avg)")
        }
        None => {
            let wanted = wanted("value").map_or("<nil>".to_owned(), amount);
            format!("{}/{wanted}", amount_now("value"))
        }
    }
}

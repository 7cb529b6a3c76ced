//! kubectl where workloads run: rollouts, waiting, draining. There is no real server
//! beside it, as that runs no pods; what kubectl has to come to is written down.

use anyhow::Result;

use crate::steps::{self, Ends};

/// Command lines, and what each ends with or says.
const STEPS: &[(&str, Ends)] = &[
    (
        "kubectl create deployment web --image=example.com/web:1 --replicas=3",
        Ends::Well("deployment.apps/web created"),
    ),
    (
        "kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    (
        "kubectl get deployment web -o jsonpath='{.status.availableReplicas}'",
        Ends::Well("3"),
    ),
    (
        "kubectl set image deployment web web=example.com/web:2 && kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    (
        "kubectl rollout history deployment web | grep -c '^[12] '",
        Ends::Well("2"),
    ),
    (
        "kubectl rollout undo deployment web && kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    (
        "kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'",
        Ends::Well("example.com/web:1"),
    ),
    (
        "kubectl rollout pause deployment web && kubectl set image deployment web web=example.com/web:3 && kubectl rollout status deployment web --timeout=2s",
        Ends::Badly("timed out waiting for the condition"),
    ),
    (
        "kubectl rollout resume deployment web && kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    (
        "kubectl scale deployment web --replicas=2 && kubectl wait deployment web --for=jsonpath='{.status.readyReplicas}'=2 --timeout=60s",
        Ends::Well("deployment.apps/web condition met"),
    ),
    (
        "kubectl annotate deployment web actor.reeve.dev/fail=image-pull && kubectl set image deployment web web=example.com/web:4 && kubectl rollout status deployment web --timeout=2s",
        Ends::Badly("timed out waiting for the condition"),
    ),
    (
        "kubectl annotate deployment web actor.reeve.dev/fail- && kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    // The others that roll out.
    (
        "kubectl create -f - <<X
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: example.com/db:1}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log}, spec: {selector: {matchLabels: {app: log}}, template: {metadata: {labels: {app: log}}, spec: {containers: [{name: log, image: example.com/log:1}]}}}}
X",
        Ends::Well("daemonset.apps/log created"),
    ),
    (
        "kubectl rollout status statefulset db --timeout=60s",
        Ends::Well("partitioned roll out complete: 2 new pods have been updated..."),
    ),
    (
        "kubectl rollout status daemonset log --timeout=60s",
        Ends::Well("daemon set \"log\" successfully rolled out"),
    ),
    (
        "kubectl create job once --image=example.com/once:1 && kubectl wait job once --for=condition=Complete --timeout=60s",
        Ends::Well("job.batch/once condition met"),
    ),
    // Eviction.
    (
        "kubectl create poddisruptionbudget web --selector=app=web --min-available=2 && kubectl wait pdb web --for=jsonpath='{.status.expectedPods}'=2 --timeout=60s",
        Ends::Well("poddisruptionbudget.policy/web condition met"),
    ),
    (
        "kubectl drain node-1 --ignore-daemonsets --force --pod-selector=app=web --timeout=2s",
        Ends::Badly("Cannot evict pod as it would violate the pod's disruption budget."),
    ),
    (
        "kubectl delete pdb web && kubectl drain node-1 --ignore-daemonsets --force --timeout=60s",
        Ends::Well("node/node-1 drained"),
    ),
    (
        "kubectl rollout status deployment web --timeout=2s",
        Ends::Badly("timed out waiting for the condition"),
    ),
    (
        "kubectl uncordon node-1 && kubectl rollout status deployment web --timeout=60s",
        Ends::Well("deployment \"web\" successfully rolled out"),
    ),
    // Limits.
    (
        "kubectl create namespace tight && kubectl create -n tight -f - <<X
{apiVersion: v1, kind: LimitRange, metadata: {name: most}, spec: {limits: [{type: Container, max: {cpu: 500m}}]}}
X",
        Ends::Well("limitrange/most created"),
    ),
    (
        "kubectl run -n tight ok --image=example.com/ok:1 && kubectl get pod -n tight ok -o jsonpath='{.spec.containers[0].resources.limits.cpu}'",
        Ends::Well("500m"),
    ),
    (
        "kubectl create deployment -n tight large --image=example.com/large:1 && kubectl set resources deployment -n tight large --limits=cpu=2 && kubectl wait deployment -n tight large --for=condition=ReplicaFailure --timeout=60s",
        Ends::Well("deployment.apps/large condition met"),
    ),
    (
        "kubectl get deployment -n tight large -o jsonpath='{.status.conditions[?(@.type==\"ReplicaFailure\")].message}'",
        Ends::Well("maximum cpu usage per Container is 500m, but limit is 2"),
    ),
];

#[test]
fn workloads_roll_out() -> Result<()> {
    steps::run(STEPS, "tests/clients")
}

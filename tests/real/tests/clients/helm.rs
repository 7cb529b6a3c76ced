//! Helm where workloads run: waiting, hooks that are Jobs, tests, and the charts of this
//! repository. What needs nobody to run it is compared with a real server, by
//! `kubectl/helm.script`.

use anyhow::Result;

use crate::steps::{self, Ends};

const CHART: &[(&str, Ends)] = &[
    (
        "helm install web web --wait --timeout 60s",
        Ends::Well("DESCRIPTION: Install complete"),
    ),
    (
        "kubectl get deployment web -o jsonpath='{.status.availableReplicas}'",
        Ends::Well("2"),
    ),
    (
        "kubectl get pvc web -o jsonpath='{.status.phase}'",
        Ends::Well("Bound"),
    ),
    // One hook stays until it is made again, the other goes when it was well.
    (
        "kubectl get job web-pre-install -o jsonpath='{.status.succeeded}'",
        Ends::Well("1"),
    ),
    (
        "kubectl get job web-post-install",
        Ends::Badly("jobs.batch \"web-post-install\" not found"),
    ),
    (
        "helm test web --timeout 60s",
        Ends::Well("Phase:          Succeeded"),
    ),
    (
        "helm upgrade web web --reuse-values --set failingTest=true --wait --timeout 60s && helm test web --timeout 60s",
        Ends::Badly("web-answers"),
    ),
    (
        "helm upgrade web web --set replicas=3,image=example.com/web:2 --wait --timeout 60s && kubectl get deployment web -o jsonpath='{.status.updatedReplicas} {.status.availableReplicas}'",
        Ends::Well("3 3"),
    ),
    // What never becomes ready is waited for, and told.
    (
        "helm upgrade web web --set replicas=3,image=example.com/web:3,fail=image-pull --wait --timeout 3s",
        Ends::Badly("Deployment/default/web not ready"),
    ),
    (
        "helm history web -o json | tr '}' '\\n' | grep -c '\"status\":\"failed\"'",
        Ends::Well("1"),
    ),
    (
        "helm rollback web 3 --wait --timeout 60s && kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.status.availableReplicas}'",
        Ends::Well("example.com/web:2 3"),
    ),
    (
        "kubectl get job web-pre-rollback -o jsonpath='{.status.succeeded}'",
        Ends::Well("1"),
    ),
    // A hook that fails stops what it stands before.
    (
        "helm upgrade web web --set replicas=1,failingHook=pre-upgrade --wait --timeout 60s",
        Ends::Badly("pre-upgrade hooks failed"),
    ),
    (
        "kubectl get deployment web -o jsonpath='{.spec.replicas}'",
        Ends::Well("3"),
    ),
    (
        "helm upgrade web web --set replicas=1,fail=crash-loop,image=example.com/web:4 --rollback-on-failure --timeout 4s",
        Ends::Badly("has been rolled back"),
    ),
    (
        "kubectl rollout status deployment web --timeout=60s && kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'",
        Ends::Well("example.com/web:2"),
    ),
    (
        "helm uninstall web --wait --timeout 60s",
        Ends::Well("release \"web\" uninstalled"),
    ),
    (
        "kubectl get deployments,replicasets,services,persistentvolumeclaims -l 'component!=apiserver' -o name | wc -l",
        Ends::Well("0"),
    ),
];

const OWN: &[(&str, Ends)] = &[
    (
        "helm install reeve reeve -n reeve-system --create-namespace --wait --timeout 60s && kubectl get deployment reeve -n reeve-system -o jsonpath='{.status.availableReplicas}'",
        Ends::Well("2"),
    ),
    (
        "for one in profile-plugins packs models; do helm install $one $one -n reeve-system --wait --timeout 60s || exit 1; done; kubectl get plugins -n reeve-system -o name | sort | tr '\n' ' '",
        Ends::Well(
            "plugin.reeve.dev/models plugin.reeve.dev/network plugin.reeve.dev/notebook plugin.reeve.dev/packs plugin.reeve.dev/packs-desired-state plugin.reeve.dev/packs-flux plugin.reeve.dev/packs-front-door",
        ),
    ),
    (
        "cat >$HOME/versions <<'X'
labelled='-n reeve-system -l app.kubernetes.io/managed-by=Helm --no-headers'
kubectl get $labelled -o custom-columns=:kind,:metadata.name,:metadata.resourceVersion plugins,configmaps,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,validatingadmissionpolicies,networkpolicies
# Somebody else writes their status.
kubectl get $labelled -o custom-columns=:kind,:metadata.name,:metadata.generation deployments,poddisruptionbudgets
X
sh $HOME/versions | wc -l | grep -c '^[5-9][0-9]$\\|^1[0-9][0-9]$'",
        Ends::Well("1"),
    ),
    // Another time, nothing changes.
    (
        "sh $HOME/versions >$HOME/before && for one in reeve profile-plugins packs models; do helm upgrade $one $one -n reeve-system --wait --timeout 60s || exit 1; done; sh $HOME/versions >$HOME/after && diff $HOME/before $HOME/after && echo same",
        Ends::Well("same"),
    ),
    (
        "helm upgrade reeve reeve -n reeve-system --set replicas=3 --wait --timeout 60s && kubectl get deployment reeve -n reeve-system -o jsonpath='{.status.availableReplicas}'",
        Ends::Well("3"),
    ),
    (
        "helm rollback reeve 1 -n reeve-system --wait --timeout 60s && kubectl get deployment reeve -n reeve-system -o jsonpath='{.spec.replicas}'",
        Ends::Well("2"),
    ),
    // What the charts say that stays is all that is left.
    (
        "helm uninstall models packs profile-plugins reeve -n reeve-system --wait --timeout 60s && ! sh $HOME/versions | grep -v '^Plugin ' && echo nothing else",
        Ends::Well("nothing else"),
    ),
];

#[test]
fn a_release_lives_with_actors() -> Result<()> {
    steps::run(CHART, "tests/clients/charts")
}

#[test]
fn the_charts_of_this_repository_install() -> Result<()> {
    steps::run(OWN, "../../charts")
}

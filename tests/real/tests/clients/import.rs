//! A real cluster's objects, taken with `reeve cluster import` and loaded into an
//! embedded one: all of them are taken by it, and live on there.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{ControlPlane, EmbeddedCluster, eventually};
use serde_json::Value;

/// What people have in clusters. The controller manager adds ReplicaSets, Pods and the
/// rest.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: prod}
data: {colour: blue, "yes": "no", number: "1.0", lines: "a\nb\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: prod}
stringData: {password: topsecret}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: prod}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths": {"example.com": {"auth": "topsecret"}}}'}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: prod}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: prod}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: web, namespace: prod}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 80}]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: prod}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: prod}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: prod}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: m, image: "example.com/m:1"}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: prod}
spec:
  schedule: "0 0 * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: m, image: "example.com/m:1"}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: prod}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all, namespace: prod}
spec: {podSelector: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: prod}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /data}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: prod}
spec: {hard: {pods: "10"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: prod}
spec: {limits: [{type: Container, default: {cpu: "1"}}]}
"#;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

const THING: &str = r#"
apiVersion: example.com/v1
kind: Thing
metadata: {name: t, namespace: prod}
spec: {size: 3}
"#;

/// What has to be in both, as kind and name, where the second has all of the first.
const SHAPE: [&str; 3] = [
    "get",
    "configmaps,secrets,deployments,replicasets,statefulsets,pods,services,jobs,cronjobs,ingresses,networkpolicies,poddisruptionbudgets,persistentvolumeclaims,roles,rolebindings,serviceaccounts,resourcequotas,limitranges,things.example.com",
    "--namespace=prod",
];

#[test]
fn a_real_clusters_objects_live_on_in_an_embedded_one() -> Result<()> {
    let real = ControlPlane::builder().controllers(["*"]).start()?;
    let definition: Value = serde_saphyr::from_str(DEFINITION)?;
    real.establish(&definition)?;
    real.apply(OBJECTS)?;
    real.apply(THING)?;
    real.kubectl(&[
        "patch",
        "thing",
        "t",
        "--namespace=prod",
        "--subresource=status",
        "--type=merge",
        "--patch={\"status\":{\"phase\":\"Ready\"}}",
    ])?;
    eventually("the controllers have done their work", || {
        let pods = real.kubectl(&["get", "pods", "--namespace=prod", "-o", "name"])?;
        ensure!(pods.lines().count() >= 4, "{pods}");
        Ok(())
    })?;

    let embedded = EmbeddedCluster::start()?;
    let file = embedded.folder().join("prod.yaml");
    let path = file.to_str().context("a path in UTF-8")?;
    real.reeve(&["cluster", "import", path])?;
    let text = fs::read_to_string(&file)?;
    for secret in ["topsecret", "dG9wc2VjcmV0"] {
        ensure!(!text.contains(secret), "{secret} is in the file");
    }
    let kubeconfig = embedded.kubeconfig();
    let kubeconfig = kubeconfig.to_str().context("a path in UTF-8")?;
    // It fails when one object is refused.
    real.reeve(&["cluster", "load", path, "--kubeconfig", kubeconfig])?;

    let names = |list: String| -> Vec<String> {
        let lines = list.lines().map(str::to_owned);
        let is_root = |line: &String| line != "configmap/kube-root-ca.crt";
        let mut names: Vec<String> = lines.filter(is_root).collect();
        names.sort();
        names
    };
    let shape = [&SHAPE[..], &["-o", "name"]].concat();
    let expected = names(real.kubectl(&shape)?);
    ensure!(expected.len() > 20, "{expected:?}");
    assert_eq!(names(embedded.kubectl(&shape)?), expected);

    // The collector has seen everything when it has taken what belongs to nobody.
    let doomed = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "doomed", "namespace": "prod", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "there"}]}}"#;
    let doomed_file = embedded.folder().join("doomed.json");
    fs::write(&doomed_file, doomed)?;
    let doomed_path = doomed_file.to_str().context("a path in UTF-8")?;
    embedded.kubectl(&["create", "-f", doomed_path])?;
    eventually("the collector has done its work", || {
        let left = embedded.kubectl(&[
            "get",
            "configmap",
            "doomed",
            "--namespace=prod",
            "--ignore-not-found",
        ])?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })?;
    assert_eq!(names(embedded.kubectl(&shape)?), expected);

    let of = |kind: &str, path: &str| {
        let output = format!("jsonpath={path}");
        embedded.kubectl(&["get", kind, "--namespace=prod", "-o", &output])
    };
    let owner = of("replicasets", "{.items[0].metadata.ownerReferences[0].uid}")?;
    assert_eq!(of("deployment/web", "{.metadata.uid}")?, owner);
    assert_eq!(of("thing/t", "{.status.phase}{.spec.size}")?, "Ready3");
    assert_eq!(of("secret/password", "{.data.password}")?, "cmVkYWN0ZWQ=");
    let status = of("deployment/web", "{.status.replicas}")?;
    assert_eq!(status, "2");
    Ok(())
}

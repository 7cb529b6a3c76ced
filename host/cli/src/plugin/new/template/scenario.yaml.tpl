name: every profile is greeted, in words that can be chosen
given:
  files: [crds/profile.yaml]
  objects:
    - {apiVersion: v1, kind: Namespace, metadata: {name: alice}}
    - {apiVersion: kubeflow.org/v1, kind: Profile, metadata: {name: alice}}
expect:
  objects:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: {{name}}, namespace: alice}
      data: {text: hello}
steps:
  - config: {text: good day}
    expect:
      objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: {{name}}, namespace: alice}
          data: {text: good day}
  - name: what somebody else makes of it is put right
    delete: ConfigMap alice/{{name}}
    expect:
      objects:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: {{name}}, namespace: alice}}
  - delete: Profile alice
    expect:
      absent: [ConfigMap alice/{{name}}]

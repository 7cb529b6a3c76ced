# As much of Kubeflow's Profile as the scenarios need.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: profiles.kubeflow.org
spec:
  group: kubeflow.org
  scope: Cluster
  names: {kind: Profile, listKind: ProfileList, plural: profiles, singular: profile}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          x-kubernetes-preserve-unknown-fields: true

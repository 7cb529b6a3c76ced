{{/* RBAC rules by namespace, as JSON; everywhere under "". Of `rules`, each has a
     group, a resource, verbs, and may have a namespace and names. */}}
{{- define "profile-plugins.places" -}}
{{- $places := dict -}}
{{- range .rules -}}
{{- $namespace := default "" .namespace -}}
{{- if not (hasKey $places $namespace) }}{{ $_ := set $places $namespace dict }}{{ end -}}
{{- $place := index $places $namespace -}}
{{- $key := printf "%s/%s/%s" .group .resource (join "," (default list .names)) -}}
{{- $before := default (dict "verbs" list) (index $place $key) -}}
{{- $rule := dict "apiGroups" (list .group) "resources" (list .resource) "verbs" (concat $before.verbs .verbs | uniq | sortAlpha) -}}
{{- if .names }}{{ $_ := set $rule "resourceNames" .names }}{{ end -}}
{{- $_ := set $place $key $rule -}}
{{- end -}}
{{- toJson $places -}}
{{- end -}}

{{/* A Role or, without a namespace, a ClusterRole, and its binding. */}}
{{- define "profile-plugins.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- if .namespace }}
  namespace: {{ .namespace }}
  {{- end }}
  labels: {{- .labels | nindent 4 }}
rules: {{- .rules | toYaml | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- if .namespace }}
  namespace: {{ .namespace }}
  {{- end }}
  labels: {{- .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{ end -}}

{{/* All that a plugin is granted: what `reeve plugin grant` prints for it, under the
     same names, and beside it what no manifest can ask for. */}}
{{- define "profile-plugins.grant" -}}
{{- $root := .root -}}
{{- $here := $root.Release.Namespace -}}
{{- $plugin := .of.plugin -}}
{{- $rules := .of.rules -}}
{{- $agent := $root.Values.agent.serviceAccountName -}}
{{- $name := printf "reeve-plugin-%s-%s" $here $plugin -}}
{{- $labels := printf "%s\nreeve.dev/granted-in: %s\nreeve.dev/granted-to: %s" (include "profile-plugins.labels" $root) $here $plugin -}}
{{- $looks := list "get" "list" "watch" -}}
{{- $account := list -}}
{{- $agents := list -}}
{{- range $rules.reads -}}
{{- $account = append $account (merge (dict "verbs" $looks) .) -}}
{{- $agents = append $agents (merge (dict "verbs" $looks) .) -}}
{{- end -}}
{{- range $rules.writes -}}
{{- $account = append $account (merge (dict "verbs" (list "create" "delete" "patch")) .) -}}
{{- $agents = append $agents (merge (dict "verbs" $looks) .) -}}
{{- end -}}
{{- if $rules.secrets -}}
{{- $account = append $account (dict "group" "" "resource" "secrets" "verbs" (list "create" "get" "patch")) -}}
{{- end -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $plugin }}
  namespace: {{ $here }}
  labels: {{- include "profile-plugins.labels" $root | nindent 4 }}
  annotations:
    reeve.dev/plugin: {{ $plugin }}
{{ $impersonate := list (dict "apiGroups" (list "") "resources" (list "serviceaccounts") "resourceNames" (list $plugin) "verbs" (list "impersonate")) -}}
{{ include "profile-plugins.role" (dict "root" $root "name" (printf "%s-impersonate" $name) "namespace" $here "labels" $labels "rules" $impersonate "account" $agent) }}
{{- range $namespace, $of := include "profile-plugins.places" (dict "rules" $account) | fromJson }}
{{- include "profile-plugins.role" (dict "root" $root "name" (printf "%s-account" $name) "namespace" $namespace "labels" $labels "rules" (values $of) "account" $plugin) }}
{{- end }}
{{- range $namespace, $of := include "profile-plugins.places" (dict "rules" $agents) | fromJson }}
{{- include "profile-plugins.role" (dict "root" $root "name" (printf "%s-agent" $name) "namespace" $namespace "labels" $labels "rules" (values $of) "account" $agent) }}
{{- end }}
{{- include "profile-plugins.outside" (dict "root" $root "of" .of "name" $name "labels" $labels) }}
{{- include "profile-plugins.holding" (dict "root" $root "of" .of "labels" $labels) }}
{{- include "profile-plugins.beside" (dict "root" $root "of" .of "name" $name "labels" $labels) }}
{{- include "profile-plugins.policy" (dict "root" $root "of" .of "name" $name "labels" $labels) }}
{{- end -}}

{{/* The Secrets of what the Plugin may reach outside, which the agent reads. */}}
{{- define "profile-plugins.outside" -}}
{{- $root := .root -}}
{{- $places := dict -}}
{{- range concat (dig "capabilities" "sql" list .of.spec) (dig "capabilities" "keys" list .of.spec) -}}
{{- $namespace := default $root.Release.Namespace .secret.namespace -}}
{{- $_ := set $places $namespace (append (default list (index $places $namespace)) .secret.name) -}}
{{- end -}}
{{- range $namespace, $names := $places -}}
{{- $get := list (dict "apiGroups" (list "") "resources" (list "secrets") "resourceNames" ($names | uniq | sortAlpha) "verbs" (list "get")) -}}
{{- include "profile-plugins.role" (dict "root" $root "name" (printf "%s-outside" $.name) "namespace" $namespace "labels" $.labels "rules" $get "account" $root.Values.agent.serviceAccountName) -}}
{{- end -}}
{{- end -}}

{{/* That Profiles wait for the end of their units: the account may change nothing of
     them but its finalizers. */}}
{{- define "profile-plugins.holding" -}}
{{- $name := printf "reeve-primaries-%s-%s" .root.Release.Namespace .of.plugin -}}
{{- $patch := list (dict "apiGroups" (list "kubeflow.org") "resources" (list "profiles") "verbs" (list "patch")) -}}
{{- include "profile-plugins.role" (dict "root" .root "name" $name "namespace" "" "labels" .labels "rules" $patch "account" .of.plugin) -}}
{{- $own := printf "reeve.dev/%s" .of.plugin -}}
{{- $hooks := printf "hooks.reeve.dev/%s" .of.plugin -}}
{{- $free := "key in ['finalizers', 'managedFields', 'resourceVersion']" -}}
{{- $ours := printf "['%s', '%s']" $own $hooks -}}
{{- $message := printf "plugin %s: of its primaries, its account may change nothing but the finalizers %s and %s" .of.plugin $own $hooks -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels: {{- .labels | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConditions:
    - name: account
      expression: request.userInfo.username == 'system:serviceaccount:{{ .root.Release.Namespace }}:{{ .of.plugin }}'
  matchConstraints:
    resourceRules:
      - apiGroups: [kubeflow.org]
        apiVersions: ["*"]
        operations: [UPDATE]
        resources: [profiles]
        scope: "*"
  validations:
    - expression: object.all(key, key == 'metadata' || (key in oldObject && object[key] == oldObject[key])) && oldObject.all(key, key == 'metadata' || key in object)
      message: {{ $message | quote }}
      reason: Forbidden
    - expression: object.metadata.all(key, {{ $free }} || (key in oldObject.metadata && object.metadata[key] == oldObject.metadata[key])) && oldObject.metadata.all(key, {{ $free }} || key in object.metadata)
      message: {{ $message | quote }}
      reason: Forbidden
    - expression: "(has(object.metadata.finalizers) ? object.metadata.finalizers.filter(name, !(name in {{ $ours }})) : []) == (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers.filter(name, !(name in {{ $ours }})) : [])"
      message: {{ $message | quote }}
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels: {{- .labels | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{ end -}}

{{/* What no manifest can ask for: for rbac the roles that it binds and the rules that
     it hands on. */}}
{{- define "profile-plugins.beside" -}}
{{- $root := .root -}}
{{- $settings := .of.settings -}}
{{- if eq .of.plugin "rbac" -}}
{{- $main := eq $settings.preset "main" -}}
{{- $bound := list -}}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "mlPipeline" "default" (not $main)) -}}
{{- $bound = append $bound "ml-pipeline" -}}
{{- end -}}
{{- if $settings.supportGroups }}{{ $bound = append $bound "profile-support" }}{{ end -}}
{{- $rules := deepCopy (dig "role" "rules" list $settings) -}}
{{- if $bound -}}
{{- $rules = append $rules (dict "apiGroups" (list "rbac.authorization.k8s.io") "resources" (list "clusterroles") "resourceNames" $bound "verbs" (list "bind")) -}}
{{- end -}}
{{- if $rules -}}
{{- include "profile-plugins.role" (dict "root" $root "name" (printf "%s-binds" .name) "namespace" "" "labels" (include "profile-plugins.labels" $root) "rules" $rules "account" .of.plugin) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What RBAC cannot say: where the account may write. Only of kinds that it writes
     in namespaces which follow from Profiles. */}}
{{- define "profile-plugins.policy" -}}
{{- $here := .root.Release.Namespace -}}
{{- $plugin := .of.plugin -}}
{{- $written := dict -}}
{{- range .of.rules.writes -}}
{{- if not (or .cluster .namespace) -}}
{{- $_ := set $written (printf "%s/%s" .group .resource) . -}}
{{- end -}}
{{- end -}}
{{- $allowed := "!request.namespace.startsWith('kube-')" -}}
{{- $selector := list -}}
{{- range $key, $value := .root.Values.namespaceLabels -}}
{{- $selector = append $selector (printf "%s=%s" $key $value) -}}
{{- $allowed = printf "%s && ('%s' in namespaceObject.metadata.labels && namespaceObject.metadata.labels['%s'] in ['%s'])" $allowed $key $key $value -}}
{{- end -}}
{{- $where := "no namespace whose name begins with `kube-`" -}}
{{- if $selector -}}
{{- $where = printf "only namespaces that `%s` selects, and none whose name begins with `kube-`" (join "," $selector) -}}
{{- end -}}
{{- $label := "reeve.dev/plugin" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels: {{- .labels | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConditions:
    - name: account
      expression: request.userInfo.username == 'system:serviceaccount:{{ $here }}:{{ $plugin }}'
  matchConstraints:
    resourceRules:
      {{- range $written }}
      - apiGroups: [{{ .group | quote }}]
        # A restriction is to miss nothing, also in versions to come.
        apiVersions: ["*"]
        operations: [CREATE, UPDATE, DELETE]
        resources: [{{ .resource }}]
        scope: Namespaced
      {{- end }}
  validations:
    - expression: request.namespace != '{{ $here }}'
      message: "plugin {{ $plugin }}: its account may not write in namespace {{ $here }}, which decides what the agent runs"
      reason: Forbidden
    {{- range $written }}
    - expression: request.resource.group != '{{ .group }}' || request.resource.resource != '{{ .resource }}' || ({{ $allowed }})
      message: "plugin {{ $plugin }}: its account may write {{ .resource }} in {{ $where }}"
      reason: Forbidden
    {{- end }}
    - expression: request.operation != 'CREATE' || (has(object.metadata.labels) && '{{ $label }}' in object.metadata.labels && object.metadata.labels['{{ $label }}'] == '{{ $plugin }}')
      message: "plugin {{ $plugin }}: what its account makes carries the label {{ $label }} with its name"
      reason: Forbidden
    - expression: request.operation == 'CREATE' || !(has(oldObject.metadata.labels) && '{{ $label }}' in oldObject.metadata.labels) || oldObject.metadata.labels['{{ $label }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not change or delete another plugin's objects"
      reason: Forbidden
    - expression: request.operation != 'UPDATE' || !(has(object.metadata.labels) && '{{ $label }}' in object.metadata.labels) || object.metadata.labels['{{ $label }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not give objects the label {{ $label }} of another plugin"
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels: {{- .labels | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{ end -}}

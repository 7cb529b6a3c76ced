{{/*
What a plugin is granted: the objects that `reeve plugin grant` prints for it, under the
same names. Shared by the charts of this folder, which link to this file.

"grants.plugin" takes `here`, the agent's namespace; `plugin`, whose account has its name;
`agent`, the agent's account; `labels` of the chart; `namespaceLabels`, in which
namespaces it may write where they follow from primaries; `capabilities` of its Plugin;
`login`, the Secret with which its component is pulled, if there is one; and `rules`:

  primary: {group, resource}
  reads:  [{group, resource, namespace, names}]
  writes: [{group, resource, namespace, cluster}]
  secrets: whether it has Secrets generated, in namespaces that follow from primaries

Without a namespace a read is everywhere, and a write is in namespaces that follow from
primaries, or with `cluster` everywhere.
*/}}
{{- define "grants.plugin" -}}
{{- $here := .here -}}
{{- $plugin := .plugin -}}
{{- $agent := .agent -}}
{{- $chart := .labels -}}
{{- $rules := .rules -}}
{{- $name := printf "reeve-plugin-%s.%s" $here $plugin -}}
{{- $labels := printf "%s\nreeve.dev/granted-in: %q\nreeve.dev/granted-to: %q" $chart $here $plugin -}}
{{- $looks := list "get" "list" "watch" -}}
{{- $account := list -}}
{{- $agents := list -}}
{{- range prepend (default list $rules.reads) $rules.primary -}}
{{- $account = append $account (merge (dict "verbs" $looks) .) -}}
{{- $agents = append $agents (merge (dict "verbs" $looks) .) -}}
{{- end -}}
{{- range $rules.writes -}}
{{- /* Nobody may list Secrets: the account that writes them gets them by name. */ -}}
{{- if and (eq .group "") (eq .resource "secrets") -}}
{{- $account = append $account (merge (dict "verbs" (list "create" "delete" "get" "patch")) .) -}}
{{- else -}}
{{- $account = append $account (merge (dict "verbs" (list "create" "delete" "patch")) .) -}}
{{- $agents = append $agents (merge (dict "verbs" $looks) .) -}}
{{- end -}}
{{- end -}}
{{- /* How claims are bound, their classes say. */ -}}
{{- $claims := false -}}
{{- range $rules.writes }}{{ if and (eq .group "") (eq .resource "persistentvolumeclaims") }}{{ $claims = true }}{{ end }}{{ end -}}
{{- if $claims -}}
{{- $agents = append $agents (dict "group" "storage.k8s.io" "resource" "storageclasses" "verbs" $looks) -}}
{{- end -}}
{{- if $rules.secrets -}}
{{- $account = append $account (dict "group" "" "resource" "secrets" "verbs" (list "create" "get" "patch")) -}}
{{- end -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $plugin | quote }}
  namespace: {{ $here | quote }}
  labels: {{- $chart | nindent 4 }}
  annotations:
    reeve.dev/plugin: {{ $plugin | quote }}
{{ $impersonate := list (dict "apiGroups" (list "") "resources" (list "serviceaccounts") "resourceNames" (list $plugin) "verbs" (list "impersonate")) -}}
{{ include "grants.role" (dict "here" $here "name" (printf "%s-impersonate" $name) "namespace" $here "labels" $labels "rules" $impersonate "account" $agent) }}
{{- range $namespace, $of := include "grants.places" (dict "rules" $account) | fromJson }}
{{- include "grants.role" (dict "here" $here "name" (printf "%s-account" $name) "namespace" $namespace "labels" $labels "rules" $of "account" $plugin) }}
{{- end }}
{{- range $namespace, $of := include "grants.places" (dict "rules" $agents) | fromJson }}
{{- include "grants.role" (dict "here" $here "name" (printf "%s-agent" $name) "namespace" $namespace "labels" $labels "rules" $of "account" $agent) }}
{{- end }}
{{- include "grants.outside" (dict "here" $here "name" $name "labels" $labels "agent" $agent "capabilities" (default dict .capabilities) "login" (default "" .login)) }}
{{- include "grants.holding" (dict "here" $here "plugin" $plugin "labels" $labels "rules" $rules) }}
{{- include "grants.policy" (dict "here" $here "plugin" $plugin "name" $name "labels" $labels "rules" $rules "namespaceLabels" (default dict .namespaceLabels)) }}
{{- end -}}

{{/* RBAC rules by namespace, as JSON, those of everywhere under "": without what a wider
     one of them grants already. */}}
{{- define "grants.places" -}}
{{- $open := dict -}}
{{- $named := dict -}}
{{- range .rules -}}
{{- $namespace := default "" .namespace -}}
{{- $key := printf "%s/%s" .group .resource -}}
{{- $kept := ternary $named $open (not (empty .names)) -}}
{{- if not (hasKey $kept $namespace) }}{{ $_ := set $kept $namespace dict }}{{ end -}}
{{- $place := index $kept $namespace -}}
{{- $before := default (dict "verbs" list "names" list) (index $place $key) -}}
{{- $_ := set $place $key (dict "group" .group "resource" .resource "verbs" (concat $before.verbs .verbs | uniq | sortAlpha) "names" (concat $before.names (default list .names) | uniq | sortAlpha)) -}}
{{- end -}}
{{- $places := dict -}}
{{- $wide := default dict (index $open "") -}}
{{- range $kept := list $open $named -}}
{{- range $namespace, $place := $kept -}}
{{- range $key, $rule := $place -}}
{{- $more := list -}}
{{- if or $namespace $rule.names }}{{ $more = concat $more (dig $key "verbs" list $wide) }}{{ end -}}
{{- if $rule.names }}{{ $more = concat $more (dig $namespace $key "verbs" list $open) }}{{ end -}}
{{- $verbs := list -}}
{{- range $rule.verbs }}{{ if not (has . $more) }}{{ $verbs = append $verbs . }}{{ end }}{{ end -}}
{{- if $verbs -}}
{{- $written := dict "apiGroups" (list $rule.group) "resources" (list $rule.resource) "verbs" $verbs -}}
{{- if $rule.names }}{{ $_ := set $written "resourceNames" $rule.names }}{{ end -}}
{{- $_ := set $places $namespace (append (default list (index $places $namespace)) $written) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $places -}}
{{- end -}}

{{/* A Role or, without a namespace, a ClusterRole, and its binding. */}}
{{- define "grants.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name | quote }}
  {{- if .namespace }}
  namespace: {{ .namespace | quote }}
  {{- end }}
  labels: {{- .labels | nindent 4 }}
rules: {{- .rules | toYaml | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name | quote }}
  {{- if .namespace }}
  namespace: {{ .namespace | quote }}
  {{- end }}
  labels: {{- .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name | quote }}
subjects:
  - kind: ServiceAccount
    name: {{ .account | quote }}
    namespace: {{ .here | quote }}
{{ end -}}

{{/* The Secrets of what the Plugin may reach outside, and of where it is pulled from,
     which the agent reads. */}}
{{- define "grants.outside" -}}
{{- $places := dict -}}
{{- if .login }}{{ $_ := set $places .here (list .login) }}{{ end -}}
{{- range concat (dig "sql" list .capabilities) (dig "keys" list .capabilities) -}}
{{- $namespace := default $.here .secret.namespace -}}
{{- $_ := set $places $namespace (append (default list (index $places $namespace)) .secret.name) -}}
{{- end -}}
{{- range $namespace, $names := $places -}}
{{- $get := list (dict "apiGroups" (list "") "resources" (list "secrets") "resourceNames" ($names | uniq | sortAlpha) "verbs" (list "get")) -}}
{{- include "grants.role" (dict "here" $.here "name" (printf "%s-outside" $.name) "namespace" $namespace "labels" $.labels "rules" $get "account" $.agent) -}}
{{- end -}}
{{- end -}}

{{/* That primaries wait for the end of their units: the account may change nothing of
     them but its finalizers. Not where it writes objects of their kind: which of these
     are primaries no policy can tell. */}}
{{- define "grants.holding" -}}
{{- $primary := .rules.primary -}}
{{- $written := false -}}
{{- range .rules.writes }}{{ if and (eq .group $primary.group) (eq .resource $primary.resource) }}{{ $written = true }}{{ end }}{{ end -}}
{{- if not $written -}}
{{- $name := printf "reeve-primaries-%s.%s" .here .plugin -}}
{{- $patch := list (dict "apiGroups" (list $primary.group) "resources" (list $primary.resource) "verbs" (list "patch")) -}}
{{- include "grants.role" (dict "here" .here "name" $name "namespace" "" "labels" .labels "rules" $patch "account" .plugin) -}}
{{- $own := printf "reeve.dev/%s" .plugin -}}
{{- $hooks := printf "hooks.reeve.dev/%s" .plugin -}}
{{- $free := "key in ['finalizers', 'managedFields', 'resourceVersion']" -}}
{{- $ours := printf "['%s', '%s']" $own $hooks -}}
{{- $message := printf "plugin %s: of its primaries, its account may change nothing but the finalizers %s and %s" .plugin $own $hooks -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name | quote }}
  labels: {{- .labels | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConditions:
    - name: account
      expression: request.userInfo.username == 'system:serviceaccount:{{ .here }}:{{ .plugin }}'
  matchConstraints:
    resourceRules:
      - apiGroups: [{{ $primary.group | quote }}]
        apiVersions: ["*"]
        operations: [UPDATE]
        resources: [{{ $primary.resource | quote }}]
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
  name: {{ $name | quote }}
  labels: {{- .labels | nindent 4 }}
spec:
  policyName: {{ $name | quote }}
  validationActions: [Deny]
{{ end -}}
{{- end -}}

{{/* What RBAC cannot say: where the account may write. Only of kinds that it writes
     in namespaces which follow from primaries. */}}
{{- define "grants.policy" -}}
{{- $here := .here -}}
{{- $plugin := .plugin -}}
{{- $written := dict -}}
{{- range .rules.writes -}}
{{- if not (or .cluster .namespace) -}}
{{- $_ := set $written (printf "%s/%s" .group .resource) . -}}
{{- end -}}
{{- end -}}
{{- /* RBAC grants Secrets everywhere where some are generated. */ -}}
{{- if .rules.secrets -}}
{{- $_ := set $written "/secrets" (dict "group" "" "resource" "secrets") -}}
{{- end -}}
{{- if $written -}}
{{- $allowed := "!request.namespace.startsWith('kube-')" -}}
{{- $selector := list -}}
{{- range $key, $value := .namespaceLabels -}}
{{- $selector = append $selector (printf "%s=%s" $key $value) -}}
{{- $allowed = printf "%s && ('%s' in namespaceObject.metadata.labels && namespaceObject.metadata.labels['%s'] in ['%s'])" $allowed $key $key $value -}}
{{- end -}}
{{- $where := "no namespace whose name begins with `kube-`" -}}
{{- if $selector -}}
{{- $where = printf "only namespaces that `%s` selects, and none whose name begins with `kube-`" (join "," $selector) -}}
{{- end -}}
{{- $label := "reeve.dev/plugin" -}}
{{- $by := "reeve.dev/generated-by" -}}
{{- /* What is generated has no label: what has one is the plugin's to sweep. */ -}}
{{- $generated := "" -}}
{{- $told := printf "the label %s with its name" $label -}}
{{- if .rules.secrets -}}
{{- $generated = printf " || (request.resource.group == '' && request.resource.resource == 'secrets' && has(object.metadata.annotations) && '%s' in object.metadata.annotations && object.metadata.annotations['%s'] == '%s')" $by $by $plugin -}}
{{- $told = printf "%s, or, of a generated Secret, the annotation %s" $told $by -}}
{{- end -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name | quote }}
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
        resources: [{{ .resource | quote }}]
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
    - expression: request.operation != 'CREATE' || (has(object.metadata.labels) && '{{ $label }}' in object.metadata.labels && object.metadata.labels['{{ $label }}'] == '{{ $plugin }}'){{ $generated }}
      message: "plugin {{ $plugin }}: what its account makes carries {{ $told }}"
      reason: Forbidden
    - expression: request.operation == 'CREATE' || !(has(oldObject.metadata.labels) && '{{ $label }}' in oldObject.metadata.labels) || oldObject.metadata.labels['{{ $label }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not change or delete another plugin's objects"
      reason: Forbidden
    - expression: request.operation != 'UPDATE' || !(has(object.metadata.labels) && '{{ $label }}' in object.metadata.labels) || object.metadata.labels['{{ $label }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not give objects the label {{ $label }} of another plugin"
      reason: Forbidden
    {{- if hasKey $written "/secrets" }}
    - expression: request.operation == 'CREATE' || !(has(oldObject.metadata.annotations) && '{{ $by }}' in oldObject.metadata.annotations) || oldObject.metadata.annotations['{{ $by }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not change or delete Secrets that were generated for another plugin"
      reason: Forbidden
    - expression: request.operation == 'DELETE' || !(has(object.metadata.annotations) && '{{ $by }}' in object.metadata.annotations) || object.metadata.annotations['{{ $by }}'] == '{{ $plugin }}'
      message: "plugin {{ $plugin }}: its account may not give Secrets the annotation {{ $by }} of another plugin"
      reason: Forbidden
    {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name | quote }}
  labels: {{- .labels | nindent 4 }}
spec:
  policyName: {{ .name | quote }}
  validationActions: [Deny]
{{ end -}}
{{- end -}}

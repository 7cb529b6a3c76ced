{{- define "models.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* A map without what is empty, and so the plugin's to say. Switches stay. */}}
{{- define "models.said" -}}
{{- $said := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $inner := include "models.said" $value | fromJson -}}
{{- if $inner }}{{ $_ := set $said $key $inner }}{{ end -}}
{{- else if or (kindIs "bool" $value) $value -}}
{{- $_ := set $said $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $said -}}
{{- end -}}

{{/* The configuration of the plugin, as JSON. */}}
{{- define "models.settings" -}}
{{- $values := deepCopy (pick .Values "ingress" "predictionServer" "datarobot" "bosun" "managementAgent" "tracking" "trackingAgent" "imageBuilder") -}}
{{- /* An id of digits alone is a number to --set. */ -}}
{{- $_ := set $values.datarobot "predictionEnvId" (include "models.text" $values.datarobot.predictionEnvId) -}}
{{- $pull := list -}}
{{- range $values.predictionServer.imagePullSecrets -}}
{{- if kindIs "map" . }}{{ $pull = append $pull .name }}{{ else }}{{ $pull = append $pull . }}{{ end -}}
{{- end -}}
{{- $_ := set $values.predictionServer "imagePullSecrets" $pull -}}
{{- with $values.imageBuilder.ppsImageBytes }}{{ $_ := set $values.imageBuilder "ppsImageBytes" (int64 .) }}{{ end -}}
{{- $said := include "models.said" $values | fromJson -}}
{{- $_ := set $said "namespaces" (default (list .Release.Namespace) .Values.namespaces) -}}
{{- if eq (include "models.loop" .) "true" -}}
{{- /* Another supervisor is told nothing that it is not said to be told. */ -}}
{{- $report := deepCopy .Values.supervisor.report -}}
{{- if not (or (hasKey $report "url") .Values.supervisor.deployments.url) -}}
{{- $_ := set $report "url" (printf "%s/api/v2/remoteEvents/" (include "models.datarobot" .)) -}}
{{- end -}}
{{- with $report }}{{ $_ := set $said "supervisor" (dict "report" .) }}{{ end -}}
{{- end -}}
{{- toJson $said -}}
{{- end -}}

{{/* Whether there is the loop with a supervisor. */}}
{{- define "models.loop" -}}
{{- if kindIs "bool" .Values.supervisor.enabled -}}
{{- .Values.supervisor.enabled -}}
{{- else -}}
{{- and (not (empty .Values.datarobot.predictionEnvId)) (not (empty .Values.datarobot.apiSecretName)) -}}
{{- end -}}
{{- end -}}

{{/* The URL of DataRobot. */}}
{{- define "models.datarobot" -}}
{{- default "https://app.datarobot.com" .Values.datarobot.url | trimSuffix "/" -}}
{{- end -}}

{{/* The URL of the list of deployments. */}}
{{- define "models.list" -}}
{{- default (printf "%s/api/v2/deployments/" (include "models.datarobot" .)) .Values.supervisor.deployments.url -}}
{{- end -}}

{{/* The configuration of the plugin environments, as JSON. What is empty in it is meant. */}}
{{- define "environments.settings" -}}
{{- $said := pick .Values.supervisor "deployments" "fields" "packages" -}}
{{- if not (kindIs "invalid" .Values.supervisor.stoppedStatuses) }}{{ $_ := set $said "stoppedStatuses" .Values.supervisor.stoppedStatuses }}{{ end -}}
{{- $settings := dict "namespaces" (default (list .Release.Namespace) .Values.namespaces) "supervisor" $said -}}
{{- with .Values.datarobot.url }}{{ $_ := set $settings "datarobot" (dict "url" .) }}{{ end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* Capabilities of a Plugin, as JSON: requests to `urls` with `method`, signed with the API
     token where they go to the server that lists the deployments, and behind these those of
     its values. */}}
{{- define "models.capabilities" -}}
{{- $root := .root -}}
{{- $supervisor := $root.Values.supervisor -}}
{{- $granted := deepCopy (default dict .said) -}}
{{- $server := regexFind "^https?://[^/?#]*" (include "models.list" $root) -}}
{{- $http := list -}}
{{- $signed := false -}}
{{- range .urls -}}
{{- /* What stands before the first name, and before a query. */ -}}
{{- $url := regexReplaceAll "[^/]*\\{.*$" (regexReplaceAll "[?#].*$" . "") "" -}}
{{- if not (regexMatch "^https?://[^/]+/" $url) -}}
{{- fail (printf "supervisor: %s has no path; write it as https://example.com/path" .) -}}
{{- end -}}
{{- $grant := dict "url" $url "methods" (list $.method) -}}
{{- if and $root.Values.datarobot.apiSecretName (hasPrefix (printf "%s/" $server) $url) -}}
{{- $signed = true -}}
{{- $_ := set $grant "key" "supervisor" -}}
{{- end -}}
{{- with $supervisor.addresses }}{{ $_ := set $grant "addresses" . }}{{ end -}}
{{- with $supervisor.caBundle }}{{ $_ := set $grant "caBundle" . }}{{ end -}}
{{- $http = append $http $grant -}}
{{- end -}}
{{- /* The first that covers a request is the one that holds. */ -}}
{{- with concat $http (default list $granted.http) }}{{ $_ := set $granted "http" . }}{{ end -}}
{{- if $signed -}}
{{- range $granted.keys -}}
{{- if eq .name "supervisor" }}{{ fail "capabilities.keys: the name supervisor is that of the API token; give the key another" }}{{ end -}}
{{- end -}}
{{- $namespace := default (list $root.Release.Namespace) $root.Values.namespaces | first -}}
{{- $secret := dict "name" $root.Values.datarobot.apiSecretName "namespace" $namespace -}}
{{- $_ := set $granted "keys" (append (default list $granted.keys) (dict "name" "supervisor" "type" "Bearer" "secret" $secret "entry" "secret")) -}}
{{- end -}}
{{- toJson $granted -}}
{{- end -}}

{{/* What the plugin environments reads and writes: as its manifest says. */}}
{{- define "environments.rules" -}}
primary: {group: models.reeve.dev, resource: predictionenvironments}
reads:
{{- range .namespaces }}
  - {group: models.reeve.dev, resource: modeldeployments, namespace: {{ . | quote }}}
{{- end }}
writes:
{{- range .namespaces }}
  - {group: models.reeve.dev, resource: modeldeployments, namespace: {{ . | quote }}}
  - {group: models.reeve.dev, resource: predictionenvironments, namespace: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* A number as it was written. */}}
{{- define "models.text" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* What the plugin reads and writes with these settings: as its manifest says. */}}
{{- define "models.rules" -}}
{{- $secrets := list -}}
{{- with dig "datarobot" "apiSecretName" "" . }}{{ $secrets = append $secrets . }}{{ end -}}
{{- with dig "imageBuilder" "secretName" "" . }}{{ $secrets = append $secrets . }}{{ end -}}
{{- $secrets = concat $secrets (dig "predictionServer" "imagePullSecrets" list .) | uniq | sortAlpha -}}
primary: {group: models.reeve.dev, resource: modeldeployments}
reads:
{{- range .namespaces }}
  - {group: "", resource: configmaps, namespace: {{ . | quote }}}
  - {group: "", resource: pods, namespace: {{ . | quote }}}
  - {group: "", resource: serviceaccounts, namespace: {{ . | quote }}}
  - {group: apps, resource: deployments, namespace: {{ . | quote }}}
  - {group: apps, resource: replicasets, namespace: {{ . | quote }}}
  - {group: batch, resource: jobs, namespace: {{ . | quote }}}
{{- if $secrets }}
  - {group: "", resource: secrets, namespace: {{ . | quote }}, names: {{ toJson $secrets }}}
{{- end }}
{{- end }}
writes:
{{- range .namespaces }}
  - {group: "", resource: configmaps, namespace: {{ . | quote }}}
  - {group: "", resource: serviceaccounts, namespace: {{ . | quote }}}
  - {group: "", resource: services, namespace: {{ . | quote }}}
  - {group: apps, resource: deployments, namespace: {{ . | quote }}}
  - {group: batch, resource: jobs, namespace: {{ . | quote }}}
  - {group: models.reeve.dev, resource: modeldeployments, namespace: {{ . | quote }}}
  - {group: networking.k8s.io, resource: ingresses, namespace: {{ . | quote }}}
{{- end }}
{{- end -}}

{{- define "models.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
{{- toJson $said -}}
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
  - {group: "", resource: configmaps, namespace: {{ . }}}
  - {group: "", resource: pods, namespace: {{ . }}}
  - {group: "", resource: serviceaccounts, namespace: {{ . }}}
  - {group: apps, resource: deployments, namespace: {{ . }}}
  - {group: apps, resource: replicasets, namespace: {{ . }}}
  - {group: batch, resource: jobs, namespace: {{ . }}}
{{- if $secrets }}
  - {group: "", resource: secrets, namespace: {{ . }}, names: {{ toJson $secrets }}}
{{- end }}
{{- end }}
writes:
{{- range .namespaces }}
  - {group: "", resource: configmaps, namespace: {{ . }}}
  - {group: "", resource: serviceaccounts, namespace: {{ . }}}
  - {group: "", resource: services, namespace: {{ . }}}
  - {group: apps, resource: deployments, namespace: {{ . }}}
  - {group: batch, resource: jobs, namespace: {{ . }}}
  - {group: models.reeve.dev, resource: modeldeployments, namespace: {{ . }}}
  - {group: networking.k8s.io, resource: ingresses, namespace: {{ . }}}
{{- end }}
{{- end -}}

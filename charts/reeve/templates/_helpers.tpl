{{/* Name of all objects. */}}
{{- define "reeve.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Cluster-wide objects of releases in different namespaces must not meet: no name of
     a namespace has a dot. */}}
{{- define "reeve.clusterName" -}}
{{- printf "%s.%s" .Release.Namespace (include "reeve.fullname" .) -}}
{{- end -}}

{{- define "reeve.serviceAccountName" -}}
{{- default (ternary (include "reeve.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "reeve.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "reeve.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "reeve.selectorLabels" . }}
{{- end -}}

{{- define "reeve.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Name of the Lease: what the agent is told, or its default. */}}
{{- define "reeve.leaseName" -}}
{{- default "reeve" (index .Values.config "lease-name") -}}
{{- end -}}

{{/* Where health and metrics are served: what the agent is told, or its default in a pod. */}}
{{- define "reeve.healthAddress" -}}
{{- default "0.0.0.0:8081" (index .Values.config "health-address") -}}
{{- end -}}

{{/* Fails for a name that no Service can have, and for what stands twice. */}}
{{- define "reeve.checkNames" -}}
{{- $name := include "reeve.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "fullnameOverride: without it all objects would be called %s, after the release, and no Service can be: its name begins with a letter and has no dots; set one" $name) -}}
{{- end -}}
{{- $labels := include "reeve.labels" . | fromYaml -}}
{{- range $value, $given := dict "podLabels" .Values.podLabels "dashboard.labels" .Values.dashboard.labels "serviceMonitor.labels" .Values.serviceMonitor.labels -}}
{{- range $label, $_ := $given -}}
{{- if hasKey $labels $label -}}
{{- fail (printf "%s: the chart itself sets %s; leave it out" $value $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default dict .Values.podAnnotations) "reeve.dev/config" -}}
{{- fail "podAnnotations: the chart itself sets reeve.dev/config, by which another configuration is another pod; leave it out" -}}
{{- end -}}
{{- end -}}

{{/* Milliseconds of a duration such as 1m30s. */}}
{{- define "reeve.milliseconds" -}}
{{- $sum := 0 -}}
{{- $factors := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $sum = add $sum (mul (trimSuffix $unit . | int64) (get $factors $unit)) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* Fails for settings that no agent would start with, or not end with in order. What the
     agent asks of the times of a lease is in host/cluster/src/lease/timing.rs. */}}
{{- define "reeve.checkTimes" -}}
{{- $config := .Values.config -}}
{{- $of := dict -}}
{{- range $name, $default := dict "compile-timeout" "60s" "shutdown-grace" "20s" "lease-duration" "15s" "lease-renew-deadline" "10s" "lease-retry-period" "2s" -}}
{{- $_ := set $of $name (include "reeve.milliseconds" (default $default (index $config $name)) | int64) -}}
{{- end -}}
{{- if ge (index $of "shutdown-grace") (mul 1000 .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds: %v seconds are not longer than config.shutdown-grace; the agent would be killed before it has finished" .Values.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- if lt (index $of "compile-timeout") 100 -}}
{{- fail "config.compile-timeout: nothing would ever be compiled; use 100ms or more" -}}
{{- end -}}
{{- $duration := index $of "lease-duration" -}}
{{- $deadline := index $of "lease-renew-deadline" -}}
{{- if or (lt $duration 1000) (ne (mod $duration 1000) 0) (gt $duration 2147483647000) -}}
{{- fail "config.lease-duration: it must be a whole number of seconds, at least 1; the agent would not start" -}}
{{- end -}}
{{- /* For clocks that differ and for what the API server still does; and then for a write. */ -}}
{{- $longest := max 0 (sub (sub $duration (max 1000 (div $duration 20))) 1000) -}}
{{- if gt $deadline $longest -}}
{{- fail (printf "config.lease-renew-deadline: with a lease-duration of %dms it can be %dms at the most; the agent would not start" $duration $longest) -}}
{{- end -}}
{{- $period := index $of "lease-retry-period" -}}
{{- if or (eq $period 0) (ge (mul 2 $period) $deadline) -}}
{{- fail "config.lease-retry-period: it must be more than zero and less than half of config.lease-renew-deadline; the agent would not start" -}}
{{- end -}}
{{- end -}}

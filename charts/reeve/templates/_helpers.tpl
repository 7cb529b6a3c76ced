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

{{/* Cluster-wide objects of releases in different namespaces must not meet. */}}
{{- define "reeve.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "reeve.fullname" .) -}}
{{- end -}}

{{- define "reeve.serviceAccountName" -}}
{{- default (ternary (include "reeve.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "reeve.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
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

{{/* Fails for settings that no agent would start with, or not end with in order. */}}
{{- define "reeve.checkTimes" -}}
{{- $config := .Values.config -}}
{{- $of := dict -}}
{{- range $name, $default := dict "shutdown-grace" "20s" "lease-duration" "15s" "lease-renew-deadline" "10s" "lease-retry-period" "2s" -}}
{{- $_ := set $of $name (include "reeve.milliseconds" (default $default (index $config $name)) | int64) -}}
{{- end -}}
{{- if ge (index $of "shutdown-grace") (mul 1000 .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds: %v seconds are not longer than config.shutdown-grace; the agent would be killed before it has finished" .Values.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- if ge (index $of "lease-renew-deadline") (index $of "lease-duration") -}}
{{- fail "config.lease-renew-deadline: it must be shorter than config.lease-duration; the agent would not start" -}}
{{- end -}}
{{- if ge (mul 2 (index $of "lease-retry-period")) (index $of "lease-renew-deadline") -}}
{{- fail "config.lease-retry-period: it must be shorter than half of config.lease-renew-deadline; the agent would not start" -}}
{{- end -}}
{{- end -}}

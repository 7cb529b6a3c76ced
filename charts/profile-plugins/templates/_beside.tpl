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
{{- include "grants.role" (dict "here" $root.Release.Namespace "name" (printf "%s-binds" .name) "namespace" "" "labels" (include "profile-plugins.labels" $root) "rules" $rules "account" .of.plugin) -}}
{{- end -}}
{{- end -}}
{{- end -}}

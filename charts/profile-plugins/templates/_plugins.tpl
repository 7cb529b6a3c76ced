{{/* The plugins, by their names in the values: as which plugin, of which component,
     and which count says whether it is installed. */}}
{{- define "profile-plugins.table" -}}
authpolicies: {plugin: authpolicy, component: authpolicy, count: default}
blobcsi: {plugin: blobcsi, component: blobcsi, count: blobcsi}
cloudmain: {plugin: cloudmain, component: cloudmain, count: cloudmain}
giteaProtectedB: {plugin: gitea-protected-b, component: gitea, count: giteab, class: protected-b}
giteaUnclassified: {plugin: gitea-unclassified, component: gitea, count: gitea, class: unclassified}
limitranges: {plugin: limitranges, component: limitranges, count: default}
network: {plugin: network, component: network, count: default}
notebook: {plugin: notebook, component: notebook, count: default}
quotas: {plugin: quotas, component: quotas, count: default}
rbac: {plugin: rbac, component: rbac, count: default}
s3proxy: {plugin: s3proxy, component: s3proxy, count: s3proxy}
{{- end -}}

{{/* What is installed: a JSON object from the name in the values to the row of the
     table, with `settings`, `spec` of the Plugin, and the rules to be granted. */}}
{{- define "profile-plugins.installed" -}}
{{- $root := . -}}
{{- $installed := dict -}}
{{- range $key, $row := include "profile-plugins.table" . | fromYaml -}}
{{- $values := default dict (index $root.Values.components $key) -}}
{{- $enabled := $values.enabled -}}
{{- if not (kindIs "bool" $enabled) -}}
{{- $count := $root.Values.replicaCount -}}
{{- if kindIs "map" $count -}}
{{- $own := index $count $row.count -}}
{{- $count = ternary (index $count "default") $own (kindIs "invalid" $own) -}}
{{- end -}}
{{- $enabled = ne (int $count) 0 -}}
{{- end -}}
{{- if $enabled -}}
{{- $settings := include "profile-plugins.settings" (dict "root" $root "key" $key "row" $row "values" $values) | fromJson -}}
{{- $of := dict "root" $root "key" $key "row" $row "values" $values "settings" $settings -}}
{{- $rules := include "profile-plugins.rules" $of | fromYaml -}}
{{- $spec := include "profile-plugins.spec" $of | fromJson -}}
{{- $_ := set $installed $key (merge (dict "settings" $settings "rules" $rules "spec" $spec) $row) -}}
{{- end -}}
{{- end -}}
{{- toJson $installed -}}
{{- end -}}

{{/* A switch of the configuration: `true`, or nothing. */}}
{{- define "profile-plugins.flag" -}}
{{- $value := index .settings .name -}}
{{- if kindIs "bool" $value -}}
{{- if $value }}true{{ end -}}
{{- else if .default }}true{{ end -}}
{{- end -}}

{{/* What a plugin reads and writes with these settings: as its manifest says. Without
     a namespace everywhere; names only where the namespace is said. */}}
{{- define "profile-plugins.rules" -}}
{{- $settings := .settings -}}
{{- $main := eq (default "readme" $settings.preset) "main" -}}
{{- $fdi := default dict $settings.fdi -}}
{{- $argocd := default "profiles-argocd-system" $settings.argocdNamespace -}}
primary: {group: kubeflow.org, resource: profiles}
reads:
{{- if eq .key "authpolicies" }}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "uploadDownloadBlock" "default" true) }}
  - {group: kubeflow.org, resource: notebooks}
{{- end }}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "namespacePolicy" "default" $main) }}
  - {group: rbac.authorization.k8s.io, resource: rolebindings}
{{- end }}
writes:
  - {group: security.istio.io, resource: authorizationpolicies}
{{- else if eq .key "blobcsi" }}
  - {group: kubeflow.org, resource: profiles}
  - {group: "", resource: persistentvolumes}
  - {group: "", resource: persistentvolumeclaims}
{{- $pods := include "profile-plugins.flag" (dict "settings" $settings "name" "deletePods" "default" $main) }}
{{- if $pods }}
  - {group: "", resource: pods}
{{- end }}
{{- $accounts := list }}
{{- $gateways := list }}
{{- range list (default dict $fdi.unclassified) (default dict $fdi.protectedB) }}
{{- $accounts = concat $accounts (compact (list .internalStorageAccount .externalStorageAccount)) }}
{{- $gateways = concat $gateways (compact (list .opaEndpoint)) }}
{{- end }}
{{- $source := ternary "configmap" "opa" (or $main (not $gateways)) }}
{{- if and $accounts (eq (default $source $fdi.source) "configmap") }}
{{- $map := default dict $fdi.configMap }}
  - group: ""
    resource: configmaps
    namespace: {{ default "daaas-system" $map.namespace | quote }}
    names: [{{ default "fdi-aaw-configuration" $map.name | quote }}]
{{- end }}
writes:
  - {group: "", resource: persistentvolumes, cluster: true}
  - {group: "", resource: persistentvolumeclaims}
{{- if $pods }}
  - {group: "", resource: pods}
{{- end }}
{{- else if eq .key "cloudmain" }}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "removeForeign" "default" $main) }}
  - {group: networking.istio.io, resource: destinationrules, names: [direct-through-cloud-main-egress-gateway]}
  - {group: networking.istio.io, resource: serviceentries, names: [cloud-main-hosts]}
  - {group: networking.istio.io, resource: virtualservices, names: [direct-through-cloud-main-egress-gateway]}
{{- end }}
writes:
  - {group: networking.istio.io, resource: destinationrules}
  - {group: networking.istio.io, resource: serviceentries}
  - {group: networking.istio.io, resource: virtualservices}
{{- else if eq .row.component "gitea" }}
  - {group: argoproj.io, resource: applications, namespace: {{ $argocd | quote }}}
writes:
  - {group: argoproj.io, resource: applications, namespace: {{ $argocd | quote }}}
  - {group: "", resource: configmaps}
  - {group: networking.istio.io, resource: serviceentries}
  - {group: networking.istio.io, resource: virtualservices}
secrets: true
{{- else if eq .key "limitranges" }}
writes:
  - {group: "", resource: limitranges}
{{- else if eq .key "network" }}
{{- $strays := include "profile-plugins.flag" (dict "settings" $settings "name" "removeStrays" "default" $main) }}
{{- $former := include "profile-plugins.flag" (dict "settings" $settings "name" "removeFormer" "default" $main) }}
{{- if or $strays $former }}
  - {group: networking.k8s.io, resource: networkpolicies}
{{- end }}
writes:
  - {group: networking.k8s.io, resource: networkpolicies}
{{- else if eq .key "notebook" }}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "removeFormer" "default" false) }}
  - {group: kubeflow.org, resource: poddefaults, names: [blob-csi-mounts, minio-mounts]}
{{- end }}
writes:
  - {group: kubeflow.org, resource: poddefaults}
{{- else if eq .key "quotas" }}
writes:
  - {group: "", resource: resourcequotas}
{{- else if eq .key "rbac" }}
{{- $removes := include "profile-plugins.flag" (dict "settings" $settings "name" "removeSupportBinding" "default" $main) }}
{{- if and $removes (not $settings.supportGroups) }}
  - {group: rbac.authorization.k8s.io, resource: rolebindings, names: [profile-support]}
{{- end }}
writes:
  - {group: rbac.authorization.k8s.io, resource: rolebindings}
  - {group: rbac.authorization.k8s.io, resource: roles}
{{- else if eq .key "s3proxy" }}
{{- if include "profile-plugins.flag" (dict "settings" $settings "name" "keepOnOptOut" "default" $main) }}
  - {group: argoproj.io, resource: applications, namespace: {{ $argocd | quote }}}
{{- end }}
writes:
  - {group: argoproj.io, resource: applications, namespace: {{ $argocd | quote }}}
  - {group: "", resource: configmaps}
  - {group: networking.istio.io, resource: virtualservices}
{{- end }}
{{- end -}}

{{/* The `spec` of a Plugin: what it may reach outside, and what the values say. */}}
{{- define "profile-plugins.spec" -}}
{{- $http := list -}}
{{- $keys := list -}}
{{- $sql := list -}}
{{- if eq .row.component "gitea" -}}
{{- $connection := default (printf "gitea-%s" .row.class) (dig "postgres" "connection" "" .settings) -}}
{{- range $index, $from := .values.envFrom -}}
{{- if eq $index 0 -}}
{{- $sql = append $sql (dict "name" $connection "secret" (dict "name" $from.secretRef.name)) -}}
{{- end -}}
{{- end -}}
{{- else if eq .key "blobcsi" -}}
{{- $fdi := default dict .settings.fdi -}}
{{- $main := eq .settings.preset "main" -}}
{{- if eq (default (ternary "configmap" "opa" $main) $fdi.source) "opa" -}}
{{- range list (default dict $fdi.unclassified) (default dict $fdi.protectedB) -}}
{{- if .opaEndpoint -}}
{{- $http = append $http (dict "url" .opaEndpoint "methods" (list "GET")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $named := dict -}}
{{- range $endpoint, $place := .values.accountKeys -}}
{{- $secret := dict "name" (base $place) -}}
{{- if contains "/" $place }}{{ $_ := set $secret "namespace" (dir $place) }}{{ end -}}
{{- $name := base $place | replace "." "-" -}}
{{- if ne (default $place (index $named $name)) $place }}{{ $name = $place | replace "/" "-" | replace "." "-" }}{{ end -}}
{{- $_ := set $named $name $place -}}
{{- $http = append $http (dict "url" (printf "%s/" (trimSuffix "/" $endpoint)) "methods" (list "GET" "PUT") "key" $name) -}}
{{- $keys = append $keys (dict "name" $name "type" "AzureSharedKey" "secret" $secret) -}}
{{- end -}}
{{- end -}}
{{- $capabilities := dict -}}
{{- if $http }}{{ $_ := set $capabilities "http" $http }}{{ end -}}
{{- if $keys }}{{ $_ := set $capabilities "keys" ($keys | uniq) }}{{ end -}}
{{- if $sql }}{{ $_ := set $capabilities "sql" $sql }}{{ end -}}
{{- $spec := dict -}}
{{- if $capabilities }}{{ $_ := set $spec "capabilities" $capabilities }}{{ end -}}
{{- $artifact := include "profile-plugins.artifact" . | fromJson -}}
{{- if $artifact }}{{ $_ := set $spec "artifact" $artifact }}{{ end -}}
{{- $spec = mergeOverwrite $spec (deepCopy .root.Values.plugin) (deepCopy (default dict .values.plugin)) -}}
{{- toJson $spec -}}
{{- end -}}

{{/* From where its component is pulled, as JSON; nothing where it is delivered. */}}
{{- define "profile-plugins.artifact" -}}
{{- $from := .root.Values.artifacts -}}
{{- $artifact := dict -}}
{{- if and $from.repository (not (dig "artifact" "image" "" (default dict .values.plugin))) -}}
{{- $digest := index (default dict $from.digests) .row.component -}}
{{- if not $digest -}}
{{- fail (printf "artifacts.digests.%s: the digest of the component is missing, as `reeve plugin push %s/%s:TAG %s.wasm` prints it" .row.component $from.repository .row.component .row.component) -}}
{{- end -}}
{{- $_ := set $artifact "image" (printf "%s/%s@%s" $from.repository .row.component $digest) -}}
{{- range $name := list "pullSecretName" "caBundle" "plainHttp" -}}
{{- if index $from $name }}{{ $_ := set $artifact $name (index $from $name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $artifact -}}
{{- end -}}

{{- define "profile-plugins.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

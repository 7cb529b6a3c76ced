{{- define "packs.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The agent's namespace. */}}
{{- define "packs.here" -}}
{{- default .Release.Namespace .Values.agent.namespace -}}
{{- end -}}

{{/* The parts, by their names in the values: as which plugin and in which role. */}}
{{- define "packs.table" -}}
desiredState: {plugin: packs-desired-state, role: DesiredState}
flux: {plugin: packs-flux, role: Flux}
frontDoor: {plugin: packs-front-door, role: FrontDoor}
releases: {plugin: packs, role: Releases}
{{- end -}}

{{/* What is installed: a JSON object from the name in the values to the row of the
     table, with `settings`, `spec` of the Plugin, and the rules to be granted. */}}
{{- define "packs.installed" -}}
{{- $root := . -}}
{{- $installed := dict -}}
{{- range $key, $row := include "packs.table" . | fromYaml -}}
{{- $values := index $root.Values.parts $key -}}
{{- if dig "enabled" true $values -}}
{{- $of := merge (dict "settings" (include "packs.settings" (dict "root" $root "key" $key "row" $row "values" $values) | fromJson)) $row -}}
{{- $_ := set $of "rules" (include "packs.rules" (dict "of" $of) | fromYaml) -}}
{{- $_ := set $of "spec" (include "packs.spec" (dict "root" $root "of" $of "values" $values) | fromJson) -}}
{{- $_ := set $installed $key $of -}}
{{- end -}}
{{- end -}}
{{- toJson $installed -}}
{{- end -}}

{{/* A place as the configuration of the plugin says it, as JSON; nothing where none is
     named. */}}
{{- define "packs.place" -}}
{{- $place := pick . "namespace" "key" -}}
{{- if .file -}}
{{- toJson (dict "file" .file) -}}
{{- else if .configMap -}}
{{- toJson (set $place "configMap" .configMap) -}}
{{- else if .secret -}}
{{- toJson (set $place "secret" .secret) -}}
{{- else if .url -}}
{{- toJson (dict "url" .url) -}}
{{- end -}}
{{- end -}}

{{/* The configuration of a part, as JSON. All parts that look at releases have to agree
     on how these are pulled. */}}
{{- define "packs.settings" -}}
{{- $values := .root.Values -}}
{{- $role := .row.role -}}
{{- $settings := dict "role" $role "configuration" (include "packs.place" $values.configuration | fromJson) -}}
{{- if eq $role "DesiredState" -}}
{{- $_ := set $settings "desiredState" (include "packs.place" $values.desiredState | fromJson) -}}
{{- else if not $values.removeNamespaces -}}
{{- $_ := set $settings "removeNamespaces" false -}}
{{- end -}}
{{- if eq $role "Flux" -}}
{{- $manifests := default dict $values.flux.manifests -}}
{{- with include "packs.place" $manifests -}}
{{- $place := fromJson . -}}
{{- with $manifests.sha256 }}{{ $_ := set $place "sha256" . }}{{ end -}}
{{- $_ := set $settings "fluxManifests" $place -}}
{{- end -}}
{{- end -}}
{{- if has $role (list "Releases" "FrontDoor") -}}
{{- with $values.pullSecret }}{{ $_ := set $settings "pullSecret" . }}{{ end -}}
{{- end -}}
{{- if and (eq $role "FrontDoor") $values.targetGroupBinding -}}
{{- $_ := set $settings "targetGroupBinding" true -}}
{{- end -}}
{{- $said := deepCopy (default dict .values.settings) -}}
{{- /* Manifests of Flux that are named here are not the others, and where nothing is named
       there are none. A digest that they must have holds for these, too. */ -}}
{{- if hasKey $said "fluxManifests" -}}
{{- $sha256 := (default dict $settings.fluxManifests).sha256 -}}
{{- if and $sha256 $said.fluxManifests (not (hasKey $said.fluxManifests "sha256")) }}{{ $_ := set $said.fluxManifests "sha256" $sha256 }}{{ end -}}
{{- $_ := unset $settings "fluxManifests" -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings $said -}}
{{- $manifests := default dict $settings.fluxManifests -}}
{{- if not (or $manifests.file $manifests.configMap $manifests.secret $manifests.url) -}}
{{- if and $manifests (not (or (hasKey $manifests "file") (hasKey $manifests "configMap") (hasKey $manifests "secret") (hasKey $manifests "url"))) -}}
{{- fail (printf "parts.%s.settings.fluxManifests names no place; add secret, configMap, file or url, or leave it to flux.manifests" .key) -}}
{{- end -}}
{{- $_ := unset $settings "fluxManifests" -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* What is read to have a document. */}}
{{- define "packs.document" -}}
{{- $namespace := default "sgp-system-manager" .place.namespace -}}
{{- if .place.configMap }}
  - {group: "", resource: configmaps, namespace: {{ $namespace | quote }}, names: [{{ .place.configMap | quote }}]}
{{- else if not (or .place.file .place.url) }}
  - {group: "", resource: secrets, namespace: {{ $namespace | quote }}, names: [{{ default .usual .place.secret | quote }}]}
{{- end }}
{{- end -}}

{{/* What a part reads and writes with these settings: as its manifest says. */}}
{{- define "packs.rules" -}}
{{- $settings := .of.settings -}}
{{- $role := default "Releases" $settings.role -}}
{{- $own := list "istio-system" "istio-ingress" "spicedb" "identity-service" "temporalf" "sgp" -}}
primary: {group: packs.reeve.dev, resource: {{ ternary "packsets" "packs" (eq $role "DesiredState") }}}
reads:
  - {group: packs.reeve.dev, resource: packs}
{{- include "packs.document" (dict "place" (default dict $settings.configuration) "usual" "system-manager-config") }}
{{- if eq $role "DesiredState" }}
{{- include "packs.document" (dict "place" (default dict $settings.desiredState) "usual" "desired-state") }}
writes:
  - {group: packs.reeve.dev, resource: packs, cluster: true}
{{- else if eq $role "Flux" }}
{{- $manifests := default dict $settings.fluxManifests }}
  - {group: "", resource: namespaces, names: [flux-system]}
{{- if $manifests }}
{{- include "packs.document" (dict "place" $manifests "usual" "flux-manifests") }}
{{- end }}
writes:
  - {group: "", resource: namespaces, cluster: true}
  - {group: "", resource: configmaps, namespace: flux-system}
  - {group: "", resource: serviceaccounts, namespace: flux-system}
  - {group: apps, resource: deployments, namespace: flux-system}
{{- if $manifests }}
  - {group: "", resource: resourcequotas, namespace: flux-system}
  - {group: "", resource: services, namespace: flux-system}
  - {group: networking.k8s.io, resource: networkpolicies, namespace: flux-system}
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, cluster: true}
  - {group: rbac.authorization.k8s.io, resource: clusterroles, cluster: true}
  - {group: rbac.authorization.k8s.io, resource: clusterrolebindings, cluster: true}
{{- end }}
{{- else }}
  - {group: helm.toolkit.fluxcd.io, resource: helmreleases}
  - {group: source.toolkit.fluxcd.io, resource: helmrepositories}
  - {group: apps, resource: deployments, namespace: flux-system, names: [helm-controller, source-controller]}
{{- if eq $role "Releases" }}
  - {group: "", resource: namespaces, names: {{ toJson $own }}}
writes:
  - {group: "", resource: namespaces, cluster: true}
  - {group: "", resource: configmaps, namespace: flux-system}
  - {group: source.toolkit.fluxcd.io, resource: helmrepositories, namespace: flux-system}
  - {group: source.toolkit.fluxcd.io, resource: ocirepositories, namespace: flux-system}
{{- range $own }}
  - {group: "", resource: configmaps, namespace: {{ . | quote }}}
  - {group: "", resource: secrets, namespace: {{ . | quote }}}
  - {group: helm.toolkit.fluxcd.io, resource: helmreleases, namespace: {{ . | quote }}}
{{- end }}
{{- else }}
writes:
  - {group: networking.istio.io, resource: gateways, namespace: istio-ingress}
  - {group: networking.istio.io, resource: virtualservices, namespace: identity-service}
{{- if $settings.targetGroupBinding }}
  - {group: elbv2.k8s.aws, resource: targetgroupbindings, namespace: istio-ingress}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The `spec` of a Plugin: what it may read outside, and what the values say. */}}
{{- define "packs.spec" -}}
{{- $folders := list -}}
{{- range list "configuration" "desiredState" "fluxManifests" -}}
{{- with (default dict (index $.of.settings .)).file }}{{ $folders = append $folders (dir .) }}{{ end -}}
{{- end -}}
{{- $http := list -}}
{{- with (default dict $.of.settings.fluxManifests).url -}}
{{- $redirects := (default dict $.root.Values.flux.manifests).redirects -}}
{{- range concat (list (regexReplaceAll "[?].*$" . "")) (default list $redirects) -}}
{{- $http = append $http (dict "url" . "methods" (list "GET")) -}}
{{- end -}}
{{- end -}}
{{- $spec := mergeOverwrite dict (deepCopy (default dict .root.Values.plugin)) (deepCopy (default dict .values.plugin)) -}}
{{- $granted := default dict $spec.capabilities -}}
{{- with concat $folders (default list $granted.files) }}{{ $_ := set $granted "files" (uniq .) }}{{ end -}}
{{- /* The first that covers a request is the one that holds: what the values say. */ -}}
{{- with concat (default list $granted.http) $http }}{{ $_ := set $granted "http" . }}{{ end -}}
{{- with $granted }}{{ $_ := set $spec "capabilities" . }}{{ end -}}
{{- toJson $spec -}}
{{- end -}}

{{/* What no manifest can ask for: to write the roles of Flux, whatever is in them, and to
     bind what they and Flux's accounts are bound to. Nothing without its manifests. */}}
{{- define "packs.beside" -}}
{{- if and (eq .of.plugin "packs-flux") .of.settings.fluxManifests -}}
{{- $group := list "rbac.authorization.k8s.io" -}}
{{- $rules := list -}}
{{- with .root.Values.flux.roles -}}
{{- $rules = append $rules (dict "apiGroups" $group "resources" (list "clusterroles") "resourceNames" (sortAlpha .) "verbs" (list "escalate")) -}}
{{- end -}}
{{- with .root.Values.flux.binds -}}
{{- $rules = append $rules (dict "apiGroups" $group "resources" (list "clusterroles") "resourceNames" (sortAlpha .) "verbs" (list "bind")) -}}
{{- end -}}
{{- if $rules -}}
{{- include "grants.role" (dict "here" .here "name" (printf "reeve-plugin-%s.%s-escalates" .here .of.plugin) "namespace" "" "labels" (include "packs.labels" .root) "rules" $rules "account" .of.plugin) -}}
{{- end -}}
{{- end -}}
{{- end -}}

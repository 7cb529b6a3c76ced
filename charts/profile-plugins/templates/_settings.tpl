{{/* The configuration of a plugin, as JSON: from what the controllers were told in
     variables of the environment, and from `settings`, which wins. */}}
{{- define "profile-plugins.settings" -}}
{{- $settings := dict "preset" .root.Values.preset -}}
{{- if eq .key "rbac" -}}
{{- $_ := set $settings "supportGroups" (default list .values.supportGroups) -}}
{{- else if eq .row.component "gitea" -}}
{{- $_ := set $settings "classification" .row.class -}}
{{- else if and (eq .key "blobcsi") (trim (default "" .values.config)) -}}
{{- $_ := set $settings "instances" (include "profile-plugins.instances" .values.config | fromJsonArray) -}}
{{- else if and (eq .key "network") (not (default dict .values.settings).sourceControlLabel) -}}
{{- $label := include "profile-plugins.sourceControlLabel" .root.Values.components -}}
{{- if $label }}{{ $_ := set $settings "sourceControlLabel" $label }}{{ end -}}
{{- end -}}
{{- $known := include "profile-plugins.variables" . | fromYaml -}}
{{- range $variable := .values.env -}}
{{- $place := printf "components.%s.env: %s" $.key $variable.name -}}
{{- if hasKey $variable "valueFrom" -}}
{{- fail (printf "%s: only a `value` can be read; say it in components.%s.settings" $place $.key) -}}
{{- end -}}
{{- $value := $variable.value -}}
{{- $path := index $known $variable.name -}}
{{- $client := regexFind "^.+_AZURE_STORAGE_SPN_CLIENTID$" $variable.name -}}
{{- if and (not $path) (eq $.key "blobcsi") $client -}}
{{- /* The names of service principals were written so. */ -}}
{{- $principal := $client | trimSuffix "_AZURE_STORAGE_SPN_CLIENTID" | lower | replace "_" "-" -}}
{{- include "profile-plugins.put" (dict "into" $settings "path" (list "fdi" "clientIds" $principal) "value" (toString $value)) -}}
{{- else if not $path -}}
{{- fail (printf "%s is no variable that is known here; leave it out, or say it in components.%s.settings%s" $place $.key (include "profile-plugins.hint" $variable.name)) -}}
{{- else if eq $path.is "text" -}}
{{- include "profile-plugins.put" (dict "into" $settings "path" (splitList "." $path.at) "value" (toString $value)) -}}
{{- else if not (regexMatch "^[0-9]{1,9}$" (toString $value)) -}}
{{- fail (printf "%s: %q is no whole number" $place (toString $value)) -}}
{{- else -}}
{{- $number := int (toString $value) -}}
{{- if eq $path.is "milliseconds" -}}
{{- $number = max 1 (div (add $number 999) 1000) -}}
{{- end -}}
{{- include "profile-plugins.put" (dict "into" $settings "path" (splitList "." $path.at) "value" $number) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .row.component "gitea") (ne $settings.classification .row.class) -}}
{{- fail (printf "components.%s.env: GITEA_CLASSIFICATION is %s here" .key .row.class) -}}
{{- end -}}
{{- mergeOverwrite $settings (deepCopy (default dict .values.settings)) | toJson -}}
{{- end -}}

{{/* The label that decides for Gitea and for its policies alike, where one is set: both
     Giteas have to say the same. */}}
{{- define "profile-plugins.sourceControlLabel" -}}
{{- $labels := dict -}}
{{- range $key := list "giteaUnclassified" "giteaProtectedB" -}}
{{- $values := default dict (index $ $key) -}}
{{- $label := "" -}}
{{- range $variable := $values.env -}}
{{- if eq $variable.name "GITEA_SOURCE_CONTROL_ENABLED_LABEL" }}{{ $label = toString (default "" $variable.value) }}{{ end -}}
{{- end -}}
{{- $label = default $label (default dict $values.settings).enabledLabel -}}
{{- if $label }}{{ $_ := set $labels $label $key }}{{ end -}}
{{- end -}}
{{- if gt (len $labels) 1 -}}
{{- fail (printf "GITEA_SOURCE_CONTROL_ENABLED_LABEL is %s: one label decides for both Giteas and for their policies; set the same, or components.network.settings.sourceControlLabel" (join " and " (keys $labels | sortAlpha))) -}}
{{- end -}}
{{- join "" (keys $labels) -}}
{{- end -}}

{{/* Puts a value at a path of a map. */}}
{{- define "profile-plugins.put" -}}
{{- $key := first .path -}}
{{- if eq (len .path) 1 -}}
{{- $_ := set .into $key .value -}}
{{- else -}}
{{- if not (hasKey .into $key) }}{{ $_ := set .into $key dict }}{{ end -}}
{{- include "profile-plugins.put" (dict "into" (index .into $key) "path" (rest .path) "value" .value) -}}
{{- end -}}
{{- end -}}

{{/* Instances of blobcsi, which are JSON objects one after the other, as an array. */}}
{{- define "profile-plugins.instances" -}}
{{- $text := printf "[%s]" (regexReplaceAll "\\}\\s*\\{" (trim .) "},{") -}}
{{- $instances := list -}}
{{- range fromJsonArray $text -}}
{{- if not (kindIs "map" .) -}}
{{- fail (printf "components.blobcsi.config: JSON objects are expected, one after the other: %v" .) -}}
{{- end -}}
{{- $instances = append $instances (omit . "owner") -}}
{{- end -}}
{{- toJson $instances -}}
{{- end -}}

{{/* What else there is to do about a variable. */}}
{{- define "profile-plugins.hint" -}}
{{- if has . (list "GITEA_PSQL_ADMIN_UNAME" "GITEA_PSQL_ADMIN_PASSWD" "GITEA_PSQL_MAINTENANCE_DB") -}}
; who makes databases stands in the Secret that envFrom names, as username, password and database
{{- end -}}
{{- end -}}

{{/* The variables of a controller: where they stand in the configuration, and what
     they are. */}}
{{- define "profile-plugins.variables" -}}
{{- if eq .row.component "gitea" }}
GITEA_CLASSIFICATION: {at: classification, is: text}
GITEA_PSQL_HOSTNAME: {at: postgres.host, is: text}
GITEA_PSQL_PORT: {at: postgres.port, is: number}
GITEA_SERVICE_URL: {at: service.name, is: text}
GITEA_SERVICE_PORT: {at: service.port, is: number}
GITEA_URL_PREFIX: {at: urlPrefix, is: text}
GITEA_BANNER_CONFIGMAP_NAME: {at: bannerConfigMap, is: text}
GITEA_ARGOCD_NAMESPACE: {at: argocdNamespace, is: text}
GITEA_ARGOCD_PROJECT: {at: project, is: text}
GITEA_ARGOCD_SOURCE_REPO_URL: {at: source.repoUrl, is: text}
GITEA_ARGOCD_SOURCE_TARGET_REVISION: {at: source.targetRevision, is: text}
GITEA_ARGOCD_SOURCE_PATH: {at: source.path, is: text}
GITEA_SOURCE_CONTROL_ENABLED_LABEL: {at: enabledLabel, is: text}
GITEA_KUBEFLOW_ROOT_URL: {at: rootUrl, is: text}
{{- else if eq .key "s3proxy" }}
S3PROXY_ARGOCD_NAMESPACE: {at: argocdNamespace, is: text}
S3PROXY_ARGOCD_PROJECT: {at: project, is: text}
S3PROXY_ARGOCD_SOURCE_REPO_URL: {at: source.repoUrl, is: text}
S3PROXY_ARGOCD_SOURCE_TARGET_REVISION: {at: source.targetRevision, is: text}
S3PROXY_ARGOCD_SOURCE_PATH: {at: source.path, is: text}
S3PROXY_KUBEFLOW_ROOT_URL: {at: rootUrl, is: text}
S3PROXY_KUBEFLOW_PREFIX: {at: prefix, is: text}
{{- else if eq .key "blobcsi" }}
BLOB_CSI_FDI_OPA_DAEMON_TICKER_MILLIS: {at: fdi.pollSeconds, is: milliseconds}
BLOB_CSI_FDI_GLOBAL_SP_TENANTID: {at: fdi.tenantId, is: text}
{{- range $word, $class := dict "UNCLASS" "unclassified" "PROTECTED_B" "protectedB" }}
BLOB_CSI_FDI_{{ $word }}_OPA_ENDPOINT: {at: fdi.{{ $class }}.opaEndpoint, is: text}
BLOB_CSI_FDI_{{ $word }}_STORAGE_ACCOUNT: {at: fdi.{{ $class }}.storageAccount, is: text}
BLOB_CSI_FDI_{{ $word }}_INTERNAL_STORAGE_ACCOUNT: {at: fdi.{{ $class }}.internalStorageAccount, is: text}
BLOB_CSI_FDI_{{ $word }}_EXTERNAL_STORAGE_ACCOUNT: {at: fdi.{{ $class }}.externalStorageAccount, is: text}
BLOB_CSI_FDI_{{ $word }}_RESOURCE_GROUP: {at: fdi.{{ $class }}.resourceGroup, is: text}
BLOB_CSI_FDI_{{ $word }}_CS_RESOURCE_GROUP: {at: fdi.{{ $class }}.resourceGroup, is: text}
BLOB_CSI_FDI_{{ $word }}_AZURE_STORAGE_AUTH_TYPE: {at: fdi.{{ $class }}.authType, is: text}
BLOB_CSI_FDI_{{ $word }}_SPN_SECRET_NAMESPACE: {at: fdi.{{ $class }}.secretNamespace, is: text}
BLOB_CSI_FDI_{{ $word }}_PV_STORAGE_CAP: {at: fdi.{{ $class }}.capacity, is: number}
BLOB_CSI_FDI_{{ $word }}_SPN_SECRET_NAME: {at: fdi.{{ $class }}.principal.secretName, is: text}
BLOB_CSI_FDI_{{ $word }}_AZURE_STORAGE_SPN_CLIENTID: {at: fdi.{{ $class }}.principal.clientId, is: text}
BLOB_CSI_FDI_{{ $word }}_SPN_TENANTID: {at: fdi.{{ $class }}.principal.tenantId, is: text}
BLOB_CSI_FDI_{{ $word }}_AZURE_STORAGE_AAD_ENDPOINT: {at: fdi.{{ $class }}.principal.aadEndpoint, is: text}
{{- end }}
{{- end }}
{{- end -}}

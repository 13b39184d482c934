{{- define "vlm.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of nearly everything: that of the release, with the chart's in it. */}}
{{- define "vlm.fullname" -}}
{{- $name := include "vlm.name" . }}
{{- $both := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- .Values.fullnameOverride | default $both | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* The name of an object that belongs to no namespace: those of a release of the same name elsewhere have another. */}}
{{- define "vlm.clusterName" -}}
{{ .Release.Namespace }}:{{ include "vlm.fullname" . }}
{{- end }}

{{- define "vlm.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "vlm.fullname" .) "default") }}
{{- end }}

{{- /* What selects the pods. It never changes: a Deployment's selector cannot. */}}
{{- define "vlm.selector" -}}
app.kubernetes.io/name: {{ include "vlm.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* metadata of an object: call it with (dict "at" $ "name" ... "namespace" ... "labels" ... "annotations" ...).
       Without a namespace the object is one of the cluster. */}}
{{- define "vlm.metadata" -}}
{{- $ours := include "vlm.selector" .at | fromYaml }}
{{- $ours = merge (dict
      "app.kubernetes.io/version" .at.Chart.AppVersion
      "app.kubernetes.io/managed-by" .at.Release.Service
      "helm.sh/chart" (printf "%s-%s" .at.Chart.Name .at.Chart.Version | replace "+" "_")) $ours }}
{{- $metadata := dict "name" .name "labels" (merge $ours (.labels | default dict) .at.Values.labels) }}
{{- with .namespace }}{{ $_ := set $metadata "namespace" . }}{{ end }}
{{- with merge (dict) (.annotations | default dict) .at.Values.annotations }}{{ $_ := set $metadata "annotations" . }}{{ end }}
{{- toYaml $metadata }}
{{- end }}

{{- define "vlm.image" -}}
{{- with .Values.image }}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

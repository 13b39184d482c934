{{- /* Pieces that the status templates of pods.yaml share. Each is given the pod, or a container's status. */ -}}

{{- define "clock" }}
- {type: "sim.vlm.dev/Clock", status: "True", message: "{{ now.UnixMilli }}", lastTransitionTime: {{ Now | Quote }}}
{{- end }}

{{- define "condition" }}
- type: {{ .type }}
  status: {{ .status | Quote }}
  lastTransitionTime: {{ Now | Quote }}
  reason: {{ .reason | default "" | Quote }}
  message: {{ .message | default "" | Quote }}
{{- end }}

{{- define "unready" }}
{{- template "condition" dict "type" "Ready" "status" "False" "reason" "ContainersNotReady" "message" . }}
{{- template "condition" dict "type" "ContainersReady" "status" "False" "reason" "ContainersNotReady" "message" . }}
{{- end }}

{{- define "ended" }}
{{- template "condition" dict "type" "Ready" "status" "False" "reason" . }}
{{- template "condition" dict "type" "ContainersReady" "status" "False" "reason" . }}
{{- end }}

{{- define "ready" }}
{{- $pod := . }}{{- $closed := "" }}
{{- range .spec.readinessGates }}{{- $type := .conditionType }}{{- $open := false }}
{{- range $pod.status.conditions }}{{- if and (eq .type $type) (eq .status "True") }}{{- $open = true }}{{- end }}{{- end }}
{{- if not $open }}{{- $closed = $type }}{{- end }}{{- end }}
{{- if $closed }}
{{- template "condition" dict "type" "Ready" "status" "False" "reason" "ReadinessGatesNotReady" "message" (printf "corresponding condition of pod readiness gate %q does not exist or is not True." $closed) }}
{{- else }}
{{- template "condition" dict "type" "Ready" "status" "True" }}
{{- end }}
{{- end }}

{{- /* What every pod gets when its node first sees it. */ -}}
{{- define "birth" }}
observedGeneration: {{ .metadata.generation }}
startTime: {{ Now | Quote }}
{{- $addresses := PodIPsWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
hostIPs: [{ip: {{ NodeIPWith .spec.nodeName | Quote }}}]
podIP: {{ index $addresses 0 | Quote }}
podIPs: [{ip: {{ index $addresses 0 | Quote }}}]
{{- end }}

{{- define "waiting" }}
- name: {{ .container.name | Quote }}
  image: {{ .container.image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {waiting: {reason: {{ .reason }}}}
{{- end }}

{{- /* Mark a status as running: .status is changed in place. */ -}}
{{- define "run" }}
{{- $_ := set .status "state" (dict "running" (dict "startedAt" Now)) }}
{{- $name := .status.name }}{{ $probed := false }}
{{- range .pod.spec.containers }}{{ if eq .name $name }}{{ $probed = .startupProbe }}{{ end }}{{ end }}
{{- $_ := set .status "started" (not $probed) }}
{{- $_ := set .status "imageID" (printf "imitated@sha256:%s" (sha256sum .status.image)) }}
{{- $_ := set .status "containerID" (printf "imitated://%s" (sha256sum (printf "%s/%s/%v" .pod.metadata.uid .status.name .status.restartCount))) }}
{{- end }}

{{- /* Mark a status as terminated. */ -}}
{{- define "terminate" }}
{{- $started := Now }}
{{- with .status.state.running }}{{- $started = .startedAt }}{{- end }}
{{- $end := dict "exitCode" .code "reason" .reason "startedAt" $started "finishedAt" Now }}
{{- if .message }}{{- $_ := set $end "message" .message }}{{- end }}
{{- if .status.containerID }}{{- $_ := set $end "containerID" .status.containerID }}{{- end }}
{{- $_ := set .status "state" (dict "terminated" $end) }}
{{- $_ := set .status "ready" false }}
{{- $_ := set .status "started" false }}
{{- end }}

{{- define "statuses" }}
{{- if .status.initContainerStatuses }}
initContainerStatuses:
{{- range .status.initContainerStatuses }}
- {{ toJson . }}
{{- end }}
{{- end }}
containerStatuses:
{{- range .status.containerStatuses }}
- {{ toJson . }}
{{- end }}
{{- end }}

{{- define "tierbench.name" -}}
{{ .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{- define "tierbench.fullname" -}}
{{- $name := include "tierbench.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- /* The name of what has no namespace of its own, or lies in one that all releases share. */ -}}
{{- define "tierbench.sharedName" -}}
{{ .Release.Namespace }}:{{ include "tierbench.fullname" . }}
{{- end }}

{{- define "tierbench.selector" -}}
app.kubernetes.io/name: {{ include "tierbench.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tierbench.labels" -}}
{{ include "tierbench.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The name of an image. Takes a list: the root, and whose image it is. */ -}}
{{- define "tierbench.image" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $image := (get $root.Values $name).image -}}
{{- $repository := $image.repository | default (printf "%s/tierbench/%s" ($root.Values.global.imageRegistry | default "ghcr.io") $name) -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $repository ($image.tag | default $root.Chart.AppVersion) }}
{{- end -}}
{{- end }}

{{- define "tierbench.operatorImage" -}}
image: {{ include "tierbench.image" (list . "operator") }}
{{- with .Values.operator.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- /* What runs for benchmarks: each has an image. */ -}}
{{- define "tierbench.workloads" -}}
client nginx transfer mosquitto kafka paho sinetstream network
{{- end }}

{{- /* The pull policies of images of workloads, by the names of the images, as JSON. */ -}}
{{- define "tierbench.pullPolicies" -}}
{{- $policies := dict }}
{{- range $name := splitList " " (include "tierbench.workloads" .) }}
{{- $workload := get $.Values $name }}
{{- with $workload.image.pullPolicy }}
{{- $_ := set $policies (include "tierbench.image" (list $ $name)) . }}
{{- range values ($workload.alternatives | default dict) }}
{{- $_ := set $policies . $workload.image.pullPolicy }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $policies }}
{{- end }}

{{- /* The names of the Secrets to pull images with. */ -}}
{{- define "tierbench.pullSecrets" -}}
{{- $names := list }}
{{- range concat .Values.global.imagePullSecrets .Values.imagePullSecrets }}
{{- $names = append $names .name }}
{{- end }}
{{- $names | uniq | join "," }}
{{- end }}

{{- /* How clients are started, as JSON: `kubectl tierbench doctor` starts its pods alike. */ -}}
{{- define "tierbench.clients" -}}
{{- $programs := dict }}
{{- range $name := without (splitList " " (include "tierbench.workloads" .)) "client" }}
{{- $_ := set $programs $name (include "tierbench.image" (list $ $name)) }}
{{- end }}
{{- $clients := dict
  "image" (include "tierbench.image" (list . "client"))
  "programs" $programs
  "pullPolicies" (include "tierbench.pullPolicies" . | fromJson)
  "pullSecrets" (include "tierbench.pullSecrets" . | splitList "," | compact)
  "priorityClass" .Values.workloads.priorityClassName
  "collector" (include "tierbench.collectorUrl" .)
  "networkPolicies" ((.Values.networkPolicies | default dict).benchmarks | default false)
}}
{{- with .Values.workloads.runAsUser }}
{{- $_ := set $clients "user" (int64 .) }}
{{- end }}
{{- toJson $clients }}
{{- end }}

{{- /* Where clients push their lines; empty without a collector. */ -}}
{{- define "tierbench.collectorUrl" -}}
{{- if .Values.collector.enabled -}}
https://{{ .Values.collector.address | default (printf "%s-collector.%s.svc:8443" (include "tierbench.fullname" .) .Release.Namespace) }}
{{- end -}}
{{- end }}

{{- /* Where pods with the operator's image run, and how they pull it. */ -}}
{{- define "tierbench.placement" -}}
{{- with include "tierbench.pullSecrets" . }}
imagePullSecrets:
  {{- range splitList "," . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.operator.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What a container of a hook takes, and how it is restricted. */ -}}
{{- define "tierbench.hookContainer" -}}
resources:
  {{- toYaml .Values.operator.resources | nindent 2 }}
securityContext:
  runAsNonRoot: true
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- /* The name of the operator's account. */ -}}
{{- define "tierbench.account" -}}
{{ .Values.operator.serviceAccount.name | default (include "tierbench.fullname" .) }}
{{- end }}

{{- define "tierbench.serviceAccount" -}}
- kind: ServiceAccount
  name: {{ include "tierbench.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* A Role and its binding. Takes a list: the root, the namespace, the template of the rules. */ -}}
{{- define "tierbench.role" -}}
{{- $root := index . 0 -}}
{{- $metadata := printf "name: %s\nnamespace: %s\nlabels:%s" (include "tierbench.sharedName" $root) (index . 1) (include "tierbench.labels" $root | nindent 2) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- $metadata | nindent 2 }}
rules:
  {{- include (index . 2) $root | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "tierbench.sharedName" $root }}
subjects:
  {{- include "tierbench.serviceAccount" $root | nindent 2 }}
{{- end }}

{{- /* How /metrics, /healthz and /readyz are served. */ -}}
{{- define "tierbench.scheme" -}}
{{ ternary "https" "http" (.Values.metrics.authorization | default false) }}
{{- end }}

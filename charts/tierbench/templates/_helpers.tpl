{{- define "tierbench.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- /* The name of what has no namespace of its own, or lies in one that all releases share. */ -}}
{{- define "tierbench.sharedName" -}}
{{ .Release.Namespace }}:{{ include "tierbench.fullname" . }}
{{- end }}

{{- define "tierbench.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tierbench.labels" -}}
{{ include "tierbench.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Takes a list: the root, the name of our image, the image that the values give. */ -}}
{{- define "tierbench.image" -}}
{{- $root := index . 0 -}}
{{ index . 2 | default (printf "ghcr.io/tierbench/%s:%s" (index . 1) $root.Chart.AppVersion) }}
{{- end }}

{{- define "tierbench.serviceAccount" -}}
- kind: ServiceAccount
  name: {{ include "tierbench.fullname" . }}
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
{{ ternary "https" "http" .Values.metrics.authorization }}
{{- end }}

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
{{- end }}

{{- /* Takes a list: the root, the name of our image, the image that the values give. */ -}}
{{- define "tierbench.image" -}}
{{- $root := index . 0 -}}
{{ index . 2 | default (printf "%s/tierbench/%s:%s" ($root.Values.global.imageRegistry | default "ghcr.io") (index . 1) $root.Chart.AppVersion) }}
{{- end }}

{{- define "tierbench.operatorImage" -}}
image: {{ include "tierbench.image" (list . "operator" .Values.operator.image) }}
{{- with .Values.operator.imagePullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- /* Where pods with the operator's image run, and how they pull it. */ -}}
{{- define "tierbench.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
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
{{ ternary "https" "http" .Values.metrics.authorization }}
{{- end }}

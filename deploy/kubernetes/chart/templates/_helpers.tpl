{{- define "spillway.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "spillway.service-labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spillway.pod-labels" -}}
{{ include "spillway.service-labels" . }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "spillway.metadata" -}}
name: {{ include "spillway.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "spillway.labels" . | nindent 2 }}
{{- end -}}

{{- define "spillway.labels" -}}
{{ include "spillway.service-labels" . }}
app.kubernetes.io/part-of: spillway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "spillway.replicas" -}}
{{- if .Values.autoscaling.enabled -}}
{{ .Values.autoscaling.minReplicas }}
{{- else -}}
{{ .Values.replicas | default 2 }}
{{- end -}}
{{- end -}}

{{- define "spillway.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "spillway.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

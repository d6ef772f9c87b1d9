{{- define "streamsvm.labels" -}}
app.kubernetes.io/name: streamsvm
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "streamsvm.selector" -}}
app.kubernetes.io/name: streamsvm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streamsvm.annotations" -}}
checksum/config: {{ .Values.config | sha256sum }}
{{- if .Values.scrape }}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
{{- end }}
{{- end }}

{{- define "streamsvm.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
terminationGracePeriodSeconds: 30
enableServiceLinks: false # a Service streamsvm-... would set variables STREAMSVM_...
{{- end }}

{{- define "streamsvm.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
ports:
  - { name: http, containerPort: 8080 }
startupProbe: # the image is compiled for any processor; another one may compile for two minutes
  httpGet: { path: /healthz, port: http }
  periodSeconds: 5
  failureThreshold: 36
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
{{- if .Values.secret }}
envFrom:
  - secretRef: { name: {{ .Values.secret | quote }} }
{{- end }}
{{- end }}

{{- define "streamsvm.settings" -}}
- { name: STREAMSVM_DAEMON_STATE_DIR, value: /var/lib/streamsvm/state }
- { name: STREAMSVM_DAEMON_LOG_FORMAT, value: json }
- { name: STREAMSVM_HTTP_HOST, value: 0.0.0.0 }
- { name: STREAMSVM_HTTP_PORT, value: "8080" }
{{- end }}

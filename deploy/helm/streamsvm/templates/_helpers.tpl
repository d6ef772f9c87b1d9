{{- define "streamsvm.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "streamsvm.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (ternary (include "streamsvm.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "streamsvm.labels" -}}
{{ include "streamsvm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "streamsvm.selector" -}}
app.kubernetes.io/name: streamsvm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/*
The template of a component's pods.  It takes a dict:
  root       the chart's objects
  component  its name
  values     its values: resources, and where its pods may run
  args       the arguments of `streamsvm`
  env        more environment variables
  state      the volume on /var/lib/streamsvm, if it needs one
  port       its port's name: "http" has metrics and probes, "page" is the labelling service's; "": it serves nothing
*/}}
{{- define "streamsvm.pod" -}}
{{- $values := .root.Values }}
metadata:
  labels:
    {{- include "streamsvm.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ $values.config | sha256sum }}
    {{- if and $values.scrape (eq .port "http") (not $values.serviceMonitor.enabled) }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "8080"
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "streamsvm.serviceAccountName" .root }}
  automountServiceAccountToken: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- toYaml $values.podSecurityContext | nindent 4 }}
  terminationGracePeriodSeconds: 30 # longer than daemon.shutdown_seconds
  enableServiceLinks: false # a Service streamsvm-... would set variables STREAMSVM_...
  {{- if eq .component "topics" }}
  restartPolicy: OnFailure
  {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" }}
  {{- with index $.values $key | default (index $values $key) }}
  {{ $key }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{- toYaml .args | nindent 8 }}
      env:
        - { name: STREAMSVM_DAEMON_STATE_DIR, value: /var/lib/streamsvm/state }
        - { name: STREAMSVM_DAEMON_LOG_FORMAT, value: json }
        - { name: STREAMSVM_HTTP_HOST, value: 0.0.0.0 }
        - { name: STREAMSVM_HTTP_PORT, value: "8080" }
        {{- with concat (.env | default list) $values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.secret }}
      envFrom:
        - secretRef: { name: {{ . | quote }} }
      {{- end }}
      securityContext: {{- toYaml $values.securityContext | nindent 8 }}
      {{- with .values.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if eq .port "http" }}
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
      {{- else if .port }}
      ports:
        - { name: {{ .port }}, containerPort: 8765 }
      readinessProbe: # Label Studio's server wants a password for every path
        tcpSocket: { port: {{ .port }} }
        periodSeconds: 5
      {{- end }}
      volumeMounts:
        - { name: config, mountPath: /etc/streamsvm, readOnly: true }
        - { name: tmp, mountPath: /tmp }
        {{- if .state }}
        - { name: state, mountPath: /var/lib/streamsvm }
        {{- end }}
        {{- with $values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: { name: {{ include "streamsvm.fullname" .root }}-config }
    - name: tmp
      emptyDir: {}
    {{- with .state }}
    - name: state
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

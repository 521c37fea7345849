{{- define "winready.labels" -}}
app.kubernetes.io/name: winready
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "winready.inputs" -}}
{{- if or .Values.activeDirectory .Values.linuxConformance }}yes{{ end }}
{{- end }}

{{- define "winready.jobSpec" -}}
backoffLimit: 0
podReplacementPolicy: Failed
activeDeadlineSeconds: {{ add (mul (int .Values.timeoutMinutes) 60) 300 600 }}
template:
  metadata:
    labels:
      {{- include "winready.labels" . | nindent 6 }}
    annotations:
      cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
  spec:
    os:
      name: linux
    nodeSelector:
      kubernetes.io/os: linux
      {{- with .Values.nodeSelector }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    serviceAccountName: {{ .Release.Name }}
    restartPolicy: Never
    terminationGracePeriodSeconds: 360
    securityContext:
      runAsNonRoot: true
      runAsUser: 65532
      runAsGroup: 65532
      fsGroup: 65532
      fsGroupChangePolicy: OnRootMismatch
      seccompProfile:
        type: RuntimeDefault
    containers:
      - name: winready
        image: {{ .Values.image | quote }}
        args:
          - run
          - --report-dir
          - {{ .Values.store.address | default "/runs" | replace "$" "$$" | quote }}
          - --publish
          - job=$(WINREADY_NAMESPACE)/$(WINREADY_JOB)
          - --publish
          - configmap=$(WINREADY_NAMESPACE)/{{ .Release.Name }}-summary
          - --publish
          - policy-report=$(WINREADY_NAMESPACE)/{{ .Release.Name }}
          - --publish
          - termination-log=/dev/termination-log
          {{- with .Values.metricsPort }}
          - --metrics-listen
          - ":{{ int . }}"
          {{- end }}
          {{- if .Values.activeDirectory }}
          - --active-directory
          - /etc/winready/domain.yaml
          {{- end }}
          {{- if .Values.linuxConformance }}
          - --linux-conformance
          - /etc/winready/linux-conformance.xml
          {{- end }}
          - --timeout
          - {{ int .Values.timeoutMinutes }}m
          {{- range .Values.args }}
          - {{ replace "$" "$$" . | quote }}
          {{- end }}
        env:
          - name: HOME
            value: /tmp
          - name: WINREADY_NAMESPACE
            valueFrom:
              fieldRef:
                fieldPath: metadata.namespace
          - name: WINREADY_JOB
            valueFrom:
              fieldRef:
                fieldPath: metadata.labels['batch.kubernetes.io/job-name']
          {{- if .Values.store.address }}
          - name: XDG_STATE_HOME
            value: /runs
          {{- end }}
        {{- with .Values.store.secret }}
        envFrom:
          - secretRef:
              name: {{ . }}
        {{- end }}
        resources:
          {{- toYaml .Values.resources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop:
              - ALL
        terminationMessagePolicy: FallbackToLogsOnError
        volumeMounts:
          - name: tmp
            mountPath: /tmp
          - name: runs
            mountPath: /runs
          {{- if include "winready.inputs" . }}
          - name: inputs
            mountPath: /etc/winready
            readOnly: true
          {{- end }}
        {{- with .Values.metricsPort }}
        ports:
          - name: metrics
            containerPort: {{ int . }}
        {{- end }}
    volumes:
      - name: tmp
        emptyDir: {}
      - name: runs
        {{- if .Values.volume.enabled }}
        persistentVolumeClaim:
          claimName: {{ .Release.Name }}-runs
        {{- else }}
        emptyDir: {}
        {{- end }}
      {{- if include "winready.inputs" . }}
      - name: inputs
        configMap:
          name: {{ .Release.Name }}-inputs
      {{- end }}
    {{- with .Values.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.imagePullSecrets }}
    imagePullSecrets:
      {{- range . }}
      - name: {{ . }}
      {{- end }}
    {{- end }}
{{- end }}

{{- define "berth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "berth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "berth.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "berth.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Labels that never change, because selectors cannot be edited. */ -}}
{{- define "berth.selectorLabels" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "berth.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: berth
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The annotations of an object: its own and the common ones. Begins on a new line, which is not there without any. */ -}}
{{- define "berth.annotations" -}}
{{- $own := dict -}}
{{- if gt (len .) 1 -}}
{{- $own = index . 1 | default dict -}}
{{- end -}}
{{- with merge (dict) $own (first .).Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end -}}

{{- /* The common annotations, for an object that has others. */ -}}
{{- define "berth.moreAnnotations" -}}
{{- with .Values.commonAnnotations -}}
{{- toYaml . | nindent 4 }}
{{- end -}}
{{- end -}}

{{- /* A repository in the registry that replaces all others, if there is one. A part with a dot or a colon, or localhost, is a registry. A name of one part is in `library` of Docker Hub. */ -}}
{{- define "berth.repository" -}}
{{- $registry := .root.Values.global.imageRegistry -}}
{{- $parts := splitList "/" .repository -}}
{{- if not $registry -}}
{{ .repository }}
{{- else if and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) -}}
{{ $registry }}/{{ rest $parts | join "/" }}
{{- else if eq (len $parts) 1 -}}
{{ $registry }}/library/{{ .repository }}
{{- else -}}
{{ $registry }}/{{ .repository }}
{{- end -}}
{{- end -}}

{{- /* Fails where two roles would share an account, and with it their rights. */ -}}
{{- define "berth.requireOwnAccounts" -}}
{{- $names := list -}}
{{- $roles := include "berth.roles" . | fromJsonArray -}}
{{- if .Values.usageSink.enabled -}}
{{- $roles = append $roles "usage-sink" -}}
{{- end -}}
{{- range $roles -}}
{{- $names = append $names (include "berth.serviceAccountName" (dict "root" $ "role" .)) -}}
{{- end -}}
{{- if ne (len $names) (len (uniq $names)) -}}
{{- fail "serviceAccount.name: give each role an account of its own, because each has its own rights" -}}
{{- end -}}
{{- end -}}

{{- /* Fails where the operator's labels would take the place of those by which other parts find what is Berth's. */ -}}
{{- define "berth.requireOwnLabels" -}}
{{- $given := dict "commonLabels" .Values.commonLabels -}}
{{- range $role := include "berth.roles" . | fromJsonArray -}}
{{- $section := include "berth.section" $role -}}
{{- $_ := set $given (printf "%s.podLabels" $section) (get $.Values $section).podLabels -}}
{{- end -}}
{{- range $value, $labels := $given -}}
{{- range $name, $_ := $labels -}}
{{- if regexMatch "^((app\\.kubernetes\\.io/(name|instance|version|component|managed-by|part-of)|helm\\.sh/chart)$|berth\\.dev/)" $name -}}
{{- fail (printf "%s: %s is the chart's own, by which doctor, uninstall and helm find Berth: use another name" $value $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Fails where a role would listen twice on one port. */ -}}
{{- define "berth.requireFreePort" -}}
{{- $port := int .Values.metrics.port -}}
{{- if has $port (list 2222 8080 8081) -}}
{{- fail (printf "metrics.port: %d is the port of a role, which could not begin: choose another one, such as 9090" $port) -}}
{{- end -}}
{{- end -}}

{{- define "berth.image" -}}
{{- $repository := include "berth.repository" (dict "root" . "repository" .Values.image.repository) -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The image of instances that name none. */ -}}
{{- define "berth.defaultImage" -}}
{{- include "berth.repository" (dict "root" . "repository" .Values.config.defaultImage) -}}
{{- end -}}

{{- /* The image whose tools the controller puts into instances. */ -}}
{{- define "berth.toolsImage" -}}
{{- if .Values.config.toolsImage -}}
{{- include "berth.repository" (dict "root" . "repository" .Values.config.toolsImage) -}}
{{- else -}}
{{- include "berth.image" . -}}
{{- end -}}
{{- end -}}

{{- /* What pulls the images of the chart, as YAML; empty without any. */ -}}
{{- define "berth.imagePullSecrets" -}}
{{- with concat .Values.imagePullSecrets (.Values.global.imagePullSecrets | default list) -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- /* Names of these Secrets, whose credentials for the images of instances the controller brings to tenants' namespaces, as JSON. Only a policy holds it to that. */ -}}
{{- define "berth.tenantPullSecrets" -}}
{{- $names := list -}}
{{- if .Values.admissionPolicies.enabled -}}
{{- range concat .Values.imagePullSecrets (.Values.global.imagePullSecrets | default list) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end -}}

{{- /* Where the values of a role are: those of the notifier and of the sink are those of the feature. */ -}}
{{- define "berth.section" -}}
{{- get (dict "notifier" "webhooks" "usage-sink" "usageSink") . | default . -}}
{{- end -}}

{{- define "berth.serviceAccountName" -}}
{{- $section := include "berth.section" .role -}}
{{- $account := (get .root.Values $section).serviceAccount -}}
{{- if $account.name -}}
{{ $account.name }}
{{- else if $account.create -}}
{{ include "berth.fullname" .root }}-{{ .role }}
{{- else -}}
{{- fail (printf "%s.serviceAccount.name: name the account that is there, or let the chart make one" $section) -}}
{{- end -}}
{{- end -}}

{{- /* User name of a role's service account, as an admission policy sees it. */ -}}
{{- define "berth.user" -}}
system:serviceaccount:{{ .root.Release.Namespace }}:{{ include "berth.serviceAccountName" . }}
{{- end -}}

{{- /* The roles that run, as JSON. */ -}}
{{- define "berth.roles" -}}
{{- $roles := list "controller" "api" "ssh" -}}
{{- if .Values.dashboard.enabled -}}
{{- $roles = append $roles "dashboard" -}}
{{- end -}}
{{- if .Values.webhooks.enabled -}}
{{- $roles = append $roles "notifier" -}}
{{- end -}}
{{- toJson $roles -}}
{{- end -}}

{{- /* "true" when an Ingress or Gateway reaches the dashboard's pods. Otherwise the api role alone does. */ -}}
{{- define "berth.dashboardIsOpen" -}}
{{- or .Values.ingress.enabled .Values.gatewayAPI.enabled -}}
{{- end -}}

{{- /* Whether proxies say where clients are. They connect at a port of their own, which instances do not reach. */ -}}
{{- define "berth.hasProxies" -}}
{{- if ne .Values.config.trustProxy "false" }}true{{ end -}}
{{- end -}}

{{- /* The Service of the api role to which an Ingress or HTTPRoute leads. */ -}}
{{- define "berth.ingressService" -}}
{{- printf "%s-%s" (include "berth.fullname" .) (ternary "ingress" "api" (eq (include "berth.hasProxies" .) "true")) -}}
{{- end -}}

{{- /* Where other roles find the dashboard. */ -}}
{{- define "berth.dashboardUrl" -}}
{{- .Values.dashboard.url | default (printf "http://%s-dashboard.%s.svc" (include "berth.fullname" .) .Release.Namespace) -}}
{{- end -}}

{{- define "berth.valkeySecret" -}}
{{- .Values.valkey.existingSecret | default .Values.valkey.secret | default (printf "%s-valkey" (include "berth.fullname" .)) -}}
{{- end -}}

{{- /* Key of that Secret with the certificate of the authority that the Valkey's certificate comes from; empty when every system knows the authority. */ -}}
{{- define "berth.valkeyAuthority" -}}
{{- ternary "ca.crt" .Values.valkey.existingSecretAuthority .Values.valkey.enabled -}}
{{- end -}}

{{- define "berth.podSecurityContext" -}}
{{- toYaml .Values.podSecurityContext -}}
{{- end -}}

{{- define "berth.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Where the pods of the chart find names, as YAML; empty without any. */ -}}
{{- define "berth.names" -}}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What schedules and runs the pods of the chart, as YAML; empty without any. */ -}}
{{- define "berth.scheduling" -}}
{{- with .Values.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end -}}

{{- /* What the pods of all roles share: environment, spec, probes. */ -}}
{{- define "berth.env" -}}
{{- $root := .root -}}
- name: BERTH_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: BERTH_LOG_LEVEL
  value: {{ $root.Values.config.logLevel | quote }}
- name: BERTH_METRICS_ADDR
  value: "0.0.0.0:{{ $root.Values.metrics.port }}"
{{- if $root.Values.metrics.tls.existingSecret }}
- name: BERTH_METRICS_TLS
  value: /etc/berth-metrics
{{- end }}
{{- if $root.Values.metrics.nameTenants }}
- name: BERTH_METRICS_TENANTS
  value: "true"
{{- end }}
- name: BERTH_SSH_PUBLIC_HOST
  value: {{ $root.Values.ssh.publicHost | default (printf "%s-ssh.%s.svc" (include "berth.fullname" $root) $root.Release.Namespace) | quote }}
- name: BERTH_SSH_PUBLIC_PORT
  value: {{ $root.Values.ssh.publicPort | default $root.Values.ssh.service.port | quote }}
{{- end -}}

{{- /* Where traces go, for the roles that have any; empty without a collector. OpenTelemetry's own names. */ -}}
{{- define "berth.tracingEnv" -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: {{ .sampler }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .sampleRatio | quote }}
{{- with .headersSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: headers
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The ports of the collector, as JSON. */ -}}
{{- define "berth.tracingPorts" -}}
{{- $url := urlParse .Values.tracing.endpoint -}}
{{- $written := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $port := $written | default (ternary "443" "80" (eq $url.scheme "https")) | int -}}
{{- .Values.tracing.ports | default (list $port) | toJson -}}
{{- end -}}

{{- /* The nodes of a pod of the chart: those that can run its image, of those that the values choose. */ -}}
{{- define "berth.nodeSelector" -}}
{{- $selector := dict -}}
{{- if eq (len .root.Values.image.architectures) 1 -}}
{{- $_ := set $selector "kubernetes.io/arch" (first .root.Values.image.architectures) -}}
{{- end -}}
{{- with merge (dict) (.own | default dict) $selector -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "berth.podSpec" -}}
{{- $role := .role -}}
{{- $root := .root -}}
{{- $values := get $root.Values (include "berth.section" $role) -}}
serviceAccountName: {{ include "berth.serviceAccountName" (dict "root" $root "role" $role) }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
securityContext:
  {{- include "berth.podSecurityContext" $root | nindent 2 }}
{{- with include "berth.imagePullSecrets" $root }}
{{ . }}
{{- end }}
{{- with include "berth.names" $root | trim }}
{{ . }}
{{- end }}
{{- with include "berth.scheduling" $root | trim }}
{{ . }}
{{- end }}
{{- if $values.priorityClassName }}
priorityClassName: {{ $values.priorityClassName }}
{{- else if $root.Values.priorityClasses.enabled }}
priorityClassName: berth-system
{{- end }}
{{- with include "berth.nodeSelector" (dict "root" $root "own" $values.nodeSelector) | trim }}
nodeSelector:
  {{- . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "berth.selectorLabels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $role }}
  {{- end }}
{{- with $values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Where the container of a role mounts its volumes, as YAML; empty without any. */ -}}
{{- define "berth.volumeMounts" -}}
{{- $mounts := (get .root.Values (include "berth.section" .role)).extraVolumeMounts -}}
{{- if .root.Values.metrics.tls.existingSecret -}}
{{- $mounts = prepend $mounts (dict "name" "metrics-tls" "mountPath" "/etc/berth-metrics" "readOnly" true) -}}
{{- end -}}
{{- if and (eq .role "api") (include "berth.valkeyAuthority" .root) -}}
{{- $mounts = prepend $mounts (dict "name" "valkey-authority" "mountPath" "/etc/valkey" "readOnly" true) -}}
{{- end -}}
{{- with $mounts -}}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- /* The same volumes. */ -}}
{{- define "berth.volumes" -}}
{{- $root := .root -}}
{{- $volumes := (get $root.Values (include "berth.section" .role)).extraVolumes -}}
{{- with $root.Values.metrics.tls.existingSecret -}}
{{- $volumes = prepend $volumes (dict "name" "metrics-tls" "secret" (dict "secretName" .)) -}}
{{- end -}}
{{- $authority := include "berth.valkeyAuthority" $root -}}
{{- if and (eq .role "api") $authority -}}
{{- $secret := dict "secretName" (include "berth.valkeySecret" $root) "items" (list (dict "key" $authority "path" "ca.crt")) -}}
{{- $volumes = prepend $volumes (dict "name" "valkey-authority" "secret" $secret) -}}
{{- end -}}
{{- with $volumes -}}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- /* On a port that clients do not reach: nobody can keep the kubelet out. */ -}}
{{- define "berth.probes" -}}
{{- $values := get .root.Values (include "berth.section" .role) -}}
{{- $scheme := ternary ", scheme: HTTPS" "" (ne .root.Values.metrics.tls.existingSecret "") -}}
startupProbe:
  httpGet: { path: /livez, port: metrics{{ $scheme }} }
  {{- toYaml $values.startupProbe | nindent 2 }}
livenessProbe:
  httpGet: { path: /livez, port: metrics{{ $scheme }} }
  {{- toYaml $values.livenessProbe | nindent 2 }}
readinessProbe:
  httpGet: { path: /readyz, port: metrics{{ $scheme }} }
  {{- toYaml $values.readinessProbe | nindent 2 }}
{{- end -}}

{{/* In CEL: whether the caller knows when a pod has ended, or may drain nodes. */}}
{{- define "berth.knowsEnds" -}}
request.userInfo.?groups.orValue([]).exists(group, group in ["system:nodes", "system:serviceaccounts:kube-system"]) || request.userInfo.username == "system:kube-controller-manager" || authorizer.group("").resource("nodes").check("patch").allowed()
{{- end }}

{{- /* The annotations that pods of the controller may bear, as JSON: its own, those of Kubernetes and OpenShift, and the operator's. */ -}}
{{- define "berth.podAnnotations" -}}
{{- $known := list "berth.dev/claim" "kubernetes.io/limit-ranger" "openshift.io/scc" "security.openshift.io/validated-scc-subject-type" "seccomp.security.alpha.kubernetes.io/pod" -}}
{{- toJson (concat $known .Values.admissionPolicies.podAnnotations) -}}
{{- end -}}

{{- /* In CEL: whether a text is one of a list, in which a * at the end stands for anything. */ -}}
{{- define "berth.isListed" -}}
{{ toJson .list }}.exists(one, one.endsWith("*") ? {{ .text }}.startsWith(one.substring(0, one.size() - 1)) : {{ .text }} == one)
{{- end -}}

{{- /* In CEL: whether a pod tolerates taints by their names, and none of those that close any node for a while, but as the API server has every pod tolerate them. */ -}}
{{- define "berth.plainTolerations" -}}
object.spec.?tolerations.orValue([]).all(t, t.?key.orValue("") != "" && (!t.key.startsWith("node.kubernetes.io/") ||
(t.key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] && t.?effect.orValue("") == "NoExecute" && has(t.tolerationSeconds)) ||
(t.key == "node.kubernetes.io/memory-pressure" && t.?effect.orValue("") == "NoSchedule")))
{{- end -}}

{{- /* In CEL, with the variable `containers`: whether a pod asks neither the kubelet nor the node for more than to run it. */ -}}
{{- define "berth.plainPod" -}}
object.spec.?nodeName.orValue("") == "" &&
object.spec.?schedulerName.orValue("") in ["", "default-scheduler"] &&
object.spec.?resourceClaims.orValue([]).size() == 0 &&
variables.containers.all(c, !has(c.livenessProbe) && !has(c.readinessProbe) && !has(c.startupProbe) && !has(c.lifecycle)) &&
object.spec.?securityContext.?seccompProfile.?type.orValue("RuntimeDefault") == "RuntimeDefault" &&
object.spec.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") == "RuntimeDefault" &&
["user", "role", "type"].all(name, object.spec.?securityContext.?seLinuxOptions[?name].orValue("") == "") &&
variables.containers.all(c, c.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") == "RuntimeDefault" &&
["user", "role", "type"].all(name, c.?securityContext.?seLinuxOptions[?name].orValue("") == ""))
{{- end -}}

{{- /* In CEL: the bytes of the paths in managedFields below `map`, as JSON has them. What is deeper or wider than any kind goes counts as more than may be: a sum over a long list takes the API server time by its square. */ -}}
{{- define "berth.pathBytes" -}}
{{- if gt .depth 8 -}}
{{ .map }}.size() * 1000000
{{- else -}}
{{- $key := printf "k%d" .depth -}}
({{ .map }}.size() > 512 ? {{ .map }}.size() * 1000000 : {{ .map }}.map({{ $key }}, 6 + bytes({{ $key }}).size() + {{ include "berth.pathBytes" (dict "map" (printf "%s[%s]" .map $key) "depth" (int (add1 .depth))) }}).sum())
{{- end -}}
{{- end -}}

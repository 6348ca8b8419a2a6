{{- /* Closes a tenant's namespace: Berth's gateways get in; pods reach name resolution, Berth's HTTP interface and the internet. */ -}}
{{- define "berth.instancePolicy" -}}
{{- $policy := .Values.tenants.networkPolicy -}}
podSelector: {}
policyTypes: [Ingress, Egress]
ingress:
  # The model gateway calls model servers, and ports of instances take the direct way to the pod.
  - from:
      - namespaceSelector:
          matchLabels:
            kubernetes.io/metadata.name: {{ .Release.Namespace }}
        podSelector:
          matchLabels:
            app.kubernetes.io/name: {{ include "berth.name" . }}
            app.kubernetes.io/component: api
  # The direct way of SSH: the helpers of sessions listen on these ports.
  - ports:
      - port: 49152
        endPort: 65535
        protocol: TCP
    from:
      - namespaceSelector:
          matchLabels:
            kubernetes.io/metadata.name: {{ .Release.Namespace }}
        podSelector:
          matchLabels:
            app.kubernetes.io/name: {{ include "berth.name" . }}
            app.kubernetes.io/component: ssh
  {{- if $policy.allowSameNamespace }}
  - from:
      - podSelector: {}
  {{- end }}
egress:
  - ports:
      {{- range $policy.dns.ports }}
      - port: {{ . }}
        protocol: UDP
      - port: {{ . }}
        protocol: TCP
      {{- end }}
    to:
      {{- toYaml $policy.dns.to | nindent 6 }}
  # Berth's HTTP interface, by the Service of the api role.
  - ports:
      - port: 8080
        protocol: TCP
    to:
      - namespaceSelector:
          matchLabels:
            kubernetes.io/metadata.name: {{ .Release.Namespace }}
        podSelector:
          matchLabels:
            app.kubernetes.io/name: {{ include "berth.name" . }}
            app.kubernetes.io/component: api
  {{- if $policy.allowSameNamespace }}
  - to:
      - podSelector: {}
  {{- end }}
  - to:
      {{- include "berth.publicNetworks" . | nindent 6 }}
{{- end -}}

{{- /* Every address but those of the closed networks, as the peers of a NetworkPolicy. */ -}}
{{- define "berth.publicNetworks" -}}
{{- $policy := .Values.tenants.networkPolicy -}}
{{- $four := list -}}
{{- $six := list -}}
{{- range concat $policy.blockedNetworks $policy.extraBlockedNetworks -}}
{{- if contains ":" . -}}
{{- $six = append $six . -}}
{{- else -}}
{{- $four = append $four . -}}
{{- end -}}
{{- end -}}
- ipBlock:
    cidr: 0.0.0.0/0
    {{- with $four }}
    except:
      {{- toYaml . | nindent 6 }}
    {{- end }}
- ipBlock:
    cidr: ::/0
    {{- with $six }}
    except:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}

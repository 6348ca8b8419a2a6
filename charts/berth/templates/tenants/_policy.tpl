{{- /* Closes a tenant's namespace: Berth's gateways get in; pods reach name resolution and the internet. */ -}}
{{- define "berth.instancePolicy" -}}
{{- $policy := .Values.tenants.networkPolicy -}}
podSelector: {}
policyTypes: [Ingress, Egress]
ingress:
  # The model gateway calls model servers. SSH sessions and ports come through the kubelet, not over this network.
  - from:
      - namespaceSelector:
          matchLabels:
            kubernetes.io/metadata.name: {{ .Release.Namespace }}
        podSelector:
          matchExpressions:
            - key: app.kubernetes.io/name
              operator: In
              values: [{{ include "berth.name" . }}]
            - key: app.kubernetes.io/component
              operator: In
              values: [api, ssh]
  {{- if $policy.allowSameNamespace }}
  - from:
      - podSelector: {}
  {{- end }}
egress:
  - ports:
      - port: 53
        protocol: UDP
      - port: 53
        protocol: TCP
    to:
      - namespaceSelector:
          matchLabels:
            kubernetes.io/metadata.name: kube-system
  {{- if $policy.allowSameNamespace }}
  - to:
      - podSelector: {}
  {{- end }}
  - to:
      {{- $four := list }}
      {{- $six := list }}
      {{- range $policy.blockedNetworks }}
      {{- if contains ":" . }}
      {{- $six = append $six . }}
      {{- else }}
      {{- $four = append $four . }}
      {{- end }}
      {{- end }}
      - ipBlock:
          cidr: 0.0.0.0/0
          {{- with $four }}
          except:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      - ipBlock:
          cidr: ::/0
          {{- with $six }}
          except:
            {{- toYaml . | nindent 12 }}
          {{- end }}
{{- end -}}

const HEADER = '{{- /* Generated from crds/ by `npm run generate`. Do not edit. */ -}}\n';
const ANNOTATIONS = `  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
  labels:
    {{- include "berth.labels" . | nindent 4 }}
`;

/**
 * A CustomResourceDefinition of `crds/` as a chart template. It stands in `templates/`, because Helm never upgrades what is
 * in a chart's `crds/`. It stays after an uninstallation, because deleting it deletes every resource of its kind.
 */
export function crdTemplate(yaml: string): string {
  if (yaml.includes('{{')) throw new Error('A definition has the characters {{, which Helm would take for a template.');
  const body = yaml.replace(/^#.*\n/gm, '');
  const [before, after] = body.split(/^metadata:\n/m);
  if (before === undefined || after === undefined) throw new Error('A definition has no metadata.');
  return `${HEADER}{{- if .Values.crds.enabled }}\n${before}metadata:\n${ANNOTATIONS}${after}{{- end }}\n`;
}

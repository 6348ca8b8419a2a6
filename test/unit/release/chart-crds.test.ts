import { describe, expect, it } from 'vitest';
import { crdTemplate } from '../../../tools/release/chart-crds.ts';

const CRD =
  '# Generated.\napiVersion: apiextensions.k8s.io/v1\nmetadata:\n  name: sshkeys.berth.dev\nspec:\n  group: berth.dev\n';

describe('crdTemplate', () => {
  it('puts the definition behind the switch and keeps it on uninstall', () => {
    const template = crdTemplate(CRD);
    expect(template).toMatch(/^\{\{- \/\* Generated from crds\//);
    expect(template).toContain(
      '{{- if .Values.crds.enabled }}\napiVersion: apiextensions.k8s.io/v1\nmetadata:\n  annotations:',
    );
    expect(template).toContain('    helm.sh/resource-policy: keep\n');
    expect(template.trimEnd().endsWith('  name: sshkeys.berth.dev\nspec:\n  group: berth.dev\n{{- end }}')).toBe(true);
  });

  it('refuses what Helm would take for a template', () => {
    expect(() => crdTemplate(CRD.replace('group: berth.dev', 'group: "{{ x }}"'))).toThrow('{{');
  });
});

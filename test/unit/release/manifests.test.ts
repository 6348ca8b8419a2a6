import { describe, expect, it } from 'vitest';
import { objectsOf, plainManifest } from '../../../tools/release/manifests.ts';

describe('objectsOf', () => {
  it('leaves out hooks and empty documents', () => {
    const stream = `---
kind: Service
metadata: { name: api }
---
# only a comment
---
kind: Pod
metadata: { name: smoke, annotations: { helm.sh/hook: test } }
`;
    expect(objectsOf(stream).map(({ kind }) => kind)).toEqual(['Service']);
  });
});

describe('plainManifest', () => {
  it('drops what only Helm reads and keeps selectors whole', () => {
    const labels = { 'app.kubernetes.io/instance': 'berth', 'app.kubernetes.io/name': 'berth' };
    const plain = plainManifest({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'api',
        labels: { ...labels, 'helm.sh/chart': 'berth-1' },
        annotations: { 'helm.sh/resource-policy': 'keep' },
      },
      spec: { selector: labels },
    });
    expect(plain).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'api', labels: { 'app.kubernetes.io/name': 'berth' } },
      spec: { selector: labels },
    });
  });
});

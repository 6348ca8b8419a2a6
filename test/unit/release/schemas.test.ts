import { describe, expect, it } from 'vitest';
import { builtInSchemas, customSchemas } from '../../../tools/release/schemas.ts';

describe('builtInSchemas', () => {
  const swagger = {
    definitions: {
      'io.k8s.api.core.v1.Pod': {
        properties: { spec: { properties: { containers: { type: 'array' } } } },
        'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
      },
      'io.k8s.api.apps.v1.Deployment': {
        properties: {},
        'x-kubernetes-group-version-kind': [{ group: 'apps', version: 'v1', kind: 'Deployment' }],
      },
      'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: 'string' },
    },
  };

  it('names the file of a kind as kubeconform looks for it', () => {
    const names = [...builtInSchemas(swagger).keys()];
    expect(names).toEqual(['pod_v1_v1.json', 'deployment_apps_v1.json', 'definitions.json']);
  });

  it('closes objects at every depth, so that a misspelt field is an error', () => {
    const { definitions } = builtInSchemas(swagger).get('definitions.json') as { definitions: Record<string, unknown> };
    expect(definitions['io.k8s.api.core.v1.Pod']).toMatchObject({
      additionalProperties: false,
      properties: { spec: { additionalProperties: false } },
    });
  });

  it('takes a quantity as a number too', () => {
    const { definitions } = builtInSchemas(swagger).get('definitions.json') as { definitions: Record<string, unknown> };
    expect(definitions['io.k8s.apimachinery.pkg.api.resource.Quantity']).toEqual({ type: ['string', 'number'] });
  });
});

describe('customSchemas', () => {
  it('checks metadata as Kubernetes does and leaves maps open', () => {
    const openAPIV3Schema = {
      properties: {
        metadata: { type: 'object' },
        spec: { properties: { labels: { type: 'object', additionalProperties: { type: 'string' } } } },
      },
    };
    const schemas = customSchemas({
      spec: {
        group: 'berth.dev',
        names: { kind: 'GPUPool' },
        versions: [{ name: 'v1alpha1', schema: { openAPIV3Schema } }],
      },
    });
    const schema = schemas.get('gpupool_berth.dev_v1alpha1.json');
    expect(schema).toMatchObject({
      additionalProperties: false,
      properties: {
        metadata: { $ref: expect.stringContaining('ObjectMeta') },
        spec: { additionalProperties: false, properties: { labels: { additionalProperties: { type: 'string' } } } },
      },
    });
  });
});

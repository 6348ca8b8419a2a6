import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { InstancePresenter } from '../../../src/http/features/instances/presenter.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { type InstanceTemplate, snapshotOf } from '../../../src/resources/instance-template.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const BEFORE: InstanceTemplate = {
  metadata: { name: 't', namespace: 'default', uid: 'u' },
  spec: { displayName: '', image: 'r.io/app:1', ports: [{ containerPort: 80, protocol: 'TCP' }] },
};
const AFTER: InstanceTemplate = {
  ...BEFORE,
  spec: { displayName: '', image: 'r.io/app:2', ports: [{ containerPort: 6666, protocol: 'TCP' }] },
};

function recordOf(template: InstanceTemplate, status?: GpuInstanceStatus) {
  const templates = new Cache<InstanceTemplate>({ indexers: INDEXES.templates, onListenerError: () => undefined });
  templates.replace([template], '1');
  const none = new Cache<never>({ onListenerError: () => undefined }).store;
  const source = { templates: templates.store, namespaces: none, own: 'berth-system' };
  const rest = {
    complete: (instance: GpuInstance) => instance,
    placeOf: () => undefined,
    nearLimits: () => [],
  };
  const presenter = new InstancePresenter({ nodes: none, templates: source, defaultImage: 'debian:12', ...rest });
  return presenter.record(gpuInstance('a', { templateId: numericId('u') }, status));
}

function currentIs(status: 'True' | 'False'): NonNullable<GpuInstanceStatus['conditions']> {
  const times = { lastTransitionTime: '2026-01-01T00:00:00Z' };
  return [{ type: 'TemplateCurrent', status, reason: 'Any', message: '', ...times }];
}

test('an instance that waits shows what its template gives now', () => {
  const record = recordOf(AFTER);
  expect(record).toMatchObject({ template_image: 'r.io/app:2', template_changed: null });
  expect(record.ports).toMatchObject([{ container_port: 6666 }]);
});

test('a rented instance shows what it was rented with, and that its template has changed since', () => {
  const template = snapshotOf(BEFORE);
  const record = recordOf(AFTER, { ...(template && { template }), conditions: currentIs('False') });
  expect(record).toMatchObject({ template_image: 'r.io/app:1', template_changed: true });
  expect(record.ports).toMatchObject([{ container_port: 80 }]);
});

test('a template that is as it was does not count as changed', () => {
  expect(recordOf(BEFORE, { conditions: currentIs('True') }).template_changed).toBe(false);
});

import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { InstancePresenter } from '../../../src/http/features/instances/presenter.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { wishOf } from '../../../src/resources/instances/rented.ts';
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

function recordOf(template: InstanceTemplate, status?: GpuInstanceStatus, spec: Partial<GpuInstance['spec']> = {}) {
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
  return presenter.record(gpuInstance('a', { templateId: numericId('u'), ...spec }, status));
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

test('an instance that is off shows the GPUs and the price that it rented', () => {
  const gpus = { product: 'NVIDIA-L4', gpuCount: 2, isolation: 'whole', memoryMb: 23_034 } as const;
  const rented = {
    wish: wishOf({ offerId: 7 }),
    gpus: { ...gpus, simulated: false, pool: 'p', offerId: 7 },
    price: { pricePerHour: '0.44', currency: 'USD' },
  };
  const record = recordOf(AFTER, { rented, incarnation: 1 }, { offerId: 7, gpu: undefined, powerState: 'Stopped' });
  expect(record).toMatchObject({ offer_id: 7, gpu_name: 'NVIDIA-L4', gpu_count: 2, gpu_memory_mb: 23_034 });
  expect(record).toMatchObject({ price_per_hour: '0.44', currency: 'USD', node: null });
});

import { expect, it } from 'vitest';
import { diskGbOf, toBudgetRecord, toLimitsRecord } from '../../../src/http/features/limits/record.ts';
import { limitsSchema } from '../../../src/http/features/limits/schema.ts';
import { budgetSchema } from '../../../src/resources/tenants/budget.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { ceilingsSchema } from '../../../src/resources/tenants/ceilings.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const NO_DISKS = { diskGb: 0, keptDisks: { count: 0, gb: 0 } };
const NO_OBJECTS = { instances: 0, sshKeys: 0, templates: 0, apiKeys: 0, registries: 0, webhooks: 0 };
const NOTHING = { ...NO_OBJECTS, ...NO_DISKS, gpus: [] };

it('shows each ceiling over GPUs with what its places hold', () => {
  const ceilings = ceilingsSchema.parse({
    gpus: [{ max: 8 }, { pool: 'a', max: 4 }, { product: 'H100', max: 3 }],
    models: { tokensPerMinute: 9 },
    userNamespaces: 'Required',
  });
  const gpus = [
    { pool: 'a', product: 'H100', gpus: 1 },
    { pool: 'b', product: 'H100', gpus: 2 },
    { pool: 'b', product: 'L40S', gpus: 4 },
  ];
  const record = toLimitsRecord(
    ceilings,
    ['gold'],
    { ...NOTHING, instances: 3, gpus },
    { budget: null, key_budget: null },
  );
  expect(limitsSchema.omit({ namespace: true, caller: true }).parse(record)).toEqual(record);
  expect(record).toMatchObject({
    policies: ['gold'],
    instances: { used: 3, limit: 1000 },
    gpus_used: 7,
    gpus: [
      { pool: null, gpu_name: null, used: 7, limit: 8 },
      { pool: 'a', gpu_name: null, used: 1, limit: 4 },
      { pool: null, gpu_name: 'H100', used: 3, limit: 3 },
    ],
    user_namespaces: 'required',
    model_calls_per_minute: null,
    model_tokens_per_minute: 9,
  });
});

it('shows a budget with what is left of it, and nothing of another month', () => {
  const now = Date.UTC(2026, 10, 23);
  const budget = budgetSchema.parse({ costs: [{ currency: 'USD', max: '500' }], gpuHours: 10 });
  const lines = [
    { unit: 'USD', max: '500.00', spent: '415.20' },
    { unit: 'GPU-hours', max: '10.00', spent: '10.01' },
  ];
  const status = { month: '2026-11', renewsAt: '', at: '2026-11-22T00:00:00.000Z', percent: 100, lines };
  const record = toBudgetRecord({ budget, status }, now);
  expect(record).toEqual({
    month: '2026-11',
    renews_at: '2026-12-01T00:00:00.000Z',
    at: '2026-11-22T00:00:00.000Z',
    percent: 100,
    lines: [
      { unit: 'USD', limit: '500.00', spent: '415.20', left: '84.80' },
      { unit: 'GPU-hours', limit: '10.00', spent: '10.01', left: '0.00' },
    ],
  });
  expect(toBudgetRecord({ budget, status: { ...status, month: '2026-10' } }, now)).toMatchObject({
    at: null,
    percent: 0,
    lines: [
      { unit: 'USD', spent: '0.00', left: '500.00' },
      { unit: 'GPU-hours', spent: '0.00', left: '10.00' },
    ],
  });
  const credited = { ...status, lines: [{ unit: 'USD', max: '500.00', spent: '-1.00' }] };
  expect(toBudgetRecord({ budget, status: credited }, now)?.lines[0]?.left).toBe('501.00');
  expect(toBudgetRecord({ budget: undefined, status }, now)).toBeNull();
  expect(toBudgetRecord({ budget: budgetSchema.parse({}), status }, now)).toBeNull();
});

it('shows the ceiling over disks with those of instances and those that were kept', () => {
  const budgets = { budget: null, key_budget: null };
  const used = { ...NOTHING, diskGb: 40, keptDisks: { count: 2, gb: 80 } };
  const record = toLimitsRecord(ceilingsSchema.parse({ diskGb: 100 }), ['gold'], used, budgets);
  expect(record).toMatchObject({ disk_gb: { used: 120, limit: 100 }, kept_disks: { count: 2, gb: 80 } });
  expect(toLimitsRecord(ceilingsSchema.parse({}), [], used, budgets).disk_gb).toEqual({ used: 120, limit: null });
});

it.each<[string, GpuInstance['status'], number]>([
  ['waits', { diskGb: 10 }, 0],
  ['has its place', { claim: claimOn('n'), diskPersistent: true, diskGb: 10 }, 10],
  ['has its disk on its node', { claim: claimOn('n'), diskPersistent: false, diskGb: 10 }, 0],
  ['is off', { disk: { name: 'one-disk', uid: 'u' }, diskPersistent: true, diskGb: 10 }, 10],
  ['is off and never had a disk', { diskPersistent: true, diskGb: 10 }, 0],
])('the disk of an instance that %s counts', (_what, status, gb) => {
  expect(diskGbOf(gpuInstance('one', {}, status))).toBe(gb);
});

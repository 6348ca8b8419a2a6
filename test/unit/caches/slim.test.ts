import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CACHES } from '../../../src/caches/table.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { sameJson } from '../../../src/lib/json.ts';
import {
  type GpuInstance,
  type GpuInstanceSpec,
  gpuInstanceSpecSchema,
} from '../../../src/resources/instances/gpu-instance.ts';
import { isSlim, slimSpec } from '../../../src/resources/instances/slim-spec.ts';
import { readsOf } from '../../../src/roles/run-role.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const LONG = 'x'.repeat(30_000);
const HUGE: Partial<GpuInstanceSpec> = {
  stats: LONG,
  requestedRuntype: LONG,
  onStart: LONG,
  env: Array.from({ length: 40 }, (_, index) => ({ name: `A${index}`, value: LONG })),
  runtype: 'args',
  command: [LONG.slice(0, 4096), 'short'],
  args: [LONG.slice(0, 4096)],
  image: 'debian:12',
};

function kept(instance: GpuInstance, texts: boolean): GpuInstance | undefined {
  const { createPrune } = CACHES.instances;
  const cache = new Cache<GpuInstance>({ prune: createPrune?.({ texts }), onListenerError: () => undefined });
  cache.upsert(instance);
  return cache.store.get('default/one');
}

test('a process that shows no specs keeps a few kilobytes of one with megabytes', () => {
  const slim = kept(gpuInstance('one', HUGE), false);
  expect(JSON.stringify(slim).length).toBeLessThan(8_192);
  expect(slim?.spec).toMatchObject({ image: 'debian:12', runtype: 'args', powerState: 'Running' });
  expect(slim?.spec.env?.map(({ name }) => name)).toEqual(HUGE.env?.map(({ name }) => name));
  expect(slim?.spec.command?.[1]).toBe('short');
});

test('a process that shows them keeps all', () => {
  const whole = gpuInstance('one', HUGE);
  expect(kept(whole, true)).toEqual(whole);
});

test('the roles that answer with specs have them whole', () => {
  const whole = ['api', 'all', 'controller', 'ssh', 'dashboard'].filter((role) => readsOf(role).texts);
  expect(whole).toEqual(['api', 'all']);
});

test('no cache keeps the copy that kubectl leaves', () => {
  const { metadata, ...rest } = gpuInstance('one');
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': LONG, 'berth.dev/confirm-by': 'soon' };
  const stored = kept({ ...rest, metadata: { ...metadata, annotations } }, true);
  expect(stored?.metadata.annotations).toEqual({ 'berth.dev/confirm-by': 'soon' });
});

test('two specs are the same when they are slim, where they ask for the same start', () => {
  const text = fc.string({ maxLength: 300 });
  const spec = fc.record(
    {
      stats: text,
      requestedRuntype: text,
      onStart: text,
      env: fc.array(fc.record({ name: fc.constantFrom('A', 'B'), value: text }), { maxLength: 3 }),
      command: fc.array(text, { maxLength: 3 }),
      args: fc.array(text, { maxLength: 3 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(spec, spec, (one, other) => {
      const [whole, edited] = [one, other].map((part) => ({ ...gpuInstanceSpecSchema.parse({}), ...part }));
      if (whole === undefined || edited === undefined) return;
      expect(slimSpec(slimSpec(whole))).toEqual(slimSpec(whole));
      const { stats: _a, ...content } = whole;
      const { stats: _b, ...after } = edited;
      expect(sameJson(slimSpec(whole), slimSpec(edited))).toBe(sameJson(content, after));
    }),
  );
});

test('a spec without long texts is whole, and one with them is not', () => {
  const short = gpuInstanceSpecSchema.parse({ onStart: 'true', env: [{ name: 'A', value: 'b' }] });
  expect(isSlim(slimSpec(short))).toBe(false);
  expect(isSlim(slimSpec({ ...short, onStart: LONG }))).toBe(true);
});

test('no pod is made of a spec from a slim cache', async () => {
  const world = controllerWorld();
  const status = { claim: claimOn('n'), incarnation: 1, podName: 'one-1', diskPersistent: false, diskGb: 10 };
  const whole = held(gpuInstance('one', HUGE, status));
  world.instances.upsert({ ...whole, spec: slimSpec(whole.spec) });
  // The API server of this world answers what the cache has, so the texts are nowhere.
  await expect(world.reconcile('one')).rejects.toThrow('without its texts');
  expect(world.createdPods()).toEqual([]);
});

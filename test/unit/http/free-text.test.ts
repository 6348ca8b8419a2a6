import { expect, it } from 'vitest';
import { CallLimits } from '../../../src/http/interface/request-limit.ts';
import { Ring } from '../../../src/http/interface/events/ring.ts';
import { checkTemplateText, takeFreeText } from '../../../src/http/features/instances/free-text.ts';
import { REQUEST_HASH } from '../../../src/resources/ids.ts';
import type { ReadStore } from '../../../src/kube/watch/store.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import type { InstanceTemplate, InstanceTemplateSpec } from '../../../src/resources/instance-template.ts';
import { memoryCounter } from '../../../src/runtime/counter.ts';

const MILLION = 1_000_000;

function specOf(stats: number, requestedRuntype = 0): GpuInstanceSpec {
  const texts = { stats: 's'.repeat(stats), requestedRuntype: 'r'.repeat(requestedRuntype) };
  return { type: 'OnDemand', ...texts } as GpuInstanceSpec;
}

/** A tenant that has these instances. */
function tenant(...specs: readonly GpuInstanceSpec[]) {
  const instances = specs.map((spec, index): GpuInstance => {
    return { metadata: { name: `i-${index}`, annotations: { [REQUEST_HASH]: `hash-${index}` } }, spec };
  });
  const stores = { instances: { by: () => instances } as unknown as ReadStore<GpuInstance> };
  const calls = new CallLimits(memoryCounter(), () => DEFAULT_CEILINGS);
  return (spec: GpuInstanceSpec, hash?: string) => takeFreeText({ stores, calls }, { namespace: 'a', spec, hash });
}

it('a tenant may have free text of any length, and as much of it as a thousand short ones', async () => {
  await tenant()(specOf(MILLION));
  await tenant(specOf(MILLION), specOf(MILLION), specOf(500_000, 500_000))(specOf(MILLION));
  const full = tenant(specOf(MILLION), specOf(MILLION), specOf(MILLION), specOf(0, MILLION));
  await expect(full(specOf(MILLION))).rejects.toThrow('Those of this tenant have 4000000');
  await expect(full(specOf(0, MILLION))).rejects.toMatchObject({ code: 'tenant_limit' });
  await full(specOf(4096));
});

it('a text that etcd could not take with the rest of the object is too long', async () => {
  const spec = (stats: string) => ({ ...specOf(0), stats });
  await tenant()(spec('<'.repeat(170_000)));
  await expect(tenant()(spec('<'.repeat(180_000)))).rejects.toMatchObject({ code: 'payload_too_large' });
  await tenant()(spec('\0'.repeat(170_000)));
  await tenant()(spec('\u{1F680}'.repeat(250_000)));
});

it('a retry does not count its own instance', async () => {
  const full = tenant(specOf(MILLION), specOf(MILLION), specOf(MILLION), specOf(MILLION));
  await full(specOf(MILLION), 'hash-3');
  await expect(full(specOf(MILLION), 'hash-4')).rejects.toMatchObject({ code: 'tenant_limit' });
});

it('the templates of a tenant have such a share too, and a retry or a change does not count its own', () => {
  const spec = (length: number): InstanceTemplateSpec => ({ displayName: '', onStart: 's'.repeat(length) });
  const templates = Array.from({ length: 4 }, (_, index): InstanceTemplate => {
    const annotations = { [REQUEST_HASH]: `hash-${index}` };
    return { metadata: { name: `t-${index}`, uid: `uid-${index}`, annotations }, spec: spec(MILLION) };
  });
  const store = { by: () => templates } as unknown as ReadStore<InstanceTemplate>;
  const check = (length: number, over: object = {}): void =>
    checkTemplateText(store, { namespace: 'a', spec: spec(length), ...over });
  expect(() => check(200_000)).toThrow('The others of this tenant have 4000000, and this one has 200000.');
  for (const over of [{ hash: 'hash-2' }, { uid: 'uid-2' }]) check(MILLION, over);
  check(4096);
  check(90_000);
});

it('who makes and deletes them again and again waits', async () => {
  const empty = tenant();
  for (let count = 0; count < 4; count += 1) await empty(specOf(MILLION));
  await expect(empty(specOf(MILLION))).rejects.toMatchObject({ code: 'rate_limit_exceeded', status: 429 });
  await empty(specOf(4096));
});

it('the log of changes forgets more when its entries are heavy, and names what it forgot', () => {
  const ring = new Ring<number>(4, { weigh: (entry) => entry, most: 10 });
  for (const entry of [1, 2, 3, 4]) ring.push(entry);
  expect([ring.entries(), ring.forgotten]).toEqual([[1, 2, 3, 4], undefined]);
  ring.push(5);
  expect([ring.entries(), ring.forgotten]).toEqual([[4, 5], 3]);
  ring.push(100);
  expect([ring.entries(), ring.forgotten]).toEqual([[100], 5]);
  for (let count = 0; count < 8; count += 1) ring.push(0);
  expect([ring.entries(), ring.forgotten]).toEqual([[0, 0, 0, 0], 0]);
});

it('every text of the instance counts, and a template none', async () => {
  const long = 'x'.repeat(MILLION);
  const texts: Partial<GpuInstanceSpec>[] = [
    { env: [{ name: 'A', value: long }] },
    { onStart: long },
    { command: [long] },
    { args: [long] },
  ];
  for (const text of texts) {
    const other = { ...specOf(0), ...text };
    await tenant(other)(other);
    await expect(tenant(other, other, other, other)(other)).rejects.toMatchObject({ code: 'tenant_limit' });
  }
  await tenant(...texts.map((text) => ({ ...specOf(0), ...text })))({ ...specOf(0), templateId: 1 });
});

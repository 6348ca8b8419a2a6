import { pino } from 'pino';
import { expect, test } from 'vitest';
import { reconcileRegistry } from '../../../src/controllers/tenants/registries.ts';
import { ForbiddenError, NotFoundError, TransportError } from '../../../src/kube/errors.ts';
import { keyOf, type ObjectRef, type ResourceType } from '../../../src/kube/types.ts';
import type { RegistryCredential } from '../../../src/resources/registry-credential.ts';
import { FakeStore } from '../../support/fake-store.ts';

const KEY = 'acme/mine';
const DELETED = { deletionTimestamp: '2026-11-23T12:00:00Z' };
const ours = { finalizers: ['berth.dev/cleanup'] };
/** As `kubectl delete --cascade=orphan` leaves them until the garbage collector has let go of the Secret. */
const orphaning = { ...DELETED, finalizers: ['orphan', 'berth.dev/cleanup'] };

type Fault = 'delete' | 'patch' | 'gone' | 'foreign';

/** Credentials with a Secret, which no owner binds to them, and what a reconcile does about both. */
function worldOf(metadata: Partial<RegistryCredential['metadata']>, faults: Fault[] = []) {
  const store = new FakeStore<RegistryCredential>();
  const put = (more: Partial<RegistryCredential['metadata']>): void =>
    store.put({
      metadata: { namespace: 'acme', name: 'mine', uid: 'uid-1', ...more },
      spec: { server: 'ghcr.io', username: 'alice' },
    });
  put(metadata);
  const secrets = new Set([KEY, 'acme/other']);
  const done: string[] = [];
  const broken = (): Error => new TransportError({ message: 'cut', status: 0, reason: 'Test' });
  const fails = (fault: Fault): boolean => faults[0] === fault && faults.shift() !== undefined;
  const client = {
    delete(_type: ResourceType, ref: ObjectRef) {
      if (fails('delete')) return Promise.reject(broken());
      const refusal = { message: 'ValidatingAdmissionPolicy denied', status: 403, reason: 'Forbidden' };
      if (fails('foreign')) return Promise.reject(new ForbiddenError(refusal));
      done.push(`delete ${keyOf(ref)}`);
      secrets.delete(keyOf(ref));
      return Promise.resolve();
    },
    patch(_type: ResourceType, _ref: ObjectRef, body: unknown) {
      if (fails('patch')) return Promise.reject(broken());
      if (fails('gone')) return Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' }));
      const [uid, before, after] = body as { value: unknown }[];
      const held = store.get(KEY);
      expect([uid?.value, before?.value]).toEqual([held?.metadata.uid, held?.metadata.finalizers ?? null]);
      const finalizers = after?.value as string[];
      done.push(`finalizers ${finalizers.join(' ')}`);
      put({ ...held?.metadata, finalizers });
      return Promise.resolve(store.get(KEY) as never);
    },
  };
  const deps = {
    client,
    stores: { registries: store },
    fence: { wrote: () => undefined },
    log: pino({ level: 'silent' }),
  } as unknown as Parameters<typeof reconcileRegistry>[0];
  return { done, secrets, reconcile: () => reconcileRegistry(deps, KEY, new AbortController().signal) };
}

test('credentials of an earlier release, and restored ones, are held from now on', async () => {
  const world = worldOf({ finalizers: ['x.io/y'] });
  await world.reconcile();
  await world.reconcile();
  expect(world.done).toEqual(['finalizers x.io/y berth.dev/cleanup']);
});

test.each([
  ['an ordinary deletion', { ...DELETED, ...ours }, ''],
  ['one that leaves the Secret behind', orphaning, 'orphan'],
])('the Secret goes before the credentials do, after %s', async (_which, metadata, left) => {
  const world = worldOf(metadata);
  await world.reconcile();
  await world.reconcile();
  expect(world.done).toEqual([`delete ${KEY}`, `finalizers ${left}`]);
  expect([...world.secrets]).toEqual(['acme/other']);
});

test.each<Fault>(['delete', 'patch'])(
  'after a crash at its %s another controller does the rest, and no credentials go before their Secret',
  async (fault) => {
    const world = worldOf(orphaning, [fault]);
    await expect(world.reconcile()).rejects.toThrow('cut');
    expect(world.done.filter((line) => line.startsWith('finalizers'))).toEqual([]);
    await world.reconcile();
    expect(world.done.at(-1)).toBe('finalizers orphan');
    expect([...world.secrets]).toEqual(['acme/other']);
  },
);

test("a tenant's own Secret of the name stays, and does not hold the credentials", async () => {
  const world = worldOf({ ...DELETED, ...ours }, ['foreign']);
  await world.reconcile();
  expect(world.done).toEqual(['finalizers ']);
  expect(world.secrets.has(KEY)).toBe(true);
});

test('what others hold, or is gone already, is left', async () => {
  const held = worldOf({ ...DELETED, finalizers: ['x.io/y'] });
  await held.reconcile();
  expect(held.done).toEqual([]);
  await worldOf({ ...DELETED, ...ours }, ['gone']).reconcile();
});

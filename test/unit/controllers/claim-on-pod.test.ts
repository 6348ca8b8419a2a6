import { expect, test } from 'vitest';
import { MEANINGS } from '../../../src/http/features/instances/claim-waiter.ts';
import { AlreadyExistsError, ForbiddenError, TimeoutError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { type InstanceTemplate, templateHash } from '../../../src/resources/instance-template.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { READY_REASONS, type ReadyReason } from '../../../src/resources/instances/instance-state.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimedPod, claimOn, gpuInstance, gpuNode, gpuPod } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

/** On a pod that bears no claim: whose it is. */
const WITHOUT_CLAIM = {
  'berth.dev/claim': expect.stringMatching(/^\{"instance":"uid-one","startHash":"2-[0-9a-f]{32}"\}$/) as string,
};
/** What a client that queues is told as a refusal, of an instance that waits: it withdraws what nobody wrote to since. */
const REFUSED = (Object.keys(READY_REASONS) as ReadyReason[]).filter(
  (reason) => READY_REASONS[reason].state === 'pending' && MEANINGS[reason] === 'refused',
);
const EXISTS = new AlreadyExistsError({ message: 'there', status: 409, reason: 'AlreadyExists' });
const FORBIDDEN = new ForbiddenError({ message: 'not here', status: 403, reason: 'Forbidden' });
const NO_ANSWER = new TimeoutError({ message: 'no answer', status: 0, reason: 'Timeout' });
const ALL = { gpu: { count: 8 } };
const TEMPLATE: InstanceTemplate = {
  metadata: { name: 't', namespace: 'default', uid: 'u' },
  spec: { displayName: '', image: 'r.io/app:1', ports: [] },
};

interface Options {
  createPod?: (pod: Pod) => Promise<Pod>;
  nodes?: string[];
}

function world({ createPod, nodes = ['n'] }: Options = {}, one: GpuInstance = held(gpuInstance('one', ALL))) {
  const all = controllerWorld(undefined, undefined, {
    claimOnPod: true,
    nodes: nodes.map((name) => gpuNode(name)),
    ...(createPod && { createPod }),
  });
  all.instances.upsert(one);
  return {
    ...all,
    status: () => all.instances.store.get('default/one')?.status,
    held: () => all.inventory.heldBy('default').reduce((sum, { gpus }) => sum + gpus, 0),
    written: () => all.writes.filter(({ verb, kind }) => verb === 'patch' && kind === 'GPUInstance').length,
    clock: all.deps.clock as FakeClock,
    /** The status of the first write. */
    async firstWrite() {
      const ours = () => all.writes.find(({ verb, kind }) => verb === 'patch' && kind === 'GPUInstance');
      const operations = (await waitFor('a write', ours)).body as { op: string; value?: unknown }[];
      return operations.findLast(({ op }) => op === 'add')?.value;
    },
  };
}

function made(pod: Pod, version = '50'): Pod {
  return { ...pod, metadata: { ...pod.metadata, uid: 'uid-pod', resourceVersion: version } };
}

test('a first start is one creation: its pod bears the claim, and the status says so when there is more to say', async () => {
  const w = world({ createPod: (pod) => Promise.resolve(made(pod)) });
  await w.reconcile('one');
  expect([w.createdPods().length, w.written(), w.held()]).toEqual([1, 0, 8]);
  w.pods.upsert(made(w.createdPods()[0] as Pod));
  expect([w.inventory.undecided('default/one'), w.held()]).toEqual([undefined, 8]);
  await w.reconcile('one');
  expect([w.createdPods().length, w.written()]).toEqual([1, 0]);
  await w.clock.advance(9_999);
  await w.reconcile('one');
  expect(w.written()).toBe(0);
  await w.clock.advance(1);
  await w.reconcile('one');
  expect([w.createdPods().length, w.written()]).toEqual([1, 1]);
  expect(w.status()).toMatchObject({ claim: { node: 'n', gpuCount: 8 }, incarnation: 1, podName: 'one-1' });
});

test.each(['True', 'False'])('the status is written three seconds after the scheduler said %s', async (status) => {
  const w = world({ createPod: (pod) => Promise.resolve(made(pod)) });
  await w.reconcile('one');
  await w.clock.advance(5_000);
  const lastTransitionTime = new Date(w.clock.now()).toISOString();
  const reason = status === 'False' ? { reason: 'Unschedulable' } : {};
  const conditions = [{ type: 'PodScheduled', status, lastTransitionTime, ...reason }];
  w.pods.upsert({ ...made(w.createdPods()[0] as Pod), status: { conditions } });
  await w.clock.advance(2_999);
  await w.reconcile('one');
  expect(w.written()).toBe(0);
  await w.clock.advance(1);
  await w.reconcile('one');
  expect(w.written()).toBe(1);
});

test.each<[string, GpuInstance]>([
  ['no finalizer', gpuInstance('one', ALL)],
  ['a template', held(gpuInstance('one', { ...ALL, templateHashId: templateHash(TEMPLATE.spec) }))],
  ['an earlier start', held(gpuInstance('one', ALL, { incarnation: 1 }))],
  ['a failed start', held(gpuInstance('one', ALL, { failures: { count: 1, lastTime: '2025-01-01T00:00:00Z' } }))],
  [
    'an answer that its client may act on',
    held(gpuInstance('one', { ...ALL, onNoCapacity: 'Fail' }, { conditions: [] })),
  ],
])('an instance with %s has its claim in the status before its pod', async (_what, one) => {
  const w = world({ createPod: (pod) => Promise.resolve(made(pod)) }, one);
  w.templates.upsert(TEMPLATE);
  await w.reconcile('one');
  expect(w.status()?.claim?.node).toBe('n');
  expect(w.createdPods().map(({ metadata }) => metadata.annotations)).toEqual([WITHOUT_CLAIM]);
});

test.each(REFUSED)(
  'an instance that says %s has its claim in its status, whatever its client asked',
  async (reason) => {
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const conditions = [{ type: 'Ready', status: 'False' as const, reason, message: '', lastTransitionTime }];
    const one = held(gpuInstance('one', { ...ALL, onNoCapacity: 'Queue' }, { conditions }));
    const w = world({ createPod: (pod) => Promise.resolve(made(pod)) }, one);
    await w.reconcile('one');
    expect(w.status()?.claim?.node).toBe('n');
    expect(w.createdPods().map(({ metadata }) => metadata.annotations)).toEqual([WITHOUT_CLAIM]);
  },
);

test('a new leader counts a claim that is on a pod alone, and grants nothing of it', async () => {
  const w = world({ createPod: (pod) => Promise.resolve(made(pod)) });
  w.pods.upsert(claimedPod(gpuInstance('one', ALL), claimOn('n', { gpuCount: 8 })));
  expect(w.held()).toBe(8);
  w.instances.upsert(held(gpuInstance('other', ALL)));
  await w.reconcile('other');
  expect(w.createdPods()).toEqual([]);
  expect(w.instances.store.get('default/other')?.status?.claim).toBeUndefined();
});

test('a pod that another leader made is taken over with its claim', async () => {
  const instance = held(gpuInstance('one', ALL));
  const theirs = made(claimedPod(instance, claimOn('m', { gpuCount: 8 })));
  const w = world({ nodes: ['n', 'm'], createPod: () => Promise.reject(EXISTS) }, instance);
  // The cache does not show it.
  w.api.pods.set('default/one-1', theirs);
  await w.reconcile('one');
  expect(w.inventory.viewOf('m')?.used['nvidia.com/gpu']).toBe(8);
  expect(w.inventory.viewOf('n')?.used['nvidia.com/gpu'] ?? 0).toBe(0);
  w.pods.upsert(theirs);
  await w.clock.advance(10_000);
  await w.reconcile('one');
  expect([w.status()?.claim?.node, w.held()]).toEqual(['m', 8]);
});

function leaving(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
}

test.each<[string, Pod, string]>([
  ['of another owner', gpuPod('one-1', undefined), 'NameConflict'],
  ['of another owner that is being deleted', leaving(gpuPod('one-1', undefined)), 'PlaceLost'],
  ['without a claim', gpuPod('one-1', undefined, { instanceUid: 'uid-one' }), 'PlaceLost'],
])('a pod of that name %s ends the start in one write, with its claim', async (_what, there, reason) => {
  const w = world({ createPod: () => Promise.reject(EXISTS) });
  w.api.pods.set('default/one-1', there);
  const first = w.firstWrite();
  await w.reconcile('one').catch(() => undefined);
  expect(await first).toMatchObject({ claim: { node: 'n' }, incarnation: 1, ending: { reason } });
});

test('a pod that the API server refuses ends the start in one write, with its claim', async () => {
  const w = world({ createPod: () => Promise.reject(FORBIDDEN) });
  const first = w.firstWrite();
  await w.reconcile('one');
  expect(await first).toMatchObject({ claim: { node: 'n' }, ending: { reason: 'PodRejected' } });
  expect([w.held(), w.status()?.failures?.count]).toEqual([0, 1]);
});

test('a creation without an answer keeps its place, and is found when it was made', async () => {
  const w = world({ createPod: () => Promise.reject(NO_ANSWER) });
  await expect(w.reconcile('one')).rejects.toThrow('no answer');
  expect(w.held()).toBe(8);
  w.api.pods.set('default/one-1', made(w.createdPods()[0] as Pod));
  await w.reconcile('one');
  expect([w.createdPods().length, w.written(), w.inventory.undecided('default/one')]).toEqual([1, 0, undefined]);
  expect(w.held()).toBe(8);
});

test('a creation without an answer that was not made yet may still be: the same claim is then written', async () => {
  let answers = 0;
  const createPod = (pod: Pod): Promise<Pod> =>
    (answers += 1) === 1 ? Promise.reject(NO_ANSWER) : Promise.resolve(made(pod));
  const w = world({ nodes: ['n', 'm'], createPod });
  await expect(w.reconcile('one')).rejects.toThrow('no answer');
  await w.clock.advance(1_000);
  await w.reconcile('one');
  const [first, second] = w.createdPods();
  expect(w.status()?.claim).toEqual(JSON.parse(first?.metadata.annotations?.['berth.dev/claim'] ?? '{}').claim);
  expect([second?.metadata.name, second?.metadata.annotations]).toEqual(['one-1', WITHOUT_CLAIM]);
  expect(w.held()).toBe(8);
});

test('a creation without an answer keeps no place when nobody wants the instance any more', async () => {
  const w = world({ createPod: () => Promise.reject(NO_ANSWER) });
  await expect(w.reconcile('one')).rejects.toThrow('no answer');
  const stopped = held(gpuInstance('one', { ...ALL, powerState: 'Stopped' }));
  w.instances.upsert({ ...stopped, metadata: { ...stopped.metadata, generation: 2, resourceVersion: '2' } });
  await w.reconcile('one');
  expect(w.held()).toBe(0);
});

test('a creation without an answer keeps no place when the finalizer of another keeps the instance', async () => {
  const w = world({ createPod: () => Promise.reject(NO_ANSWER) });
  await expect(w.reconcile('one')).rejects.toThrow('no answer');
  const one = gpuInstance('one', ALL);
  const metadata = { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] };
  w.instances.upsert({ ...one, metadata: { ...metadata, resourceVersion: '2' } });
  await w.reconcile('one');
  expect(w.held()).toBe(0);
});

test('a pod that is gone before the status knew of it counts as a failed start', async () => {
  const w = world({ createPod: (pod) => Promise.resolve(made(pod)) });
  await w.reconcile('one');
  const pod = made(w.createdPods()[0] as Pod);
  w.pods.upsert(pod);
  w.pods.remove(pod);
  expect(w.held()).toBe(0);
  await w.reconcile('one');
  expect(w.status()?.failures?.count).toBe(1);
  expect(w.createdPods().length).toBe(1);
});

test.each([
  ['stopped', { powerState: 'Stopped' as const }, {}],
  ['deleted', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }],
  [
    'kept by the finalizer of another',
    {},
    { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
  ],
])('an instance that is %s while its claim is on its pod ends with that claim', async (_what, spec, metadata) => {
  const one = held(gpuInstance('one', { ...ALL, ...spec }));
  const w = world({}, { ...one, metadata: { ...one.metadata, ...metadata } });
  w.pods.upsert(claimedPod(one, claimOn('n', { gpuCount: 8 })));
  const first = w.firstWrite();
  // This world refuses to delete a pod.
  await w.reconcile('one').catch(() => undefined);
  expect(await first).toMatchObject({ claim: { node: 'n' }, incarnation: 1, ending: { reason: 'Stopped' } });
});

test('an interruptible instance is preempted while its claim is on its pod', async () => {
  const spot = held(gpuInstance('one', { ...ALL, type: 'Interruptible' }));
  const w = world({}, spot);
  w.pods.upsert(claimedPod(spot, claimOn('n', { gpuCount: 8 })));
  w.instances.upsert(held(gpuInstance('sure', ALL)));
  await w.reconcile('sure');
  expect(w.status()).toMatchObject({ claim: { node: 'n' }, incarnation: 1, ending: { reason: 'Preempted' } });
});

test('who loses GPUs to another tenant reads neither its name nor that of its instance', async () => {
  const spot = held(gpuInstance('one', { ...ALL, type: 'Interruptible' }));
  const w = world({}, spot);
  w.pods.upsert(claimedPod(spot, claimOn('n', { gpuCount: 8 })));
  w.namespaces.upsert({ metadata: { name: 'rivals', uid: 'uid-rivals' } });
  const made = held(gpuInstance('secret-project', ALL));
  w.instances.upsert({ ...made, metadata: { ...made.metadata, namespace: 'rivals', uid: 'uid-of-the-other' } });
  await w.reconcile('secret-project', 'rivals');
  expect(w.status()?.ending).toMatchObject({ reason: 'Preempted', by: 'uid-of-the-other' });
  expect(JSON.stringify(w.status())).not.toMatch(/rivals|secret-project/);
});

test('a pod on another node than the place of its start is given up', async () => {
  const one = held(gpuInstance('one', ALL, { claim: claimOn('n'), incarnation: 1, podName: 'one-1', conditions: [] }));
  const w = world({}, one);
  const late = claimedPod(one, claimOn('m'));
  w.pods.upsert({ ...late, spec: { containers: [], ...late.spec, nodeName: 'm' } });
  await w.reconcile('one').catch(() => undefined);
  expect(w.status()?.ending?.reason).toBe('PlaceLost');
});

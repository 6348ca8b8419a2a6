import { expect, test } from 'vitest';
import { KubeError, PatchTestFailedError, TransportError } from '../../../src/kube/errors.ts';
import { keyOf, type ObjectRef, type ResourceType, type StorageClass } from '../../../src/kube/types.ts';
import { sameJson } from '../../../src/lib/json.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { settle } from '../../support/fake-clock.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuNode, gpuPod, gpuPool } from '../../support/inventory-world.ts';

const ALL = { gpu: { count: 8 } };

interface Operation {
  op: string;
  path: string;
  value?: unknown;
}

/** Two instances that wait for the one node, and the instance that has it. */
async function waiting(refusal?: KubeError, storageClasses: StorageClass[] = []) {
  const world = controllerWorld(refusal, undefined, { storageClasses });
  const owner = held(gpuInstance('owner', ALL, { claim: claimOn('n', { gpuCount: 8 }) }));
  for (const one of [owner, held(gpuInstance('a', ALL)), held(gpuInstance('b', ALL))]) world.instances.upsert(one);
  await world.reconcile('a');
  await world.reconcile('b');
  const claims = () => ['a', 'b'].filter((name) => world.instances.store.get(`default/${name}`)?.status?.claim);
  return { ...world, claims, free: () => world.instances.remove(owner) };
}

test('the instance that waits longest is served first', async () => {
  const { reconcile, claims, free, line } = await waiting();
  expect(line.size).toBe(2);
  free();
  await reconcile('b');
  expect(claims()).toEqual([]);
  await reconcile('a');
  expect(claims()).toEqual(['a']);
});

test('an instance whose run fails holds up no other', async () => {
  const refusal = new KubeError({ message: 'no more space', status: 500, reason: 'InternalError' });
  const { pods, reconcile, claims, free, line } = await waiting(refusal);
  pods.upsert(gpuPod('stray', undefined, { instanceUid: 'uid-a' }));
  free();
  await expect(reconcile('a')).rejects.toBe(refusal);
  expect(line.size).toBe(1);
  await reconcile('b');
  expect(claims()).toEqual(['b']);
});

// Any tenant may write the uid into a label. The controller may change and delete only objects that Berth named.
test('a label that cannot be repaired does not stop an instance', async () => {
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  const storage = { metadata: { name: 'fast', annotations }, provisioner: 'any' };
  const { disks, reconcile, claims, free } = await waiting(undefined, [storage]);
  disks.upsert({ metadata: { name: 'a-disk', namespace: 'default', labels: { 'berth.dev/instance-uid': 'uid-a' } } });
  free();
  await reconcile('a');
  expect(claims()).toEqual(['a']);
});

test('an instance that is deleted before it had the finalizer leaves the waiting line', async () => {
  const { instances, reconcile, claims, free } = await waiting();
  const { metadata, ...rest } = gpuInstance('a', ALL);
  instances.upsert({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  free();
  await reconcile('a');
  await reconcile('b');
  expect(claims()).toEqual(['b']);
});

test('an instance whose finalizer was taken off gives its GPUs back while that of another keeps it', async () => {
  const { instances, reconcile, creations } = controllerWorld();
  const { metadata, ...rest } = gpuInstance('a', ALL, { claim: claimOn('n', { gpuCount: 8 }), incarnation: 1 });
  const finalizers = ['example.com/held'];
  instances.upsert({ ...rest, metadata: { ...metadata, finalizers, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  await reconcile('a');
  const left = instances.store.get('default/a');
  expect(left?.status?.claim).toBeUndefined();
  expect(left?.metadata.finalizers).toEqual(finalizers);
  expect(creations()).toContain('UsageRecord');
});

test('a pod of another namespace does not count, whatever its labels say', async () => {
  const { pods, reconcile, claims, free } = await waiting();
  const stray = gpuPod('stray', undefined, { instanceUid: 'uid-a' });
  pods.upsert({ ...stray, metadata: { ...stray.metadata, namespace: 'elsewhere' } });
  free();
  await reconcile('a');
  expect(claims()).toEqual(['a']);
});

test('the finalizer is written beside the claim, and before any other step', async () => {
  const paths: string[] = [];
  const { instances, reconcile } = controllerWorld(undefined, (path) => {
    paths.push(path);
    return Promise.resolve();
  });
  instances.upsert(gpuInstance('a', ALL));
  instances.upsert(gpuInstance('b', { powerState: 'Stopped' }));
  await reconcile('a');
  expect(paths.splice(0).slice(0, 2)).toEqual(['/metadata/finalizers', '/status']);
  await reconcile('b');
  expect(paths).toEqual(['/metadata/finalizers', '/status']);
  for (const name of ['a', 'b']) {
    expect(instances.store.get(`default/${name}`)?.metadata.finalizers).toEqual(['berth.dev/cleanup']);
  }
});

// The next run would not see the claim, and could grant the place to another instance.
test('a run whose finalizer is refused does not end before its claim is written', async () => {
  const refusal = new KubeError({ message: 'no more space', status: 500, reason: 'InternalError' });
  const claim = Promise.withResolvers<void>();
  const { instances, reconcile } = controllerWorld(undefined, (path) =>
    path === '/status' ? claim.promise : Promise.reject(refusal),
  );
  instances.upsert(gpuInstance('a', ALL));
  let ended = false;
  const run = reconcile('a').finally(() => (ended = true));
  void run.catch(() => undefined);
  await settle();
  expect(ended).toBe(false);
  claim.resolve();
  await expect(run).rejects.toBe(refusal);
  expect(instances.store.get('default/a')?.status?.claim).toMatchObject({ node: 'n' });
});

// A watch lags, and the answer to the claim was lost: the run that follows knows of the claim, and so must the next ones.
test('a claim that no cache shows is counted until one does, however often its instance is looked at', async () => {
  const { instances, reconcile, deps, api, inventory } = controllerWorld(undefined, undefined, {
    createPod: (pod) => {
      const made = { ...pod, metadata: { ...pod.metadata, uid: 'made' } };
      api.pods.set(keyOf(made), made);
      return Promise.resolve(made);
    },
  });
  const { client } = deps;
  instances.upsert(held(gpuInstance('a', ALL)));
  let stored: GpuInstance | undefined;
  let answers = 0;
  const get = (type: ResourceType, ref: ObjectRef) =>
    type.kind === 'GPUInstance' && ref.name === 'a' && stored ? Promise.resolve(stored) : client.get(type, ref);
  const patch = async (type: ResourceType, ref: ObjectRef, body: Operation[], options: never) => {
    if (ref.name !== 'a') return client.patch(type, ref, body, options);
    const isAsSeen = body.every(
      ({ op, path, value }) => op !== 'test' || path !== '/status/claim' || sameJson(value, stored?.status?.claim),
    );
    if (stored !== undefined && (!isAsSeen || body.some(({ path, op }) => op === 'test' && path === '/status')))
      throw new PatchTestFailedError({ message: 'another has written', status: 422, reason: 'Invalid' });
    const { value } = body.findLast(({ op }) => op === 'add') ?? {};
    const seen = stored ?? held(gpuInstance('a', ALL));
    stored = { ...seen, status: value as never, metadata: { ...seen.metadata, resourceVersion: String(50 + answers) } };
    answers += 1;
    if (answers === 1) throw new TransportError({ message: 'the connection broke', status: 0, reason: '' });
    return stored;
  };
  Object.assign(deps, { client: { ...client, get, patch } });
  await expect(reconcile('a')).rejects.toThrow('the connection broke');
  for (let look = 0; look < 3; look += 1) await reconcile('a');
  expect(inventory.viewOf('n')?.used['nvidia.com/gpu']).toBe(8);
  instances.upsert(held(gpuInstance('b', ALL)));
  await reconcile('b');
  expect(instances.store.get('default/b')?.status?.claim).toBeUndefined();
});

test('a pod that goes before the status names it is made again after a pause only', async () => {
  const { instances, creations, reconcile } = controllerWorld();
  instances.upsert(held(gpuInstance('a', ALL)));
  await reconcile('a');
  expect(creations().filter((kind) => kind === 'Pod')).toHaveLength(1);
  // The caches, and what the API server answers, never show the pod: another client deleted it.
  await reconcile('a');
  await reconcile('a');
  expect(creations().filter((kind) => kind === 'Pod')).toHaveLength(1);
  expect(instances.store.get('default/a')?.status).toMatchObject({
    ending: { reason: 'PodDeleted' },
    failures: { count: 1 },
  });
});

test('a place whose GPUs were divided otherwise since it was granted is given back, and no pod is made for it', async () => {
  const labels = { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.replicas': '4' };
  const world = controllerWorld(undefined, undefined, { nodes: [gpuNode('n', { labels })] });
  const status = { claim: claimOn('n'), incarnation: 1, podName: 'one-1', diskGb: 10, diskPersistent: false };
  world.instances.upsert(held(gpuInstance('one', {}, status)));
  await world.reconcile('one');
  expect(world.createdPods()).toEqual([]);
  expect(world.endings).toEqual(['PlaceLost']);
});

test.each([
  ['there is no GPUPool any more', []],
  ['its node went to another GPUPool', [gpuPool('other')]],
])('a place is given back, and no pod is made outside of the sandbox of its pool, when %s', async (_why, pools) => {
  const world = controllerWorld(undefined, undefined, { pools });
  const status = { claim: claimOn('n'), incarnation: 1, podName: 'one-1', diskGb: 10, diskPersistent: false };
  world.instances.upsert(held(gpuInstance('one', {}, status)));
  await world.reconcile('one');
  expect(world.createdPods()).toEqual([]);
  expect(world.endings).toEqual(['PlaceLost']);
});

test.each([
  ['is granted to nobody else where an attempt before may have written it', true, 0],
  ['is free again where none can have', false, 8],
])('a place whose claim fails its tests %s', async (_what, isAfterUnknown, free) => {
  const refusal = new PatchTestFailedError({ message: 'changed', status: 422, reason: 'Invalid' });
  refusal.isAfterUnknown = isAfterUnknown;
  const world = controllerWorld(undefined, (path) =>
    path === '/status' ? Promise.reject(refusal) : Promise.resolve(),
  );
  world.instances.upsert(held(gpuInstance('one', { gpu: { count: 8 } })));
  await expect(world.reconcile('one')).rejects.toBe(refusal);
  const offers = world.inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  expect(offers.map(({ available }) => available)).toEqual([free]);
});

import { expect, test } from 'vitest';
import { isPlaceComing } from '../../../src/caches/line-order.ts';
import { decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { AlreadyExistsError, ForbiddenError, KubeError } from '../../../src/kube/errors.ts';
import { instanceSources } from '../../../src/controllers/gpu-instance/sources.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPod } from '../../support/inventory-world.ts';

const QUOTA = new ForbiddenError({
  message: 'exceeded quota: team, requested: pods=1, used: pods=8, limited: pods=8',
  status: 403,
  reason: 'Forbidden',
});

/** Eight interruptible instances on the one node, and one on demand that wants all of it. */
function world(options: Parameters<typeof controllerWorld>[2] = {}, beforePatch?: () => Promise<void>) {
  const made = controllerWorld(undefined, beforePatch, options);
  const spots = Array.from({ length: 8 }, (_, index) => `spot-${index}`);
  for (const name of spots) {
    const status = { claim: claimOn('n'), incarnation: 1, podName: `${name}-1`, diskPersistent: true };
    made.instances.upsert(held(gpuInstance(name, { type: 'Interruptible' }, status)));
  }
  made.instances.upsert(held(gpuInstance('big', { gpu: { count: 8 }, onNoCapacity: 'Fail' })));
  const get = (name: string) => made.instances.store.get(`default/${name}`) ?? expect.unreachable();
  const told = () => spots.filter((name) => get(name).status?.ending?.reason === 'Preempted');
  return { ...made, spots, get, told };
}

test('a pod that the API server would refuse ends nobody, and the request says why', async () => {
  const { reconcile, get, told, line, clock } = world({ tryCreate: () => Promise.reject(QUOTA) });
  await reconcile('big');
  expect(told()).toEqual([]);
  expect(get('big').status).toMatchObject({
    ending: { reason: 'QuotaExceeded', message: QUOTA.message },
    failures: { count: 1 },
  });
  expect([line.size, line.reserved('default/big')]).toEqual([0, undefined]);
  // It pauses before it tries again.
  expect(await reconcile('big')).toMatchObject({ requeueAfterMs: expect.any(Number) });
  await clock.advance(1_000);
  await reconcile('big');
  expect(get('big').status?.failures?.count).toBe(2);
});

// While it writes, one ahead of it may get the node, and it another place.
test('nobody more is told once the place is no longer reserved for the request', async () => {
  let statuses = 0;
  const made: ReturnType<typeof world> = world({}, () => {
    statuses += 1;
    // The place coming, and the first two that end for it.
    if (statuses === 3) made.line.remove('default/big');
    return Promise.resolve();
  });
  await made.reconcile('big');
  expect(made.told()).toHaveLength(2);
});

// Those who were chosen before the try must not count as leaving already when they are chosen again after it.
test('after a try that the API server takes all are told, and the request says that its place is coming', async () => {
  const { reconcile, get, told, tries, spots, creations } = world();
  await reconcile('big');
  expect(tries()).toEqual(['Pod']);
  expect(creations()).toEqual([]);
  expect(told()).toEqual(spots);
  expect(isPlaceComing(get('big'))).toBe(true);
  expect(get('big').status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', reason: 'PlaceComing' }),
  );
  // A later look ends nobody, and does not fail for onNoCapacity.
  await reconcile('big');
  expect(tries()).toHaveLength(1);
  expect(isPlaceComing(get('big'))).toBe(true);
});

test('an instance whose program has just ended by itself is not told to come back', async () => {
  const { reconcile, get, told, spots, pods } = world();
  pods.upsert({ ...gpuPod('spot-0-1', 'n', { instanceUid: 'uid-spot-0', phase: 'Succeeded' }) });
  await reconcile('big');
  expect(told()).toEqual(spots.slice(1));
  expect(isPlaceComing(get('big'))).toBe(true);
});

test('what others leave for a waiting request is in no offer, until the request has it or goes', async () => {
  const { reconcile, get, spots, inventory, instances } = world();
  const free = () => inventory.offers().map(({ available }) => available);
  await reconcile('big');
  expect(get('big').status?.reserved).toEqual({
    pool: 'default',
    node: 'n',
    product: A100,
    resourceName: 'nvidia.com/gpu',
    gpuCount: 8,
  });
  for (const name of spots) {
    expect(free()).toEqual([0, 0, 0, 0]);
    await reconcile(name);
    expect(get(name).status?.claim).toBeUndefined();
  }
  // All have left, and the request has not looked yet.
  expect(free()).toEqual([0, 0, 0, 0]);
  await reconcile('big');
  expect(get('big').status).toMatchObject({ claim: { gpuCount: 8 } });
  expect(get('big').status?.reserved).toBeUndefined();
  instances.remove(get('big'));
  expect(free()).toEqual([8, 4, 2, 1]);
});

test('a request that is deleted while its place is coming leaves that to the offers', async () => {
  const { reconcile, get, spots, inventory, instances } = world();
  await reconcile('big');
  await reconcile(spots[0] ?? '');
  const { metadata, ...big } = get('big');
  instances.upsert({
    ...big,
    metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '999' },
  });
  expect(inventory.offers().map(({ available }) => available)).toEqual([1, 0, 0, 0]);
});

// Who says that a place is coming is served before others, and its client was told so.
test('a request whose place does not come in time is looked at again, and says so', async () => {
  const { reconcile, get, line, clock } = world();
  await reconcile('big');
  expect(line.outdated()).toEqual([]);
  await clock.advance(60_000);
  expect(line.outdated()).toEqual(['default/big']);
  expect(line.outdated()).toEqual([]);
  await reconcile('big');
  expect(isPlaceComing(get('big'))).toBe(false);
  expect(get('big').status?.reserved).toBeUndefined();
});

// A kubelet that starts again has no GPUs for seconds, and a drain takes a node away for good.
test('a request that others ended for fails for no node that goes, and starts when it is back', async () => {
  const { reconcile, get, spots, nodes, line, instances, told } = world();
  await reconcile('big');
  nodes.remove(gpuNode('n'));
  for (const name of spots) await reconcile(name);
  expect(await reconcile('big')).toBeUndefined();
  expect(get('big').status?.ending).toBeUndefined();
  expect(get('big').status).toMatchObject({
    othersEnded: true,
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'Ready', reason: 'WaitingForCapacity' }),
    ]) as unknown,
  });
  expect(decisionOf(get('big'))).toBe('queued');
  expect(line.failFast()).toEqual([]);
  nodes.upsert(gpuNode('n'));
  await reconcile('big');
  expect(get('big').status).toMatchObject({ claim: { gpuCount: 8 } });
  expect(get('big').status?.othersEnded).toBeUndefined();
  expect(told()).toEqual(spots);
  instances.remove(get('big'));
});

test('a request that others ended for and that its owner switches off asks anew when he switches it on', async () => {
  const { reconcile, get, nodes, instances } = world();
  await reconcile('big');
  nodes.remove(gpuNode('n'));
  const edit = (powerState: 'Running' | 'Stopped', resourceVersion: string) => {
    const { metadata, spec, ...big } = get('big');
    const generation = (metadata.generation ?? 1) + 1;
    instances.upsert({
      ...big,
      metadata: { ...metadata, resourceVersion, generation },
      spec: { ...spec, powerState },
    });
  };
  edit('Stopped', '998');
  await reconcile('big');
  expect(get('big').status?.othersEnded).toBeUndefined();
  edit('Running', '1998');
  await reconcile('big');
  expect(get('big').status?.ending?.reason).toMatch(/NoCapacity|OfferNotFound/);
});

test('a pod of its name that is not its own ends nobody', async () => {
  const error = new AlreadyExistsError({ message: 'exists', status: 409, reason: 'AlreadyExists' });
  const { reconcile, get, told, pods } = world({ tryCreate: () => Promise.reject(error) });
  pods.upsert(gpuPod('big-1', 'elsewhere'));
  await reconcile('big');
  expect(told()).toEqual([]);
  expect(get('big').status?.ending?.reason).toBe('NameConflict');
});

test('a webhook that cannot be tried stops nobody', async () => {
  const message = 'admission webhook "mesh" does not support dry run';
  const error = new KubeError({ message, status: 400, reason: 'BadRequest' });
  const { reconcile, told, spots } = world({ tryCreate: () => Promise.reject(error) });
  await reconcile('big');
  expect(told()).toEqual(spots);
});

test('a request that is withdrawn before it says that its place is coming ends nobody', async () => {
  let isWithdrawn = false;
  const { reconcile, told } = world({ tryCreate: () => ((isWithdrawn = true), Promise.resolve()) }, () =>
    isWithdrawn ? Promise.reject(new Error('the test of the generation failed')) : Promise.resolve(),
  );
  await expect(reconcile('big')).rejects.toThrow('generation');
  expect(told()).toEqual([]);
});

test('who comes while a start is tried does not get its place, and nobody is chosen twice', async () => {
  const gate = Promise.withResolvers<void>();
  const { reconcile, instances, get, told } = world({ nodes: [gpuNode('n')], tryCreate: () => gate.promise });
  const run = reconcile('big');
  instances.upsert(held(gpuInstance('later', { gpu: { count: 1 } })));
  const other = reconcile('later');
  gate.resolve();
  await Promise.all([run, other]);
  expect(told()).toHaveLength(8);
  expect(isPlaceComing(get('big'))).toBe(true);
  expect(isPlaceComing(get('later'))).toBe(false);
});

test('a new leader gives no turn to anybody behind one whose place is coming before it has looked at that', async () => {
  const { reconcile, get, instances } = world();
  await reconcile('big');
  const next = world();
  for (const instance of instances.store.values()) next.instances.upsert(instance);
  const stops = instanceSources(next.deps).map((source) => source.start(() => undefined));
  // All but one have ended.
  for (const name of next.spots.slice(1)) {
    const { claim: _claim, ...status } = get(name).status ?? {};
    const { metadata, ...rest } = get(name);
    next.instances.upsert({ ...rest, status, metadata: { ...metadata, resourceVersion: '999' } });
  }
  next.instances.upsert(held(gpuInstance('later', { gpu: { count: 1 } })));
  await next.reconcile('later');
  expect(next.get('later').status?.claim).toBeUndefined();
  await next.reconcile('big');
  await next.reconcile('later');
  expect(next.get('later').status?.claim).toBeUndefined();
  expect(next.line.reserved('default/big')).toMatchObject({ node: 'n' });
  for (const stop of stops) stop();
});

test('nobody behind it gets the place that others left for a request while its claim has to be written again', async () => {
  const busy = new KubeError({ message: 'Too many requests', status: 429, reason: 'TooManyRequests' });
  let refuses = false;
  const made = world({}, () => (refuses ? Promise.reject(busy) : Promise.resolve()));
  const { instances, reconcile, get, told, spots, line } = made;
  await reconcile('big');
  expect(told()).toEqual(spots);
  for (const name of spots) instances.remove(get(name));
  const late = held(gpuInstance('late', { gpu: { count: 1 } }));
  instances.upsert({ ...late, metadata: { ...late.metadata, creationTimestamp: '2026-01-01T00:00:30Z' } });
  refuses = true;
  await expect(reconcile('big')).rejects.toBe(busy);
  refuses = false;
  await reconcile('late');
  expect(get('late').status?.claim).toBeUndefined();
  await reconcile('big');
  expect(get('big').status?.claim).toMatchObject({ node: 'n', gpuCount: 8 });
  expect(line.reserved('default/big')).toBeUndefined();
});

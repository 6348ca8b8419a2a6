import { describe, expect, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { TimeoutError } from '../../src/kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, type Pod, PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceSpec } from '../../src/resources/instances/gpu-instance.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { waitFor } from '../support/wait-for.ts';
import { afterWrites, crashAt, recordWrites, type Write } from './support/counting-client.ts';
import { expireLease, type ReplicaOptions } from './support/replica.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

const ALL = { gpu: { count: 8 } };
const NO_ANSWER = new TimeoutError({ message: 'no answer', status: 0, reason: 'Timeout' });

/** As admission makes it: an instance has its finalizer from the beginning. */
function create(world: World, name: string, spec: Partial<GpuInstanceSpec> = {}): Promise<GpuInstance> {
  const { client, namespace, fleet } = world;
  const gpu = { count: 1, ...spec.gpu, product: fleet.product };
  return client.create(GPU_INSTANCES, {
    metadata: { namespace, name, finalizers: ['berth.dev/cleanup'] },
    spec: { ...spec, gpu } as GpuInstanceSpec,
  });
}

function leader(world: World, options: Partial<ReplicaOptions> = {}) {
  return world.replica({ claimOnPod: true, ...options });
}

function claimOf({ metadata }: Pod): unknown {
  return JSON.parse(metadata.annotations?.['berth.dev/claim'] ?? '{}').claim;
}

/** Waits until the second of a creation is over: of two in one second, a leader who saw neither cannot tell the first. */
async function secondAfter({ metadata }: GpuInstance): Promise<void> {
  const next = Date.parse(metadata.creationTimestamp ?? '') + 1000;
  await waitFor('the next second', () => Date.now() >= next);
}

async function firstPod(world: World, name: string): Promise<Pod | undefined> {
  return (await world.pods()).find(({ metadata }) => metadata.name === `${name}-1`);
}

/** A client whose creations of pods go through `around`. */
function aroundPods(client: KubeClient, around: (send: () => Promise<unknown>) => Promise<unknown>): KubeClient {
  const through: KubeClient['create'] = (type, object, options) => {
    const send = () => client.create(type, object, options);
    return type.kind === PODS.kind ? (around(send) as ReturnType<typeof send>) : send();
  };
  return { ...client, create: through };
}

/** A pod that no scheduler binds before its gate is taken away: nothing but its claim says which GPUs are taken. */
function gated<T extends object>(object: T): T {
  const { spec } = object as { spec?: object };
  return { ...object, spec: { ...spec, schedulingGates: [{ name: 'berth.test/closed' }] } };
}

/** A client that does something after the pod of a first start was made, before the controller has the answer. */
function whenMade(name: string, action: () => Promise<unknown>): Pick<ReplicaOptions, 'wrap'> {
  return {
    wrap: (client) =>
      afterWrites(client, async (write) => {
        if (write.verb === 'create' && write.kind === PODS.kind && write.name === `${name}-1`) await action();
      }),
  };
}

test('a first start is a pod and one status', async () => {
  await using world = await createWorld({ nodes: 1 });
  const writes: Write[] = [];
  await leader(world, { wrap: (client) => recordWrites(client, writes) });
  const { metadata } = await create(world, 'one');
  const instance = await world.reached('one', 'Running');
  const own = writes.filter(({ name }) => name.startsWith(metadata.name));
  expect(own.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual(['create Pod', 'patch status GPUInstance']);
  const pod = await firstPod(world, 'one');
  expect(pod && claimOf(pod)).toEqual(instance.status?.claim);
});

describe('a leader that dies', () => {
  // Write 1 is the pod, write 2 the status.
  test.each([
    ['after it made the pod', 'after', 1],
    ['while the pod is on its way', 'late', 1],
    ['after it wrote the status', 'after', 2],
    ['while the status is on its way', 'late', 2],
  ] as const)('%s: the next one grants nothing twice', async (_when, when, at) => {
    await using world = await createWorld({ nodes: 1 });
    const crash = crashAt({ at, when, prefix: 'one' });
    const doomed = await leader(world, { wrap: crash.wrap, wrapLease: crash.wrapLease });
    const one = await create(world, 'one', ALL);
    await crash.crashed;
    const left = await firstPod(world, 'one');
    await secondAfter(one);
    await create(world, 'two', ALL);
    await expireLease(world.client);
    const next = await leader(world);
    const { status } = await world.reached('one', 'Running', 60_000);
    await world.reached('two', 'WaitingForCapacity');
    if (left !== undefined) expect(status?.claim).toEqual(claimOf(left));
    await crash.deliver();
    await doomed.stop();
    expect(await violationsAtRest(world, next)).toEqual([]);
    expect((await world.get('one'))?.status).toMatchObject({ claim: status?.claim, incarnation: 1 });
    await world.remove('one');
    await world.gone('one', 60_000);
    await world.reached('two', 'Running', 60_000);
    expect(await violationsAtRest(world, next)).toEqual([]);
  });

  test('between the disk and the pod leaves no disk', async () => {
    await using world = await createWorld({ nodes: 1, disks: true });
    const crash = crashAt({ at: 1, when: 'after', prefix: 'one' });
    const doomed = await leader(world, { wrap: crash.wrap, wrapLease: crash.wrapLease });
    await create(world, 'one', ALL);
    expect((await crash.crashed).kind).toBe(PERSISTENT_VOLUME_CLAIMS.kind);
    await world.remove('one');
    await expireLease(world.client);
    const next = await leader(world);
    await world.gone('one', 60_000);
    const { namespace } = world;
    const disks = async () => (await world.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace })).items;
    // The protection of volumes in use lets it go a moment later.
    await waitFor('no disk', async () => (await disks()).every(({ metadata }) => metadata.deletionTimestamp));
    await doomed.stop();
    expect(await violationsAtRest(world, next)).toEqual([]);
  });

  test('with a full fleet whose claims are on pods alone is followed by one that counts them all', async () => {
    await using world = await createWorld({ nodes: 2 });
    const names = Array.from({ length: 16 }, (_, index) => `one-${index}`);
    let isDead = false;
    // It makes pods that the scheduler must leave alone, and writes no status, until it dies.
    const wrap = (client: KubeClient): KubeClient => ({
      ...client,
      create: (type, object, options) => {
        if (isDead) return Promise.reject(NO_ANSWER);
        return client.create(type, type.kind === PODS.kind ? gated(object) : object, options);
      },
      patch: (type, ref, body, options) =>
        type.kind === GPU_INSTANCES.kind ? Promise.reject(NO_ANSWER) : client.patch(type, ref, body, options),
    });
    const doomed = await leader(world, { wrap });
    for (const name of names) await create(world, name);
    await waitFor('every pod', async () => (await world.pods()).length === names.length);
    isDead = true;
    await doomed.stop();
    const granted = (await world.pods()).map((pod) => [pod.metadata.ownerReferences?.[0]?.name, claimOf(pod)]);
    await create(world, 'late', ALL);
    await create(world, 'later');
    await expireLease(world.client);
    const next = await leader(world);
    await world.reached('late', 'WaitingForCapacity');
    await world.reached('later', 'WaitingForCapacity');
    for (const { metadata } of await world.pods()) {
      await world.client.patch(PODS, metadata, { spec: { schedulingGates: null } }, { type: 'merge' });
    }
    for (const name of names) await world.reached(name, 'Running', 60_000);
    const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
    const claims = new Map(items.map(({ metadata, status }) => [metadata.name, status?.claim]));
    for (const [name, claim] of granted) expect(claims.get(String(name))).toEqual(claim);
    expect(await violationsAtRest(world, next)).toEqual([]);
  });
});

describe('a creation without an answer', () => {
  test.each([
    ['was made', true],
    ['was not made', false],
  ])('that %s is one start, at one place', async (_what, isMade) => {
    await using world = await createWorld({ nodes: 1 });
    let lost = 0;
    const wrap = (client: KubeClient): KubeClient =>
      aroundPods(client, async (send) => {
        if ((lost += 1) > 1) return send();
        if (isMade) await send();
        throw NO_ANSWER;
      });
    const replica = await leader(world, { wrap });
    await create(world, 'one', ALL);
    await create(world, 'two', ALL);
    const running = await waitFor('one of them', async () => {
      const both = await Promise.all([world.get('one'), world.get('two')]);
      return both.find((instance) => readyReason(instance) === 'Running');
    });
    expect(running.status?.incarnation).toBe(1);
    await world.reached(running.metadata.name === 'one' ? 'two' : 'one', 'WaitingForCapacity');
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('that arrives when its place is granted to another is given up', async () => {
    await using world = await createWorld({ nodes: 1 });
    let late: (() => Promise<unknown>) | undefined;
    const wrap = (client: KubeClient): KubeClient =>
      aroundPods(client, (send) => {
        if (late !== undefined) return send();
        late = send;
        return Promise.reject(NO_ANSWER);
      });
    const replica = await leader(world, { wrap });
    await create(world, 'one', ALL);
    await waitFor('a creation on its way', () => late);
    await world.remove('one');
    await world.gone('one', 60_000);
    await create(world, 'two', ALL);
    await world.reached('two', 'Running');
    await late?.().catch(() => undefined);
    await waitFor('the late pod to be gone', async () => (await firstPod(world, 'one')) === undefined, 60_000);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });
});

describe('while the claim is on the pod alone', () => {
  test('its pod is deleted: that is a failed start, and another follows', async () => {
    await using world = await createWorld({ nodes: 1 });
    const { namespace } = world;
    const gone = () => world.client.delete(PODS, { namespace, name: 'one-1' }, { gracePeriodSeconds: 0 });
    const replica = await leader(world, whenMade('one', gone));
    await create(world, 'one', ALL);
    // It may have run for a moment before it was deleted.
    const { status } = await waitFor(
      'the second start to run',
      async () => {
        const instance = await world.get('one');
        return readyReason(instance) === 'Running' && instance?.status?.incarnation === 2 && instance;
      },
      60_000,
    );
    expect(status).toMatchObject({ failures: { count: 1 } });
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('its instance is stopped: the place is free again', async () => {
    await using world = await createWorld({ nodes: 1 });
    const stop = () => world.patch('one', { spec: { powerState: 'Stopped' } });
    const replica = await leader(world, whenMade('one', stop));
    await create(world, 'one', ALL);
    await world.reached('one', 'Stopped', 60_000);
    await create(world, 'two', ALL);
    await world.reached('two', 'Running', 60_000);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('its instance is deleted: nothing is left but its bill', async () => {
    await using world = await createWorld({ nodes: 1 });
    const replica = await leader(
      world,
      whenMade('one', () => world.remove('one')),
    );
    await create(world, 'one', ALL);
    await world.gone('one', 60_000);
    expect(await world.pods()).toEqual([]);
    const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
    expect(items.map(({ spec }) => spec.instance)).toEqual(['one']);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('an interruptible instance gives way', async () => {
    await using world = await createWorld({ nodes: 1 });
    const replica = await leader(
      world,
      whenMade('spot', () => create(world, 'sure', ALL)),
    );
    await create(world, 'spot', { ...ALL, type: 'Interruptible' });
    await world.reached('sure', 'Running', 60_000);
    await world.reached('spot', 'Preempted', 60_000);
    await world.remove('sure');
    await world.reached('spot', 'Running', 60_000);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });
});

test('of many who want the last GPUs at once each gets one, or waits', async () => {
  await using world = await createWorld({ nodes: 1 });
  const replica = await leader(world);
  const names = Array.from({ length: 24 }, (_, index) => `one-${index}`);
  await Promise.all(names.map((name) => create(world, name)));
  const reasons = async () => (await Promise.all(names.map((name) => world.get(name)))).map(readyReason);
  await waitFor('eight to run and the others to wait', async () => {
    const all = await reasons();
    const count = (reason: string) => all.filter((one) => one === reason).length;
    return count('Running') === 8 && count('WaitingForCapacity') === 16;
  });
  expect(world.observer.violations).toEqual([]);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

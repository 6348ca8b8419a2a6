import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Activity } from '../../src/access/activity.ts';
import { Caches } from '../../src/caches/caches.ts';
import { LEASES, NODES } from '../../src/kube/types.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { activityLeaseOf, parseReport, replicaKey } from '../../src/resources/activity-lease.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES, type GpuInstance, LAST_ACTIVITY } from '../../src/resources/instances/gpu-instance.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { PlayedNode } from '../support/played-node.ts';
import { hurriedClock } from '../support/scaled-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { LEASE_NAMESPACE } from './support/replica.ts';
import { createWorld, readyReason, type World } from './support/world.ts';

/** How much faster time passes for the controllers and the gateway: they wait for minutes here. */
const HASTE = 5;

/** What the SSH gateway has of the use of instances, without the gateway. */
async function gateway({ client }: World, clock: Clock) {
  const log = pino({ level: 'silent' });
  const over = new AbortController();
  const caches = new Caches({ client, namespace: LEASE_NAMESPACE, clock, log }, over.signal);
  const instances = caches.get('instances');
  await instances.synced;
  const id = randomUUID();
  const activity = new Activity({ client, instances, clock, log, namespace: LEASE_NAMESPACE, role: 'ssh', id });
  const running = activity.run(over.signal);
  const name = activityLeaseOf('ssh');
  return {
    activity,
    async reportedUntil(): Promise<number> {
      // The leader makes the Lease, when it gets to that.
      const { items } = await client.list(LEASES, { namespace: LEASE_NAMESPACE });
      const lease = items.find((one) => one.metadata.name === name);
      return parseReport(lease?.metadata.annotations?.[replicaKey(id)] ?? '').until;
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
      await caches.ended();
      for (const role of ['ssh', 'api'] as const)
        await client.delete(LEASES, { namespace: LEASE_NAMESPACE, name: activityLeaseOf(role) });
    },
  };
}

test(
  'an idle timeout that is set under an open session ends nothing before the session',
  { timeout: 360_000 },
  async () => {
    await using world = await createWorld({ nodes: 1 });
    const clock = hurriedClock(HASTE);
    await using ssh = await gateway(world, clock);
    await world.replica({ hearsSessions: true, clock });
    await world.create('one');
    await world.reached('one', 'Running');
    const left = ssh.activity.began({ namespace: world.namespace, name: 'one' });
    await world.patch('one', { spec: { idleTimeout: '2s', onExpiry: 'Delete' } });
    const since = clock.now() + 35_000;
    await waitFor('two reports after the timeout', async () => (await ssh.reportedUntil()) > since, 100_000);
    const used = await world.get('one');
    expect(readyReason(used)).toBe('Running');
    expect(used?.metadata.annotations).toHaveProperty([LAST_ACTIVITY]);
    left();
    const ended = await world.reached('one', 'Idle', 100_000);
    expect(ended.status?.ending?.limit).toBe('2s');
    // A minute, and the report after it.
    await world.gone('one', 150_000);
  },
);

/** Node and pool whose kubelet the test plays. */
async function playedNode({ client, namespace, fleet }: World): Promise<PlayedNode & AsyncDisposable> {
  const name = `${namespace}-played`;
  const prices = [{ product: '*', onDemand: '3600', interruptible: '1800' }];
  const nodeSelector = { 'kubernetes.io/hostname': name };
  await client.create(GPU_POOLS, { metadata: { name }, spec: gpuPoolSpecSchema.parse({ nodeSelector, prices }) });
  return PlayedNode.start(client, { name, product: fleet.product, gpus: 4 });
}

/** Says of the node what the node controller says after 50 seconds without heartbeats. */
async function noticeSilence({ client }: World, name: string): Promise<void> {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', lastTransitionTime }];
  await client.patch(NODES, { name }, { status: { conditions } }, { type: 'strategic', subresource: 'status' });
}

test(
  'a node that falls silent ends none of its instances for its time, and nobody pays for it',
  { timeout: 300_000 },
  async () => {
    await using world = await createWorld({ nodes: 0 });
    await using node = await playedNode(world);
    await world.replica();
    const names = ['idle', 'over', 'free'];
    await world.create('idle', { idleTimeout: '25s', onExpiry: 'Delete' });
    await world.create('over', { maxDuration: '25s', onExpiry: 'Delete' });
    await world.create('free');
    for (const name of names) await world.reached(name, 'Running');
    // Nodes count whole seconds: each has one to pay for before the silence.
    const { stages } = (await world.get('free'))?.status ?? {};
    const second = Date.parse(stages?.started ?? '') + 2_000;
    await waitFor('a second that is billed', () => Date.now() >= second);
    await node.silence();
    await noticeSilence(world, node.name);
    // 40 seconds: the limits of both would be over.
    for (const name of names) await world.reached(name, 'NodeLost', 60_000);
    const silent = await Promise.all(names.map((name) => world.get(name)));
    expect(silent.map((one) => one?.status?.ending)).toEqual([undefined, undefined, undefined]);
    expect(silent.map((one) => one?.status?.silences?.length)).toEqual([1, 1, 1]);
    await world.remove('free');
    node.answer();
    const ends = new Map<string, GpuInstance>();
    for (const [name, reason] of [
      ['over', 'Expired'],
      ['idle', 'Idle'],
    ] as const) {
      ends.set(name, await world.reached(name, reason, 60_000));
    }
    const bill = ends.get('over')?.status?.intervals?.[0];
    expect(bill?.silences).toHaveLength(1);
    // Two seconds for whole seconds of nodes and for the controller.
    expect(Math.abs((bill?.gpuSeconds ?? 0) - 25)).toBeLessThan(2.5);
    const [silence] = ends.get('idle')?.status?.intervals?.[0]?.silences ?? [];
    const idleEnd = Date.parse(ends.get('idle')?.status?.ending?.at ?? '');
    expect(idleEnd - Date.parse(silence?.to ?? '')).toBeGreaterThanOrEqual(25_000);
    await world.gone('free', 60_000);
    const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
    const free = items.find(({ spec }) => spec.instance === 'free')?.spec;
    expect(free?.intervals?.[0]?.silences).toHaveLength(1);
    expect(free?.gpuSeconds).toBeLessThan(40);
    await world.client.delete(GPU_INSTANCES, { namespace: world.namespace, name: 'idle' });
    await world.client.delete(GPU_INSTANCES, { namespace: world.namespace, name: 'over' });
    for (const name of names) await world.gone(name, 60_000);
    await world.client.delete(GPU_POOLS, { name: node.name });
  },
);

import type { KubeClient } from '../../../src/kube/client/client.ts';
import { EVENTS, PODS } from '../../../src/kube/types.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Aim, judged, ms, pool, quantile } from '../figures.ts';
import { offersAfterNodeChange } from './offers.ts';
import { LIMIT_MS, names, openPlace, WIDTH } from './place.ts';
import { watchNamespace } from './watcher.ts';

/** Before the clock runs: what a process does for the first time takes longer. */
const WARM_UP = 20;
const ONE_BY_ONE = 100;

const WRITES = 'the API server takes three times the CPU for an instance that it takes for a bare pod';
const AIMS = {
  podTimes: { most: 3, cause: `${WRITES}, and 32 clients wait for it` },
  burst: { least: 0.5, cause: WRITES },
  oneMs: { most: 64, cause: `${WRITES}, beside load generator and control plane on the same cores` },
  writes: { most: 5, cause: 'the controller wrote what it need not' },
  memoryMiB: { most: 120, cause: "pages of Node's program and V8's heap are most of it" },
} satisfies Record<string, Aim>;

export interface BenchOptions {
  kubeconfig: string;
  nodes: number;
  instances: number;
}

interface Burst {
  created: Map<string, number>;
  start: number;
}

async function burst(names: readonly string[], create: (name: string) => Promise<unknown>): Promise<Burst> {
  const created = new Map<string, number>();
  const start = performance.now();
  await pool(names, WIDTH, (name) => {
    created.set(name, performance.now());
    return create(name);
  });
  return { created, start };
}

/** Events that the controller wrote about the namespace. */
async function countEvents(client: KubeClient, namespace: string): Promise<number> {
  const { items } = await client.list(EVENTS, { namespace });
  return items.filter(({ reportingComponent }) => reportingComponent === 'berth-controller').length;
}

function delays(seen: Map<string, number>, created: Map<string, number>): number[] {
  return [...created].map(([name, at]) => (seen.get(name) ?? Number.NaN) - at);
}

function perSecond(seen: Map<string, number>, { created, start }: Burst): number {
  const ends = [...created.keys()].map((name) => seen.get(name) ?? Number.NaN);
  return created.size / ((Math.max(...ends) - start) / 1000);
}

function bareRequest(client: KubeClient, namespace: string, product: string): (name: string) => Promise<unknown> {
  const amount = { cpu: '100m', 'nvidia.com/gpu': '1' };
  const resources = { requests: amount, limits: { 'nvidia.com/gpu': '1' } };
  return (name) =>
    client.create(PODS, {
      metadata: { namespace, name },
      spec: {
        containers: [{ name: 'main', image: 'debian:12', resources }],
        nodeSelector: { 'nvidia.com/gpu.product': product },
        automountServiceAccountToken: false,
      },
    });
}

/** One size of the speed table: bare pods and instances on the same nodes, one after the other, in one run. */
export async function benchmark({ kubeconfig, nodes, instances }: BenchOptions): Promise<string[]> {
  await using place = await openPlace({ kubeconfig, nodes });
  const { client, tenant, namespace, fleet, controller } = place;
  const rent = (name: string): Promise<unknown> => place.rent(name);
  const measure = async () => ({ ...(await controller.measure()), events: await countEvents(client, namespace) });
  const ended = new AbortController();
  const seen = await watchNamespace(client, namespace, ended.signal);
  try {
    const bareNames = names('bare', instances);
    const bare = await burst(bareNames, bareRequest(tenant, namespace, fleet.product));
    await waitFor('bare pods to run', () => bareNames.every((name) => seen.podRunning.has(name)), LIMIT_MS);
    await pool(bareNames, WIDTH, (name) => client.delete(PODS, { namespace, name }));
    await waitFor(
      'bare pods to be gone',
      async () => (await client.list(PODS, { namespace, limit: 1 })).items.length === 0,
      LIMIT_MS,
    );

    const rentOne = async (name: string): Promise<number> => {
      const start = performance.now();
      await rent(name);
      await waitFor(`${name} to be ready`, () => seen.ready.has(name), LIMIT_MS);
      return (seen.ready.get(name) ?? Number.NaN) - start;
    };
    for (const name of names('warm', WARM_UP)) await rentOne(name);
    const single: number[] = [];
    const before = await measure();
    for (const name of names('one', ONE_BY_ONE)) single.push(await rentOne(name));
    const after = await measure();

    const many = names('many', instances - ONE_BY_ONE - WARM_UP);
    const ours = await burst(many, rent);
    await waitFor('instances to run', () => many.every((name) => seen.ready.has(name)), LIMIT_MS);
    const full = await measure();

    const bareDelay = delays(seen.pod, bare.created);
    const ourDelay = delays(seen.pod, ours.created);
    const [bareRate, ourRate] = [perSecond(seen.podRunning, bare), perSecond(seen.ready, ours)];
    const ratio = quantile(ourDelay, 0.5) / quantile(bareDelay, 0.5);
    const writes = (full.writes - full.events - after.writes + after.events) / many.length;
    return [
      `nodes ${nodes}, instances ${instances}, ${WIDTH} at a time`,
      `create to pod object p50 / p99: ${ms(quantile(ourDelay, 0.5))} / ${ms(quantile(ourDelay, 0.99))}; bare pods ${ms(quantile(bareDelay, 0.5))} / ${ms(quantile(bareDelay, 0.99))}; ratio ${ratio.toFixed(1)}, to reach ${judged(AIMS.podTimes, ratio)}`,
      `running per second: ${ourRate.toFixed(1)}; bare pods ${bareRate.toFixed(1)}; ratio ${(ourRate / bareRate).toFixed(2)}, to reach ${judged(AIMS.burst, ourRate / bareRate)}`,
      `one at a time, create to Ready p50 / p99: ${ms(quantile(single, 0.5))} / ${ms(quantile(single, 0.99))}, to reach p99 ${judged(AIMS.oneMs, quantile(single, 0.99))}`,
      `writes per instance: ${((after.writes - after.events - before.writes + before.events) / ONE_BY_ONE).toFixed(2)} one at a time, ${writes.toFixed(2)} in the burst, to reach ${judged(AIMS.writes, writes)}; Events ${((full.events - after.events) / many.length).toFixed(2)}`,
      `controller CPU per instance in the burst: ${((full.cpuMs - after.cpuMs) / many.length).toFixed(1)} ms`,
      `controller memory: ${full.rssMb} MiB with ${instances} instances (heap in use ${full.heapMb}), ${before.rssMb} MiB before (${before.heapMb}), to reach ${judged(AIMS.memoryMiB, full.rssMb)}`,
      `of it: ${full.fileMb} MiB are pages of files, V8 has reserved ${full.reservedMb}, and ${full.externalMb} are buffers outside of it`,
    ];
  } finally {
    ended.abort();
  }
}

export function offersLine(): string {
  const { medianMs, worstMs } = offersAfterNodeChange(1_000, 8_000);
  return `offers after a node change, 1,000 nodes and 8,000 pods: median ${medianMs.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms`;
}

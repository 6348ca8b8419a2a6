import { randomBytes } from 'node:crypto';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { EVENTS, NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceSpec } from '../../../src/resources/gpu-instance.ts';
import { TENANT_POLICIES, type TenantPolicySpec } from '../../../src/resources/tenants/tenant-policy.ts';
import { addFleet } from '../../faults/support/fleet.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ms, pool, quantile } from '../figures.ts';
import { offersAfterNodeChange } from './offers.ts';
import { startController } from './process.ts';
import { watchNamespace } from './watcher.ts';

const WIDTH = 32;
/** Before the clock runs: what a process does for the first time takes longer. */
const WARM_UP = 20;
const ONE_BY_ONE = 100;
const LIMIT_MS = 900_000;
/** Berth's own, which is no tenant. */
const OWN_NAMESPACE = 'default';

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
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  const namespace = `bench-${randomBytes(3).toString('hex')}`;
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  // The default ceilings of a tenant are lower than the largest size. Its quota is part of what is measured.
  const spec = { namespaceLabels: { 'kubernetes.io/metadata.name': namespace }, objects: { instances: 100_000 } };
  await client.create(TENANT_POLICIES, { metadata: { name: namespace }, spec: spec as unknown as TenantPolicySpec });
  const fleet = await addFleet(client, namespace, { nodes });
  const controller = await startController(kubeconfig, OWN_NAMESPACE);
  const measure = async () => ({ ...(await controller.measure()), events: await countEvents(client, namespace) });
  const ended = new AbortController();
  const seen = await watchNamespace(client, namespace, ended.signal);
  const all = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const rent = (name: string): Promise<unknown> => {
    const wanted = { gpu: { product: fleet.product, count: 1 } } as GpuInstanceSpec;
    return client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: wanted });
  };
  try {
    const bareNames = all('bare', instances);
    const bare = await burst(bareNames, bareRequest(client, namespace, fleet.product));
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
    for (const name of all('warm', WARM_UP)) await rentOne(name);
    const single: number[] = [];
    const before = await measure();
    for (const name of all('one', ONE_BY_ONE)) single.push(await rentOne(name));
    const after = await measure();

    const names = all('many', instances - ONE_BY_ONE - WARM_UP);
    const ours = await burst(names, rent);
    await waitFor('instances to run', () => names.every((name) => seen.ready.has(name)), LIMIT_MS);
    const full = await measure();

    const bareDelay = delays(seen.pod, bare.created);
    const ourDelay = delays(seen.pod, ours.created);
    const [bareRate, ourRate] = [perSecond(seen.podRunning, bare), perSecond(seen.ready, ours)];
    const ratio = quantile(ourDelay, 0.5) / quantile(bareDelay, 0.5);
    const writes = (full.writes - full.events - after.writes + after.events) / names.length;
    return [
      `nodes ${nodes}, instances ${instances}, ${WIDTH} at a time`,
      `create to pod object p50 / p99: ${ms(quantile(ourDelay, 0.5))} / ${ms(quantile(ourDelay, 0.99))}; bare pods ${ms(quantile(bareDelay, 0.5))} / ${ms(quantile(bareDelay, 0.99))}; ratio ${ratio.toFixed(1)}`,
      `running per second: ${ourRate.toFixed(1)}; bare pods ${bareRate.toFixed(1)}; ratio ${(ourRate / bareRate).toFixed(2)}`,
      `one at a time, create to Ready p50 / p99: ${ms(quantile(single, 0.5))} / ${ms(quantile(single, 0.99))}`,
      `writes per instance: ${((after.writes - after.events - before.writes + before.events) / ONE_BY_ONE).toFixed(2)} one at a time, ${writes.toFixed(2)} in the burst; Events ${((full.events - after.events) / names.length).toFixed(2)}`,
      `controller CPU per instance in the burst: ${((full.cpuMs - after.cpuMs) / names.length).toFixed(1)} ms`,
      `controller memory: ${full.rssMb} MiB with ${instances} instances (heap in use ${full.heapMb}), ${before.rssMb} MiB before (${before.heapMb})`,
    ];
  } finally {
    for (const { metadata } of (await client.list(GPU_INSTANCES, { namespace })).items) {
      await client.delete(GPU_INSTANCES, metadata);
    }
    await waitFor(
      'instances to be gone',
      async () => (await client.list(GPU_INSTANCES, { namespace, limit: 1 })).items.length === 0,
      LIMIT_MS,
    );
    await controller[Symbol.asyncDispose]();
    ended.abort();
    await client.delete(TENANT_POLICIES, { name: namespace });
    await client.delete(NAMESPACES, { name: namespace });
    await fleet[Symbol.asyncDispose]();
    await client.close();
  }
}

export function offersLine(): string {
  const { medianMs, worstMs } = offersAfterNodeChange(1_000, 8_000);
  return `offers after a node change, 1,000 nodes and 8,000 pods: median ${medianMs.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms`;
}

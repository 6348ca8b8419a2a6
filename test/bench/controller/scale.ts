import { loadavg } from 'node:os';
import { type Condition, type KubeObject, LEASES, type ResourceType } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { INSTANCE_TEMPLATES, templateHash } from '../../../src/resources/instance-template.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ms, pool, quantile } from '../figures.ts';
import { type BenchPlace, LIMIT_MS, names, openPlace, OWN_NAMESPACE, WIDTH } from './place.ts';
import { type Seen, watchNamespace } from './watcher.ts';

/** How much of everything; a row takes what it needs of it. */
export interface Scale {
  nodes: number;
  instances: number;
  waiters: number;
  /** Templates, and keys. */
  objects: number;
}

/** As large as the aims: the row with the waiters then takes about ten minutes on two cores. */
export const FULL: Scale = { nodes: 1000, instances: 5000, waiters: 1000, objects: 5000 };

/** Places that become free while others wait, one a second. */
const FREED = 30;
/** Creations that are timed one by one. */
const TIMED = 20;

/** Measures at one scale, in a place of its own, and returns what it found. */
type Row = (place: BenchPlace, seen: Seen, scale: Scale) => Promise<string[]>;

const seconds = (value: number): string => `${(value / 1000).toFixed(1)} s`;

async function leaderOf({ client }: BenchPlace): Promise<string> {
  const { spec } = await client.get(LEASES, { namespace: OWN_NAMESPACE, name: 'berth-controller' });
  return `${spec?.holderIdentity} after ${spec?.leaseTransitions} changes`;
}

/** Rents and waits until all are ready. */
async function fill(place: BenchPlace, seen: Seen, all: readonly string[], spec: Partial<GpuInstanceSpec> = {}) {
  await pool(all, WIDTH, (name) => place.rent(name, spec));
  await waitFor('the instances to run', () => all.every((name) => seen.ready.has(name)), LIMIT_MS);
}

/** Milliseconds from the deletion of a running instance to the next claim of one that waits. */
async function claimAfter({ client, namespace }: BenchPlace, seen: Seen, running: string): Promise<number> {
  const before = seen.claimed.size;
  const start = performance.now();
  await client.delete(GPU_INSTANCES, { namespace, name: running });
  await waitFor('the next claim', () => seen.claimed.size > before, LIMIT_MS);
  return performance.now() - start;
}

async function nextSecond(start: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, start + 1000 - performance.now())));
}

/** Frees places one a second. */
async function free(place: BenchPlace, seen: Seen, all: readonly string[]): Promise<number[]> {
  const times: number[] = [];
  for (const name of all) {
    const start = performance.now();
    times.push(await claimAfter(place, seen, name));
    await nextSecond(start);
  }
  return times;
}

const line: Row = async (place, seen, { instances, waiters }) => {
  const running = names('run', instances);
  await fill(place, seen, running);
  const leader = await leaderOf(place);
  const found: string[] = [];
  let waiting = 0;
  for (const [step, size] of [10, waiters / 10, waiters].map(Math.round).entries()) {
    const more = names(`wait-${step}`, Math.max(0, size - waiting));
    // Each with an image of its own: no two of them ask for the same.
    await pool(more, WIDTH, (name) => place.rent(name, { image: `registry.test/team/${name}:1` }));
    waiting += more.length;
    await place.controller.measure();
    const count = Math.min(FREED, size);
    const times = await free(place, seen, running.splice(0, count));
    waiting -= count;
    const { lagMs, rssMb } = await place.controller.measure();
    found.push(
      `${size} waiters, ${count} places freed one a second: deletion to next claim p50 / p99 ${ms(quantile(times, 0.5))} / ${ms(quantile(times, 0.99))}; event-loop lag p99 / max ${ms(lagMs.p99)} / ${ms(lagMs.max)}; memory ${rssMb} MiB`,
    );
  }
  const after = await leaderOf(place);
  return [...found, after === leader ? 'one leader throughout' : `the leader changed: ${leader}, then ${after}`];
};

const preemption: Row = async (place, seen, { instances }) => {
  await fill(place, seen, names('give', instances), { type: 'Interruptible' });
  const takers = names('take', Math.max(1, Math.floor(instances / 10)));
  await place.controller.measure();
  const start = performance.now();
  await fill(place, seen, takers);
  const times = takers.map((name) => (seen.ready.get(name) ?? Number.NaN) - start);
  const { lagMs } = await place.controller.measure();
  return [
    `${takers.length} on-demand requests against ${instances} interruptible instances: ready p50 / last ${seconds(quantile(times, 0.5))} / ${seconds(Math.max(...times))}; event-loop lag p99 / max ${ms(lagMs.p99)} / ${ms(lagMs.max)}`,
  ];
};

/** Milliseconds from creation to ready, one at a time. */
async function timed(place: BenchPlace, seen: Seen, spec: Partial<GpuInstanceSpec>): Promise<number[]> {
  const times: number[] = [];
  for (const name of names('one', TIMED)) {
    const start = performance.now();
    await place.rent(name, spec);
    await waitFor(`${name} to be ready`, () => seen.ready.has(name), LIMIT_MS);
    times.push((seen.ready.get(name) ?? Number.NaN) - start);
  }
  await place.clear(GPU_INSTANCES);
  for (const name of names('one', TIMED)) seen.ready.delete(name);
  return times;
}

interface WithStatus extends KubeObject {
  status?: { conditions?: Condition[] };
}

/** Milliseconds until every object of a kind has the Ready condition. */
async function untilReady(place: BenchPlace, type: ResourceType<WithStatus>): Promise<number> {
  const { client, namespace } = place;
  const start = performance.now();
  await waitFor(
    `${type.plural} to have a status`,
    async () => {
      const { items } = await client.list<WithStatus>(type, { namespace });
      return items.every(({ status }) => status?.conditions !== undefined);
    },
    LIMIT_MS,
  );
  return performance.now() - start;
}

const templates: Row = async (place, seen, { objects }) => {
  const { client, namespace } = place;
  const specOf = (index: number) => ({ displayName: '', image: `registry.test/t${index}:1`, runtype: 'ssh' as const });
  const before = await timed(place, seen, {});
  await place.controller.measure();
  await pool(names('t', objects), WIDTH, (name) =>
    client.create(INSTANCE_TEMPLATES, { metadata: { namespace, name }, spec: specOf(Number(name.slice(2))) }),
  );
  const settled = await untilReady(place, INSTANCE_TEMPLATES);
  const { lagMs, rssMb } = await place.controller.measure();
  const after = await timed(place, seen, { templateHashId: templateHash(specOf(objects - 1)) });
  await place.clear(INSTANCE_TEMPLATES);
  return [
    `${objects} templates: all have a status ${seconds(settled)} after the last creation; event-loop lag p99 / max ${ms(lagMs.p99)} / ${ms(lagMs.max)}; memory ${rssMb} MiB`,
    `create to Ready one at a time, p50: ${ms(quantile(after, 0.5))} with the last of them, ${ms(quantile(before, 0.5))} without any`,
  ];
};

const keys: Row = async (place, seen, { objects }) => {
  const { client, namespace } = place;
  const before = await timed(place, seen, {});
  const publicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
  await place.controller.measure();
  await pool(names('k', objects), WIDTH, (name) =>
    client.create(SSH_KEYS, {
      metadata: { namespace, name },
      spec: { publicKey: `${publicKey} ${name}`, displayName: name },
    }),
  );
  const settled = await untilReady(place, SSH_KEYS);
  const { lagMs, rssMb } = await place.controller.measure();
  const after = await timed(place, seen, {});
  await place.clear(SSH_KEYS);
  return [
    `${objects} SSH keys of one tenant: all have a status ${seconds(settled)} after the last creation; event-loop lag p99 / max ${ms(lagMs.p99)} / ${ms(lagMs.max)}; memory ${rssMb} MiB`,
    `create to Ready one at a time, p50: ${ms(quantile(after, 0.5))} with all of them, ${ms(quantile(before, 0.5))} without any`,
  ];
};

export const ROWS: Readonly<Record<string, Row>> = { line, preemption, templates, keys };

/** One row of the scale table. */
export async function measureRow(kubeconfig: string, name: string, scale: Scale): Promise<string[]> {
  const row = ROWS[name];
  if (row === undefined) throw new RangeError(`There is no row ${name}, only ${Object.keys(ROWS).join(', ')}.`);
  const start = performance.now();
  const isFull = name === 'line' || name === 'preemption';
  // The last node is full when all instances run: then the next one waits.
  const nodes = isFull ? scale.nodes : Math.min(scale.nodes, 10);
  const gpusPerNode = isFull ? Math.ceil(scale.instances / scale.nodes) : 8;
  const instances = isFull ? nodes * gpusPerNode : scale.instances;
  const load = loadavg()[0] ?? Number.NaN;
  const ended = new AbortController();
  await using place = await openPlace({ kubeconfig, nodes, gpusPerNode });
  try {
    const seen = await watchNamespace(place.client, place.namespace, ended.signal);
    const found = await row(place, seen, { ...scale, instances });
    const title = `${name}: ${nodes} nodes, load average ${load.toFixed(1)} at the start`;
    return [title, ...found, `took ${seconds(performance.now() - start)}, without the end`];
  } finally {
    ended.abort();
  }
}

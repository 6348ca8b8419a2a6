import { pino } from 'pino';
import { expect, inject, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, type ResourceClaim } from '../../src/kube/devices.ts';
import { Informer } from '../../src/kube/watch/reflector.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { startBerth } from '../support/berth-process.ts';
import { connect } from '../support/http/api.ts';
import { type Answer, type Call, clientOf } from '../support/http/client.ts';
import { addNode, sellDevices, sliceNode } from '../support/http/fleet.ts';
import { startReplicas } from '../support/http/replicas.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { waitFor } from '../support/wait-for.ts';
import { leaderAmong } from './support/processes.ts';
import { SHARE } from './support/seed.ts';

// GPUs of simulated nodes that are only in ResourceSlices: Kubernetes' own scheduler allocates them.

const LABEL = 'berth.dev/test-last-devices';
const DRIVER = 'gpu.example.com';
const NODES = 10 * SHARE;
const PER_NODE = 10;
const DEVICES = NODES * PER_NODE;
const CALLERS = (DEVICES * 5) / 4;
const TENANTS = 5;
/** So many more have an answer before a leader is killed. */
const STEP = CALLERS / 10;
const REFUSED = '409 "offer_unavailable"';

/** Makes nodes with devices that one pool sells; the returned function ends them. */
async function addDevices(client: KubeClient, name: string): Promise<() => Promise<void>> {
  await using stack = new AsyncDisposableStack();
  const expression = `device.driver == '${DRIVER}' && device.attributes['${DRIVER}'].model == '${name}'`;
  await client.create(DEVICE_CLASSES, { metadata: { name }, spec: { selectors: [{ cel: { expression } }] } });
  stack.defer(() => client.delete(DEVICE_CLASSES, { name }));
  const apart = { label: LABEL, value: name };
  for (let index = 0; index < NODES; index += 1) {
    const nodeName = `${name}-${index}`;
    stack.defer(await addNode(client, sliceNode(nodeName, apart)));
    const devices = Array.from({ length: PER_NODE }, (_, gpu) => ({
      name: `gpu-${gpu}`,
      attributes: { model: { string: name } },
      capacity: { memory: { value: '80Gi' } },
    }));
    const pool = { name: nodeName, generation: 1, resourceSliceCount: 1 };
    await client.create(RESOURCE_SLICES, {
      metadata: { name: nodeName },
      spec: { driver: DRIVER, nodeName, pool, devices },
    });
    stack.defer(() => client.delete(RESOURCE_SLICES, { name: nodeName }));
  }
  const stop = await sellDevices(client, { name, deviceClassName: name, ...apart });
  stack.defer(async () => void (await stop()));
  const all = stack.move();
  return () => all.disposeAsync();
}

/** Reads nothing but ResourceClaims. */
class ClaimObserver implements AsyncDisposable {
  readonly #informer: Informer<ResourceClaim>;
  readonly #ended = new AbortController();
  readonly #running: Promise<void>;
  /** By device: the claims that have it. */
  readonly #holders = new Map<string, Set<string>>();
  readonly #twice = new Set<string>();

  constructor(client: KubeClient, prefix: string) {
    const clock = systemClock();
    const log = pino({ level: 'silent' });
    this.#informer = new Informer({ client, type: RESOURCE_CLAIMS, clock, random: Math.random, log });
    const devicesOf = (claim: ResourceClaim | undefined): string[] =>
      (claim?.status?.allocation?.devices?.results ?? [])
        .filter(({ pool }) => pool.startsWith(prefix))
        .map(({ pool, device }) => `${pool}/${device}`);
    this.#informer.store.onChange(({ key, before, after }) => {
      for (const device of devicesOf(before)) this.#holders.get(device)?.delete(key);
      for (const device of devicesOf(after)) this.#note(device, key);
    });
    this.#running = this.#informer.run(this.#ended.signal);
  }

  #note(device: string, claim: string): void {
    const holders = this.#holders.get(device) ?? new Set();
    this.#holders.set(device, holders.add(claim));
    if (holders.size > 1) this.#twice.add(`${device}: ${[...holders].join(', ')}`);
  }

  get synced(): Promise<unknown> {
    return this.#informer.store.synced;
  }

  /** Devices that a claim has now. */
  get allocated(): number {
    return [...this.#holders.values()].filter(({ size }) => size > 0).length;
  }

  /** Devices that two claims had at once, ever. */
  get twice(): readonly string[] {
    return [...this.#twice];
  }

  async [Symbol.asyncDispose]() {
    this.#ended.abort();
    await this.#running;
  }
}

/** Nothing was decided: the request came too late, or its answer would have. */
const UNDECIDED: ReadonlySet<number> = new Set([408, 503]);

/** What the caller hears in the end. Who hears that nothing was decided asks again with the same key. */
async function rent(call: Call, offer: number, key: string): Promise<Answer> {
  for (;;) {
    const answer = await call('POST', '/instances', { ask_id: offer }, { 'idempotency-key': key });
    if (!UNDECIDED.has(answer.status)) return answer;
  }
}

test(
  `${CALLERS} callers at once get ${DEVICES} devices of slices once each, while two leaders are killed`,
  { timeout: 420_000 * Math.max(1, SHARE) },
  async () => {
    const { kubeconfig } = inject('cluster');
    await using stack = new AsyncDisposableStack();
    const api = stack.use(await startReplicas(kubeconfig));
    const cluster = stack.use(await connect(kubeconfig, api, pino({ level: 'fatal' })));
    const { client } = cluster;
    await kindsCounted(client);
    const home = await cluster.namespace('last-devices-berth');
    const tenants = await Promise.all(Array.from({ length: TENANTS }, () => cluster.namespace('last-devices')));
    const name = home.replace('-berth', '');
    stack.defer(await addDevices(client, name));
    const observer = stack.use(new ClaimObserver(client, name));
    await observer.synced;
    const controllers = await Promise.all([1, 2, 3].map(() => startBerth(kubeconfig, 'controller', home)));
    for (const controller of controllers) stack.use(controller);
    const calls = await Promise.all(tenants.map(async (tenant) => clientOf(api.url, await cluster.key(tenant))));
    const [first] = calls;
    const offer = await waitFor('all devices to be offered', async () => {
      const { data = [] } = (await first?.('GET', '/offers')) ?? {};
      const found = data.find(({ pool, gpu_count: count }) => pool === name && count === 1);
      return found?.['available'] === DEVICES && Number(found['id']);
    });
    const instances = async () =>
      (await Promise.all(tenants.map((namespace) => client.list(GPU_INSTANCES, { namespace })))).flatMap(
        ({ items }) => items,
      );
    stack.defer(async () => {
      const ended = await instances();
      await Promise.all(ended.map(({ metadata }) => client.delete(GPU_INSTANCES, metadata)));
      await waitFor('all instances to go', async () => (await instances()).length === 0, 240_000 * Math.max(1, SHARE));
      await waitFor('all devices to be free', () => observer.allocated === 0);
    });

    let answered = 0;
    const asked = Array.from({ length: CALLERS }, async (_, index) => {
      const call = calls[index % TENANTS];
      const answer = call && (await rent(call, offer, `${name}-${index}`));
      answered += 1;
      return answer;
    });
    const kill = async (): Promise<number> => {
      const leader = await leaderAmong(
        client,
        home,
        controllers.map(({ child }) => child),
      );
      const before = answered;
      await waitFor('it to answer some more', () => answered >= before + STEP);
      leader.kill('SIGKILL');
      return answered;
    };
    const killing = kill().then(async (once) => [once, await kill()] as const);
    const [answers, killedAt] = await Promise.all([Promise.all(asked), killing]);

    for (const count of killedAt) expect(count).toBeLessThan(CALLERS);
    const outcomes = Object.groupBy(answers, (answer) =>
      answer?.status === 201 ? 'rented' : `${answer?.status} ${JSON.stringify(answer?.error['code'])}`,
    );
    const counts = Object.entries(outcomes).map(([outcome, those]) => [outcome, those?.length]);
    expect(Object.fromEntries(counts)).toEqual({ rented: DEVICES, [REFUSED]: CALLERS - DEVICES });
    await waitFor('each device to be allocated', () => observer.allocated === DEVICES);
    expect(observer.twice).toEqual([]);
    await waitFor('the refused ones to go', async () => (await instances()).length === DEVICES);
    expect(new Set((await instances()).map(({ metadata }) => metadata.name))).toEqual(
      new Set(outcomes['rented']?.map((answer) => answer?.id)),
    );
  },
);

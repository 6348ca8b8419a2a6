import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Answer, type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const GPUS = 8;
const CALLERS = 200;
/** Fifty for the record, few for every day: a round takes some seconds until all pods are gone. */
const ROUNDS = Number(process.env['BERTH_ROUNDS'] ?? 3);
const PRODUCT = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;

let cluster: Cluster;
let controller: BerthProcess;
let replicas: BerthProcess[];
let namespace: string;
let calls: { child: BerthProcess['child']; call: Call }[];
let removeNode: () => Promise<void>;
let turn = 0;

/** Round-robin, as a Service does it. */
const call: Call = (...request) => {
  turn += 1;
  const alive = calls.filter(({ child }) => child.signalCode === null);
  const next = alive[turn % alive.length];
  if (next === undefined) throw new Error('No replica is left.');
  return next.call(...request);
};

async function offer(): Promise<{ id: number; available: number }> {
  const { data } = await call('GET', '/offers');
  const found = data.find((one) => one['gpu_name'] === PRODUCT && one['gpu_count'] === 1);
  return { id: Number(found?.['id']), available: Number(found?.['available']) };
}

async function instances(): Promise<string[]> {
  const { items } = await cluster.client.list(GPU_INSTANCES, { namespace });
  return items.map(({ metadata }) => metadata.name);
}

async function removeAll(): Promise<void> {
  for (const name of await instances()) expect((await call('DELETE', `/instances/${name}`)).status).toBe(200);
  await waitFor('all GPUs to be free', async () => (await offer()).available === GPUS, 60_000);
  await waitFor('all instances to go', async () => (await instances()).length === 0, 60_000);
}

beforeAll(async () => {
  cluster = await openCluster();
  namespace = await cluster.namespace('http-replicas');
  const { kubeconfig } = inject('cluster');
  removeNode = await addNode(cluster.client, gpuNode(`node-${PRODUCT.toLowerCase()}`, PRODUCT, GPUS));
  controller = await startBerth(kubeconfig, 'controller', namespace);
  replicas = [await startBerth(kubeconfig, 'api', namespace), await startBerth(kubeconfig, 'api', namespace)];
  const token = await cluster.key(namespace);
  calls = replicas.map(({ url, child }) => ({ child, call: clientOf(url, token) }));
  for (const one of calls) await waitFor('the key', async () => (await one.call('GET', '/offers')).status === 200);
  await waitFor('all GPUs to be free', async () => (await offer()).available === GPUS);
});

afterAll(async () => {
  try {
    await removeAll();
  } finally {
    for (const one of [...replicas, controller]) await one[Symbol.asyncDispose]();
    await removeNode();
    await cluster[Symbol.asyncDispose]();
  }
});

it(
  `${CALLERS} callers at once get the last ${GPUS} GPUs once each, and nothing is left of the rest`,
  { timeout: 30_000 * (ROUNDS + 1) },
  async () => {
    const { id } = await offer();
    for (let round = 0; round < ROUNDS; round += 1) {
      const body = { ask_id: id, name: `round ${round}` };
      const answers = await Promise.all(Array.from({ length: CALLERS }, () => call('POST', '/instances', body)));
      const rented = answers.filter(({ status }) => status === 201).map((answer) => answer.id);
      const refused = answers.filter(({ status }) => status === 409);
      expect([rented.length, refused.length]).toEqual([GPUS, CALLERS - GPUS]);
      for (const { error } of refused) {
        expect(error['code']).toBe('offer_unavailable');
        expect(error['alternatives']).toBeInstanceOf(Array);
      }
      await waitFor('the refused ones to go', async () => (await instances()).length === GPUS);
      expect(new Set(await instances())).toEqual(new Set(rented));
      await removeAll();
    }
  },
);

it('loses nothing and doubles nothing when a replica is killed in the middle', { timeout: 120_000 }, async () => {
  const { id } = await offer();
  const keys = Array.from({ length: GPUS }, (_, index) => `order-${index}`);

  async function order(key: string): Promise<Answer> {
    for (;;) {
      const answer = await call('POST', '/instances', { ask_id: id, name: key }, { 'idempotency-key': key }).catch(
        () => undefined,
      );
      if (answer !== undefined && answer.status < 500) return answer;
    }
  }

  const ordered = keys.map(order);
  await Promise.race(ordered);
  replicas[0]?.child.kill('SIGKILL');
  const answers = await Promise.all(ordered);
  expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 201));
  const again = await Promise.all(keys.map(order));
  expect(again.map((answer) => answer.id)).toEqual(answers.map((answer) => answer.id));
  expect(new Set(await instances())).toEqual(new Set(answers.map((answer) => answer.id)));
});

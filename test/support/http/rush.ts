import { pino } from 'pino';
import { expect } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../berth-process.ts';
import { kindsCounted } from '../kinds-counted.ts';
import { waitFor } from '../wait-for.ts';
import { connect } from './api.ts';
import { type Call, clientOf } from './client.ts';
import { addNode, gpuNode } from './fleet.ts';
import { type Replicas, startReplicas } from './replicas.ts';

const GPUS = 8;
const CALLERS = 200;
const REFUSED = '409 "offer_unavailable"';

/** Eight GPUs, a controller, two replicas of the API, and a tenant who wants the GPUs. */
export interface Rush extends AsyncDisposable {
  api: Replicas;
  controller: BerthProcess;
  /** The tenant, through the proxy. */
  call: Call;
  /** The offer of one GPU. */
  offer: number;
  /** The instances there are, from the API server. */
  instances: () => Promise<string[]>;
  /** Deletes all instances and waits until all GPUs are free. */
  clear: () => Promise<void>;
}

export async function startRush(kubeconfig: string): Promise<Rush> {
  const product = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;
  await using stack = new AsyncDisposableStack();
  const api = stack.use(await startReplicas(kubeconfig));
  const cluster = stack.use(await connect(kubeconfig, api, pino({ level: 'fatal' })));
  // Before that the API server has no answer for some of those who ask at once.
  await kindsCounted(cluster.client);
  const namespace = await cluster.namespace('http-rush');
  const controller = stack.use(await startBerth(kubeconfig, 'controller', await cluster.namespace('http-rush-berth')));
  stack.defer(await addNode(cluster.client, gpuNode(`node-${product.toLowerCase()}`, product, GPUS)));
  const call = clientOf(api.url, await cluster.key(namespace));

  const free = () =>
    waitFor(
      'all GPUs to be free',
      async () => {
        const { data } = await call('GET', '/offers');
        const found = data.find((one) => one['gpu_name'] === product && one['gpu_count'] === 1);
        return found?.['available'] === GPUS && Number(found['id']);
      },
      60_000,
    );
  async function instances(): Promise<string[]> {
    const { items } = await cluster.client.list(GPU_INSTANCES, { namespace });
    return items.map(({ metadata }) => metadata.name);
  }
  async function clear(): Promise<void> {
    for (const name of await instances()) expect((await call('DELETE', `/instances/${name}`)).status).toBe(200);
    await waitFor('all instances to go', async () => (await instances()).length === 0, 60_000);
    await free();
  }

  const offer = await free();
  stack.defer(clear);
  const all = stack.move();
  return { api, controller, call, offer, instances, clear, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Many clients want one of the last GPUs at the same time. Checks who got one and what is left, then cleans up. */
export async function rushForTheLast({ call, offer, instances, clear }: Rush): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: CALLERS }, (_, index) =>
      call('POST', '/instances', { ask_id: offer, name: `caller ${index}` }),
    ),
  );
  const outcomes = Object.groupBy(answers, ({ status, error }) =>
    status === 201 ? 'rented' : `${status} ${JSON.stringify(error['code'])}`,
  );
  const counts = Object.entries(outcomes).map(([outcome, those]) => [outcome, those?.length]);
  expect(Object.fromEntries(counts)).toEqual({ rented: GPUS, [REFUSED]: CALLERS - GPUS });
  for (const { error } of outcomes[REFUSED] ?? []) expect(error['alternatives']).not.toEqual([]);
  await waitFor('the refused ones to go', async () => (await instances()).length === GPUS);
  expect(new Set(await instances())).toEqual(new Set(outcomes['rented']?.map(({ id }) => id)));
  await clear();
}

import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';
import { z } from 'zod';
import { createKey } from '../../../src/access/create-key.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { startBerth } from '../../support/berth-process.ts';
import { clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { waitFor } from '../../support/wait-for.ts';
import { judged, ms, quantile } from '../figures.ts';

const NODES = 32;
const GPUS = 8;
const ALONE = 50;
const CONCURRENCY = 32;
const CAUSE = 'the API server takes more than a core of two';

/** Milliseconds from the request to its 201. */
async function create(pool: Pool, headers: Record<string, string>, ask: number): Promise<number> {
  const start = performance.now();
  const body = JSON.stringify({ ask_id: ask });
  const answer = await pool.request({ method: 'POST', path: '/api/v1/instances', headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 201) throw new Error(`POST /instances answered ${answer.statusCode}: ${text}`);
  return performance.now() - start;
}

/** Rents on simulated nodes through an API process and a controller process. Returns a line of results. */
export async function measureCreates(kubeconfig: string): Promise<string> {
  const clock = systemClock();
  const connection = await loadKubeConfig({ kubeconfig });
  const client = createKubeClient(connection, { clock });
  const namespace = `bench-${randomBytes(4).toString('hex')}`;
  const product = `BENCH-${namespace}`;
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  const names = Array.from({ length: NODES }, (_, index) => `${namespace}-${index}`);
  const remove = await Promise.all(names.map((name) => addNode(client, gpuNode(name, product, GPUS))));
  // Not in the tenant's namespace: its quota is part of what is measured.
  const controller = await startBerth(kubeconfig, 'controller', 'default');
  const api = await startBerth(kubeconfig, 'api', 'default');
  const pool = new Pool(api.url, { connections: CONCURRENCY, pipelining: 1 });
  try {
    const { token } = await createKey(client, { namespace });
    const call = clientOf(api.url, token);
    const ask = await waitFor('the offers', async () => {
      const { data } = await call('GET', '/offers');
      const found = data.find((one) => one['gpu_name'] === product && one['gpu_count'] === 1);
      return found?.['available'] === NODES * GPUS && Number(found['id']);
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const alone: number[] = [];
    for (let count = 0; count < ALONE; count += 1) alone.push(await create(pool, headers, ask));
    const together: number[] = [];
    const rest = NODES * GPUS - ALONE;
    const start = performance.now();
    let left = rest;
    const worker = async (): Promise<void> => {
      while ((left -= 1) >= 0) together.push(await create(pool, headers, ask));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    const perSecond = rest / ((performance.now() - start) / 1000);
    return [
      `POST /instances to 201, one at a time: p50 / p99 ${ms(quantile(alone, 0.5))} / ${ms(quantile(alone, 0.99))}, to reach p50 ${judged({ most: 60, cause: CAUSE }, quantile(alone, 0.5))}`,
      `${CONCURRENCY} at a time: ${perSecond.toFixed(0)} per second, p50 / p99 ${ms(quantile(together, 0.5))} / ${ms(quantile(together, 0.99))}, to reach ${judged({ least: 80, cause: CAUSE }, perSecond)} per second`,
    ].join('; ');
  } finally {
    const call = clientOf(api.url, (await createKey(client, { namespace })).token);
    await waitFor(
      'everything to be gone',
      async () => {
        const list = await call('GET', '/instances').catch(() => undefined);
        const ids = z.array(z.string()).parse(list?.data.map(({ id }) => id) ?? []);
        await Promise.all(ids.map((id) => call('DELETE', `/instances/${id}`).catch(() => undefined)));
        return list !== undefined && ids.length === 0;
      },
      120_000,
    );
    await pool.close();
    await Promise.all([api, controller].map((one) => one[Symbol.asyncDispose]()));
    await Promise.all(remove.map((one) => one()));
    await client.delete(NAMESPACES, { name: namespace });
    await client.close();
  }
}

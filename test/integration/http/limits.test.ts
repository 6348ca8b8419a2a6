import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Cluster } from '../../support/http/api.ts';
import { clientOf } from '../../support/http/client.ts';
import { openCluster } from '../../support/http/open.ts';
import { callsOf, startReplicas } from '../../support/http/replicas.ts';
import { describeWith } from '../../support/needs.ts';
import { startValkey, type ValkeyServer } from '../../support/valkey/server.ts';
import { waitFor } from '../../support/wait-for.ts';

let cluster: Cluster;
let namespace: string;

beforeAll(async () => {
  cluster = await openCluster();
  namespace = await cluster.namespace('http-limits');
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

it('counts down in the headers and then answers 429 with the time to wait', async () => {
  // Without Valkey each replica counts for itself.
  const [call] = callsOf(cluster.api, await cluster.key(namespace, { limits: { requestsPerMinute: 3 } }));
  const [other] = callsOf(cluster.api, await cluster.key(namespace));
  const left: (string | null)[] = [];
  for (let count = 0; count < 3; count += 1) left.push((await call('GET', '/offers')).headers.get('ratelimit'));
  expect(left.map((text) => /r=(\d+);t=\d+$/.exec(text ?? '')?.[1])).toEqual(['2', '1', '0']);
  const refused = await call('GET', '/offers');
  expect([refused.status, refused.error['code']]).toEqual([429, 'rate_limit_exceeded']);
  expect(refused.headers.get('ratelimit-policy')).toBe('"key";q=3;w=60');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await other('GET', '/offers')).status).toBe(200);
});

describeWith('Python venv')('with Valkey', () => {
  let valkey: ValkeyServer;

  beforeAll(async () => {
    valkey = await startValkey();
  });

  afterAll(() => valkey.kill());

  it('replicas share the count, and go on alone while Valkey is away', async () => {
    await using api = await startReplicas(inject('cluster').kubeconfig, { env: { BERTH_VALKEY_URL: valkey.url } });
    const key = (): Promise<string> => cluster.key(namespace, { limits: { requestsPerMinute: 4 } }, api);
    const statuses = async (token: string): Promise<number[]> => {
      const answers: number[] = [];
      for (let count = 0; count < 6; count += 1)
        answers.push((await clientOf(api.url, token)('GET', '/offers')).status);
      return answers;
    };
    const shared = async (): Promise<boolean> => (await statuses(await key())).join() === '200,200,200,200,429,429';
    await waitFor('a shared count', shared);
    await valkey.kill();
    expect(await statuses(await key())).toEqual([200, 200, 200, 200, 200, 200]);
    valkey = await startValkey(valkey.port);
    await waitFor('the shared count again', shared);
  });
});

import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { access } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localCounters, sharedCounters } from '../../../src/http/limits/shared-counter.ts';
import type { Cluster } from '../../support/http/api.ts';
import { clientOf } from '../../support/http/client.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const PROGRAMS = ['/usr/bin/valkey-server', '/usr/bin/redis-server'];

async function installed(): Promise<string | undefined> {
  for (const program of PROGRAMS) {
    const found = await access(program).then(
      () => true,
      () => false,
    );
    if (found) return program;
  }
  return undefined;
}

const program = await installed();

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function start(port: number): ChildProcess {
  return spawn(program ?? '', ['--port', String(port), '--save', '', '--appendonly', 'no', '--bind', '127.0.0.1'], {
    stdio: 'ignore',
  });
}

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
  const counters = localCounters();
  const api = await cluster.serve({ counters });
  const call = clientOf(api.url, await cluster.key(namespace, { limits: { requestsPerMinute: 3 } }));
  const other = clientOf(api.url, await cluster.key(namespace));
  const left: (string | null)[] = [];
  for (let count = 0; count < 3; count += 1) left.push((await call('GET', '/offers')).headers.get('ratelimit'));
  expect(left.map((text) => /r=(\d+);t=\d+$/.exec(text ?? '')?.[1])).toEqual(['2', '1', '0']);
  const refused = await call('GET', '/offers');
  expect([refused.status, refused.error['code']]).toEqual([429, 'rate_limit_exceeded']);
  expect(refused.headers.get('ratelimit-policy')).toBe('"key";q=3;w=60');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await other('GET', '/offers')).status).toBe(200);
  await api.close();
});

describe.skipIf(program === undefined)('with Valkey', () => {
  let port: number;
  let server: ChildProcess;

  beforeAll(async () => {
    port = await freePort();
    server = start(port);
  });

  afterAll(() => {
    server.kill();
  });

  it('replicas share the count, and go on alone while Valkey is away', async () => {
    const counters = [1, 2].map(() => sharedCounters(`valkey://127.0.0.1:${port}`, cluster.log));
    const apis = await Promise.all(counters.map((one) => cluster.serve({ counters: one })));
    const key = (): Promise<string> => cluster.key(namespace, { limits: { requestsPerMinute: 4 } });
    const statuses = async (token: string): Promise<number[]> => {
      const answers: number[] = [];
      for (let count = 0; count < 6; count += 1) {
        const call = clientOf(apis[count % 2]?.url ?? '', token);
        answers.push((await call('GET', '/offers')).status);
      }
      return answers;
    };
    const shared = async (): Promise<boolean> => (await statuses(await key())).join() === '200,200,200,200,429,429';
    await waitFor('a shared count', shared);
    const gone = new Promise((resolve) => {
      server.once('exit', resolve);
    });
    server.kill('SIGKILL');
    await gone;
    expect(await statuses(await key())).toEqual([200, 200, 200, 200, 200, 200]);
    server = start(port);
    await waitFor('the shared count again', shared);
    await Promise.all(apis.map((api) => api.close()));
    await Promise.all(counters.map((one) => one.close()));
  });
});

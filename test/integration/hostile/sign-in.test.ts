import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { hasNginx, startNginx } from '../../support/nginx.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { type Arena, compare, hammer, openArena } from './arena.ts';

let home: TestNamespace;
let dashboard: BerthProcess;
let arena: Arena;
/** Where only proxies connect. */
let behind: string;

beforeAll(async () => {
  home = await testNamespace();
  const env = { BERTH_TRUST_PROXY: '1' };
  dashboard = await startBerth(inject('cluster').kubeconfig, 'dashboard', home.name, { env });
  const [port] = await freePorts(1);
  behind = `http://127.0.0.1:${port}`;
  arena = await openArena({ ...env, BERTH_DASHBOARD_URL: dashboard.url, BERTH_INGRESS_ADDR: `127.0.0.1:${port}` });
});
afterAll(async () => {
  await arena[Symbol.asyncDispose]();
  await dashboard[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

/** A sign-in whose body never comes, from one of many addresses of five networks. */
function stall(index: number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const call = request(`${behind}/dashboard/api/session`, {
      method: 'POST',
      signal,
      headers: { 'content-length': 100, 'x-forwarded-for': `2001:db8:0:${index % 5}::${index}` },
    });
    call.on('response', (response) => response.resume().on('close', resolve)).on('error', resolve);
    call.write('{');
  });
}

it('sign-ins whose body never comes', async () => {
  const page = `${behind}/dashboard/api/session/ways`;
  await compare(
    'sign-ins whose body never comes',
    async () => {
      const { status } = await fetch(page, { headers: { 'x-forwarded-for': '192.0.2.1' } });
      if (status !== 200) throw new Error(`GET ${page}: ${status}`);
    },
    hammer(200, stall),
  );
});

/** Whatever a client says of where it comes from. */
const INVENTED = (host: number): Record<string, string> => ({
  'x-forwarded-for': `198.51.100.${host}, 203.0.113.${host}`,
  'x-real-ip': `198.51.100.${host}`,
  'x-client-ip': `198.51.100.${host}`,
  forwarded: `for=198.51.100.${host}`,
});

/** Sign-ins at once from an address of this machine; returns how many are too many. */
async function refusalsThrough(port: number, localAddress: string, count: number): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: count }, async (_, host) => {
      const headers = { 'content-type': 'application/json', 'content-length': 2, 'x-berth-dashboard': '1' };
      const call = request(`http://127.0.0.1:${port}/dashboard/api/session`, {
        method: 'POST',
        agent: false,
        localAddress,
        headers: { ...headers, ...INVENTED(host) },
      });
      call.end('{}');
      const [response] = (await once(call, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    }),
  );
  return statuses.filter((status) => status === 429).length;
}

/** Sign-ins at once, each from an address of its own by what it says; returns how many are too many. */
async function refusals(base: string, network: string): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: 40 }, async (_, host) => {
      const headers = {
        'content-type': 'application/json',
        'x-berth-dashboard': '1',
        'x-forwarded-for': `${network}.${host}`,
      };
      const answer = await fetch(`${base}/dashboard/api/session`, { method: 'POST', headers, body: '{}' });
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  return statuses.filter((status) => status === 429).length;
}

it('an instance chooses no address of its own: what it says counts only where proxies connect', async () => {
  expect(await refusals(behind, '198.51.100')).toBe(0);
  expect(await refusals(arena.berth.url, '203.0.113')).toBeGreaterThan(0);
});

// As ingress-nginx does it, and as most others do.
it.skipIf(!(await hasNginx()))(
  'nor does a client of a proxy, whether that replaces what it says or adds to it',
  async () => {
    await using nginx = await startNginx(Number(new URL(behind).port), ['$remote_addr', '$proxy_add_x_forwarded_for']);
    for (const [index, port] of nginx.ports.entries()) {
      expect(await refusalsThrough(port, `127.0.0.${10 + index}`, 40)).toBeGreaterThan(0);
      // Others of the same proxy have shares of their own.
      expect(await refusalsThrough(port, `127.0.0.${20 + index}`, 3)).toBe(0);
    }
  },
);

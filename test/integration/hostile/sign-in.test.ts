import { request } from 'node:http';
import { afterAll, beforeAll, inject, it } from 'vitest';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { type Arena, compare, hammer, openArena } from './arena.ts';

let home: TestNamespace;
let dashboard: BerthProcess;
let arena: Arena;

beforeAll(async () => {
  home = await testNamespace();
  const env = { BERTH_TRUST_PROXY: '1' };
  dashboard = await startBerth(inject('cluster').kubeconfig, 'dashboard', home.name, { env });
  arena = await openArena({ ...env, BERTH_DASHBOARD_URL: dashboard.url });
});
afterAll(async () => {
  await arena[Symbol.asyncDispose]();
  await dashboard[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

/** A sign-in whose body never comes, from one of many addresses of five networks. */
function stall(index: number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const call = request(`${arena.berth.url}/dashboard/api/session`, {
      method: 'POST',
      signal,
      headers: { 'content-length': 100, 'x-forwarded-for': `2001:db8:0:${index % 5}::${index}` },
    });
    call.on('response', (response) => response.resume().on('close', resolve)).on('error', resolve);
    call.write('{');
  });
}

it('sign-ins whose body never comes', async () => {
  const page = `${arena.berth.url}/dashboard/api/session/ways`;
  await compare(
    'sign-ins whose body never comes',
    async () => {
      const { status } = await fetch(page, { headers: { 'x-forwarded-for': '192.0.2.1' } });
      if (status !== 200) throw new Error(`GET ${page}: ${status}`);
    },
    hammer(200, stall),
  );
});

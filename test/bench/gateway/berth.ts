import { networkInterfaces } from 'node:os';
import { createKey } from '../../../src/access/create-key.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { ENDPOINT_SLICES, NAMESPACES, SERVICES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { startBerth } from '../../support/berth-process.ts';
import { compileBerth } from '../compiled.ts';
import type { Running } from './processes.ts';
import type { Target } from './target.ts';

/** What the chart gives to a container of the api role, in the image: compiled, and with a line of log for each call. */
const ENV = { NODE_ENV: 'production', BERTH_LOG_LEVEL: 'info' };

/** The heap that Node has within the chart's memory limit. On a larger machine it would let far more garbage lie. */
const HEAP = '--max-old-space-size=768';

/** The API server refuses the loopback in an EndpointSlice; an address of this machine stays on it all the same. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flat();
  const own = addresses.find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  if (own === undefined) throw new Error('The machine has no IPv4 address beside the loopback.');
  return own;
}

/** The api role in front of an engine. */
interface Api {
  port: number;
  /** A key of each tenant. */
  tokens: string[];
  running: Running;
}

/**
 * The api role as the chart runs it, on a cluster, with the engine at `port` as a model server that all tenants share,
 * and tenants with a key each. Its log goes nowhere, as those of the other gateways.
 */
export async function startApi(kubeconfig: string, port: number, tenants: number): Promise<Api> {
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  const system = `bench-system-${process.pid}`;
  const names = Array.from({ length: tenants }, (_, at) => `bench-tenant-${process.pid}-${at}`);
  await client.create(NAMESPACES, { metadata: { name: system } });
  const tokens: string[] = [];
  for (const name of names) {
    await client.create(NAMESPACES, { metadata: { name, labels: { 'berth.dev/tenant': 'true' } } });
    tokens.push((await createKey(client, { namespace: name })).token);
  }
  const labels = { 'berth.dev/model-server': 'true' };
  const spec = { ports: [{ name: 'http', port: 80 }] };
  await client.create(SERVICES, { metadata: { name: 'engine', namespace: system, labels }, spec });
  await client.create(ENDPOINT_SLICES, {
    metadata: { name: 'engine-1', namespace: system, labels: { ...labels, 'kubernetes.io/service-name': 'engine' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port }],
    endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
  });
  const program = [...process.execArgv.filter((option) => option.startsWith('--cpu-prof')), HEAP, compileBerth()];
  const berth = await startBerth(kubeconfig, 'api', system, { env: ENV, program, isUnread: true });
  return {
    port: Number(new URL(berth.url).port),
    tokens,
    running: {
      pid: berth.child.pid ?? 0,
      stop: async () => {
        await berth[Symbol.asyncDispose]();
        for (const name of [system, ...names]) await client.delete(NAMESPACES, { name });
        await client.close();
      },
    },
  };
}

/** The same as one of the gateways that are compared. */
export async function startBerthTarget(kubeconfig: string, engine: number): Promise<Target> {
  const { port, tokens, running } = await startApi(kubeconfig, engine, 1);
  return {
    name: '**Berth**',
    port,
    headers: { authorization: `Bearer ${tokens[0]}` },
    chatPath: '/api/v1/chat/completions',
    messagesPath: '/api/v1/messages',
    running,
  };
}

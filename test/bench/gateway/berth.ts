import { networkInterfaces } from 'node:os';
import { createKey } from '../../../src/access/create-key.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { ENDPOINT_SLICES, NAMESPACES, SERVICES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { startBerth } from '../../support/berth-process.ts';
import { compileBerth } from '../compiled.ts';
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

/**
 * The api role as the chart runs it, on a cluster, with the engine at `port` as a model server and a key to call it. Its
 * log goes nowhere, as those of the other gateways.
 */
export async function startBerthTarget(kubeconfig: string, port: number): Promise<Target> {
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  const [system, tenant] = [`bench-system-${process.pid}`, `bench-tenant-${process.pid}`];
  await client.create(NAMESPACES, { metadata: { name: system } });
  await client.create(NAMESPACES, { metadata: { name: tenant, labels: { 'berth.dev/tenant': 'true' } } });
  const { token } = await createKey(client, { namespace: tenant });
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
    name: '**Berth**',
    port: Number(new URL(berth.url).port),
    headers: { authorization: `Bearer ${token}` },
    chatPath: '/api/v1/chat/completions',
    messagesPath: '/api/v1/messages',
    running: {
      pid: berth.child.pid ?? 0,
      stop: async () => {
        await berth[Symbol.asyncDispose]();
        for (const name of [system, tenant]) await client.delete(NAMESPACES, { name });
        await client.close();
      },
    },
  };
}

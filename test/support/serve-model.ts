import type { AddressInfo } from 'node:net';
import { ENDPOINT_SLICES, SERVICES } from '../../src/kube/types.ts';
import { type EngineOptions, type ScriptedEngine, startEngine } from './scripted-engine.ts';
import type { TestNamespace } from './test-cluster.ts';
import { openWay, ownAddress } from './way.ts';

/** A model server of a namespace, in this process. */
export async function serveModel(
  { client, name: namespace }: TestNamespace,
  options: EngineOptions,
): Promise<ScriptedEngine> {
  const engine = await startEngine(options);
  const way = await openWay(engine.port);
  const labels = { 'berth.dev/model-server': 'true' };
  const spec = { ports: [{ name: 'http', port: 80 }] };
  await client.create(SERVICES, { metadata: { name: 'engine', namespace, labels }, spec });
  await client.create(ENDPOINT_SLICES, {
    metadata: { name: 'engine', namespace, labels: { ...labels, 'kubernetes.io/service-name': 'engine' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: (way.address() as AddressInfo).port }],
    endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
  });
  return {
    ...engine,
    async close() {
      way.close();
      await engine.close();
    },
  };
}

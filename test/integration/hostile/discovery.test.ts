import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ENDPOINT_SLICES, PODS, SERVICES } from '../../../src/kube/types.ts';
import { pool } from '../../bench/figures.ts';
import { ModelPod } from '../../support/serve-model.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ownAddress } from '../../support/way.ts';
import { type Arena, compare, openArena, read, type Side } from './arena.ts';

const SERVICES_OF_ATTACKER = 200;

let arena: Arena;
let hanging: Server;

beforeAll(async () => {
  arena = await openArena();
  hanging = createServer(() => undefined).listen(0, ownAddress());
  await once(hanging, 'listening');
});
afterAll(async () => {
  hanging.close().closeAllConnections();
  await arena[Symbol.asyncDispose]();
});

/** Services of one pod whose server takes questions and never answers. */
async function hang({ space: { client, name: namespace } }: Side): Promise<void> {
  const ip = ownAddress();
  const ref = { namespace, name: 'hang' };
  const labels = { 'berth.dev/model-server': 'true' };
  const spec = { schedulingGates: [{ name: 'test/never' }], containers: [{ name: 'main', image: 'none' }] };
  await client.create(PODS, { metadata: ref, spec });
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
  await client.patch(PODS, ref, { status }, { type: 'merge', subresource: 'status' });
  const { port } = hanging.address() as AddressInfo;
  await pool(
    Array.from({ length: SERVICES_OF_ATTACKER }, (_, index) => `hang-${index}`),
    8,
    async (name) => {
      await client.create(SERVICES, {
        metadata: { name, namespace, labels },
        spec: { ports: [{ name: 'http', port: 80 }] },
      });
      await client.create(ENDPOINT_SLICES, {
        metadata: { name, namespace, labels: { ...labels, 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ name: 'http', port }],
        endpoints: [
          { addresses: [ip], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'hang', namespace } },
        ],
      });
    },
  );
}

it('200 Services of a tenant that hang: another tenant finds its new server', async () => {
  await compare(
    '200 model servers that hang',
    () => read(arena.honest),
    async () => {
      await hang(arena.hostile);
    },
  );
  await using _server = await ModelPod.start(arena.honest.space, { engine: 'tgi', models: ['new'] });
  const begun = performance.now();
  await waitFor('the new model', async () =>
    (await arena.honest.call('GET', '/models')).data.some(({ id }) => id === 'new'),
  );
  process.stdout.write(`A new server was found after ${Math.round(performance.now() - begun)} ms.\n`);
  expect((await arena.hostile.call('GET', '/models')).data.map(({ id }) => id)).not.toContain('new');
});

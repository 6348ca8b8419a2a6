import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { withClient } from '../../../src/commands/with-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';

const DAY = 86_400_000;

/** An API server without objects, whose clock differs from this machine's. Its kubeconfig. */
async function serverWithClock(aheadMs: number): Promise<string> {
  const server = createServer((_request, response) => {
    const date = new Date(Date.now() + aheadMs).toUTCString();
    response.writeHead(200, { date, 'content-type': 'application/json' });
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'berth-clock-'));
  onTestFinished(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });
  const { port } = server.address() as AddressInfo;
  const named = (kind: string, value: object) => ({ [`${kind}s`]: [{ name: 'one', [kind]: value }] });
  const kubeconfig = {
    ...named('cluster', { server: `http://127.0.0.1:${port}` }),
    ...named('user', {}),
    ...named('context', { cluster: 'one', user: 'one' }),
    'current-context': 'one',
  };
  const file = join(folder, 'kubeconfig');
  await writeFile(file, JSON.stringify(kubeconfig));
  return file;
}

it.each([2 * DAY, -2 * DAY, 0])('tells a command the time of an API server that is %d ms ahead', async (aheadMs) => {
  const KUBECONFIG = await serverWithClock(aheadMs);
  await withClient({ KUBECONFIG }, async (client, { clock }) => {
    await client.list(NAMESPACES);
    const apart = clock.now() - Date.now() - aheadMs;
    expect(Math.abs(apart)).toBeLessThan(5000);
  });
});

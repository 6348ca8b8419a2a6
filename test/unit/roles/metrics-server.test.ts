import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { startMetricsServer } from '../../../src/roles/metrics-server.ts';
import { Client } from '../../support/http/lone-api.ts';
import { waitFor } from '../../support/wait-for.ts';

it('answers a probe however many connections are open', async () => {
  let ready = true;
  const health = { ready: () => ready };
  const server = await startMetricsServer({ host: '127.0.0.1', port: 0 }, new Registry(), health);
  const others = Array.from({ length: 300 }, () => new Client(server.port));
  await waitFor('the oldest to be closed', () => others.filter(({ closed }) => closed).length >= 236);
  const probe = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${server.port}${path}`)).status;
  expect([await probe('/livez'), await probe('/readyz')]).toEqual([200, 200]);
  ready = false;
  expect([await probe('/livez'), await probe('/readyz')]).toEqual([200, 503]);
  for (const { socket } of others) socket.destroy();
  await server.close();
});

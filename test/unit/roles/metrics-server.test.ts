import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startMetricsServer } from '../../../src/roles/metrics-server.ts';
import { Client } from '../../support/http/lone-api.ts';
import { createAuthority, type Identity, issue } from '../../../tools/lib/x509.ts';
import { fakeClock } from '../../support/fake-clock.ts';
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

const HEALTH = { ready: () => true };
const LOOPBACK = { host: '127.0.0.1', port: 0 };

/** The status that a client gets which believes this authority alone; undefined where it does not believe the server. */
async function asked(port: number, { certificate: ca }: Identity): Promise<number | undefined> {
  return new Promise((resolve) => {
    const call = request({ host: '127.0.0.1', port, path: '/metrics', ca, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('error', () => resolve(undefined)).end();
  });
}

it('speaks HTTPS with the certificate of a Secret, and with each that takes its place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-metrics-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const put = ({ certificate, key }: Identity): void => {
    writeFileSync(join(folder, 'tls.crt'), certificate);
    writeFileSync(join(folder, 'tls.key'), key);
  };
  const [older, newer] = [await createAuthority('older'), await createAuthority('newer')];
  const leafOf = (authority: Identity): Promise<Identity> =>
    issue(authority, { commonName: 'metrics', hosts: ['127.0.0.1'] });
  const [first, second] = [await leafOf(older), await leafOf(newer)];
  const clock = fakeClock();
  const warn = vi.fn();
  const files = { folder, clock, log: Object.assign(pino({ level: 'silent' }), { warn }) };

  await expect(startMetricsServer(LOOPBACK, new Registry(), HEALTH, files)).rejects.toThrow(
    `BERTH_METRICS_TLS: ${folder} has no usable tls.crt and tls.key: ENOENT`,
  );
  put(first);
  const server = await startMetricsServer(LOOPBACK, new Registry(), HEALTH, files);
  onTestFinished(() => server.close());
  expect([await asked(server.port, older), await asked(server.port, newer)]).toEqual([200, undefined]);
  await expect(fetch(`http://127.0.0.1:${server.port}/metrics`)).rejects.toThrow();

  // As they are between the two writes of a hand: the certificate before is served on.
  put({ certificate: second.certificate, key: first.key });
  await clock.advance(60_000);
  await waitFor('the mismatch to be seen', () => warn.mock.calls.length === 1);
  expect(await asked(server.port, older)).toBe(200);

  put(second);
  await waitFor('the newer certificate', async () => {
    await clock.advance(60_000);
    return (await asked(server.port, newer)) === 200;
  });
  expect(await asked(server.port, older)).toBeUndefined();
  await server.close();
  expect(clock.pending).toBe(0);
});

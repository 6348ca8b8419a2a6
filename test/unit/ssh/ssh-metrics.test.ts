import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import type { AuditRecord } from '../../../src/ssh/audit.ts';
import { createSshMetrics } from '../../../src/ssh/ssh-metrics.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

it('each connection that tries to log in counts once, by its outcome, and no label says who it was', async () => {
  const registry = new Registry();
  const { countLogin, watchConnections } = createSshMetrics(registry);
  const ceilingsOf = () => ({ ...DEFAULT_CEILINGS, ssh: { ...DEFAULT_CEILINGS.ssh, connections: 1 } });
  const { server, key } = await loneGateway({ countLogin, ceilingsOf });
  watchConnections(() => server.connections);
  const series = async (): Promise<Record<string, number>> => {
    const text = await registry.getSingleMetricAsString('berth_ssh_logins_total');
    const lines = text.matchAll(/outcome="(\w+)"\} (\d+)/g);
    return Object.fromEntries([...lines].map(([, outcome, value]) => [outcome, Number(value)]));
  };
  expect(await series()).toEqual({ accepted: 0, denied: 0, limited: 0, hurried: 0, refused: 0 });

  const client = await loginTo(server, key);
  expect(await loginTo(server, key)).toBeUndefined();
  expect(await loginTo(server, newEd25519Key('').private)).toBeUndefined();
  await waitFor('the refusal to count', async () => (await series())['denied'] === 1);
  expect(await series()).toEqual({ accepted: 1, denied: 1, limited: 1, hurried: 0, refused: 0 });
  const text = await registry.metrics();
  expect(text).toContain('berth_ssh_connections 1');
  expect(text).not.toMatch(/team|i-one|127\.0\.0\.1/);
  client?.end();
  await server.close(0);
});

it.each([
  ['is stopped', undefined, undefined],
  [
    'runs and is not reached',
    { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: false },
    'unreachable',
  ],
])('a session on an instance that %s has a way of its own', async (_what, target, way) => {
  const records: AuditRecord[] = [];
  const { server, key } = await loneGateway({ audit: (record) => records.push(record) }, target);
  const client = await loginTo(server, key);
  client?.exec('true', (_error, channel) => channel.resume());
  const ended = await waitFor('the end of the session', () => records.find(({ event }) => event === 'session'));
  expect(ended).toMatchObject({ kind: 'command', way });
  client?.end();
  await server.close(0);
});

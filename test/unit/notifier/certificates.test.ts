import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TargetRules } from '../../../src/notifier/addresses.ts';
import { Targets } from '../../../src/notifier/target.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';

const LOOPBACK = [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' as const }];
const usual = getCACertificates('default');
const authority = await createAuthority('test');
const stranger = await createAuthority('stranger');
const servers: Server[] = [];

async function targetOf(signer: typeof authority, host: string): Promise<string> {
  const { certificate, key } = await issue(signer, { commonName: host, hosts: [host] });
  const server = createServer({ cert: certificate, key }, (_request, response) => response.writeHead(204).end());
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `https://hooks.example.com:${(server.address() as AddressInfo).port}/`;
}

beforeAll(() => setDefaultCACertificates([...usual, authority.certificate]));
afterAll(() => {
  setDefaultCACertificates(usual);
  for (const server of servers) server.close();
});

it('a certificate must be of a known authority and for the name, whatever the environment says', async () => {
  const resolve = () => Promise.resolve(['127.0.0.1']);
  const targets = new Targets({ rules: new TargetRules(LOOPBACK), resolve, clock: systemClock() });
  const deliver = (url: string) => targets.deliver({ url, headers: {}, body: '{}' }, new AbortController().signal);
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  try {
    expect(await deliver(await targetOf(authority, 'hooks.example.com'))).toEqual({ kind: 'delivered' });
    const refused = { kind: 'unreachable', why: 'certificate' };
    expect(await deliver(await targetOf(authority, 'other.example.com'))).toEqual(refused);
    expect(await deliver(await targetOf(stranger, 'hooks.example.com'))).toEqual(refused);
  } finally {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
  }
});

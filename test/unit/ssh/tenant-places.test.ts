import { promisify } from 'node:util';
import type { Client, ClientChannel } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import type { CeilingsOf } from '../../../src/access/ceilings.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { TenantPlaces } from '../../../src/ssh/tenant-places.ts';
import { silentProgram } from '../../support/silent-program.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: true };

const clients: Client[] = [];
const ends: (() => Promise<unknown>)[] = [];
let server: SshServer;
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const end of ends.splice(0)) await end();
});

function ceilings(ssh: Partial<typeof DEFAULT_CEILINGS.ssh>): CeilingsOf {
  return () => ({ ...DEFAULT_CEILINGS, policies: ['gold'], ssh: { ...DEFAULT_CEILINGS.ssh, ...ssh } });
}

async function gateway(ceilingsOf: CeilingsOf): Promise<() => Promise<Client | undefined>> {
  const silence = await silentProgram();
  const { server: started, key } = await loneGateway({ ceilingsOf, endpoint: silence.endpoint }, TARGET);
  server = started;
  ends.push(() => started.close(0), silence.end);
  return async () => {
    const client = await loginTo(started, key, (banner) => banners.push(banner));
    if (client !== undefined) clients.push(client);
    return client;
  };
}
const banners: string[] = [];

describe('the connections of a tenant', () => {
  it('end at its ceiling, with words, and go on when one ends', async () => {
    const login = await gateway(ceilings({ connections: 2 }));
    const first = await login();
    expect([first, await login(), await login()].map((client) => client !== undefined)).toEqual([true, true, false]);
    expect(banners.join('')).toContain(
      'berth: namespace team has 2 SSH connections, and its limit is 2. End one of them. The operator can change ssh.connections in TenantPolicy gold.',
    );
    first?.destroy();
    await waitFor('a place', () => server.connections === 1);
    expect(await login()).toBeDefined();
  });
});

describe('the channels of a tenant', () => {
  it('end at its ceiling, over all its connections, with words', async () => {
    const login = await gateway(ceilings({ channels: 3 }));
    const [one, two] = [await login(), await login()];
    if (one === undefined || two === undefined) throw new Error('refused');
    const exec = (client: Client): Promise<ClientChannel> =>
      promisify<string, ClientChannel>(client.exec.bind(client))('sleep');
    await Promise.all([exec(one), exec(one), exec(two)]);
    const words =
      /namespace team has 3 open SSH channels, and its limit is 3\..*change ssh\.channels in TenantPolicy gold/;
    await expect(exec(two)).rejects.toThrow(words);
    const forward = promisify<string, number, string, number, ClientChannel>(two.forwardOut.bind(two));
    await expect(forward('', 0, '127.0.0.1', 80)).rejects.toThrow(words);
    one.destroy();
    await waitFor('a place', () => exec(two).then(Boolean, () => false));
  });

  it('of one connection are at most 128', async () => {
    const client = await (await gateway(ceilings({})))();
    if (client === undefined) throw new Error('refused');
    const exec = promisify<string, ClientChannel>(client.exec.bind(client));
    await Promise.all(Array.from({ length: 128 }, () => exec('sleep')));
    await expect(exec('sleep')).rejects.toThrow('this connection has 128 open channels');
  });
});

describe('the places of a replica', () => {
  it('are shared by all tenants, and each tenant has its own ceiling', () => {
    const places = new TenantPlaces(ceilings({ connections: 2 }), { connections: 8, channels: 1 });
    const taken = ['a', 'a', 'a', 'b', 'b'].map((tenant) => places.take('connections', tenant));
    expect(taken.map((words) => words === undefined)).toEqual([true, true, false, true, true]);
    expect(taken[2]).toContain('namespace a has 2');
    places.give('connections', 'a');
    expect(places.take('connections', 'a')).toBeUndefined();
  });

  it.each(['connections', 'channels'] as const)('have room for one more tenant, whoever takes all %s', (place) => {
    const places = new TenantPlaces(ceilings({}), { connections: 100, channels: 100 });
    const taken = ['a', 'b', 'c'].map((tenant) =>
      Array.from({ length: 100 }, () => places.take(place, tenant)).filter((words) => words === undefined),
    );
    expect(taken[0]).toHaveLength(50);
    expect(places.take(place, 'a')).toContain('keeps room for other tenants');
    expect(places.take(place, 'honest')).toBeUndefined();
  });
});

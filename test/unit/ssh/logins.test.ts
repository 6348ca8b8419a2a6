import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { loginTo, loneGateway, type LoneGateway, NO_ADDRESS_LIMITS } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

const LIMITS = { ...NO_ADDRESS_LIMITS, failures: 2, failureWindowSeconds: 10 };

let server: SshServer | undefined;
afterEach(() => server?.close(0));

async function gateway(overrides: Parameters<typeof loneGateway>[0]): Promise<LoneGateway> {
  const started = await loneGateway(overrides);
  server = started.server;
  return started;
}

/** Connects and waits for the first word of the server; undefined when it hangs up instead. */
async function greeting(port: number): Promise<string | undefined> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write('SSH-2.0-OpenSSH_9.9\r\n');
  const heard = await new Promise<string | undefined>((resolve) => {
    socket.once('data', (bytes) => resolve(String(bytes))).once('close', () => resolve(undefined));
  });
  socket.destroy();
  return heard;
}

describe('logins that fail', () => {
  it('shut the address out, also for the right key, until time has passed', async () => {
    const clock = fakeClock();
    const { server: gate, key } = await gateway({ addressLimits: LIMITS, clock });
    const wrong = newEd25519Key('').private;
    expect(await loginTo(gate, wrong)).toBeUndefined();
    expect(await greeting(gate.address.port)).toContain('SSH-2.0-Berth');
    expect(await loginTo(gate, wrong)).toBeUndefined();
    await waitFor('a refusal', async () => (await greeting(gate.address.port)) === undefined);
    expect(await loginTo(gate, key)).toBeUndefined();
    clock.stall(6000);
    expect(await loginTo(gate, key)).toBeDefined();
  });

  it('are not those that succeed', async () => {
    const { server: gate, key } = await gateway({ addressLimits: LIMITS, clock: fakeClock() });
    for (let login = 0; login < 4; login += 1) {
      const client = await loginTo(gate, key);
      if (client === undefined) throw new Error(`Login ${login} was refused.`);
      const closed = once(client, 'close');
      client.end();
      await closed;
    }
  });
});

describe('a tenant that logs in too often', () => {
  it('is refused with words, from an address of its own before any key exchange, until time has passed', async () => {
    const clock = fakeClock();
    const outcomes: string[] = [];
    const addressLimits = { ...NO_ADDRESS_LIMITS, logins: { burst: 2, perSecond: 1 } };
    const { server: gate, key } = await gateway({
      addressLimits,
      clock,
      countLogin: (outcome) => void outcomes.push(outcome),
    });
    const banners: string[] = [];
    const from = (localAddress: string) => loginTo(gate, key, (text) => banners.push(text), { localAddress });
    expect(await from('127.0.0.1')).toBeDefined();
    expect(await from('127.0.0.1')).toBeDefined();
    expect(await from('127.0.0.2')).toBeUndefined();
    expect(banners.join('')).toContain('berth: namespace team logs in too often. Try again in ten seconds.');
    expect(await from('127.0.0.1')).toBeUndefined();
    expect(banners.join('')).toContain('berth: too many logins from your network. Try again in ten seconds.');
    expect(outcomes).toEqual(['accepted', 'accepted', 'hurried', 'hurried']);
    clock.stall(1000);
    expect(await from('127.0.0.1')).toBeDefined();
  });
});

describe('the signatures that the gateway announces', () => {
  it('are those that it accepts, each by its name (RFC 8308)', async () => {
    const { server: gate, key } = await gateway({});
    const client = new ssh2.Client();
    const heard = new Promise<unknown>((resolve) => {
      client.once('connect', () => {
        // What ssh2's client keeps to itself (lib/client.js, 1.17).
        const { _protocol: inside } = client as unknown as {
          _protocol: { _handlers: Record<string, (protocol: unknown, extensions: unknown) => void> };
        };
        inside._handlers['EXT_INFO'] = (_protocol, extensions) => resolve(extensions);
      });
    });
    client.connect({ host: '127.0.0.1', port: gate.address.port, username: 'i-one', privateKey: key });
    const ecdsa = ['ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'];
    const rsa = ['rsa-sha2-512', 'rsa-sha2-256'];
    const keys = ['ssh-ed25519', 'sk-ssh-ed25519@openssh.com', ...ecdsa, 'sk-ecdsa-sha2-nistp256@openssh.com', ...rsa];
    expect(await heard).toEqual([{ name: 'server-sig-algs', algs: keys }]);
    client.destroy();
  });
});

describe('silent connections that take every place', () => {
  it('keep nobody from logging in', async () => {
    const { server: gate, key } = await gateway({ maxPending: 8 });
    const silent = Array.from({ length: 8 }, (_, index) =>
      connect({ port: gate.address.port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (index % 2)}` }),
    );
    const closed = new Set<number>();
    for (const [index, socket] of silent.entries()) {
      socket.on('error', () => undefined).once('close', () => closed.add(index));
    }
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    expect(await loginTo(gate, key)).toBeDefined();
    await waitFor('the one that makes room', () => closed.size === 1);
    for (const socket of silent) socket.destroy();
  });
});

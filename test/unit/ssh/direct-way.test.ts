import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BlockedPods } from '../../../src/direct/blocked-pods.ts';
import { dialTls } from '../../../src/direct/dial.ts';
import { DirectWay } from '../../../src/ssh/direct-way.ts';
import { FROM_POD, headerOf } from '../../../src/direct/frames.ts';
import { NO_TURN } from '../../../src/lib/byte-turns.ts';
import { FairBytes } from '../../../src/lib/shares.ts';
import { channelServer, frame, type ChannelServer } from '../../support/channel-server.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';

const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: true, address: '127.0.0.1' };
const TEN_MINUTES = 10 * 60_000;

type Identity = Awaited<ReturnType<typeof newIdentity>>;

async function newIdentity() {
  const issued = await issue(await createAuthority('test'), { commonName: 'helper', hosts: ['127.0.0.1'] });
  return { ...issued, der: new X509Certificate(issued.certificate).raw };
}

const own = await newIdentity();
const other = await newIdentity();

let kubelet: ChannelServer;
let gone: AbortController;
const servers: { close(): void }[] = [];

beforeAll(async () => {
  kubelet = await channelServer('v5.channel.k8s.io');
});
afterAll(() => kubelet.close());
beforeEach(() => {
  gone = new AbortController();
  kubelet.paths.length = 0;
});
afterEach(() => {
  gone.abort();
  for (const server of servers.splice(0)) server.close();
});

/** A helper that listens with one certificate and announces another or the same. */
async function helper(uses: Identity, announces: Identity): Promise<{ received: Buffer[]; hellos: string[] }> {
  const received: Buffer[] = [];
  const hellos: string[] = [];
  const server = createServer({ key: uses.key, cert: uses.certificate }, (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk);
      socket.write(headerOf(FROM_POD.pong, 0, 0));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const certificate = announces.der.toString('base64');
  kubelet.onStream = (stream) => {
    stream.on('message', (data: Buffer) => hellos.push(data.subarray(1).toString()));
    stream.send(frame(1, `${JSON.stringify({ port, certificate })}\n`));
  };
  return { received, hellos };
}

function way(clock = fakeClock()): DirectWay {
  const log = pino({ level: 'silent' });
  const { endpoint } = kubelet;
  return new DirectWay(
    {
      endpoint,
      dial: dialTls,
      clock,
      blocked: new BlockedPods(clock),
      log,
      portion: new FairBytes(0).of('team'),
      turn: NO_TURN,
    },
    gone.signal,
  );
}

describe('the direct way', () => {
  it('is opened once for all that ask, with the token of the exec stream', async () => {
    const { received, hellos } = await helper(own, own);
    const direct = way();
    const [one, two] = await Promise.all([direct.to(TARGET), direct.to(TARGET)]);
    expect(one?.isOpen).toBe(true);
    expect(two).toBe(one);
    expect(kubelet.paths).toHaveLength(1);
    const { token, address } = JSON.parse(hellos[0] ?? '') as { token: string; address: string };
    expect(address).toBe('127.0.0.1');
    expect(received[0]?.subarray(0, 32).toString('hex')).toBe(token);
    // The API server's audit log has the path.
    expect(kubelet.paths[0]).not.toContain(token);
    gone.abort();
    await one?.closed;
  });

  it('gives no token to one who listens with another certificate', async () => {
    const { received } = await helper(other, own);
    expect(await way().to(TARGET)).toBeUndefined();
    expect(received).toEqual([]);
  });

  it.each([
    ['no line', (): string => ''],
    ['no JSON', () => 'hello\n'],
    ['no port', () => '{"certificate":"AAAA"}\n'],
    ['a port that is none', () => '{"port":70000,"certificate":"AAAA"}\n'],
    ['no certificate', () => '{"port":50000,"certificate":"AAAA"}\n'],
    ['why it cannot', () => '{"error":"no address"}\n'],
    ['an endless line', () => 'x'.repeat(20_000)],
  ])('is closed when the helper says %s, and asked again later', async (_what, text) => {
    const clock = fakeClock();
    const direct = way(clock);
    kubelet.onStream = (stream) => {
      stream.send(frame(1, text()));
      // A helper that says nothing has ended; the others stay.
      if (text() === '') stream.send(frame(3, JSON.stringify({ status: 'Failure', message: 'no such file' })));
    };
    expect(await direct.to(TARGET)).toBeUndefined();
    expect(await direct.to(TARGET)).toBeUndefined();
    expect(kubelet.paths).toHaveLength(1);
    await helper(own, own);
    expect(await direct.to({ ...TARGET, uid: 'another' })).toBeDefined();
    await clock.advance(TEN_MINUTES);
    expect(await direct.to(TARGET)).toBeDefined();
  });

  it('is not tried without tools or an address', async () => {
    expect(await way().to({ ...TARGET, tools: false })).toBeUndefined();
    expect(await way().to({ ...TARGET, address: undefined })).toBeUndefined();
    expect(kubelet.paths).toEqual([]);
  });

  it('says that the pod cannot be reached when the stream breaks, and keeps nothing of it', async () => {
    const direct = way();
    kubelet.onStream = (stream) => stream.once('message', () => stream.terminate());
    await expect(direct.to(TARGET)).rejects.toThrow('The connection to the API server was lost');
    await helper(own, own);
    expect(await direct.to(TARGET)).toBeDefined();
  });

  it('opens a new link for the next session when the last one was lost', async () => {
    await helper(own, own);
    const direct = way();
    const first = await direct.to(TARGET);
    first?.close();
    const second = await direct.to(TARGET);
    expect(second).not.toBe(first);
    expect(second?.isOpen).toBe(true);
  });
});

import type { Duplex } from 'node:stream';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { DirectAddress } from '../../../src/direct/dial.ts';
import { FROM_POD, TO_POD } from '../../../src/direct/frames.ts';
import { ByteTurns } from '../../../src/lib/byte-turns.ts';
import { PodLinks } from '../../../src/ports/pod-links.ts';
import type { PortTarget } from '../../../src/ports/target.ts';
import { channelServer, frame, type ChannelServer } from '../../support/channel-server.ts';
import { DirectPod } from '../../support/direct-pod.ts';
import { fakeClock, settle, type FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const TARGET: PortTarget = {
  namespace: 'team',
  instance: 'i',
  pod: 'i-1',
  podUid: 'u',
  port: 7000,
  address: '10.0.0.7',
  jupyter: false,
};
const PORT = Uint8Array.of(0x9e, 0xac);
const TOKEN_BYTES = 32;
const TEN_MINUTES = 10 * 60_000;

let kubelet: ChannelServer;
let clock: FakeClock;
let pods: DirectPod[];
/** How many pings of a pod were answered. */
const answered = new WeakMap<DirectPod, number>();
let dialed: DirectAddress[];
let hellos: string[];
let logged: string;
let links: PodLinks;

/** What the helper says for each stream that reaches it. */
function says(channel: number, words: string): void {
  kubelet.onStream = (stream) => {
    stream.on('message', (data: Buffer) => hellos.push(data.subarray(1).toString()));
    stream.send(frame(0, PORT));
    stream.send(frame(1, PORT));
    stream.send(frame(channel, words));
  };
}

beforeAll(async () => {
  kubelet = await channelServer('v4.channel.k8s.io');
});
afterAll(() => kubelet.close());
beforeEach(() => {
  kubelet.paths.length = 0;
  [clock, pods, dialed, hellos, logged] = [fakeClock(), [], [], [], ''];
  says(0, '{"port":50123,"certificate":"AAAA"}\n');
  links = new PodLinks({
    endpoint: kubelet.endpoint,
    turns: new ByteTurns(clock),
    clock,
    log: pino({ level: 'info' }, { write: (line: string) => void (logged += line) }),
    dial: (address) => {
      dialed.push(address);
      const pod = new DirectPod(TOKEN_BYTES);
      pods.push(pod);
      pod.send(FROM_POD.pong, 0);
      return Promise.resolve(pod.wire);
    },
  });
});
afterEach(() => links.close());

it('all connections to a pod share a link, whose token came through the API server', async () => {
  const sockets = await Promise.all([
    links.connect(TARGET),
    links.connect({ ...TARGET, port: 8080 }),
    links.connect(TARGET),
  ]);
  expect(sockets.every((socket) => socket !== undefined)).toBe(true);
  expect(kubelet.paths).toEqual(['/api/v1/namespaces/team/pods/i-1/portforward?ports=44190']);
  expect(dialed).toEqual([{ host: '10.0.0.7', port: 50_123, certificate: Buffer.alloc(3) }]);
  await waitFor('the line of the gateway', () => hellos.length === 1);
  expect(JSON.parse(hellos[0] ?? '')).toEqual({
    version: 1,
    address: '10.0.0.7',
    token: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  });
  await settle();
  expect(pods[0]?.of(TO_POD.open).map(({ payload }) => String(payload))).toEqual([
    '{"port":7000}',
    '{"port":8080}',
    '{"port":7000}',
  ]);
});

it('another pod has another link', async () => {
  await links.connect(TARGET);
  await links.connect({ ...TARGET, pod: 'j-1', podUid: 'v', address: '10.0.0.8' });
  expect(dialed.map(({ host }) => host)).toEqual(['10.0.0.7', '10.0.0.8']);
});

it('an instance without a helper is asked once in ten minutes', async () => {
  says(1, 'connection refused');
  expect(await Promise.all([links.connect(TARGET), links.connect(TARGET)])).toEqual([undefined, undefined]);
  expect(await links.connect(TARGET)).toBeUndefined();
  expect(kubelet.paths).toHaveLength(1);
  expect(logged).toContain('connection refused');
  says(0, '{"port":50123,"certificate":"AAAA"}\n');
  await clock.advance(TEN_MINUTES);
  expect(await links.connect(TARGET)).toBeDefined();
});

it.each([
  ['no line', ''],
  ['an endless line', 'x'.repeat(20_000)],
  ['why it cannot', '{"error":"no address"}\n'],
])('a helper that says %s is not asked again at once', async (_what, words) => {
  kubelet.onStream = (stream) => {
    stream.send(frame(0, PORT));
    stream.send(frame(0, words));
    if (words === '') stream.close();
  };
  expect(await links.connect(TARGET)).toBeUndefined();
  expect(await links.connect(TARGET)).toBeUndefined();
  expect(kubelet.paths).toHaveLength(1);
});

it('without tools or an address nothing is asked', async () => {
  expect(await links.connect({ ...TARGET, address: undefined })).toBeUndefined();
  expect(kubelet.paths).toEqual([]);
});

it('an API server that does not answer is asked again', async () => {
  const away = { server: 'http://127.0.0.1:1', tls: {}, headers: () => Promise.resolve({}) };
  const lost = new PodLinks({
    endpoint: away,
    dial: () => Promise.reject(new Error('no')),
    clock,
    log: pino(),
    turns: new ByteTurns(clock),
  });
  expect(await lost.connect(TARGET)).toBeUndefined();
  expect(logged).toBe('');
});

async function closed(socket: Duplex | undefined): Promise<void> {
  await waitFor('its end', () => socket?.closed);
}

/** Lets time pass, in which the pods answer pings. */
async function pass(seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= 10) {
    await clock.advance(Math.min(left, 10) * 1000);
    await settle();
    for (const pod of pods.filter(({ socket }) => !socket.destroyed)) {
      while (pod.of(TO_POD.ping).length > (answered.get(pod) ?? 0)) {
        answered.set(pod, (answered.get(pod) ?? 0) + 1);
        pod.send(FROM_POD.pong, 0);
      }
    }
    await settle();
  }
}

it('a link that breaks takes its connections along, and the next one opens another', async () => {
  const socket = await links.connect(TARGET);
  pods[0]?.hangUp();
  await closed(socket);
  expect(await links.connect(TARGET)).toBeDefined();
  expect(dialed).toHaveLength(2);
});

it('a link lasts a minute longer than its last connection', async () => {
  const [one, two] = await Promise.all([links.connect(TARGET), links.connect(TARGET)]);
  one?.destroy();
  await closed(one);
  await pass(60);
  expect(pods[0]?.socket.writableEnded).toBe(false);
  two?.destroy();
  await closed(two);
  await pass(59);
  const three = await links.connect(TARGET);
  await pass(60);
  expect(three?.destroyed).toBe(false);
  three?.destroy();
  await closed(three);
  await pass(60);
  await waitFor('the end of the link', () => pods[0]?.socket.writableEnded);
  expect(await links.connect(TARGET)).toBeDefined();
  expect(dialed).toHaveLength(2);
});

it('after the end nothing opens, and what is open is over', async () => {
  const socket = await links.connect(TARGET);
  links.close();
  await closed(socket);
  expect(await links.connect(TARGET)).toBeUndefined();
});

it('one tenant leaves links to others', async () => {
  const pod = (n: number): PortTarget => ({ ...TARGET, podUid: `u${n}` });
  const many = await Promise.all(Array.from({ length: 520 }, (_, n) => links.connect(pod(n))));
  expect(many.filter((socket) => socket !== undefined)).toHaveLength(512);
  expect(await links.connect({ ...pod(1000), namespace: 'others' })).toBeDefined();
});

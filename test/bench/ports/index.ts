import { once } from 'node:events';
import { cpus, loadavg } from 'node:os';
import { Pool } from 'undici';
import { WebSocket } from 'ws';
import { runMain } from '../../../tools/lib/failure.ts';
import { withCluster } from '../cluster.ts';
import { type Aim, judged, quantile } from '../figures.ts';
import { makePlace, type Place, type Way } from './place.ts';

// Ports of instances through Berth, beside connections to the address of the pod, and such through a bare relay, in turns:
// `npm run bench:ports [-- MESSAGES [ROUNDS]]`. Brings up its own cluster; needs root.

const [messages = 1000, rounds = 5] = process.argv.slice(2).map(Number);
const LARGE_MESSAGES = 256;
const LARGE_MIB = LARGE_MESSAGES / 4;

async function open({ url, headers }: Way, path: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers, perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

async function closed(socket: WebSocket): Promise<void> {
  const close = once(socket, 'close');
  socket.close();
  await close;
}

/** Milliseconds of each of `count` calls of `work`, one after the other. */
async function times(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const start = performance.now();
    await work();
    all.push(performance.now() - start);
  }
  return all;
}

/** Median milliseconds of a message of 64 bytes there and back. */
async function echo(way: Way): Promise<number> {
  const socket = await open(way, '/echo');
  const message = Buffer.alloc(64, 'x');
  const all = await times(messages, async () => {
    const back = once(socket, 'message');
    socket.send(message);
    await back;
  });
  await closed(socket);
  return quantile(all, 0.5);
}

/** Milliseconds until a WebSocket has taken what the instance sends. */
async function large(way: Way): Promise<number> {
  const socket = await open(way, '/large');
  const [ms = Number.NaN] = await times(1, async () => {
    const all = Promise.withResolvers<void>();
    let arrived = 0;
    socket.on('message', () => {
      arrived += 1;
      if (arrived === LARGE_MESSAGES) all.resolve();
    });
    socket.send(String(LARGE_MESSAGES));
    await all.promise;
  });
  await closed(socket);
  return ms;
}

/** Median milliseconds of a page of 1 KiB on a connection that is kept. */
async function page({ url, headers }: Way): Promise<number> {
  const { origin, pathname } = new URL(`${url}/`);
  const pool = new Pool(origin, { connections: 1 });
  const all = await times(messages / 2, async () => {
    const { body } = await pool.request({ method: 'GET', path: pathname, headers });
    await body.dump();
  });
  await pool.close();
  return quantile(all, 0.5);
}

type Format = (ms: number) => string;

interface Figure {
  /** Milliseconds. */
  measure: (way: Way) => Promise<number>;
  format: Format;
  /** Of Berth: milliseconds over the address of the pod, or how many times as long. */
  aim: { over: Aim } | { over?: undefined; times: Aim };
}

const asMs: Format = (ms) => `${ms.toFixed(2)} ms`;
const asRate: Format = (ms) => `${((LARGE_MIB / ms) * 1000).toFixed(0)} MiB/s`;

/** Client, Berth and instance have these cores between them. */
const ARE_FEW = cpus().length <= 2;
const MOST_TIMES = 1.3;
const CAUSE = 'it passes the api role and, by TLS, the helper in the pod, which share the cores of client and instance';
/** On few cores each process that a message wakes adds its time, so the aim for one is in milliseconds over direct. */
const ECHO = ARE_FEW ? { over: { most: 0.4, cause: CAUSE } } : { times: { most: MOST_TIMES, cause: CAUSE } };
const TIMES = { times: { most: MOST_TIMES, cause: CAUSE } };

/** Prints the medians of rounds in which the ways take turns, after one that does not count. */
async function row(name: string, ways: readonly Way[], { measure, format, aim }: Figure): Promise<void> {
  const all = ways.map((): number[] => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, way] of ways.entries()) {
      const value = await measure(way);
      if (round > 0) all[index]?.push(value);
    }
  }
  const medians = all.map((values) => quantile(values, 0.5));
  const [berth = Number.NaN, relay = Number.NaN, direct = Number.NaN] = medians;
  const ratio = berth / direct;
  const verdict = aim.over === undefined ? judged(aim.times, ratio) : `${judged(aim.over, berth - direct)}, ms over`;
  const ratios = [ratio, relay / direct].map((value) => value.toFixed(2));
  console.log(`| ${[name, ...medians.map(format), ...ratios, verdict].join(' | ')} |`);
}

async function measureAll({ berth, relay, direct }: Place): Promise<void> {
  console.log(`load average at the start: ${loadavg()[0]?.toFixed(2)}\n`);
  console.log('| figure | Berth | relay | pod address | times, Berth | times, relay | to reach |');
  console.log('|---|---|---|---|---|---|---|');
  const ways = [berth, relay, direct];
  await row('WebSocket, 64 bytes there and back', ways, { measure: echo, format: asMs, aim: ECHO });
  await row(`WebSocket, ${LARGE_MIB} MiB out`, ways, { measure: large, format: asRate, aim: TIMES });
  await row('page of 1 KiB', ways, { measure: page, format: asMs, aim: TIMES });
}

await runMain(() =>
  withCluster(async (kubeconfig, cluster) => {
    await using place = await makePlace(kubeconfig, cluster);
    await measureAll(place);
  }),
);

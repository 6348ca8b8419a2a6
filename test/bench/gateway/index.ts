import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CASES, type Case } from './cases.ts';
import { load, type LoadResult } from '../load.ts';
import { preparePeers } from './peers.ts';
import { withCluster } from '../cluster.ts';
import { runMain } from '../../../tools/lib/failure.ts';
import { startBerthTarget } from './berth.ts';
import { benchPrefix } from './prefix/index.ts';
import { cpuOf, freePort, peakMemory, start } from './processes.ts';
import { aimsTable, table } from './table.ts';
import type { Target } from './target.ts';

/**
 * Compares Berth's api role, on a cluster and as the chart runs it, with the engine alone, with the least that an Express
 * 5 handler can do, and with other gateways: all on this machine, one process each, in turns.
 * `npm run bench:gateway [-- ROUNDS SECONDS [NAME ...]]`; with names (`berth`, `bare`), only the targets that have one of
 * them in theirs. `-- prefix` compares ways to choose among llama.cpp servers. `node --cpu-prof --cpu-prof-dir=DIR
 * test/bench/gateway/index.ts` writes a profile of Berth, too.
 */
const [rounds = 3, seconds = 3] = process.argv.slice(2, 4).map(Number);
const only = process.argv.slice(4);
const KEY = 'bench-key';
const BARE = 'bare Express 5 + undici';
const HERE = import.meta.dirname;
/** Milliseconds of each kind of load before the first round: after less the compiler still works. */
const WARM_MS = 3000;
const SLOW_STREAMS = 1000;
const SLOW_GAP_MS = 250;
const loadAtStart = loadavg()
  .map((each) => each.toFixed(1))
  .join(' ');

export interface Measured {
  result: LoadResult;
  /** Microseconds of CPU per answer. */
  cpu: number;
}

function say(line: string): void {
  console.error(line);
}

async function waitReady(target: Target): Promise<boolean> {
  const body = CASES[0]?.body ?? '';
  const init = { method: 'POST', body, headers: { 'content-type': 'application/json', ...target.headers } };
  for (const until = performance.now() + 60_000; performance.now() < until;) {
    const response = await fetch(`http://127.0.0.1:${target.port}${target.chatPath}`, init).catch(() => undefined);
    await response?.text();
    if (response?.status === 200) return true;
    await delay(200);
  }
  return false;
}

/** Starts the targets, into `started`, and returns those that answer. */
async function startTargets(kubeconfig: string, started: Target[]): Promise<Target[]> {
  const run = (file: string, ...args: string[]) => start([process.execPath, join(HERE, file), ...args]);
  const [engine, bare] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${engine}`;
  started.push({
    name: 'direct',
    port: engine,
    headers: {},
    chatPath: '/v1/chat/completions',
    running: run('mock-engine.ts', String(engine), 'chat'),
  });
  if (isWanted(BARE))
    started.push({
      name: BARE,
      port: bare,
      headers: { authorization: `Bearer ${KEY}` },
      chatPath: '/api/v1/chat/completions',
      running: run('bare-express.ts', String(bare), origin, KEY),
    });
  if (isWanted('Berth')) started.push(await startBerthTarget(kubeconfig, engine));
  const peers = await preparePeers(origin, { isWanted, say });
  for (const peer of peers) started.push({ ...peer, running: start(peer.command, peer.env) });
  const ready: Target[] = [];
  for (const target of started) {
    if (await waitReady(target)) ready.push(target);
    else say(`Skipped ${target.name}: it did not answer within a minute.`);
  }
  return ready;
}

async function measure(target: Target, { dialect, body, connections }: Case): Promise<Measured | undefined> {
  const path = dialect === 'chat' ? target.chatPath : target.messagesPath;
  if (path === undefined) return undefined;
  const { port, headers, running } = target;
  const before = cpuOf(running);
  const result = await load({ port, path, headers, body, connections, duration: seconds * 1000 });
  return { result, cpu: (cpuOf(running) - before) / Math.max(1, result.count) };
}

/** Peak memory after a thousand streams that take five seconds each. */
async function slowStreams(target: Target): Promise<number> {
  const { port, headers, chatPath: path } = target;
  const body = JSON.stringify({ ...JSON.parse(CASES[0]?.body ?? '{}'), stream: true, mock_gap: SLOW_GAP_MS });
  const result = await load({ port, path, headers, body, connections: SLOW_STREAMS, duration: 1 });
  if (result.errors > 0) say(`${target.name}: ${result.errors} of ${SLOW_STREAMS} slow streams failed.`);
  return peakMemory(target.running);
}

/** Whether a target of this name is to be measured. */
function isWanted(name: string): boolean {
  return only.length === 0 || only.some((one) => name.toLowerCase().includes(one.toLowerCase()));
}

async function main(kubeconfig: string): Promise<void> {
  const started: Target[] = [];
  try {
    const targets = await startTargets(kubeconfig, started);
    const measured = new Map<string, Measured[]>();
    for (const target of targets)
      for (const scene of CASES) await load({ ...sceneOf(target, scene), duration: WARM_MS });
    for (let round = 0; round < rounds; round += 1) {
      for (const scene of CASES) {
        for (const target of targets) {
          const found = await measure(target, scene);
          const key = `${target.name}|${scene.title}`;
          if (found !== undefined) measured.set(key, [...(measured.get(key) ?? []), found]);
        }
      }
      say(`Round ${round + 1} of ${rounds} is done.`);
    }
    const memory = new Map<string, number>();
    for (const target of targets) if (target.name !== 'direct') memory.set(target.name, await slowStreams(target));
    console.log(`load average at the start: ${loadAtStart}\n`);
    console.log(table(targets, measured, memory));
    const rivals = targets.flatMap(({ name }) => (name.includes('cache-aware') ? [name] : []));
    const berth = targets.find(({ name }) => name.includes('Berth'))?.name ?? '';
    console.log(`\n${aimsTable({ berth, bare: BARE, rivals }, measured)}`);
  } finally {
    for (const { running } of started) await running.stop();
  }
}

/** Warms a target up: no round pays for compilation. */
function sceneOf({ port, headers, chatPath, messagesPath }: Target, { dialect, body, connections }: Case) {
  return { port, headers, path: (dialect === 'chat' ? chatPath : messagesPath) ?? chatPath, body, connections };
}

await runMain(() => (process.argv[2] === 'prefix' ? benchPrefix() : withCluster(main)));

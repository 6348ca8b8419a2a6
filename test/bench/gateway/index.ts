import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CASES, type Case } from './cases.ts';
import { load, type LoadResult } from '../load.ts';
import { preparePeers } from './peers.ts';
import { benchPrefix } from './prefix/index.ts';
import { cpuOf, freePort, peakMemory, start, type Running } from './processes.ts';
import { table } from './table.ts';

/**
 * Compares the gateway with the engine alone, with the least that an Express 5 handler can do, and with other gateways:
 * all on this machine, one process each, in turns. `npm run bench:gateway [-- rounds seconds]`; `-- 1 1` is quick,
 * `-- prefix` compares ways to choose among llama.cpp servers.
 */
const [rounds = 3, seconds = 3] = process.argv.slice(2).map(Number);
const KEY = 'bench-key';
const HERE = import.meta.dirname;
const SLOW_STREAMS = 1000;
const SLOW_GAP_MS = 250;

export interface Target {
  name: string;
  port: number;
  headers: Record<string, string>;
  chatPath: string;
  messagesPath?: string | undefined;
  running: Running;
}

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

async function startTargets(): Promise<Target[]> {
  const run = (file: string, ...args: string[]) => start([process.execPath, join(HERE, file), ...args]);
  const [engine, bare, berth] = [await freePort(), await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${engine}`;
  const headers = { authorization: `Bearer ${KEY}` };
  const [chatPath, messagesPath] = ['/api/v1/chat/completions', '/api/v1/messages'];
  const engineRunning = run('mock-engine.ts', String(engine), 'chat');
  const targets: Target[] = [
    { name: 'direct', port: engine, headers: {}, chatPath: '/v1/chat/completions', running: engineRunning },
    {
      name: 'bare Express 5 + undici',
      port: bare,
      headers,
      chatPath,
      running: run('bare-express.ts', String(bare), origin, KEY),
    },
    {
      name: '**Berth**',
      port: berth,
      headers,
      chatPath,
      messagesPath,
      running: run('berth-gateway.ts', String(berth), String(engine), KEY),
    },
  ];
  for (const peer of await preparePeers(origin, say)) targets.push({ ...peer, running: start(peer.command, peer.env) });
  const ready: Target[] = [];
  for (const target of targets) {
    if (await waitReady(target)) ready.push(target);
    else {
      say(`Skipped ${target.name}: it did not answer within a minute.`);
      await target.running.stop();
    }
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

async function main(): Promise<void> {
  const targets = await startTargets();
  try {
    const measured = new Map<string, Measured[]>();
    for (const target of targets) for (const scene of CASES) await load({ ...sceneOf(target, scene), duration: 500 });
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
    console.log(table(targets, measured, memory));
  } finally {
    for (const { running } of targets) await running.stop();
  }
}

/** Warms a target up: no round pays for compilation. */
function sceneOf({ port, headers, chatPath, messagesPath }: Target, { dialect, body, connections }: Case) {
  return { port, headers, path: (dialect === 'chat' ? chatPath : messagesPath) ?? chatPath, body, connections };
}

await (process.argv[2] === 'prefix' ? benchPrefix() : main());

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runMain } from '../../../tools/lib/failure.ts';
import { withCluster } from '../cluster.ts';
import { judged, ms, quantile } from '../figures.ts';
import { startApi } from '../gateway/berth.ts';
import { cpuOf, freePort, type Running, start } from '../gateway/processes.ts';
import { call, type Way } from './calls.ts';

/**
 * What a tenant who makes a call now and then waits for the first token while another offers a thousand calls of 50 KB a
 * second to the same model, and what the engine does meanwhile: through Berth, and through a gateway without a queue.
 * `npm run bench:flood [-- SECONDS [PER_SECOND]]`
 */
const [seconds = 20, perSecond = 1000] = process.argv.slice(2).map(Number);
const KEY = 'bench-key';
const HERE = import.meta.dirname;
/** A call of the honest tenant begins so long after the one before, whether or not that has ended. */
const HONEST_MS = 500;
/** Until the engine is full and the gateway has seen it. */
const WARM_MS = 5000;
/** Calls at once with which the engine is full, and no more. */
const ALONE_WIDTH = 64;
/** At its 99th percentile a call waits for 0.99 of a prompt of the same length, and then for its own. */
const TIMES = { most: 2, cause: 'the engine reads a prompt to its end before the next, so 2.0 is the least' };
const ENGINE = { least: 95, cause: 'the engine had nothing to read for some steps' };
const HONEST_FROM = '127.0.0.1';
const FLOOD_FROM = '127.0.0.2';

interface Gateway {
  name: string;
  port: number;
  running: Running;
  honest: Record<string, string>;
  flood: Record<string, string>;
}

interface Felt {
  /** Milliseconds to the first token. Of a call that had none, until the end of the measurement. */
  times: number[];
  unanswered: number;
  /** Tokens that the engine read and wrote, a second. */
  tokens: number;
  /** Per cent of a core. */
  cpu: number;
}

async function ready(way: Way): Promise<void> {
  for (let tries = 0; (await call(way)) !== 200; tries += 1) {
    if (tries > 200) throw new Error(`Nothing answers at port ${way.port}.`);
    await delay(300);
  }
}

async function tokensOf(engine: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${engine}/metrics`)).text();
  return [...text.matchAll(/tokens_total\S* (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Tokens a second of the engine while it is kept full without a gateway. */
async function alone(engine: number): Promise<number> {
  const way = { port: engine, path: '/v1/chat/completions', headers: {}, from: HONEST_FROM };
  const until = performance.now() + WARM_MS + seconds * 1000;
  const lanes = Array.from({ length: ALONE_WIDTH }, async () => {
    while (performance.now() < until) await call(way);
  });
  await delay(WARM_MS);
  const before = await tokensOf(engine);
  await delay(seconds * 1000);
  const tokens = (await tokensOf(engine)) - before;
  await Promise.all(lanes);
  return tokens / seconds;
}

async function feel(engine: number, { port, honest, running }: Gateway): Promise<Felt> {
  const way = { port, path: '/api/v1/chat/completions', headers: honest, from: HONEST_FROM };
  const times: number[] = [];
  const begun: number[] = [];
  const [tokens, cpu, from] = [await tokensOf(engine), cpuOf(running), performance.now()];
  for (const until = from + seconds * 1000; performance.now() < until;) {
    const at = begun.push(performance.now()) - 1;
    void call(way, () => {
      times.push(performance.now() - (begun[at] ?? 0));
      begun[at] = Number.NaN;
    });
    await delay(HONEST_MS);
  }
  const now = performance.now();
  const open = begun.filter((one) => !Number.isNaN(one)).map((one) => now - one);
  const passed = (now - from) / 1000;
  return {
    times: [...times, ...open],
    unanswered: open.length,
    tokens: ((await tokensOf(engine)) - tokens) / passed,
    cpu: (cpuOf(running) - cpu) / passed / 10_000,
  };
}

async function flooded(engine: number, gateway: Gateway): Promise<{ felt: Felt; said: string }> {
  const way: Way = { port: gateway.port, path: '/api/v1/chat/completions', headers: gateway.flood, from: FLOOD_FROM };
  const flooder = spawn(process.execPath, [join(HERE, 'flooder.ts'), String(perSecond)], {
    env: { ...process.env, WAY: JSON.stringify(way) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  flooder.stdout.setEncoding('utf8').on('data', (part: string) => (said += part));
  await delay(WARM_MS);
  const felt = await feel(engine, gateway);
  flooder.kill('SIGTERM');
  await once(flooder, 'close');
  return { felt, said };
}

function cells({ times, unanswered }: Felt): string {
  const lost = unanswered === 0 ? '' : `, ${unanswered} of ${times.length} not at all`;
  return `${ms(quantile(times, 0.5))} / ${ms(quantile(times, 0.99))}${lost}`;
}

/** An engine of its own for each, so that nothing of the other waits in it. */
async function measure(make: (engine: number) => Promise<Gateway>): Promise<void> {
  const engine = await freePort();
  const program = start([process.execPath, join(HERE, 'engine.ts'), String(engine)]);
  try {
    await ready({ port: engine, path: '/v1/chat/completions', headers: {}, from: HONEST_FROM });
    const most = await alone(engine);
    const gateway = await make(engine);
    try {
      await ready({ port: gateway.port, path: '/api/v1/chat/completions', headers: gateway.honest, from: HONEST_FROM });
      await feel(engine, gateway);
      const quiet = await feel(engine, gateway);
      const { felt, said } = await flooded(engine, gateway);
      const ratio = quantile(felt.times, 0.99) / quantile(quiet.times, 0.99);
      const part = (100 * felt.tokens) / most;
      console.log(
        `| ${[gateway.name, cells(quiet), cells(felt), ratio.toFixed(1), `${part.toFixed(0)} %`, `${felt.cpu.toFixed(0)} %`, judged(TIMES, ratio), judged(ENGINE, part)].join(' | ')} |`,
      );
      console.error(`${gateway.name}: the flooder, ${said.trim()}`);
    } finally {
      await gateway.running.stop();
    }
  } finally {
    await program.stop();
  }
}

await runMain(() =>
  withCluster(async (kubeconfig) => {
    console.log(
      `load average at the start: ${loadavg()
        .map((each) => each.toFixed(1))
        .join(' ')}\n`,
    );
    console.log(
      '| gateway | first token, quiet, p50 / p99 | under the flood | p99, times quiet | tokens of the engine, of what it does when full without a gateway | CPU of a core | times, to reach | engine, to reach |',
    );
    console.log('|---|---|---|---|---|---|---|---|');
    await measure(async (engine) => {
      const { port, tokens, running } = await startApi(kubeconfig, engine, 2);
      const [honest, flood] = tokens.map((token) => ({ authorization: `Bearer ${token}` }));
      return { name: '**Berth**', port, running, honest: honest ?? {}, flood: flood ?? {} };
    });
    await measure(async (engine) => {
      const port = await freePort();
      const command = [process.execPath, join(HERE, '../gateway/bare-express.ts'), String(port)];
      const headers = { authorization: `Bearer ${KEY}` };
      const running = start([...command, `http://127.0.0.1:${engine}`, KEY]);
      return { name: 'bare Express 5 + undici', port, running, honest: headers, flood: headers };
    });
  }),
);
process.exit(0);

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadavg } from 'node:os';
import { LLAMA_MODEL, prepareLlama, startLlama } from '../../../support/llama/server.ts';
import { quantile } from '../../figures.ts';
import { freePort, start } from '../processes.ts';
import { POLICIES, type Policy } from './policies.ts';
import { talk, type Answered } from './traffic.ts';

const ENGINES = 3;
const TRAFFIC = { people: 8, conversations: 2, turns: 5, seed: 1, model: LLAMA_MODEL };
/** Large enough that a prompt of 2,000 tokens takes about a second of one core. */
const SIZE = [256, 4] as const;
/** As many conversations as there are people fit into the caches of all engines together, and one more. */
const SLOTS = 3;
const CONTEXT = 8192;
const PARAMETERS = { n_parallel: SLOTS, n_ctx: SLOTS * CONTEXT, cache_ram_mib: 0 };

/**
 * The same conversations through the gateway to real llama.cpp servers with their prompt caches, with each way to choose
 * a server. The servers start anew for each. Takes about two minutes on two cores.
 */
export async function benchPrefix(): Promise<void> {
  const rows: string[] = [];
  let most = '';
  await prepareLlama({ size: SIZE });
  for (const policy of POLICIES) {
    const startedAt = performance.now();
    const answers = await measure(policy);
    const seconds = (performance.now() - startedAt) / 1000;
    rows.push(row(policy, answers));
    most = shareOf(answers, 'seenTokens');
    console.error(`${policy}: ${answers.length} calls in ${seconds.toFixed(0)} s, load ${loadavg()[0]?.toFixed(1)}`);
  }
  const title = '| | first token, mean s | p50 | p95 | prompt found in a cache |';
  console.log([title, '|---|---|---|---|---|', ...rows].join('\n'));
  console.log(`\n${most} of the prompts were part of the turn before: the most that there is to find.`);
}

async function measure(policy: Policy): Promise<Answered[]> {
  const options = { size: SIZE, parameters: PARAMETERS };
  const engines = await Promise.all(Array.from({ length: ENGINES }, () => startLlama(options)));
  const port = await freePort();
  const ports = engines.map((engine) => engine.port).join(',');
  const gateway = start([process.execPath, join(import.meta.dirname, 'gateway.ts'), `${port}`, ports, policy]);
  try {
    const base = `http://127.0.0.1:${port}/api`;
    await waitReady(base);
    return await talk({ ...TRAFFIC, base });
  } finally {
    await gateway.stop();
    for (const engine of engines) await engine.close();
  }
}

async function waitReady(base: string): Promise<void> {
  for (const until = performance.now() + 60_000; performance.now() < until; await delay(100)) {
    const response = await fetch(`${base}/v1/models/${LLAMA_MODEL}`).catch(() => undefined);
    const model = response?.ok ? ((await response.json()) as { ready_endpoints: number }) : undefined;
    if (model?.ready_endpoints === ENGINES) return;
  }
  throw new Error(`The gateway did not find ${ENGINES} servers within a minute.`);
}

function row(policy: Policy, answers: readonly Answered[]): string {
  const waits = answers.map(({ firstToken }) => firstToken / 1000);
  const mean = waits.reduce((total, value) => total + value, 0) / waits.length;
  const cells = [mean, quantile(waits, 0.5), quantile(waits, 0.95)].map((value) => value.toFixed(2));
  return `| ${policy} | ${cells.join(' | ')} | ${shareOf(answers, 'cachedTokens')} |`;
}

/** Of the tokens of all prompts. */
function shareOf(answers: readonly Answered[], of: 'cachedTokens' | 'seenTokens'): string {
  const sum = (name: keyof Answered): number => answers.reduce((total, answer) => total + answer[name], 0);
  return `${((sum(of) / sum('promptTokens')) * 100).toFixed(0)} %`;
}

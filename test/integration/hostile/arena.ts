import { inject } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { quantile } from '../../bench/figures.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import type { EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';
import { serveModel } from '../../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

export const MODEL = 'tiny';
/** How long the honest tenant is watched, quiet and under attack. */
const WATCHED_MS = 2_000;

/** A tenant with a key. */
export interface Side {
  space: TestNamespace;
  token: string;
  call: Call;
}

/** The api role with a model that all tenants share, a hostile tenant and an honest one. */
export interface Arena extends AsyncDisposable {
  /** Berth's own namespace here. */
  home: TestNamespace;
  berth: BerthProcess;
  engine: ScriptedEngine;
  hostile: Side;
  honest: Side;
}

async function enter(berth: BerthProcess): Promise<Side> {
  const space = await testNamespace();
  const { token } = await createKey(space.client, { namespace: space.name });
  const call = clientOf(berth.url, token);
  await waitFor('the model', async () => (await call('GET', '/models')).data.some(({ id }) => id === MODEL));
  return { space, token, call };
}

/** @param env of the api role, beside what tests give it */
export async function openArena(
  env: Record<string, string> = {},
  options: EngineOptions = { engine: 'tgi', models: [MODEL] },
): Promise<Arena> {
  const home = await testNamespace();
  const engine = await serveModel(home, options);
  const berth = await startBerth(inject('cluster').kubeconfig, 'api', home.name, { env });
  const [hostile, honest] = await Promise.all([enter(berth), enter(berth)]);
  return {
    home,
    berth,
    engine,
    hostile,
    honest,
    async [Symbol.asyncDispose]() {
      await berth[Symbol.asyncDispose]();
      await engine.close();
      await Promise.all([home, hostile.space, honest.space].map((space) => space[Symbol.asyncDispose]()));
    },
  };
}

/** Goes on until the signal aborts. */
type Attack = (signal: AbortSignal) => Promise<unknown>;

/** So many at a time, without a pause. What fails is no concern of an attacker. */
export function hammer(width: number, one: (index: number, signal: AbortSignal) => Promise<unknown>): Attack {
  return async (signal) => {
    await Promise.all(
      Array.from({ length: width }, async (_, index) => {
        while (!signal.aborted) await one(index, signal).catch(() => undefined);
      }),
    );
  };
}

async function watch(honest: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + WATCHED_MS;
  while (performance.now() < until) {
    const start = performance.now();
    await honest();
    times.push(performance.now() - start);
  }
  return times;
}

function figures(times: readonly number[]): string {
  return `${quantile(times, 0.5).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)} ms`;
}

/**
 * Prints what an honest tenant feels, quiet and under an attack: p50 and p99 of its calls, one after the other. Rejects
 * when one of them does. The attacker shares this process, so the figures are of use beside each other alone.
 */
export async function compare(name: string, honest: () => Promise<unknown>, attack: Attack): Promise<void> {
  const quiet = await watch(honest);
  const end = new AbortController();
  const attacking = attack(end.signal);
  const attacked = await watch(honest);
  end.abort();
  await attacking;
  process.stdout.write(`${name}: ${figures(quiet)} quiet, ${figures(attacked)} under attack (p50 / p99)\n`);
}

/** An honest call that must be answered. */
export async function read({ call }: Side): Promise<void> {
  const { status, text } = await call('GET', '/offers');
  if (status !== 200) throw new Error(`GET /offers: ${status} ${text}`);
}

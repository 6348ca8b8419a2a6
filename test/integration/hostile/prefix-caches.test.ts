import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Arena, compare, hammer, MODEL, openArena, type Side } from './arena.ts';

// A server that both tenants share keeps prompts by the salt that comes with them, and answers sooner what it has.

const SECRET = 'The code word of the merger is Bluebird.';
const GUESSES = [undefined, '', 'default', 'tenant'];

let arena: Arena;

beforeAll(async () => {
  arena = await openArena({}, { engine: 'vllm', version: '0.27.1', models: [MODEL] });
});
afterAll(() => arena[Symbol.asyncDispose]());

async function ask({ call, space }: Side, content: string, more: object = {}): Promise<void> {
  const body = { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 5, user: space.name, ...more };
  const { status, text } = await call('POST', '/chat/completions', body);
  if (status !== 200) throw new Error(`POST /chat/completions: ${status} ${text}`);
}

it('guesses of what another tenant asked, with salts of every kind', async () => {
  const { hostile, honest, engine, berth } = arena;
  await ask(honest, SECRET);
  const known = String(engine.received.at(-1)?.body['cache_salt']);
  const guesses = [...GUESSES, known, honest.space.name, hostile.space.name];
  await compare(
    'guesses at a shared prefix cache',
    () => ask(honest, SECRET),
    hammer(8, async (index) =>
      ask(hostile, SECRET, { cache_salt: guesses[index % guesses.length], prompt_cache_key: honest.space.name }),
    ),
  );
  const saltsOf = ({ space }: Side): Set<unknown> =>
    new Set(engine.received.filter(({ body }) => body['user'] === space.name).map(({ body }) => body['cache_salt']));
  for (const salts of [saltsOf(honest), saltsOf(hostile)])
    for (const salt of salts) expect(salt).toMatch(/^[\w-]{43}$/);
  const own = saltsOf(honest);
  expect([...saltsOf(hostile)].filter((salt) => own.has(salt))).toEqual([]);
  expect(saltsOf(hostile).size).toBeGreaterThan(0);
  const metrics = await (await fetch(`${berth.metricsUrl}/metrics`)).text();
  expect(metrics).toContain('berth_gateway_requests_total');
  for (const { space } of [hostile, honest]) expect(metrics).not.toContain(space.name);
});

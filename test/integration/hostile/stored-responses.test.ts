import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Arena, compare, hammer, MODEL, openArena, read } from './arena.ts';

const MIB = 2 ** 20;

let arena: Arena;
let base: string;
let headers: Record<string, string>;

beforeAll(async () => {
  arena = await openArena();
  base = `${arena.berth.url}/api/v1/responses`;
  headers = { authorization: `Bearer ${arena.hostile.token}`, 'content-type': 'application/json' };
});
afterAll(() => arena[Symbol.asyncDispose]());

async function store(input: unknown): Promise<string> {
  const { status, id, text } = await arena.hostile.call('POST', '/responses', { model: MODEL, input });
  expect(status, text).toBe(200);
  return id;
}

it.each(['', '/input_items?limit=1'])('reading a long response again and again: GET /responses/ID%s', async (path) => {
  const id = await store(Array.from({ length: 60_000 }, (_, index) => ({ role: 'user', content: `${index}` })));
  await compare(
    `reading a long stored response${path}`,
    () => read(arena.honest),
    hammer(6, async (_index, signal) => (await fetch(`${base}/${id}${path}`, { headers, signal })).arrayBuffer()),
  );
});

it('short calls that continue a long response', async () => {
  const id = await store('x'.repeat(8 * MIB));
  arena.engine.received.length = 0;
  arena.engine.behave({ kind: 'hang' });
  const body = JSON.stringify({ model: MODEL, input: 'hi', previous_response_id: id, store: false });
  await compare(
    'short calls that continue a long response',
    () => read(arena.honest),
    hammer(40, async (_index, signal) => (await fetch(base, { method: 'POST', headers, body, signal })).arrayBuffer()),
  );
  // The tenant may hold 128 MiB.
  expect(arena.engine.received.length).toBeGreaterThan(0);
  expect(arena.engine.received.length).toBeLessThanOrEqual(16);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { type Arena, compare, hammer, MODEL, openArena } from './arena.ts';

const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 };
const namesOf = (length: number): string => Array.from({ length }, (_, index) => `"n${index}":1`).join(',');
const NAMES = namesOf(10_000);
const ADDRESSES = Array.from({ length: 5_000 }, (_, index) => ({
  type: 'image_url',
  image_url: { url: `http://169.254.169.254/${index}` },
}));

let arena: Arena;

beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena[Symbol.asyncDispose]());

async function chat(): Promise<void> {
  const { status, text } = await arena.honest.call('POST', '/chat/completions', CHAT);
  if (status !== 200) throw new Error(`POST /chat/completions: ${status} ${text}`);
}

/** Sends a text as it is, and returns the status. */
async function send(token: string, path: string, body: string, signal: AbortSignal): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`${arena.berth.url}/api/v1${path}`, { method: 'POST', headers, body, signal });
  await answer.arrayBuffer();
  return answer.status;
}

it('keys that are given, used and taken away', async () => {
  const { client, name: namespace } = arena.hostile.space;
  let taken = 0;
  await compare(
    'keys that are given, used and taken away',
    chat,
    hammer(8, async (_index, signal) => {
      const { token, name } = await createKey(client, { namespace });
      await send(token, '/chat/completions', JSON.stringify({ ...CHAT, stream: true }), signal).catch(() => undefined);
      await client.delete(API_KEYS, { namespace, name });
      taken += 1;
    }),
  );
  expect(taken).toBeGreaterThan(0);
});

it.each([
  ['bodies that can be read in two ways', `{"model":"${MODEL}","messages":[],${NAMES},"model":"other"}`],
  [
    'addresses that the server would fetch',
    JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: ADDRESSES }] }),
  ],
])('%s', async (what, body) => {
  const statuses = new Set<number>();
  await compare(
    what,
    chat,
    hammer(10, async (_index, signal) =>
      statuses.add(await send(arena.hostile.token, '/chat/completions', body, signal)),
    ),
  );
  // Beside refusals of one caller's many bodies.
  expect([...statuses].filter((status) => ![408, 413, 429, 503].includes(status))).toEqual([400]);
});

it('bodies of very many different names', async () => {
  const body = `{"model":"${MODEL}","messages":[],${namesOf(30_000)}}`;
  const { token } = arena.hostile;
  expect(await send(token, '/chat/completions', body, AbortSignal.timeout(10_000))).toBe(413);
  await compare(
    'bodies of very many different names',
    chat,
    hammer(10, (_index, signal) => send(token, '/chat/completions', body, signal)),
  );
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { SERVICES } from '../../../src/kube/types.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Arena, compare, hammer, MODEL, openArena, read, type Side } from './arena.ts';

const PRICES = {
  'berth.dev/price-input': '1000.00',
  'berth.dev/price-output': '1000.00',
  'berth.dev/price-currency': 'USD',
};
const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }] };
const DEPTH = 100_000;

let arena: Arena;

beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena[Symbol.asyncDispose]());

/** Sends a text as it is. */
function send(token: string, path: string, body: string, signal: AbortSignal): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(`${arena.berth.url}/api/v1${path}`, { method: 'POST', headers, body, signal });
}

/** An honest call of the model that both may use. */
async function chat({ call }: Side): Promise<void> {
  const { status, text } = await call('POST', '/chat/completions', { ...CHAT, max_tokens: 10 });
  if (status !== 200) throw new Error(`POST /chat/completions: ${status} ${text}`);
}

it('calls that wait for room in a budget', async () => {
  const service = { namespace: arena.home.name, name: 'engine' };
  await arena.home.client.patch(SERVICES, service, { metadata: { annotations: PRICES } }, { type: 'merge' });
  await waitFor('the price', async () =>
    (await arena.honest.call('GET', '/models')).text.includes('price_per_million_tokens'),
  );
  const { client, name: namespace } = arena.hostile.space;
  const limits = { budget: { costs: [{ currency: 'USD', max: '1.00' }] } };
  const { token } = await createKey(client, { namespace, limits });
  let answered = 0;
  await compare(
    'calls that wait for room in a budget',
    () => chat(arena.honest),
    hammer(50, async (_index, signal) => {
      const answer = await send(token, '/chat/completions', JSON.stringify(CHAT), signal);
      if (answer.status === 200) answered += 1;
      await answer.arrayBuffer();
    }),
  );
  // No controller counts here. The first call may cost whatever it does.
  expect(answered).toBe(1);
});

it.each([
  ['a list in a list', '/chat/completions', `{"model":"${MODEL}","messages":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}}`],
  ['a key of equals signs', '/ssh-keys', JSON.stringify({ public_key: `ssh-ed25519 A${'='.repeat(16_000)}A` })],
  ['many fields', '/instances', `{${Array.from({ length: DEPTH }, (_, index) => `"x${index}":1`).join(',')}}`],
])('bodies that take long to read: %s', async (what, path, body) => {
  const { token } = arena.hostile;
  const refused = await send(token, path, body, AbortSignal.timeout(10_000));
  expect([400, 413, 422]).toContain(refused.status);
  await compare(
    `bodies that take long to read, ${what}`,
    () => read(arena.honest),
    hammer(10, async (_index, signal) => (await send(token, path, body, signal)).arrayBuffer()),
  );
});

it('event streams that are opened and left', async () => {
  const headers = { authorization: `Bearer ${arena.hostile.token}`, accept: 'text/event-stream' };
  await compare(
    'event streams that are opened and left',
    () => read(arena.honest),
    hammer(40, async (_index, signal) => {
      const { body } = await fetch(`${arena.berth.url}/api/v1/offers`, { headers, signal });
      await body?.cancel();
    }),
  );
});

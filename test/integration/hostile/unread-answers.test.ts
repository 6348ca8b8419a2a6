import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import { type Arena, compare, MODEL, openArena, read } from './arena.ts';

// Answers of eight mebibytes, which no kernel holds for a client: of a short one nothing would wait in the role.

const MIB = 2 ** 20;
const READERS = 40;
const BODY = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 });

let arena: Arena;

beforeAll(async () => {
  arena = await openArena();
  const head = '{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"';
  const end = '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}';
  const chunks = [head, ...Array.from({ length: 8 }, () => 'x'.repeat(MIB)), end];
  arena.engine.behave({ kind: 'raw', contentType: 'application/json', chunks });
});
afterAll(() => arena[Symbol.asyncDispose]());

/** Asks for a long answer, and reads nothing of it. */
function ask(): Socket {
  const socket = connect(Number(new URL(arena.berth.url).port), '127.0.0.1').on('error', () => undefined);
  const head = [
    'POST /api/v1/chat/completions HTTP/1.1',
    'host: berth',
    `authorization: Bearer ${arena.hostile.token}`,
    'content-type: application/json',
    `content-length: ${BODY.length}`,
  ];
  socket.pause().write(`${head.join('\r\n')}\r\n\r\n${BODY}`);
  return socket;
}

it('answers that nobody reads', { timeout: 120_000 }, async () => {
  const offers = async (): Promise<number> => (await arena.hostile.call('GET', '/offers')).status;
  const sockets: Socket[] = [];
  await compare(
    'answers that nobody reads',
    () => read(arena.honest),
    async () => {
      for (let count = 0; count < READERS; count += 1) sockets.push(ask());
      await waitFor('the refusal', async () => (await offers()) === 503, 60_000);
    },
  );
  // The attacker is refused, and nobody else.
  expect(await offers()).toBe(503);
  await read(arena.honest);
  for (const socket of sockets) socket.destroy();
  await waitFor('the end of it', async () => (await offers()) === 200);
});

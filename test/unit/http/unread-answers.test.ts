import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { countUnread, isShareUnread, UnreadAnswers } from '../../../src/lib/unread-answers.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const ANSWER = Buffer.alloc(8 * MIB, 'x');

/** Answers with eight mebibytes, or with 503 to a tenant with as many unread answers as it may have. */
async function serve() {
  const clock = fakeClock();
  const answers = new UnreadAnswers(clock);
  const server = createServer((request, response) => {
    const isFree = answers.begin(response, String(request.headers['x-tenant']));
    expect(isShareUnread(response)).toBe(!isFree);
    if (isFree) {
      countUnread(response, ANSWER.length);
      response.end(ANSWER);
    } else response.writeHead(503).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  /** A client that reads nothing. */
  const ask = async (tenant: string): Promise<void> => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket.pause());
    const asked = once(server, 'request');
    socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx-tenant: ${tenant}\r\n\r\n`);
    await asked;
  };
  const status = async (tenant: string): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-tenant': tenant } });
    await answer.arrayBuffer();
    return answer.status;
  };
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  };
  return { clock, ask, status, close };
}

it('gives a tenant whose clients read nothing no more than its share, and others what they ask for', async () => {
  const { clock, ask, status, close } = await serve();
  for (let count = 0; count < 20; count += 1) await ask('greedy');
  expect(await status('greedy')).toBe(503);
  expect(await status('other')).toBe(200);
  // 30 s, and a second for each 32 KiB.
  await clock.advance(285_000);
  expect(await status('greedy')).toBe(503);
  await clock.advance(2_000);
  await waitFor('the connections to end', async () => (await status('greedy')) === 200);
  close();
});

it('counts nothing of what is taken', async () => {
  const { status, close } = await serve();
  for (let count = 0; count < 16; count += 1) expect(await status('quick')).toBe(200);
  close();
});

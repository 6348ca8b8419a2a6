import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Agent, createServer, request as send, type IncomingMessage, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { type BodyErrors, BodyReader } from '../../../src/lib/body-reader.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const ERRORS: BodyErrors = {
  tooLong: (limit) => new Error(`longer than ${limit}`),
  tooSlow: () => new Error('slow'),
  gone: () => new Error('gone'),
};
const clock = fakeClock();
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let server: Server;

afterEach(() => {
  agent.destroy();
  server.close();
});

/** Where a server answers with the length of a body, or why it was not read. */
async function listen(append: (chunk: Buffer) => void = () => undefined): Promise<number> {
  server = createServer((request, response) => {
    let size = 0;
    const reader = new BodyReader(request, { limit: MIB, longestMs: 30_000 }, ERRORS, clock);
    const answer = (words: string): void => void response.end(words);
    reader
      .read((chunk) => {
        append(chunk);
        size += chunk.length;
      })
      .then(
        () => answer(String(size)),
        (error: Error) => answer(error.message),
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function post(port: number, body: Buffer): Promise<string> {
  const sent = send({ port, host: '127.0.0.1', method: 'POST', agent });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return await text(answer);
}

it('the rest of a body that is too long is dropped, and the connection goes on', async () => {
  const port = await listen();
  const sockets = new Set();
  server.on('connection', (socket) => sockets.add(socket));
  expect(await post(port, Buffer.alloc(8 * MIB))).toBe(`longer than ${MIB}`);
  expect(await post(port, Buffer.alloc(MIB))).toBe(String(MIB));
  expect(await post(port, Buffer.alloc(0))).toBe('0');
  expect(sockets.size).toBe(1);
});

it('a body ends with the error of whoever keeps it', async () => {
  const port = await listen(() => {
    throw new Error('no room');
  });
  expect(await post(port, Buffer.alloc(3 * MIB))).toBe('no room');
});

it.each([
  ['says nothing for ten seconds', 0, 10_000],
  ['sends less than 64 KiB per second', 1000, 11_000],
])('a client is cut that %s', async (_what, everySecond, ms) => {
  let got = 0;
  const port = await listen(({ length }) => void (got += length));
  const sent = send({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': MIB } });
  sent.on('error', () => undefined).flushHeaders();
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  let answer = '';
  void answered.then(async ([response]) => (answer = await text(response)));
  await once(server, 'request');
  for (let passed = 1000, all = 0; passed < ms; passed += 1000) {
    if (everySecond > 0) sent.write(Buffer.alloc(everySecond));
    all += everySecond;
    await waitFor('what was sent', () => got === all);
    await clock.advance(1000);
  }
  expect(answer).toBe('');
  await clock.advance(1000);
  await waitFor('the answer', () => answer !== '');
  expect(answer).toBe('slow');
  sent.destroy();
});

it('a client that leaves ends it', async () => {
  let why = '';
  server = createServer((request) => {
    const reader = new BodyReader(request, { limit: MIB, longestMs: 30_000 }, ERRORS, clock);
    void reader.read(() => undefined).catch(({ message }: Error) => (why = message));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sent = send({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': MIB } });
  sent.on('error', () => undefined).flushHeaders();
  await once(server, 'request');
  sent.destroy();
  await waitFor('the end', () => why !== '');
  expect(why).toBe('gone');
});

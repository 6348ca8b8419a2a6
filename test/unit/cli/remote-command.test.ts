import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { openCommand } from '../../../src/cli/api/remote-command.ts';
import { TERMINAL_PROTOCOL } from '../../../src/wire/terminal-frames.ts';
import { channelServer, frame, SUCCESS } from '../../support/channel-server.ts';

const MINUTE = 60_000;

/** A command, and the other end of its connection. */
async function opened() {
  const server = await channelServer(TERMINAL_PROTOCOL);
  onTestFinished(() => server.close());
  const connected = new Promise<WebSocket>((resolve) => (server.onStream = resolve));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const found = await openCommand(new URL(`${server.endpoint.server}/terminal?command=x`), 'Bearer key', {});
  if (!('command' in found)) throw new Error('It was refused.');
  return { command: found.command, socket: await connected };
}

it('a connection that says nothing is lost, as after the sleep of a laptop, so that the copy begins again', async () => {
  const { command } = await opened();
  vi.advanceTimersByTime(4 * MINUTE);
  await expect(command.status).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(await text(command.stdout)).toBe('');
});

it('a command that writes nothing is not, while the server asks for a sign of life', async () => {
  const { command, socket } = await opened();
  for (let minute = 0; minute < 20; minute += 1) {
    vi.advanceTimersByTime(MINUTE);
    socket.ping();
    await once(socket, 'pong');
  }
  socket.send(frame(3, SUCCESS));
  expect(await command.status).toBe(0);
  command.close();
});

it('nor is one whose output waits for a slow disk of this machine', async () => {
  const { command, socket } = await opened();
  const bytes = 256 * 1024;
  socket.send(frame(1, Buffer.alloc(bytes)));
  await vi.waitUntil(() => command.stdout.writableNeedDrain);
  vi.advanceTimersByTime(20 * MINUTE);
  socket.send(frame(3, SUCCESS));
  socket.close();
  expect((await text(command.stdout)).length).toBe(bytes);
  expect(await command.status).toBe(0);
});

import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { execInPod, execPath, exitOfStatus, type ExecStream } from '../../../src/kube/streams/exec.ts';
import { StreamRefusedError } from '../../../src/kube/streams/websocket.ts';
import { channelServer, frame, SUCCESS, type ChannelServer } from '../../support/channel-server.ts';

const TARGET = { namespace: 'tenant', pod: 'i-one', container: 'main' };
const MIB = 1024 * 1024;
let server: ChannelServer;

beforeEach(async () => {
  server = await channelServer('v5.channel.k8s.io');
});
afterEach(async () => {
  await server.close();
});

function exec(options: { tty?: boolean; signal?: AbortSignal } = {}): Promise<ExecStream> {
  return execInPod(server.endpoint, TARGET, { command: ['cat'], tty: false, ...options });
}

/** The server's side of the next stream. */
function peer(): Promise<WebSocket> {
  return new Promise((resolve) => {
    server.onStream = resolve;
  });
}

function framesOf(socket: WebSocket): Buffer[] {
  const frames: Buffer[] = [];
  socket.on('message', (data) => frames.push(data as Buffer));
  return frames;
}

describe('execInPod', () => {
  it('bounds what waits when the server does not read a fast upload', async () => {
    const accepted = peer();
    const stream = await exec();
    (await accepted).pause();
    const chunk = Buffer.alloc(64 * 1024);
    let sent = 0;
    let done = 0;
    while (sent < 64 * MIB && stream.stdin.write(chunk, () => (done += chunk.length))) {
      sent += chunk.length;
      await new Promise(setImmediate);
    }
    // Kernel buffers of both ends plus our high-water mark, far below what a reader-less sender would have queued.
    expect(sent).toBeLessThan(16 * MIB);
    expect(sent - done).toBeLessThan(2 * MIB);
    expect(stream.stdin.writableNeedDrain).toBe(true);
    stream.close();
  });

  it('pauses the server when nobody reads stdout', async () => {
    const accepted = peer();
    const stream = await exec();
    const socket = await accepted;
    const chunk = frame(1, Buffer.alloc(64 * 1024));
    for (let sent = 0; sent < 64 * MIB; sent += chunk.length) socket.send(chunk);
    await vi.waitFor(() => expect(stream.stdout.readableLength).toBeGreaterThan(200 * 1024));
    const before = socket.bufferedAmount;
    expect(stream.stdout.readableLength).toBeLessThan(MIB);
    expect(before).toBeGreaterThan(32 * MIB);
    stream.stdout.resume();
    await vi.waitFor(() => expect(socket.bufferedAmount).toBe(0), { timeout: 10_000 });
    stream.close();
  });

  it('keeps stdin open through resizes and closes it only at its own end', async () => {
    const accepted = peer();
    const stream = await exec({ tty: true });
    const frames = framesOf(await accepted);
    stream.resize(120, 40);
    stream.stdin.write('still open');
    stream.stdin.end();
    await vi.waitFor(() => expect(frames).toHaveLength(3));
    expect(frames.map((bytes) => bytes[0])).toEqual([4, 0, 255]);
    expect(frames[0]?.subarray(1).toString()).toBe('{"Width":120,"Height":40}');
    expect(frames[2]).toEqual(Buffer.from([255, 0]));
    stream.close();
  });

  it('touches only its own streams when the server closes', async () => {
    const accepted = peer();
    const stream = await exec();
    (await accepted).close(1001, 'going away');
    await expect(stream.exit).resolves.toEqual({ kind: 'lost', message: 'going away (1001)' });
    expect(process.stdout.writable).toBe(true);
    expect(process.stderr.writable).toBe(true);
  });

  it('takes output of channels that nobody asked for', async () => {
    const accepted = peer();
    const stream = await exec({ tty: true });
    const socket = await accepted;
    socket.send(frame(2, 'stderr with a tty'));
    socket.send(frame(77, 'unknown'));
    socket.send(Buffer.alloc(0));
    socket.send(frame(1, 'out'));
    socket.send(frame(3, SUCCESS));
    await expect(text(stream.stdout)).resolves.toBe('out');
    await expect(stream.exit).resolves.toEqual({ kind: 'exited', code: 0 });
  });

  it('reports a socket that died before the status as lost', async () => {
    const accepted = peer();
    const stream = await exec();
    (await accepted).terminate();
    await expect(stream.exit).resolves.toMatchObject({ kind: 'lost' });
  });

  it('keeps the exit code that came with the last byte', async () => {
    const accepted = peer();
    const stream = await exec();
    const socket = await accepted;
    const cause = { reason: 'ExitCode', message: '7' };
    socket.send(frame(1, 'last'));
    socket.send(
      frame(3, JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes: [cause] } })),
    );
    socket.terminate();
    await expect(text(stream.stdout)).resolves.toBe('last');
    await expect(stream.exit).resolves.toEqual({ kind: 'exited', code: 7 });
  });

  it('can be cancelled', async () => {
    const accepted = peer();
    const cancel = new AbortController();
    const stream = await exec({ signal: cancel.signal });
    const closed = once(await accepted, 'close');
    cancel.abort();
    await closed;
    await expect(stream.exit).resolves.toMatchObject({ kind: 'lost' });
  });

  it('keeps the terminal sizes of two sessions apart', async () => {
    const sockets: WebSocket[] = [];
    server.onStream = (socket) => sockets.push(socket);
    const [one, two] = [await exec({ tty: true }), await exec({ tty: true })];
    const frames = sockets.map(framesOf);
    one.resize(10, 11);
    two.resize(20, 21);
    await vi.waitFor(() => expect(frames.flat()).toHaveLength(2));
    expect(frames[0]?.[0]?.toString()).toContain('"Width":10');
    expect(frames[1]?.[0]?.toString()).toContain('"Width":20');
    one.close();
    two.close();
  });

  it('sends no resize without a tty', async () => {
    const accepted = peer();
    const stream = await exec();
    const frames = framesOf(await accepted);
    stream.resize(80, 24);
    stream.stdin.write('x');
    await vi.waitFor(() => expect(frames).toHaveLength(1));
    expect(frames[0]?.[0]).toBe(0);
    stream.close();
  });

  it('hands chunks on without copying them together', async () => {
    const accepted = peer();
    const stream = await exec();
    const socket = await accepted;
    for (const part of ['a', 'b', 'c']) socket.send(frame(1, part));
    socket.send(frame(3, SUCCESS));
    const chunks: string[] = [];
    for await (const chunk of stream.stdout) chunks.push(String(chunk));
    expect(chunks.join('')).toBe('abc');
  });

  it('rejects with the words of the server', async () => {
    await server.close();
    await expect(exec()).rejects.toThrow(StreamRefusedError);
    server = await channelServer('v5.channel.k8s.io');
  });

  it('refuses a server that speaks an older protocol', async () => {
    await server.close();
    server = await channelServer('v4.channel.k8s.io');
    await expect(exec()).rejects.toThrow();
  });
});

describe('exitOfStatus', () => {
  it.each([
    [SUCCESS, { kind: 'exited', code: 0 }],
    ['{"status":"Failure","message":"no such container"}', { kind: 'failed', message: 'no such container' }],
    ['not json', { kind: 'failed', message: 'The kubelet sent a status that is not JSON.' }],
  ])('reads %s', (status, expected) => {
    expect(exitOfStatus(status)).toEqual(expected);
  });

  it('never takes a failure without a code for success', () => {
    const status = JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes: [] } });
    expect(exitOfStatus(status).kind).toBe('failed');
  });
});

describe('execPath', () => {
  it('names every word of the command and asks for stderr only without a tty', () => {
    const path = execPath(TARGET, { command: ['echo', 'a b', '&'], tty: true });
    const query = new URL(path, 'http://x').searchParams;
    expect(query.getAll('command')).toEqual(['echo', 'a b', '&']);
    expect(query.get('stderr')).toBe('false');
  });
});

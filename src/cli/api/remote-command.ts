import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type Duplex, PassThrough, Writable } from 'node:stream';
import { CLOSE, STATUS, STDERR, STDIN, STDOUT, TERMINAL_PROTOCOL } from '../../wire/terminal-frames.ts';
import type { Environment } from '../settings.ts';
import { frameOf, FrameReader, OPCODES } from './websocket-frames.ts';
import { requestTo } from './transport.ts';

/** A command that runs in an instance, over the HTTP interface: no SSH, no key of SSH. */
export interface RemoteCommand {
  stdin: Writable;
  stdout: PassThrough;
  stderr: PassThrough;
  /** Its exit status. Rejects when the connection is lost first, and with the words of the server when it has none. */
  status: Promise<number>;
  close(): void;
}

/** Milliseconds of silence after which a connection is taken for lost: the server asks for a sign of life every 20 s. */
const SILENCE_MS = 180_000;

/** How a command ended, without an exit status. */
class CommandLost extends Error {
  readonly code = 'ECONNRESET';
}

/** RFC 6455, section 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Bytes of a frame: the server takes 64 KiB with the byte of the channel. */
const MOST = 32 * 1024;

/** Opens the command, or returns the answer in which the server refuses. */
export async function openCommand(
  url: URL,
  authorization: string,
  env: Environment,
): Promise<{ command: RemoteCommand } | { refusal: IncomingMessage }> {
  const key = randomBytes(16).toString('base64');
  const headers = {
    authorization,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': key,
    'sec-websocket-version': '13',
    'sec-websocket-protocol': TERMINAL_PROTOCOL,
  };
  const request = await requestTo(url, { method: 'GET', headers }, env);
  request.end();
  const refused = once(request, 'response') as Promise<[IncomingMessage]>;
  const opened = once(request, 'upgrade') as Promise<[IncomingMessage, Duplex, Buffer]>;
  for (const each of [refused, opened]) each.catch(() => undefined);
  const [answer, socket, head] = await Promise.race([opened, refused as Promise<[IncomingMessage, never?, never?]>]);
  if (socket === undefined) return { refusal: answer };
  const accepted = createHash('sha1').update(`${key}${GUID}`).digest('base64');
  if (answer.headers['sec-websocket-accept'] !== accepted) {
    socket.destroy();
    throw new Error('the answer to the handshake of the WebSocket is not valid');
  }
  if (head !== undefined && head.length > 0) socket.unshift(head);
  return { command: commandOn(socket) };
}

interface Status {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

/** The exit status in a metav1.Status. Throws when the command has none. */
function exitStatusOf(text: string): number {
  const { status, message, details } = JSON.parse(text) as Status;
  if (status === 'Success') return 0;
  const cause = details?.causes?.find(({ reason }) => reason === 'ExitCode');
  if (cause !== undefined) return Number(cause.message);
  throw new CommandLost(message ?? 'The command has no exit status.');
}

/** The channels of a command on a socket that speaks WebSocket. */
function commandOn(socket: Duplex): RemoteCommand {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  let end: { resolve: (code: number) => void; reject: (error: unknown) => void } | undefined;
  const status = new Promise<number>((resolve, reject) => (end = { resolve, reject }));
  status.catch(() => undefined);
  const outputs = new Map([
    [STDOUT, stdout],
    [STDERR, stderr],
  ]);
  // Where the network went without a word, as while a laptop slept, nothing else says so to who only reads.
  const silence = setTimeout(() => {
    if (socket.isPaused()) silence.refresh();
    else socket.destroy();
  }, SILENCE_MS);
  const onFrame = (opcode: number, bytes: Buffer): void => {
    if (opcode === OPCODES.ping) socket.write(frameOf(OPCODES.pong, bytes));
    if (opcode === OPCODES.close) socket.end(frameOf(OPCODES.close, bytes));
    if (opcode !== OPCODES.binary) return;
    const [channel, data] = [bytes[0] ?? -1, bytes.subarray(1)];
    const output = outputs.get(channel);
    // A reader that is slow holds the server back.
    if (output?.write(Buffer.from(data)) === false) {
      socket.pause();
      output.once('drain', () => socket.resume());
    }
    if (channel !== STATUS) return;
    try {
      end?.resolve(exitStatusOf(data.toString()));
    } catch (error) {
      end?.reject(error);
    }
  };
  const reader = new FrameReader(onFrame);
  socket.on('data', (chunk: Buffer) => {
    silence.refresh();
    try {
      reader.read(chunk);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : undefined);
    }
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    clearTimeout(silence);
    end?.reject(new CommandLost('The connection was lost.'));
    for (const output of outputs.values()) output.end();
  });
  const send = (channel: number, data: Uint8Array, done: (error?: Error | null) => void): void => {
    socket.write(frameOf(OPCODES.binary, Buffer.concat([Uint8Array.of(channel), data])), (error) => {
      silence.refresh();
      done(error);
    });
  };
  const stdin = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const next = (at: number) => (error?: Error | null) => {
        if (error || at >= chunk.length) done(error);
        else send(STDIN, chunk.subarray(at, at + MOST), next(at + MOST));
      };
      next(0)();
    },
    final: (done) => send(CLOSE, Uint8Array.of(STDIN), done),
  });
  stdin.on('error', () => undefined);
  return { stdin, stdout, stderr, status, close: () => socket.destroy() };
}

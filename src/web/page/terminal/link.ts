import { RESIZE, SHOWN, STATUS, STDIN, STDOUT, TERMINAL_PROTOCOL, TOKEN } from '../../../wire/terminal-frames.ts';
import { errorOf, fetchApi, messageOf, tokenFor } from '../calls/call.ts';

const BEARER = 'base64url.bearer.authorization.k8s.io.';
/** Bytes of a frame: what is pasted may be long. */
const MAX_FRAME = 16 * 1024;
/** Bytes of output after which the server hears how far the painting is. */
const TELL_EVERY = 64 * 1024;

const encoder = new TextEncoder();

export interface LinkEvents {
  /** Paints the bytes, and calls back when that is done. */
  output: (bytes: Uint8Array, done: () => void) => void;
  /** Nothing more comes. `why` is empty when the shell ended by itself with 0. */
  ended: (why: string) => void;
}

/** A shell in an instance. */
export interface Link {
  type: (text: string) => void;
  resize: (columns: number, rows: number) => void;
  close: () => void;
}

function base64url(text: string): string {
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Why a browser could not open the WebSocket: it does not say so itself, and the same address without one does. */
async function refusalOf(namespace: string, path: string): Promise<string> {
  const failure = await fetchApi(namespace, path, {}).then(errorOf);
  return failure.code === 'upgrade_required' ? 'The connection was lost. Open the terminal again.' : failure.message;
}

function wordsOf(frame: Uint8Array): string {
  const { status, message } = JSON.parse(new TextDecoder().decode(frame)) as { status: string; message?: string };
  return status === 'Success' ? '' : (message ?? 'The terminal ended.');
}

/**
 * Opens a terminal of an instance. The token is no part of the URL. The server asks for the next one, so that a page in
 * the background, whose timers rest, keeps its terminal.
 * @param path below /api/v1
 */
export async function openLink(
  { namespace, path, columns, rows }: { namespace: string; path: string; columns: number; rows: number },
  events: LinkEvents,
): Promise<Link> {
  const { token } = await tokenFor(namespace);
  const url = new URL(`/api/v1${path}?columns=${columns}&rows=${rows}`, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const socket = new WebSocket(url, [TERMINAL_PROTOCOL, `${BEARER}${base64url(token)}`]);
  socket.binaryType = 'arraybuffer';
  let [shown, told, isOver] = [0, 0, false];

  function send(channel: number, bytes: Uint8Array): void {
    if (socket.readyState !== WebSocket.OPEN) return;
    const frame = new Uint8Array(bytes.length + 1);
    frame[0] = channel;
    frame.set(bytes, 1);
    socket.send(frame);
  }

  function painted(length: number): void {
    shown += length;
    if (shown - told < TELL_EVERY) return;
    told = shown;
    send(SHOWN, encoder.encode(String(shown)));
  }

  function end(why: string): void {
    if (isOver) return;
    isOver = true;
    socket.close();
    events.ended(why);
  }

  async function renew(): Promise<void> {
    send(TOKEN, encoder.encode((await tokenFor(namespace)).token));
  }

  socket.addEventListener('open', () => send(SHOWN, encoder.encode('0')));
  socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
    const [channel, bytes] = [new Uint8Array(data)[0], new Uint8Array(data, 1)];
    if (channel === STDOUT) events.output(bytes, () => painted(bytes.length));
    else if (channel === STATUS) end(wordsOf(bytes));
    // Without a next token the server ends the terminal, and says why.
    else if (channel === TOKEN) void renew().catch(() => undefined);
  });
  socket.addEventListener('close', () => {
    if (!isOver) void refusalOf(namespace, path).catch(messageOf).then(end);
  });

  return {
    type: (text) => {
      const bytes = encoder.encode(text);
      for (let at = 0; at < bytes.length; at += MAX_FRAME) send(STDIN, bytes.subarray(at, at + MAX_FRAME));
    },
    resize: (width, height) => send(RESIZE, encoder.encode(JSON.stringify({ Width: width, Height: height }))),
    close: () => {
      isOver = true;
      socket.close();
    },
  };
}

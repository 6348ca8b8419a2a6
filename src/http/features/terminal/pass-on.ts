import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { FairShares } from '../../../lib/shares.ts';
import { queryOf } from '../../interface/step.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { http } from '../../../lib/lean-http.ts';

/** Terminals that this replica passes on at once. */
const MOST_TERMINALS = 512;
/** A tenant may have as many as are left for others: half of all when it is alone. */
const FACTOR = 1;
/** Milliseconds until the SSH gateway must have answered. It has to ask for a key at most. */
const ANSWER_MS = 15_000;
const RETRY_SECONDS = 2;
/** Bytes of a refusal. */
const MAX_REFUSAL = 64 * 1024;
const HANDSHAKE = /^sec-websocket-/;

/** A client whose key has the scope, and who asks for a terminal of an instance of its tenant. */
export interface TerminalCall {
  request: IncomingMessage;
  response: ServerResponse;
  upgrade: { socket: Duplex; head: Buffer } | undefined;
  tenant: string;
  instance: string;
  /** Where the client comes from, as this replica sees it. */
  address: string;
}

function unavailable(cause?: unknown): ApiError {
  return new ApiError('terminal_unavailable', 'No replica of the SSH gateway answers. Try again in some seconds.', {
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}

/** What the SSH gateway reads of a request. */
function headersOf({ request, upgrade, address }: TerminalCall): OutgoingHttpHeaders {
  const handshake = Object.entries(request.headers).filter(([name]) => HANDSHAKE.test(name));
  return {
    authorization: request.headers.authorization,
    'x-forwarded-for': address,
    ...(upgrade && { ...Object.fromEntries(handshake), connection: 'Upgrade', upgrade: 'websocket' }),
  };
}

/** Brings terminals to the role that may run programs in pods, which this role may not. That role checks the caller again. */
export class TerminalGateway {
  readonly #base: URL;
  readonly #places = new FairShares(MOST_TERMINALS, FACTOR);

  /** @param base scheme and host of the SSH gateway's Service */
  constructor(base: URL) {
    this.#base = base;
  }

  /** Rejects with `ApiError` as long as nothing was answered. */
  async pass(call: TerminalCall): Promise<void> {
    if (this.#places.take(call.tenant, 1) !== 'taken') {
      throw new ApiError(
        'too_many_streams',
        'As many terminals of this tenant are open as a replica takes. Close one.',
      );
    }
    try {
      await this.#pass(call);
    } finally {
      this.#places.give(call.tenant, 1);
    }
  }

  async #pass(call: TerminalCall): Promise<void> {
    const { response, upgrade } = call;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const sent = this.#send(call, gone.signal);
    const switched = once(sent, 'upgrade') as Promise<[IncomingMessage, Duplex, Buffer]>;
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    for (const each of [switched, answered]) each.catch(() => undefined);
    const limit = setTimeout(() => sent.destroy(new Error('There was no answer in time.')), ANSWER_MS);
    const [answer, stream, head] = await Promise.race([
      switched,
      answered as Promise<[IncomingMessage, never?, never?]>,
    ])
      .catch((error: unknown) => {
        throw unavailable(error);
      })
      .finally(() => clearTimeout(limit));
    if (stream === undefined || upgrade === undefined) {
      await relay(answer, response);
      return;
    }
    // For the log: the head is written past the response.
    response.statusCode = 101;
    upgrade.socket.write(headOf(answer, response));
    if (head !== undefined && head.length > 0) upgrade.socket.write(head);
    if (upgrade.head.length > 0) stream.write(upgrade.head);
    // Both are connections of Node's HTTP; the types allow other transports.
    await join(upgrade.socket as Socket, stream as Socket);
  }

  #send(call: TerminalCall, signal: AbortSignal): ClientRequest {
    const query = queryOf(call.request.url ?? '');
    const url = new URL(`/terminals/${encodeURIComponent(call.instance)}${query}`, this.#base);
    const sent = http.request(url, { headers: headersOf(call), agent: false, signal });
    sent.on('error', () => undefined);
    sent.end();
    return sent;
  }
}

/** Passes bytes both ways, as fast as the other side takes them, until one side is gone. Then so is the other, flushed. */
async function join(one: Socket, other: Socket): Promise<void> {
  const closed = [one, other].map(
    (socket) => new Promise<void>((resolve) => void socket.once('close', () => resolve())),
  );
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.pipe(to);
    from.once('end', () => to.destroySoon());
    from.once('close', () => to.destroySoon());
  }
  await Promise.all(closed);
}

/** Answers what the SSH gateway answered instead of a terminal: an error in the words of this interface. */
async function relay(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_REFUSAL) throw unavailable();
    chunks.push(chunk);
  }
  response.statusCode = answer.statusCode ?? 502;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.setHeader('cache-control', 'no-store');
  if (answer.headers.upgrade !== undefined) response.setHeader('upgrade', answer.headers.upgrade);
  response.end(Buffer.concat(chunks));
}

function headOf(answer: IncomingMessage, response: ServerResponse): string {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol'];
  const lines = names.flatMap((name) => {
    const value = answer.headers[name];
    return value === undefined ? [] : [`${name}: ${String(value)}`];
  });
  const id = String(response.getHeader('x-request-id') ?? '');
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    ...lines,
    `X-Request-Id: ${id}`,
  ]
    .concat('', '')
    .join('\r\n');
}

import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Activity } from '../access/activity.ts';
import type { PrincipalRef } from '../access/principal.ts';
import { toClient, toPod, type Routing, type Sender } from './headers.ts';
import type { OpenStreams } from './open-streams.ts';
import type { PortTarget } from './target.ts';
import { type Begun, unreachable, type Upstream } from './upstream.ts';

export interface ForwardDeps {
  upstream: Pick<Upstream, 'begin'>;
  streams: OpenStreams;
  activity: Pick<Activity, 'began'>;
}

/** A request to a port, of a user who may use it. */
export interface PortRequest {
  request: IncomingMessage;
  target: PortTarget;
  user: PrincipalRef;
  /** Path and query as the pod gets them. */
  path: string;
  routing: Routing;
  sender: Sender;
}

/**
 * Runs `forward` and counts the stream, and the instance as used, meanwhile. The signal aborts when the client is gone or
 * the user loses access; an error is dropped then, because the client cannot or may not be answered.
 */
async function whileOpen(
  { streams, activity }: ForwardDeps,
  { user, target }: PortRequest,
  client: Duplex | ServerResponse,
  forward: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  // It closed while the user was looked up: nothing would end the stream.
  if (client.destroyed) return;
  const open = streams.open(user, target.podUid);
  const left = activity.began({ namespace: target.namespace, name: target.instance });
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  client.once('close', leave);
  const signal = AbortSignal.any([open.signal, gone.signal]);
  try {
    await forward(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    client.destroy();
  } finally {
    client.off('close', leave);
    left();
    open.close();
  }
}

async function begin(
  { upstream }: ForwardDeps,
  { request, target, user, path, routing, sender }: PortRequest,
  headers: OutgoingHttpHeaders,
  how: { signal: AbortSignal; fresh?: boolean },
): Promise<Begun> {
  const all = { ...toPod(request, routing, sender), ...headers };
  return await upstream.begin(target, { method: request.method ?? 'GET', path, headers: all }, { user, ...how });
}

/** The first of the answers. Rejects with `PortError` when the stream fails or closes before. */
async function firstOf<T>(answers: Promise<T>[], stream: Duplex, port: number): Promise<T> {
  const { promise: closed, reject } = Promise.withResolvers<never>();
  const close = (): void => reject(new Error('the connection was closed'));
  // It may have ended before the request had it.
  if (stream.closed) close();
  else stream.once('close', close);
  for (const each of [...answers, closed]) each.catch(() => undefined);
  try {
    return await Promise.race([...answers, closed]);
  } catch (error) {
    throw unreachable(port, error, stream);
  } finally {
    // The stream may serve other requests, and must not keep a listener for each.
    stream.off('close', close);
  }
}

/** Passes bytes both ways until one side has ended and the other has taken all that it sent, or one is gone. */
function join(one: Duplex, other: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (one.destroyed || other.destroyed) resolve();
    for (const side of [one, other])
      side
        .once('finish', resolve)
        .once('close', resolve)
        .on('error', () => resolve());
    one.pipe(other);
    other.pipe(one);
  });
}

/** Passes the body on, and the head with its first bytes. Resolves with whether all of it went out. */
function passBody(answer: IncomingMessage, response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    // A body may take its time to begin.
    const sendHead = setImmediate(() => response.flushHeaders());
    const end = (isWhole: boolean): void => {
      clearImmediate(sendHead);
      resolve(isWhole);
    };
    const breakOff = (): void => {
      response.destroy();
      end(false);
    };
    answer.once('data', () => clearImmediate(sendHead)).on('error', breakOff);
    response.once('finish', () => end(true)).once('close', () => end(false));
    if (answer.destroyed || response.destroyed) breakOff();
    else answer.pipe(response);
  });
}

/** Sends a request, with the body that the client sends, and waits for the head of the answer. */
async function answerTo(
  deps: ForwardDeps,
  incoming: PortRequest,
  how: { signal: AbortSignal; fresh?: boolean },
): Promise<{ answer: IncomingMessage; request: ClientRequest; stream: Duplex }> {
  const { request, stream, isReused } = await begin(deps, incoming, {}, how);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  // The body may break off because the pod has answered already; the answer decides.
  if (isReused) request.end();
  else pipeline(incoming.request, request).catch(() => undefined);
  try {
    const [answer] = await firstOf([answered], stream, incoming.target.port);
    return { answer, request, stream };
  } catch (error) {
    if (!isReused || how.signal.aborted) throw error;
    // The pod closed the connection while the request was on its way. It has no body, and may be sent twice.
    return await answerTo(deps, incoming, { ...how, fresh: true });
  }
}

/** Forwards a request and its answer. Rejects with `PortError` as long as nothing was answered. */
export async function forwardHttp(deps: ForwardDeps, incoming: PortRequest, response: ServerResponse): Promise<void> {
  await whileOpen(deps, incoming, response, async (signal) => {
    const { answer, request, stream } = await answerTo(deps, incoming, { signal });
    try {
      response.writeHead(answer.statusCode ?? 502, toClient(answer.headersDistinct, incoming.routing));
    } catch (error) {
      // A head that Node reads and does not write, such as a status below 100: nothing else would end the connection.
      stream.destroy();
      throw unreachable(incoming.target.port, error);
    }
    const isWhole = await passBody(answer, response);
    if (!isWhole || !request.shouldKeepAlive) stream.destroy();
  });
}

function headOf(status: number, text: string, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${status} ${text}`, ...lines, '', ''].join('\r\n');
}

/** Forwards a WebSocket, or any protocol that the pod agrees to switch to. Rejects as `forwardHttp` does. */
export async function forwardUpgrade(
  deps: ForwardDeps,
  incoming: PortRequest,
  client: { socket: Duplex; head: Buffer; response: ServerResponse },
): Promise<void> {
  const { socket, head: firstBytes, response } = client;
  const answerWith = (status: number, text: string, headers: OutgoingHttpHeaders): void => {
    // For the log: the head is written past the response.
    response.statusCode = status;
    socket.write(headOf(status, text, headers));
  };
  await whileOpen(deps, incoming, socket, async (signal) => {
    const upgrade = incoming.request.headers.upgrade ?? '';
    const { request, stream } = await begin(deps, incoming, { connection: 'Upgrade', upgrade }, { signal });
    request.end();
    const switched = once(request, 'upgrade') as Promise<[IncomingMessage, Duplex, Buffer]>;
    const refused = once(request, 'response') as Promise<[IncomingMessage]>;
    const [answer, , head] = await firstOf<[IncomingMessage, Duplex?, Buffer?]>(
      [switched, refused],
      stream,
      incoming.target.port,
    );
    const headers = toClient(answer.headersDistinct, incoming.routing);
    if (head === undefined) {
      answerWith(answer.statusCode ?? 502, answer.statusMessage ?? '', { ...headers, connection: 'close' });
      await pipeline(answer, socket).catch(() => undefined);
    } else {
      answerWith(101, 'Switching Protocols', { ...headers, connection: 'Upgrade', upgrade });
      if (head.length > 0) socket.write(head);
      if (firstBytes.length > 0) stream.write(firstBytes);
      // When one side ends, so does the other: port-forward cannot carry half a connection.
      await join(socket, stream);
    }
    stream.destroy();
    socket.destroy();
  });
}

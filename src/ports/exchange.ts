import { once } from 'node:events';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Activity } from '../access/activity.ts';
import { toClient, toPod, type Sender, type Way } from './headers.ts';
import type { OpenStreams, User } from './open-streams.ts';
import type { PortTarget } from './target.ts';
import { failureOf, type Upstream } from './upstream.ts';

export interface ExchangeDeps {
  upstream: Upstream;
  streams: OpenStreams;
  activity: Pick<Activity, 'began'>;
}

/** One request to one port, by somebody who may. */
export interface Exchange {
  request: IncomingMessage;
  target: PortTarget;
  user: User;
  /** Path and query as the pod gets them. */
  path: string;
  way: Way;
  sender: Sender;
}

/** Counts the stream, and its instance as used, until it is closed. */
function begun({ streams, activity }: ExchangeDeps, { user, target }: Exchange): ReturnType<OpenStreams['open']> {
  const open = streams.open(user, target.podUid);
  const left = activity.began({ namespace: target.namespace, name: target.instance });
  return {
    signal: open.signal,
    close: () => {
      left();
      open.close();
    },
  };
}

async function begin(deps: ExchangeDeps, exchange: Exchange, headers: OutgoingHttpHeaders, signal: AbortSignal) {
  const { request, target, path, way, sender } = exchange;
  const method = request.method ?? 'GET';
  const all = { ...toPod(request, way, sender), ...headers };
  return await deps.upstream.begin(target, { method, path, headers: all }, signal);
}

/** Passes a request on and its answer back. Rejects with `PortError` as long as nothing was answered. */
export async function exchangeHttp(deps: ExchangeDeps, exchange: Exchange, response: ServerResponse): Promise<void> {
  const { target, way } = exchange;
  const open = begun(deps, exchange);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const { request, stream } = await begin(deps, exchange, {}, AbortSignal.any([open.signal, gone.signal]));
    const failed = once(stream, 'close').then(() => Promise.reject(failureOf(target.port, stream, undefined)));
    failed.catch(() => undefined);
    // The body may break off because the answer is there already; the answer decides.
    pipeline(exchange.request, request).catch(() => undefined);
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    const [answer] = await Promise.race([answered, failed]).catch((error: unknown) => {
      throw failureOf(target.port, stream, error);
    });
    response.writeHead(answer.statusCode ?? 502, toClient(answer.headersDistinct, way));
    response.flushHeaders();
    await pipeline(answer, response).catch(() => response.destroy());
    stream.destroy();
  } catch (error) {
    // Nobody is there, or may be there, to be told.
    if (!gone.signal.aborted && !open.signal.aborted) throw error;
    response.destroy();
  } finally {
    open.close();
  }
}

function headOf(status: number, text: string, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${status} ${text}`, ...lines, '', ''].join('\r\n');
}

/** Joins a WebSocket, or whatever else the pod agrees to switch to. Rejects as long as nothing was answered. */
export async function exchangeUpgrade(
  deps: ExchangeDeps,
  exchange: Exchange,
  client: { socket: Duplex; head: Buffer; response: ServerResponse },
): Promise<void> {
  const { target, way } = exchange;
  const open = begun(deps, exchange);
  const gone = new AbortController();
  client.socket.once('close', () => gone.abort());
  try {
    const protocol = exchange.request.headers.upgrade ?? '';
    const headers = { connection: 'Upgrade', upgrade: protocol };
    const signal = AbortSignal.any([open.signal, gone.signal]);
    const { request, stream } = await begin(deps, exchange, headers, signal);
    request.end();
    const switched = once(request, 'upgrade') as Promise<[IncomingMessage, Duplex, Buffer]>;
    const refused = (once(request, 'response') as Promise<[IncomingMessage]>).then(([answer]) => answer);
    const failed = once(stream, 'close').then(() => Promise.reject(failureOf(target.port, stream, undefined)));
    for (const one of [switched, refused, failed]) one.catch(() => undefined);
    const outcome = await Promise.race([switched, refused, failed]).catch((error: unknown) => {
      throw failureOf(target.port, stream, error);
    });
    if (!Array.isArray(outcome)) {
      const out = { ...toClient(outcome.headersDistinct, way), connection: 'close' };
      client.response.statusCode = outcome.statusCode ?? 502;
      client.socket.write(headOf(client.response.statusCode, outcome.statusMessage ?? '', out));
      await pipeline(outcome, client.socket).catch(() => undefined);
      stream.destroy();
      client.socket.destroy();
      return;
    }
    const [answer, , head] = outcome;
    const out = { ...toClient(answer.headersDistinct, way), connection: 'Upgrade', upgrade: protocol };
    // For the log: the head is written past the response.
    client.response.statusCode = 101;
    client.socket.write(headOf(101, 'Switching Protocols', out));
    if (head.length > 0) client.socket.write(head);
    if (client.head.length > 0) stream.write(client.head);
    // When one side ends, so does the other: port-forward cannot carry half a connection.
    await Promise.race([pipeline(client.socket, stream), pipeline(stream, client.socket)]).catch(() => undefined);
    stream.destroy();
    client.socket.destroy();
  } catch (error) {
    if (!gone.signal.aborted && !open.signal.aborted) throw error;
    client.socket.destroy();
  } finally {
    open.close();
  }
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeConnection } from '../../../src/kube/config/connection.ts';
import { jsonLines } from '../../../src/kube/watch/json-lines.ts';
import { bodyOf, json, status } from '../local-server.ts';
import { EXPIRED_LINE, type Faults, isStreamedList, isWatch, noFaults, type PassingEvent } from './faults.ts';
import { createStaleView } from './stale.ts';

/** A request that came to the proxy. */
export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
}

/** An HTTP proxy in front of a real API server that breaks what it is told to break. */
export interface FaultProxy extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`; it adds the credentials itself, so clients need none. */
  readonly server: string;
  readonly faults: Faults;
  readonly requests: SeenRequest[];
  readonly openWatches: number;
  /** Refuses everything from now on, and breaks what is open. */
  setDown(down: boolean): void;
  /** Breaks the open watches: by a reset, or in good order with the end of the stream. */
  cutWatches(how: 'reset' | 'end'): void;
  /** Ends the open watches with 410 Expired. */
  expireWatches(): void;
  /** Lists and watches of this path show what is there now, until `catchUp`. */
  fallBehind(path: string): Promise<void>;
  catchUp(): void;
}

/** Starts a proxy on loopback in front of `upstream`, whose connections it uses and does not close. */
export async function faultProxy(upstream: KubeConnection): Promise<FaultProxy> {
  const faults = noFaults();
  const requests: SeenRequest[] = [];
  const watches = new Set<ServerResponse>();

  async function send(request: { method: string; url: string; body?: string; contentType?: string }) {
    const { pathname: prefix } = new URL(upstream.server);
    const pool = isWatch(request) ? upstream.streams : upstream.calls;
    return pool.request({
      method: request.method,
      path: `${prefix.replace(/\/$/, '')}${request.url}`,
      headers: {
        accept: 'application/json',
        ...(request.contentType !== undefined && { 'content-type': request.contentType }),
        ...(await upstream.headers()),
      },
      body: request.body ?? null,
    });
  }

  const stale = createStaleView(async (path) => (await send({ method: 'GET', url: path })).body.json());

  async function write(response: ServerResponse, path: string, text: string): Promise<void> {
    const bytes = Buffer.from(text);
    const piece = faults.pieceBytes || bytes.length;
    for (let at = 0; at < bytes.length; at += piece) {
      if (faults.silent?.(path) === true || response.writableEnded) return;
      response.write(bytes.subarray(at, at + piece));
      // Its own turn of the loop, so that the pieces leave as packets of their own.
      if (faults.pieceBytes > 0) await delay(0);
    }
  }

  /** Says again and again which version was sent last, until the answer ends. */
  async function sendBookmarks(response: ServerResponse, path: string, sent: { version: string }): Promise<void> {
    while (faults.bookmarkMs > 0 && !response.closed) {
      await delay(faults.bookmarkMs);
      const object = { metadata: { resourceVersion: sent.version } };
      if (sent.version !== '') await write(response, path, `${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
    }
  }

  async function passWatch(body: AsyncIterable<Buffer>, response: ServerResponse, url: string): Promise<void> {
    const { pathname: path, searchParams } = new URL(url, 'http://proxy');
    const isList = isStreamedList({ url });
    const sent = { version: isList ? '' : (searchParams.get('resourceVersion') ?? '') };
    void sendBookmarks(response, path, sent);
    for await (const batch of jsonLines(body)) {
      for (const event of batch as PassingEvent[]) {
        if (faults.swallow?.(event) === true) continue;
        if (!isList) sent.version = event.object.metadata?.resourceVersion ?? sent.version;
        const line = `${JSON.stringify(event)}\n`;
        await write(response, path, faults.twice ? line + line : line);
      }
    }
  }

  async function pass(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const type = request.headers['content-type'];
    const answer = await send({
      method,
      url,
      ...(body !== '' && { body }),
      ...(type !== undefined && { contentType: type }),
    });
    const retryAfter = answer.headers['retry-after'];
    response.statusCode = answer.statusCode;
    response.setHeader('content-type', 'application/json');
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    response.flushHeaders();
    if (!isWatch(request) || answer.statusCode !== 200) {
      for await (const chunk of answer.body) response.write(chunk);
    } else {
      watches.add(response);
      response.once('close', () => {
        watches.delete(response);
        answer.body.destroy();
      });
      await passWatch(answer.body as AsyncIterable<Buffer>, response, url);
    }
    response.end();
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://proxy');
    requests.push({ method: request.method ?? 'GET', path: pathname, query: searchParams });
    // The client may be gone at any time; that is not the proxy's failure.
    response.on('error', () => undefined);
    const body = await bodyOf(request);
    if (faults.delayMs > 0) await delay(faults.delayMs);
    if (faults.down) {
      request.socket.resetAndDestroy();
      return;
    }
    const refusal = faults.refuse?.(request);
    if (refusal) {
      if (refusal.retryAfter !== undefined) response.setHeader('retry-after', String(refusal.retryAfter));
      json(response, refusal.status, status(refusal.status, refusal.reason));
      return;
    }
    if (request.method === 'GET' && stale.answer(request.url ?? '/', response)) {
      if (!response.writableEnded) watches.add(response);
      return;
    }
    await pass(request, response, body);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.resetAndDestroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    requests,
    get openWatches() {
      return watches.size;
    },
    setDown(down) {
      faults.down = down;
      if (down) server.closeAllConnections();
    },
    cutWatches(how) {
      for (const response of watches) {
        if (how === 'end') response.end();
        else response.socket?.resetAndDestroy();
      }
      watches.clear();
    },
    expireWatches() {
      for (const response of watches) response.end(EXPIRED_LINE);
      watches.clear();
    },
    fallBehind: (path) => stale.remember(path),
    catchUp: () => stale.forget(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { readSpans, type SentSpan } from './otlp.ts';

export interface SpanSink extends AsyncDisposable {
  /** As `OTEL_EXPORTER_OTLP_ENDPOINT` takes it. */
  endpoint: string;
  /** Where it takes traces. */
  url: URL;
  /** Everything that came, in its order. */
  spans: SentSpan[];
  /** The headers of each request. */
  requests: IncomingHttpHeaders[];
  /** What it answers. */
  status: number;
}

/** A server on a local port that takes OTLP over HTTP and keeps what comes. */
export async function startSpanSink(): Promise<SpanSink> {
  const spans: SentSpan[] = [];
  const requests: IncomingHttpHeaders[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    requests.push(request.headers);
    if (sink.status === 200 && request.url === '/v1/traces') {
      spans.push(...readSpans(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body));
    }
    response.writeHead(sink.status, { 'content-type': 'application/x-protobuf' }).end();
  };
  const server = createServer((request, response) => void take(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sink: SpanSink = {
    endpoint,
    url: new URL('/v1/traces', endpoint),
    spans,
    requests,
    status: 200,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return sink;
}

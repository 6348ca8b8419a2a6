import type { Readable } from 'node:stream';
import type { Pool } from 'undici';
import type { ClientMetrics } from './client-metrics.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KubeConnection } from '../config/connection.ts';
import { KubeError, NotSentError, TimeoutError, toKubeError, TransportError } from '../errors.ts';
import { retryAfterMs } from '../../lib/retry-after.ts';

export interface Call {
  method: string;
  path: string;
  query?: Record<string, string>;
  body?: string | undefined;
  contentType?: string;
  accept?: string;
  check?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds until the whole answer must have come; of a stream, until its head must. */
  timeoutMs: number;
  /** The longest answer that the client accepts, in bytes. */
  maxBytes: number;
}

/** What all calls of one client share. */
export interface CallContext {
  connection: KubeConnection;
  /** Path prefix of the server URL, for most servers the empty string. */
  prefix: string;
  clock: Clock;
  metrics: ClientMetrics | undefined;
  /** Told the Date header of each JSON answer: when that is, and between which moments the answer came (monotonic). */
  onDate?: ((answer: { date: number; sentAt: number; receivedAt: number }) => void) | undefined;
}

const MAX_ERROR_BYTES = 1024 * 1024;

/** The whole body as text. Rejects a body of more than `maxBytes`, which would fill the memory. */
export async function readText(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      body.destroy();
      throw new TransportError({ message: `answer larger than ${maxBytes} bytes`, status: 0, reason: 'TooLarge' });
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks, size).toString('utf8');
}

/** Method and path as errors name them, without the query, which may hold what a log should not. */
function nameOf(call: Call): string {
  return `${call.method} ${call.path.split('?', 1)[0]}`;
}

function target(context: CallContext, call: Call): string {
  const query = new URLSearchParams(call.query).toString();
  return `${context.prefix}${call.path}${query === '' ? '' : `?${query}`}`;
}

/** Aborts after the call's time or with the caller's signal. `stop` ends the timer; `free` lets go of the signal too. */
function deadline(context: CallContext, call: Call) {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(call.signal?.reason);
  if (call.signal?.aborted) onAbort();
  call.signal?.addEventListener('abort', onAbort, { once: true });
  const stop = context.clock.setTimeout(() => {
    const message = `${nameOf(call)}: no answer within ${call.timeoutMs} ms`;
    controller.abort(new TimeoutError({ message, status: 0, reason: 'Timeout' }));
  }, call.timeoutMs);
  const free = (): void => {
    stop();
    call.signal?.removeEventListener('abort', onAbort);
  };
  return { signal: controller.signal, stop, free };
}

/** The error for a failure below HTTP. After an abort by the caller it is the caller's reason. */
function asFailure(error: unknown, call: Call, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof KubeError || error instanceof NotSentError) return error;
  const { code, message } = error as { code?: string; message?: string };
  return new TransportError({
    message: `${nameOf(call)}: ${message || code || 'connection failed'}`,
    status: 0,
    reason: code ?? 'Transport',
    cause: error,
  });
}

async function dispatch(
  context: CallContext,
  call: Call,
  options: { pool: Pool; refresh: boolean; signal: AbortSignal },
) {
  const credentials = await context.connection.headers({ refresh: options.refresh });
  call.check?.();
  return options.pool.request({
    method: call.method,
    path: target(context, call),
    headers: {
      accept: call.accept ?? 'application/json',
      'user-agent': 'berth',
      ...(call.contentType !== undefined && { 'content-type': call.contentType }),
      ...credentials,
    },
    body: call.body ?? null,
    // undici closes the connection after a DELETE with a body, since not every server reads it. The API server does.
    ...(call.method === 'DELETE' && { reset: false }),
    signal: options.signal,
  });
}

async function failure(response: Awaited<ReturnType<typeof dispatch>>, call: Call, clock: Clock): Promise<KubeError> {
  const text = await readText(response.body, MAX_ERROR_BYTES).catch(() => '');
  const wait = retryAfterMs(response.headers['retry-after'], clock.now());
  return toKubeError(nameOf(call), { status: response.statusCode, body: parseOrText(text), retryAfterMs: wait });
}

function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function parseAnswer(text: string, call: Call): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TransportError({
      message: `${nameOf(call)}: the answer is not JSON`,
      status: 0,
      reason: 'BadAnswer',
      cause: error,
    });
  }
}

async function measured<T>(
  context: CallContext,
  verb: string,
  run: (answered: (status: number) => void) => Promise<T>,
) {
  const start = context.clock.monotonic();
  let code = '<error>';
  try {
    return await run((status) => {
      code = String(status);
    });
  } finally {
    context.metrics?.observe({ verb, code, seconds: (context.clock.monotonic() - start) / 1000 });
  }
}

/** One attempt: the parsed JSON of a 2xx answer. Throws KubeError, or the reason of the caller's signal. */
export function sendJson(context: CallContext, call: Call, refresh: boolean): Promise<unknown> {
  return measured(context, call.method, async (answered) => {
    const limit = deadline(context, call);
    const sentAt = context.clock.monotonic();
    try {
      const response = await dispatch(context, call, { pool: context.connection.calls, refresh, signal: limit.signal });
      const date = Date.parse(String(response.headers['date'] ?? ''));
      context.onDate?.({ date, sentAt, receivedAt: context.clock.monotonic() });
      answered(response.statusCode);
      if (response.statusCode >= 300) throw await failure(response, call, context.clock);
      return parseAnswer(await readText(response.body, call.maxBytes), call);
    } catch (error) {
      throw asFailure(error, call, limit.signal);
    } finally {
      limit.free();
    }
  });
}

/** The same for a body as a stream. The time limit ends with the head; the signal destroys the stream at any time. */
export function openStream(context: CallContext, call: Call, refresh: boolean): Promise<Readable> {
  return measured(context, call.method, async (answered) => {
    const limit = deadline(context, call);
    try {
      const response = await dispatch(context, call, {
        pool: context.connection.streams,
        refresh,
        signal: limit.signal,
      });
      answered(response.statusCode);
      if (response.statusCode >= 300) throw await failure(response, call, context.clock);
      limit.stop();
      response.body.once('close', limit.free);
      return response.body;
    } catch (error) {
      limit.free();
      throw asFailure(error, call, limit.signal);
    }
  });
}

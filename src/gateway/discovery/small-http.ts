import type { Dispatcher } from 'undici';

export interface SmallResponse {
  status: number;
  text: string;
  /** The parsed body, undefined when it is not JSON; parsed when it is asked for, which metrics never are. */
  readonly json: unknown;
}

export interface SmallRequest {
  origin: string;
  path: string;
  /** Present: a POST of this JSON. Absent: a GET. */
  body?: unknown;
  signal?: AbortSignal;
  /** Whole exchange, milliseconds. */
  timeoutMs: number;
  /** The rest of a longer answer is dropped and the call rejects. */
  maxBytes: number;
}

export class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

/** One small HTTP exchange with a model server: probes, token counts, metrics. Bounded in time and size. */
export async function smallRequest(dispatcher: Dispatcher, request: SmallRequest): Promise<SmallResponse> {
  const timeout = AbortSignal.timeout(request.timeoutMs);
  const response = await dispatcher.request({
    origin: request.origin,
    path: request.path,
    method: request.body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json, text/plain',
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
    },
    body: request.body === undefined ? null : JSON.stringify(request.body),
    signal: request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]),
  });
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > request.maxBytes)
      throw new AnswerTooLargeError(`answer to ${request.path} is longer than ${request.maxBytes} bytes`);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  return {
    status: response.statusCode,
    text,
    get json() {
      return parseJson(text);
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

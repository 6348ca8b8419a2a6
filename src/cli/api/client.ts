import type { Access } from '../settings.ts';
import { ApiFailure, failureOf, unreachable } from './failures.ts';

interface CallOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Milliseconds for an answer that is no stream: longer than the server waits for its controller. */
const ANSWER_MS = 120_000;

/** The HTTP interface of one server, with one key. */
export class Api {
  readonly #access: Access;

  constructor(access: Access) {
    this.#access = access;
  }

  get url(): string {
    return this.#access.url;
  }

  /** The JSON of an answer. Throws ApiFailure when the server refuses, and CliFailure when it does not answer. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const signal = options.signal ?? AbortSignal.timeout(ANSWER_MS);
    const response = await this.#fetch(method, path, { ...options, signal });
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw unreachable(this.url, error);
    }
  }

  get<T>(path: string): Promise<T> {
    return this.call<T>('GET', path);
  }

  /** The answer with its body unread. Throws as `call` does. */
  async open(method: string, path: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#fetch(method, path, options);
    return body ?? new ReadableStream({ start: (controller) => controller.close() });
  }

  async #fetch(method: string, path: string, { body, headers, signal }: CallOptions): Promise<Response> {
    const { url, key } = this.#access;
    const init = {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      // A key goes to the server that it is for, and nowhere else.
      redirect: 'manual' as const,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    };
    let response: Response;
    try {
      response = await fetch(`${url}${path}`, init);
    } catch (error) {
      throw unreachable(url, error);
    }
    if (response.ok) return response;
    throw failureOf(url, response.status, {
      location: response.headers.get('location'),
      text: await response.text().catch(() => ''),
    });
  }
}

/**
 * Calls until the server has answered: a lost connection and 503 are tried again after 1, 2 and 4 seconds. Only for what
 * may be sent twice.
 */
export async function insist<T>(call: () => Promise<T>, sleep: (ms: number) => Promise<void>): Promise<T> {
  for (const pause of [1000, 2000, 4000]) {
    try {
      return await call();
    } catch (error) {
      if (!isPassing(error)) throw error;
      await sleep(pause);
    }
  }
  return await call();
}

/** Whether the same call may work a little later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof ApiFailure) return error.status >= 500;
  return error instanceof Error && error.name === 'Unreachable';
}

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { json, text } from 'node:stream/consumers';
import { type Access, type Environment, requireEncrypted } from '../settings.ts';
import { CliFailure } from '../failure.ts';
import { ApiFailure, failureOf, unreachable } from './failures.ts';
import type { RemoteCommand } from './remote-command.ts';

interface CallOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Milliseconds for an answer that is no stream: longer than the server waits for its controller. */
const ANSWER_MS = 120_000;
/** Milliseconds of silence in a stream of events of the server, which says something every 15 s. */
const SILENCE_MS = 60_000;

const EVENTS = { accept: 'text/event-stream' };

/** The HTTP interface of one server, with one key. */
export class Api {
  readonly #access: Access;
  readonly #env: Environment;

  /** Throws a failure where the key would be sent in the clear. */
  constructor(access: Access, env: Environment) {
    requireEncrypted(access);
    this.#access = access;
    this.#env = env;
  }

  get url(): string {
    return this.#access.url;
  }

  /** The JSON of an answer. Throws ApiFailure when the server refuses, and CliFailure when it does not answer. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const signal = options.signal ?? AbortSignal.timeout(ANSWER_MS);
    const answer = await this.#send(method, path, { ...options, signal });
    try {
      return (await json(answer)) as T;
    } catch (error) {
      throw unreachable(this.url, error);
    }
  }

  get<T>(path: string): Promise<T> {
    return this.call<T>('GET', path);
  }

  /** The answer with its body unread. Throws as `call` does. */
  async open(method: string, path: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return Readable.toWeb(await this.#send(method, path, options)) as ReadableStream<Uint8Array>;
  }

  /** A stream of events that the server keeps alive. Throws as `call` does. */
  async events(path: string, lastEventId: string): Promise<ReadableStream<Uint8Array>> {
    const headers = { ...EVENTS, ...(lastEventId && { 'last-event-id': lastEventId }) };
    return Readable.toWeb(await this.#send('GET', path, { headers }, SILENCE_MS)) as ReadableStream<Uint8Array>;
  }

  /** A command in an instance. Throws as `call` does. */
  async command(path: string, command: string): Promise<RemoteCommand> {
    const { openCommand } = await import('./remote-command.ts');
    const url = new URL(`${this.url}${path}/terminal?command=${encodeURIComponent(command)}`);
    const opened = await openCommand(url, this.#authorization, this.#env).catch((error: unknown) => {
      throw error instanceof CliFailure ? error : unreachable(this.url, error);
    });
    if ('command' in opened) return opened.command;
    const { refusal } = opened;
    throw failureOf(this.url, refusal.statusCode ?? 0, { location: null, text: await text(refusal).catch(() => '') });
  }

  get #authorization(): string {
    return `Bearer ${this.#access.key}`;
  }

  async #send(
    method: string,
    path: string,
    { body, headers, signal }: CallOptions,
    silenceMs?: number,
  ): Promise<IncomingMessage> {
    const { url } = this.#access;
    const outgoing = {
      method,
      headers: {
        authorization: this.#authorization,
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      silenceMs,
    };
    let answer: IncomingMessage;
    try {
      // Node's HTTP is not loaded by a command that needs none.
      const { exchange } = await import('./transport.ts');
      answer = await exchange(new URL(`${url}${path}`), outgoing, this.#env);
    } catch (error) {
      throw error instanceof CliFailure ? error : unreachable(url, error);
    }
    const { statusCode: status = 0, headers: received } = answer;
    if (status >= 200 && status < 300) return answer;
    // A key goes to the server that it is for, and nowhere else: no redirect is followed.
    throw failureOf(url, status, { location: received.location ?? null, text: await text(answer).catch(() => '') });
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

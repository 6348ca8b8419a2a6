import { streamError } from '../errors/error-body.ts';
import { isObject, parseJson, shown } from '../fields.ts';
import type { ClientError, Dialect, HistoryItem, Json, Usage } from '../types.ts';
import { readErrorObject } from '../errors/upstream-error.ts';
import { parseUsage } from '../shared/usage.ts';
import {
  applyCuts,
  dataOf,
  endOfEvent,
  endOfLastEvent,
  startsLikeChatNews,
  valueIsObject,
  type Cut,
} from './event-bytes.ts';
import { observeResponse } from './observe-body.ts';

export interface PassThroughObserver {
  /** Bytes to forward now, always whole events; undefined when none is complete yet. */
  push(chunk: Uint8Array): Uint8Array | undefined;
  /** What is left when the upstream ended, closing blank line or not. */
  end(): Uint8Array | undefined;
  readonly usage: Usage | undefined;
  /** Events seen: engines send about one per token, so this bills an answer that was cut off. */
  readonly estimatedOutputTokens: number;
  /** Responses only: the output of the final event, and its id. */
  readonly items: HistoryItem[];
  readonly responseId: string | undefined;
  /** The dialect's terminal event was forwarded. */
  readonly finished: boolean;
  /** The error the backend reported inside the stream, if it did. */
  readonly error: ClientError | undefined;
}

/** An event longer than this is forwarded in pieces, unread: memory per stream stays bounded. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

const USAGE = Buffer.from('"usage":');

/** Starts of the events worth decoding, after their `event: `. */
const READ: Record<'messages' | 'responses', readonly string[]> = {
  messages: ['message_', 'error'],
  responses: ['response.completed', 'response.incompl', 'response.failed', 'error'],
};
const NAME_CHARS = 18;

/**
 * Watches a stream that is forwarded byte for byte. Only events that carry usage, an error or the end of the answer
 * are decoded, told by how they start; a chat stream is also searched for usage, once per chunk. With `hideUsage`, the chunk that carries nothing but usage is
 * left out: the gateway asked for it, not the client. Error events are rewritten without internal addresses.
 */
export function createPassThroughObserver(dialect: Dialect, options: { hideUsage: boolean }): PassThroughObserver {
  return new Observer(dialect, options.hideUsage);
}

class Observer implements PassThroughObserver {
  usage: Usage | undefined;
  items: HistoryItem[] = [];
  responseId: string | undefined;
  error: ClientError | undefined;
  estimatedOutputTokens = 0;
  finished = false;
  readonly #dialect: Dialect;
  readonly #hideUsage: boolean;
  #held: Buffer | undefined;
  #rawUsage: Json = {};

  constructor(dialect: Dialect, hideUsage: boolean) {
    this.#dialect = dialect;
    this.#hideUsage = hideUsage && dialect === 'chat';
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const data = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    const end = endOfLastEvent(data);
    if (end === 0) {
      this.#held = data.length > MAX_HELD_BYTES ? undefined : data;
      return this.#held === undefined ? data : undefined;
    }
    this.#held = end === data.length ? undefined : data.subarray(end);
    return this.#forward(end === data.length ? data : data.subarray(0, end));
  }

  end(): Uint8Array | undefined {
    const data = this.#held;
    this.#held = undefined;
    return data === undefined ? undefined : this.#forward(data);
  }

  #forward(data: Buffer): Buffer | undefined {
    const cuts: Cut[] = [];
    let usageAt = this.#dialect === 'chat' ? nextUsage(data, 0) : -1;
    for (let from = 0; from < data.length;) {
      const to = endOfEvent(data, from);
      this.estimatedOutputTokens++;
      const hasUsage = usageAt !== -1 && usageAt < to;
      if (hasUsage || this.#startsLikeNews(data, from)) this.#visit(data, { from, to }, cuts);
      if (hasUsage) usageAt = nextUsage(data, to);
      from = to;
    }
    return applyCuts(data, cuts);
  }

  #visit(data: Buffer, event: { from: number; to: number }, cuts: Cut[]): void {
    const text = dataOf(data.toString('utf8', event.from, event.to));
    if (text === '[DONE]') {
      if (this.#dialect === 'chat') this.finished = true;
      return;
    }
    const body = parseJson(text);
    if (!isObject(body)) return;
    const replacement = this.#read(body);
    if (replacement === undefined) return;
    cuts.push({ ...event, replacement: replacement === '' ? undefined : Buffer.from(replacement) });
  }

  /** Whether an event may be an error or an end. One without a name, in a dialect that names them, may be anything. */
  #startsLikeNews(data: Buffer, from: number): boolean {
    if (this.#dialect === 'chat') return startsLikeChatNews(data, from);
    if (data[from] !== 0x65) return true;
    const name = data.toString('latin1', from + 7, from + 7 + NAME_CHARS);
    return READ[this.#dialect].some((start) => name.startsWith(start));
  }

  /** Takes note of an event; what to forward instead, '' for nothing, undefined to leave it as it is. */
  #read(body: Json): string | undefined {
    if (this.#dialect === 'responses' && isObject(body.response)) return this.#readResponse(body, body.response);
    if (body.type === 'error' || isObject(body.error) || typeof body.error === 'string') {
      this.error = readErrorObject(body);
      const sequence = typeof body.sequence_number === 'number' ? body.sequence_number : 0;
      return streamError(this.#dialect, this.error, sequence).replace('data: [DONE]\n\n', '');
    }
    if (this.#dialect === 'chat') {
      this.usage = parseUsage('chat', body.usage) ?? this.usage;
      return this.#hideUsage && Array.isArray(body.choices) && body.choices.length === 0 ? '' : undefined;
    }
    if (body.type === 'message_stop') this.finished = true;
    this.#readMessages(body);
    return undefined;
  }

  /** Counts are cumulative; a null or missing one leaves what was said before. */
  #readMessages(body: Json): void {
    const source = isObject(body.message) ? body.message.usage : body.usage;
    if (!isObject(source)) return;
    for (const [name, value] of Object.entries(source)) if (value !== null) this.#rawUsage[name] = value;
    this.usage = parseUsage('messages', this.#rawUsage) ?? this.usage;
  }

  #readResponse(event: Json, response: Json): string | undefined {
    if (response.status === 'in_progress' || response.status === 'queued') return undefined;
    this.finished = true;
    const observed = observeResponse(response);
    this.usage = observed.usage ?? this.usage;
    this.items = observed.items;
    this.responseId = observed.responseId;
    if (!isObject(response.error)) return undefined;
    this.error = readErrorObject({ error: response.error });
    const cleaned = { ...event, response: { ...response, error: { ...response.error, message: this.error.message } } };
    return `event: ${shown(event.type)}\ndata: ${JSON.stringify(cleaned)}\n\n`;
  }
}

/** Where the next usage object begins, or -1; `"usage": null`, which some engines put into every chunk, is none. */
function nextUsage(data: Buffer, from: number): number {
  let at = data.indexOf(USAGE, from);
  while (at !== -1 && !valueIsObject(data, at + USAGE.length)) at = data.indexOf(USAGE, at + USAGE.length);
  return at;
}

import { isObject, type Json } from '../../../lib/json.ts';
import { streamError } from '../errors/error-body.ts';
import { excerpt, parseJson } from '../fields.ts';
import type { ClientError, Dialect, HistoryItem, Usage } from '../types.ts';
import { readErrorObject } from '../errors/upstream-error.ts';
import { parseUsage } from '../shared/usage.ts';
import {
  applyCuts,
  dataOf,
  endOfEvent,
  endOfLastEvent,
  isChatErrorOrEnd,
  valueIsObject,
  type Cut,
} from './event-bytes.ts';
import { observeResponse } from './observe-body.ts';

/** A longer event is forwarded in pieces and not read, which bounds the memory per stream. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

const USAGE = Buffer.from('"usage":');

/** How the names of events start that are decoded. */
const DECODED: Record<'messages' | 'responses', readonly string[]> = {
  messages: ['message_', 'error'],
  responses: ['response.completed', 'response.incompl', 'response.failed', 'error'],
};
const NAME_CHARS = 18;

/**
 * Watches a stream that is forwarded byte for byte. It decodes only events that have usage, an error or the end of the
 * answer, which it knows by their first bytes. In a chat stream it also searches each chunk for usage. It rewrites
 * error events to remove internal addresses.
 */
export class PassThroughObserver {
  usage: Usage | undefined;
  /** Responses only: the output of the final event. */
  items: HistoryItem[] = [];
  responseId: string | undefined;
  /** The error that the server reported inside the stream. */
  error: ClientError | undefined;
  /** Events seen. Engines send about one per token, so this counts the tokens of an answer that was cut off. */
  estimatedOutputTokens = 0;
  /** The final event of the dialect was forwarded. */
  finished = false;
  readonly #dialect: Dialect;
  readonly #hideUsage: boolean;
  #held: Buffer | undefined;
  #rawUsage: Json = {};

  /** @param options hideUsage: leave out the usage chunk of a chat stream, because only the gateway asked for it */
  constructor(dialect: Dialect, options: { hideUsage: boolean }) {
    this.#dialect = dialect;
    this.#hideUsage = options.hideUsage && dialect === 'chat';
  }

  /** Returns the bytes to forward now: whole events, or undefined when none is complete. */
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

  /** The server ended the stream. Returns the rest of it, with or without a closing blank line. */
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
      if (hasUsage || this.#isErrorOrEnd(data, from)) this.#visit(data, { from, to }, cuts);
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

  /** Whether an event may be an error or the end. In a dialect that names events, one without a name may be both. */
  #isErrorOrEnd(data: Buffer, from: number): boolean {
    if (this.#dialect === 'chat') return isChatErrorOrEnd(data, from);
    if (data[from] !== 0x65) return true;
    const name = data.toString('latin1', from + 7, from + 7 + NAME_CHARS);
    return DECODED[this.#dialect].some((start) => name.startsWith(start));
  }

  /** Reads an event. Returns what to forward instead: '' for nothing, undefined for the event as it is. */
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

  /** Counts are cumulative. A null or missing one leaves the last one valid. */
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
    return `event: ${excerpt(event.type)}\ndata: ${JSON.stringify(cleaned)}\n\n`;
  }
}

/** Where the next usage object begins, or -1. Some engines put `"usage": null` into every chunk, which is skipped. */
function nextUsage(data: Buffer, from: number): number {
  let at = data.indexOf(USAGE, from);
  while (at !== -1 && !valueIsObject(data, at + USAGE.length)) at = data.indexOf(USAGE, at + USAGE.length);
  return at;
}

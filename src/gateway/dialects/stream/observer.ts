import { streamError } from '../error-body.ts';
import { isObject, parseJson } from '../json.ts';
import type { ClientError, Dialect, HistoryItem, Json, Usage } from '../types.ts';
import { readErrorObject } from '../upstream-error.ts';
import { parseUsage } from '../usage.ts';
import { applyCuts, dataOf, endOfLastEvent, eventAround, hasContent, type Cut } from './event-bytes.ts';
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
const ERROR = Buffer.from('"error":');

/** What only the last event of a chat or messages stream contains. */
const TERMINALS = { chat: Buffer.from('data: [DONE]'), messages: Buffer.from('"message_stop"') };

/** The events that end a response; they also carry its output. */
const RESPONSE_ENDS = ['"response.completed"', '"response.incomplete"', '"response.failed"'].map((name) =>
  Buffer.from(name),
);

/** The type of an error event where the error is not a member of its own. */
const ERROR_EVENTS = [Buffer.from('"type":"error"'), Buffer.from('"type": "error"')];

/**
 * Watches a stream that is forwarded byte for byte. Only events that carry usage, an error or the end of a response
 * are decoded; all others cost a few native searches. With `hideUsage`, the chunk that carries nothing but usage is
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
    if (this.#dialect !== 'responses' && data.includes(TERMINALS[this.#dialect])) this.finished = true;
    for (let at = data.indexOf('\n\n'); at !== -1; at = data.indexOf('\n\n', at + 2)) this.estimatedOutputTokens++;
    const cuts: Cut[] = [];
    let from = 0;
    for (let at = this.#next(data, from); at !== -1; at = this.#next(data, from)) {
      const event = eventAround(data, at);
      from = event.to;
      const body = parseJson(dataOf(data.toString('utf8', event.from, event.to)));
      if (!isObject(body)) continue;
      const replacement = this.#read(body);
      if (replacement !== undefined) {
        cuts.push({ ...event, replacement: replacement === '' ? undefined : Buffer.from(replacement) });
      }
    }
    return applyCuts(data, cuts);
  }

  /** Where the next event worth decoding is, or -1. */
  #next(data: Buffer, from: number): number {
    const found = [this.#member(data, ERROR, from), ...ERROR_EVENTS.map((name) => data.indexOf(name, from))];
    if (this.#dialect === 'responses') for (const name of RESPONSE_ENDS) found.push(data.indexOf(name, from));
    else found.push(this.#member(data, USAGE, from));
    let first = -1;
    for (const at of found) if (at !== -1 && (first === -1 || at < first)) first = at;
    return first;
  }

  /** The next occurrence of a member that is not null. */
  #member(data: Buffer, name: Buffer, from: number): number {
    let at = data.indexOf(name, from);
    while (at !== -1 && !hasContent(data, at + name.length, name === ERROR)) at = data.indexOf(name, at + name.length);
    return at;
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
    this.finished = true;
    const observed = observeResponse(response);
    this.usage = observed.usage ?? this.usage;
    this.items = observed.items;
    this.responseId = observed.responseId;
    if (!isObject(response.error)) return undefined;
    this.error = readErrorObject({ error: response.error });
    const cleaned = { ...event, response: { ...response, error: { ...response.error, message: this.error.message } } };
    return `event: ${String(event.type)}\ndata: ${JSON.stringify(cleaned)}\n\n`;
  }
}

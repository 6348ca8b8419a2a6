import { isObject, type Json } from '../../../lib/json.ts';
import { isOverflow } from '../errors/context-overflow.ts';
import { failedWith, streamError } from '../errors/error-body.ts';
import { isErrorObject, isGivenUpAnswer, readErrorObject } from '../errors/upstream-error.ts';
import { excerpt, objectsOf, optionalString, parseJson, pick, textValue } from '../fields.ts';
import { withExactNumbers } from '../../../lib/exact-json.ts';
import { countStructure, isSpace } from '../../../lib/json-structure.ts';
import { GAVE_UP, isGivenUp, isReason } from '../stop-reason.ts';
import { countsOutput, EventUsage, laterUsage, parseUsage } from '../usage.ts';
import type { ClientError, Dialect, HistoryItem, Usage } from '../types.ts';
import { tidy } from '../output-items.ts';
import { withoutMark } from '../read-answer.ts';
import { isGivenUpResponse, parseStoredItem } from '../responses/parse-response.ts';
import { withState, type ResponseState } from '../responses/state.ts';
import { LineEnds } from './line-ends.ts';
import { PassedText } from './passed-text.ts';
import { UsageInPieces } from './usage-in-pieces.ts';
import {
  applyCuts,
  dataOf,
  endOfEvent,
  endOfLastEvent,
  isChatErrorOrEnd,
  isGenericName,
  lastText,
  nameOf,
  nextValue,
  skipComments,
  type Cut,
} from './event-bytes.ts';

/** A longer event is forwarded in pieces, and nothing but its usage is read, which bounds the memory per stream. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;
/** The same where the last event has the whole answer, which is to be stored. */
const MAX_STORED_BYTES = 16 * 1024 * 1024;

/** An object, array or value takes 20 to 100 bytes. */
const PIECE_BYTES = 64;
const NO_BYTES = Buffer.alloc(0);
/** A line end and a blank line with returns, but for its last byte. */
const SEAM = 3;
const USAGE = Buffer.from('"usage":');
/** A whole answer may have spaces before the colon. */
const USAGE_NAME = Buffer.from('"usage"');
const FINISH = Buffer.from('"finish_reason":');
const BRACE = 0x7b;
const COLON = 0x3a;
const EVENT = 0x65;

/** How the names of events start that are decoded. */
const DECODED: Record<'messages' | 'responses', readonly string[]> = {
  messages: ['message_', 'error'],
  responses: ['response.completed', 'response.incompl', 'response.failed', 'response.created', 'response.in_', 'error'],
};
/** The start of an event that ends a stream of responses, and within how many bytes it says so. */
const FINAL = /^(?:event: ?|data: ?\{\s?"type"\s?:\s?")response\.(?:completed|incomplete|failed)/m;
const NAME_WITHIN = 1024;
/** Events of a response that goes on, whatever its server says of its status. */
const BEGUN = new Set<unknown>(['response.created', 'response.queued', 'response.in_progress']);

/**
 * Watches a stream that is forwarded byte for byte. It decodes the first event, and those that have usage, an error or
 * the end of the answer, which it knows by their first bytes. In a chat stream it also searches each chunk for usage
 * and for a reason to stop. It rewrites error events to remove internal addresses.
 */
export class PassThroughObserver {
  usage: Usage | undefined;
  /** Responses only: the output of the final event. */
  items: HistoryItem[] = [];
  responseId: string | undefined;
  /** Responses only: the whole answer, out of the final event. */
  response: unknown;
  /** The error that the server reported inside the stream. */
  error: ClientError | undefined;
  /** The final event of the dialect was forwarded. */
  finished = false;
  readonly #dialect: Dialect;
  readonly #hideUsage: boolean;
  readonly #isTranscript: boolean;
  readonly #hasSeveral: boolean;
  readonly #state: ResponseState | undefined;
  readonly #mostHeld: number;
  readonly #ends = new LineEnds();
  /**
   * An event without its end so far, in pieces of which each is longer than the next: joining all at each chunk would copy
   * a long event every time.
   */
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** What is read of an event that is forwarded in pieces, of which one is gone. */
  #inPieces: UsageInPieces | undefined;
  readonly #eventUsage = new EventUsage();
  #events = 0;
  /** What the final event takes that was read. */
  #readBytes = 0;
  /** The output that the engine counted last, and what came since. */
  #counted = 0;
  readonly #since: PassedText;
  /** The engine has counted all of the text. */
  isCounted = true;
  /** The engine said why it stopped. Some send no final event after that. */
  #stopped = false;
  /** What identifies the resource of a responses stream. The whole would repeat instructions and tools. */
  #resource: Json = {};

  /**
   * @param options hideUsage: leave out the usage chunk of a chat stream, because only the gateway asked for it;
   * isTranscript: the stream of a transcription, which OpenAI ends in its own way, and others as they end chat;
   * hasSeveral: it has several answers, of which one may end before the others;
   * state: what is true of a response in place of what the server says of it
   */
  constructor(
    dialect: Dialect,
    options: { hideUsage: boolean; isTranscript?: boolean; hasSeveral?: boolean; state?: ResponseState },
  ) {
    this.#dialect = dialect;
    this.#since = new PassedText(dialect);
    this.#state = options.state;
    this.#mostHeld = options.state?.store === true ? MAX_STORED_BYTES : MAX_HELD_BYTES;
    this.#isTranscript = options.isTranscript === true;
    this.#hasSeveral = options.hasSeveral === true;
    this.#hideUsage = options.hideUsage && dialect === 'chat' && !this.#isTranscript;
  }

  /** The output so far: what the engine counted, and an estimate of what came since, which is nothing behind the end. */
  get estimatedOutputTokens(): number {
    const isEnd = this.finished && this.isCounted && this.#counted > 0;
    return isEnd ? this.#counted : this.#counted + this.#since.tokens;
  }

  /** The engine has counted its output up to here. Zeros are no count. */
  #count(reported: Usage | undefined): void {
    const { outputTokens = 0 } = reported ?? {};
    if (outputTokens > 0) this.isCounted = true;
    if (outputTokens <= this.#counted) return;
    this.#counted = outputTokens;
    this.#since.clear();
  }

  /** Bytes of memory, about. */
  get kept(): number {
    return 2 * this.#heldBytes + this.#readBytes;
  }

  /** No event has ended the answer. */
  get isOpen(): boolean {
    return !this.#stopped && !this.finished && this.error === undefined;
  }

  /** All that came was whole events. */
  get isBetweenEvents(): boolean {
    return this.#heldBytes === 0 && this.#inPieces === undefined;
  }

  /** Returns the bytes to forward now: whole events, or undefined when none is complete. */
  push(chunk: Uint8Array): Uint8Array | undefined {
    const bytes = this.#ends.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    if (bytes.length === 0) return undefined;
    const before = this.#heldBytes;
    // A blank line may begin in the last bytes that are held.
    const seam = before === 0 ? bytes : Buffer.concat([this.#lastHeld(), bytes]);
    const end = endOfLastEvent(seam);
    this.#hold(bytes);
    if (end === 0) {
      if (this.#heldBytes <= this.#mostHeld) return undefined;
      const piece = this.#takeHeld();
      this.#readPiece(piece);
      return piece;
    }
    const data = this.#takeHeld();
    if (this.#inPieces !== undefined) {
      this.#readPiece(data.subarray(0, endOfEvent(data, 0)));
      this.#inPieces = undefined;
    }
    const to = before - (seam.length - bytes.length) + end;
    if (to < data.length) this.#hold(data.subarray(to));
    return this.#forward(to === data.length ? data : data.subarray(0, to));
  }

  #readPiece(piece: Buffer): void {
    const isFirst = this.#inPieces === undefined;
    this.#inPieces ??= new UsageInPieces();
    if (this.#dialect !== 'responses') return;
    if (isFirst) this.finished ||= FINAL.test(piece.toString('latin1', 0, NAME_WITHIN));
    this.#inPieces.push(piece);
    const reported = parseUsage('responses', this.#inPieces.usage);
    this.usage = reported ?? this.usage;
    this.#count(reported);
  }

  #hold(bytes: Buffer): void {
    this.#heldBytes += bytes.length;
    let last = bytes;
    while ((this.#held.at(-1)?.length ?? Infinity) <= last.length)
      last = Buffer.concat([this.#held.pop() ?? NO_BYTES, last]);
    this.#held.push(last);
  }

  #takeHeld(): Buffer {
    const [first, ...others] = this.#held;
    const data = first !== undefined && others.length === 0 ? first : Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    return data;
  }

  /** The last three bytes that are held. */
  #lastHeld(): Buffer {
    const last = this.#held.at(-1) ?? NO_BYTES;
    return last.length >= SEAM ? last.subarray(-SEAM) : Buffer.concat(this.#held.slice(-SEAM)).subarray(-SEAM);
  }

  /**
   * The server ended the stream. Returns the rest of it: the last event when it lacks its blank line, and the final
   * event of the dialect when the answer lacks it.
   */
  end(): Uint8Array | undefined {
    this.#hold(this.#ends.end());
    const held = this.#takeHeld();
    const rest = held.length === 0 || !isWholeEvent(held) ? undefined : this.#forward(held);
    const final = this.#finalEvent();
    if (rest === undefined) return final === '' ? undefined : Buffer.from(final);
    return Buffer.concat([rest, Buffer.from(`${blankLineAfter(rest)}${final}`)]);
  }

  #finalEvent(): string {
    if (this.finished || !(this.#stopped || this.error !== undefined)) return '';
    if (this.#dialect === 'responses' || (this.#dialect === 'messages' && this.error !== undefined)) return '';
    this.finished = true;
    if (this.#dialect === 'chat') return 'data: [DONE]\n\n';
    return 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
  }

  /** Comments before the first event are left out. The gateway sends its own. */
  #forward(whole: Buffer): Buffer | undefined {
    const isFirstOfAll = this.#events === 0;
    const data = isFirstOfAll ? withoutMark(whole) : whole;
    const isChat = this.#dialect === 'chat';
    const cuts: Cut[] = [];
    let usageAt = isChat ? nextValue(data, { name: USAGE, from: 0, first: BRACE }) : -1;
    const finish = isChat ? lastText(data, FINISH) : undefined;
    const givenUpAt = isGivenUp(finish) ? data.lastIndexOf(FINISH) : -1;
    if (!this.#hasSeveral) this.#stopped ||= isReason(finish);
    for (let from = 0; from < data.length;) {
      const to = endOfEvent(data, from);
      const at = skipComments(data, from, to);
      if (at < to) {
        const hasUsage = usageAt !== -1 && usageAt < to;
        const isEnd = givenUpAt >= from && givenUpAt < to;
        const isFirst = this.#events++ === 0;
        if (this.#since.add(data.subarray(at, to))) this.isCounted = false;
        if (hasUsage || isEnd || isFirst || this.#isTranscript || this.#isErrorOrEnd(data, at, to))
          this.#visit(data, { from, to }, cuts);
        if (hasUsage) usageAt = nextValue(data, { name: USAGE, from: to, first: BRACE });
      }
      from = to;
    }
    return this.#events === 0 ? undefined : applyCuts(data, cuts);
  }

  #visit(data: Buffer, event: { from: number; to: number }, cuts: Cut[]): void {
    const text = dataOf(data.toString('utf8', event.from, event.to));
    if (text === '[DONE]') {
      if (this.#dialect === 'chat') this.finished = true;
      return;
    }
    const body = parseJson(text);
    if (!isObject(body)) return;
    const replacement = this.#read(body, text);
    if (replacement === undefined) return;
    cuts.push({ ...event, replacement: replacement === '' ? undefined : Buffer.from(replacement) });
  }

  /** Whether an event may be an error or the end. In a dialect that names events, one without a name may be both. */
  #isErrorOrEnd(data: Buffer, at: number, to: number): boolean {
    if (this.#dialect === 'chat') return isChatErrorOrEnd(data, at, to);
    if (data[at] !== EVENT) return true;
    const name = nameOf(data, at);
    return isGenericName(name) || DECODED[this.#dialect].some((start) => name.startsWith(start));
  }

  /** Reads an event. Returns what to forward instead: '' for nothing, undefined for the event as it is. */
  #read(body: Json, text: string): string | undefined {
    if (this.#dialect === 'responses' && isObject(body.response)) return this.#readResponse(body, body.response, text);
    if (isErrorObject(body)) return this.#fail(readErrorObject(body), body);
    if (this.#dialect === 'chat') {
      const reported = parseUsage('chat', body.usage);
      this.usage = laterUsage(this.usage, reported);
      // In a chunk of one of several answers, vLLM counts that one.
      if (!this.#hasSeveral || objectsOf(body.choices).length === 0) this.#count(reported);
      if (this.#isTranscript && body.type === 'transcript.text.done') this.finished = true;
      if (isGivenUpAnswer(body)) return this.#fail(GAVE_UP, body);
      const isUsage = Array.isArray(body.choices) && body.choices.length === 0 && isObject(body.usage);
      return this.#hideUsage && isUsage ? '' : undefined;
    }
    if (body.type === 'message_stop') this.finished = true;
    if (isObject(body.delta) && isReason(body.delta.stop_reason)) this.#stopped = true;
    this.#readMessages(body);
    return isObject(body.delta) && isGivenUp(body.delta.stop_reason) ? this.#fail(GAVE_UP, body) : undefined;
  }

  #fail(error: ClientError, event: Json): string {
    this.error = error;
    const sequence = typeof event.sequence_number === 'number' ? event.sequence_number : 0;
    if (this.#dialect !== 'responses' || !isOverflow(error))
      return streamError(this.#dialect, error, sequence).replace('data: [DONE]\n\n', '');
    // Codex reads nothing but the failed response.
    this.finished = true;
    const { code, message } = error;
    const response = { ...this.#resource, status: 'failed', output: [], error: { code, message } };
    const failed = { type: 'response.failed', sequence_number: sequence, response };
    return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`;
  }

  /** What an engine says of its output when it begins is no count of it. */
  #readMessages({ message, usage }: Json): void {
    this.usage = this.#eventUsage.add(isObject(message) ? message.usage : usage) ?? this.usage;
    if (!isObject(message) && countsOutput(usage)) this.#count(this.usage);
  }

  #readResponse(event: Json, response: Json, text: string): string | undefined {
    const told = this.#state === undefined ? response : withState(response, this.#state);
    // Written anew, with all numbers as they are.
    const isKept = told !== response || this.#state?.store === true;
    const exact = isKept ? (withExactNumbers({ ...event, response: told }, text, () => true) as Json) : event;
    const whole = isObject(exact.response) && this.#state !== undefined ? withState(exact.response, this.#state) : told;
    const written = told === response ? undefined : eventOf({ ...exact, response: whole });
    if (BEGUN.has(event.type) || BEGUN.has(`response.${textValue(response.status)}`)) {
      this.#resource = pick(response, ['id', 'object', 'created_at', 'model']);
      return written;
    }
    this.finished = true;
    const observed = observeResponse(response, isObject(exact.response) ? exact.response : response);
    this.#readBytes = 2 * text.length + PIECE_BYTES * countStructure(Buffer.from(text), Infinity);
    this.usage = observed.usage ?? this.usage;
    this.#count(observed.usage);
    this.items = observed.items;
    this.responseId = observed.responseId;
    const { error } = observed;
    if (error === undefined) {
      this.response = whole;
      return written;
    }
    this.error = error;
    return eventOf({
      ...exact,
      response: { ...whole, error: failedWith(error) },
    });
  }
}

function eventOf(event: Json): string {
  return `event: ${excerpt(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Whether the last bytes of a stream are an event that lacks no more than its blank line. Half an event is no JSON. */
function isWholeEvent(data: Buffer): boolean {
  const text = dataOf(data.toString('utf8'));
  return text === '[DONE]' || parseJson(text) !== undefined;
}

function blankLineAfter(data: Uint8Array): string {
  if (data.at(-1) !== 0x0a) return '\n\n';
  const isBlank = data.at(-2) === 0x0a || (data.at(-2) === 0x0d && data.at(-3) === 0x0a);
  return isBlank ? '' : '\n';
}

interface ObservedBody {
  usage: Usage | undefined;
  /** Responses only: the output, to be stored. */
  items: HistoryItem[];
  /** Responses only: the id to store it under. */
  responseId: string | undefined;
  /** Responses only: why it failed. */
  error: ClientError | undefined;
}

const NOTHING_OBSERVED: ObservedBody = { usage: undefined, items: [], responseId: undefined, error: undefined };
/** Far above the usage object of any engine. */
const USAGE_MAX_BYTES = 4096;
/** A body has one usage object. The text of the answer may name the field a few more times. */
const USAGE_TRIES = 8;

/**
 * What the gateway needs of a response resource.
 *
 * @param exact the same with all numbers of its output as they are written: what calls have may be objects
 */
function observeResponse(response: Json, exact: Json): ObservedBody {
  const items = tidy(objectsOf(exact.output).flatMap(parseStoredItem), false);
  const said = isObject(response.error) ? readErrorObject({ error: response.error }) : undefined;
  const error = said ?? (isGivenUpResponse(response) ? GAVE_UP : undefined);
  return { usage: parseUsage('responses', response.usage), items, responseId: optionalString(response.id), error };
}

/** Reads usage, in the responses dialect also items and id, of a body that is forwarded as it is. Never throws. */
export function observeBody(dialect: Dialect, bytes: Uint8Array): ObservedBody {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dialect === 'responses') {
    const text = data.toString('utf8');
    const body = parseJson(text);
    if (!isObject(body)) return NOTHING_OBSERVED;
    const exact = withExactNumbers(body, text, (name, _parent, isTop) => isTop && name === 'output') as Json;
    return observeResponse(body, exact);
  }
  return { ...NOTHING_OBSERVED, usage: usageAtEnd(dialect, data) };
}

/** The usage near the end of a whole answer, of which `data` may be no more than the end. Only that object is decoded. */
export function usageAtEnd(dialect: Dialect, data: Buffer): Usage | undefined {
  let at = data.lastIndexOf(USAGE_NAME);
  for (let tries = 0; at > 0 && tries < USAGE_TRIES; tries++, at = data.lastIndexOf(USAGE_NAME, at - 1)) {
    let colon = at + USAGE_NAME.length;
    while (isSpace(data[colon])) colon += 1;
    if (data[colon] !== COLON) continue;
    const usage = parseUsage(dialect, parseJson(objectAfter(data, colon + 1)));
    if (usage !== undefined) return usage;
  }
  return undefined;
}

/** The text of the JSON object that starts at or soon after `from`. Usage objects have no strings with braces. */
function objectAfter(data: Buffer, from: number): string {
  const end = Math.min(data.length, from + USAGE_MAX_BYTES);
  let depth = 0;
  for (let at = from; at < end; at++) {
    if (data[at] === 0x7b) depth++;
    else if (data[at] === 0x7d) {
      depth--;
      if (depth <= 0) return data.toString('utf8', from, at + 1);
    }
  }
  return '';
}

import { isObject, type Json } from '../../../lib/json.ts';
import { parseJson } from '../fields.ts';
import { BROKE_OFF, type GoingOn, type Told } from '../go-on.ts';
import { tokensOfItems, tokensOfLength } from '../inspect/estimate-tokens.ts';
import { signatureItem } from '../call-signature.ts';
import { isNoCall, itemId } from '../output-items.ts';
import { incompleteReason } from '../stop-reason.ts';
import { atLeast } from '../usage.ts';
import { withExactInputs, withoutNull } from '../tool-arguments.ts';
import type { CallItem, ClientError, OutputItem, ReasoningItem, StopReason, ToolOrigin, Usage } from '../types.ts';
import { isBlank, isComplete, newBlock, type Block } from './block.ts';
import type { Emitter } from './emitter.ts';
import { tokensOfEvents } from './passed-text.ts';

/** More than any answer has. Waiting blocks go out all at once, and many more would delay other streams. */
const MAX_WAITING = 4096;
/** What a block, and a fragment that is appended to one, take beside their characters. */
const BLOCK_BYTES = 512;
const FRAGMENT_BYTES = 64;
/** Engines send a token or two in each, so those of a block are joined at this number. */
const MAX_LOOSE = 1024;
/** Names have 64 characters in the published dialects, and servers of tools make some that are longer. */
const MAX_NAME = 1024;

export interface SequencerOptions {
  emitter: Emitter;
  /** The ids of this answer's items derive from it. */
  id: string;
  /** Keep the first call only. */
  singleCall: boolean;
  /** Whose signatures of calls these are. */
  signer: string;
  /** Tools that are more than plain functions, by the name that the engine sees. */
  origins: ReadonlyMap<string, ToolOrigin>;
}

/**
 * Takes what an engine streams, in any order, and drives an emitter by the rules that hold in every dialect:
 * - One block is open at a time. It is started before its first delta and closed once. Every index is used once.
 * - The fragment that opens a block is sent like any other.
 * - Blank text before a call is left out.
 * - Interleaved fragments of parallel calls wait until the call before them is complete.
 * - The stream ends exactly once.
 */
export class BlockSequencer {
  usage: Usage | undefined;
  /** The engine has counted all that came. */
  isCounted = true;
  /** The meaning of the engine's stop reason, which depends on whether there were calls. */
  #stop: ((hasCalls: boolean) => StopReason) | undefined;
  #stopSequence: string | undefined;
  readonly #options: SequencerOptions;
  /** The head is open or waits to be opened. The others wait for it. */
  readonly #queue: Block[] = [];
  readonly #calls = new Map<string | number, Block | undefined>();
  readonly #callIds = new Set<string>();
  readonly #done: OutputItem[] = [];
  #index = 0;
  #started = false;
  /** No more can come, so the last block ends where the engine stopped. */
  #ending = false;
  /** The engine ended a call before its arguments were whole. */
  #hasHalfCall = false;
  #finished = false;
  #out = '';
  #error: ClientError | undefined;
  /** Fragments of text, and how many of them at its end are white space. */
  #fragments = 0;
  #blanks = 0;
  /** The output that the engine counted last, and the lengths of all that came since. */
  #counted = 0;
  #since = { characters: 0, bytes: 0 };
  /** What is kept: characters, blocks, and fragments that are not joined yet, with the texts of parsers. */
  #characters = 0;
  #blocks = 0;
  #loose = 0;
  /** Another engine goes on with what one began. */
  #goesOn = false;
  /** What that engine is to write again first. */
  #repeated = '';

  constructor(options: SequencerOptions) {
    this.#options = options;
  }

  get finished(): boolean {
    return this.#finished;
  }

  get stopped(): boolean {
    return this.#stop !== undefined;
  }

  get error(): ClientError | undefined {
    return this.#error;
  }

  /** The items that the client has got so far, the last one perhaps in part. */
  get items(): OutputItem[] {
    return [...this.#done, ...this.#queue.filter((block) => block.index !== -1).map((block) => block.item)];
  }

  /** The engine has counted so much of its output up to here. A zero is no count. */
  counted(output: number): void {
    if (output > 0) this.isCounted = true;
    if (output <= this.#counted) return;
    this.#counted = output;
    this.#since = { characters: 0, bytes: 0 };
  }

  /** The output so far: what the engine counted, and an estimate of what came since. */
  get estimatedOutputTokens(): number {
    if (this.#counted === 0) return tokensOfItems(this.items);
    const { characters, bytes } = this.#since;
    return this.#counted + tokensOfLength(characters, bytes);
  }

  /** A parser keeps a text, which counts here. */
  parserKeeps(text: string): void {
    this.#characters += text.length;
    this.#loose += 1;
  }

  /** Bytes of memory, about. */
  get kept(): number {
    return 2 * this.#characters + BLOCK_BYTES * this.#blocks + FRAGMENT_BYTES * this.#loose;
  }

  /** A string to which others are appended keeps all of them, until somebody reads it. */
  #append(block: Block, fragment: string): void {
    const { item } = block;
    if (item.kind === 'call') item.arguments += fragment;
    else item.text += fragment;
    block.pending += fragment;
    block.loose += 1;
    this.#loose += 1;
    if (block.loose < MAX_LOOSE) return;
    (item.kind === 'call' ? item.arguments : item.text).charCodeAt(0);
    block.pending.charCodeAt(0);
    this.#loose -= block.loose;
    block.loose = 0;
  }

  #came(fragment: string): void {
    this.#characters += fragment.length;
    this.isCounted &&= fragment === '';
    this.#since.characters += fragment.length;
    this.#since.bytes += Buffer.byteLength(fragment);
  }

  /** The events since the last call. */
  take(): string {
    const out = this.#out;
    this.#out = '';
    return out;
  }

  /** What the client has, or will have, of the answer; undefined where that is more than one text, or has an end. */
  get told(): Told | undefined {
    if (this.#finished || this.stopped || this.#done.length > 0 || this.#queue.length > 1) return undefined;
    const [block] = this.#queue;
    const tokens = this.#tokens;
    if (block === undefined) return { text: '', tokens, blank: 0 };
    const { item, sealed } = block;
    return item.kind === 'text' && !sealed ? { text: item.text, tokens, blank: this.#blanks } : undefined;
  }

  /**
   * The client has all that came until now, and not by the events of this one.
   *
   * @param hasHead it has the head of a text, perhaps without text
   * @param itemId under which it knows that
   */
  settle(hasHead: boolean, itemId?: string): void {
    if (hasHead && this.#queue.length === 0) this.#push({ kind: 'text', text: '' });
    const [block] = this.#queue;
    if (block !== undefined && block.index === -1) this.#open(block);
    if (block !== undefined) block.pending = '';
    if (block !== undefined && itemId !== undefined) block.item.id = itemId;
    this.#out = '';
  }

  /** Another engine goes on with the answer. */
  goOn({ repeated }: GoingOn): void {
    this.#goesOn = true;
    this.#repeated = repeated;
    this.#fragments = this.#tokens;
  }

  /** The tokens of a text that is the whole answer so far. */
  get #tokens(): number {
    const counted = this.usage?.outputTokens ?? 0;
    return Math.max(tokensOfEvents(this.#fragments, this.estimatedOutputTokens), counted);
  }

  /** What the engine reported that began the answer is not of all of it. */
  #count(): void {
    if (this.usage === undefined || this.usage.outputTokens >= this.#fragments) return;
    this.usage = { ...this.usage, outputTokens: this.#fragments };
  }

  #behindRepeated(fragment: string): string {
    const length = Math.min(fragment.length, this.#repeated.length);
    if (fragment.slice(0, length) !== this.#repeated.slice(0, length)) {
      this.fail(BROKE_OFF);
      return '';
    }
    this.#repeated = this.#repeated.slice(length);
    return fragment.slice(length);
  }

  /** The engine has begun. Usage that is known already is sent with the start. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#out += this.#options.emitter.start(this.usage);
  }

  text(fragment: string): void {
    const own = this.#repeated === '' ? fragment : this.#behindRepeated(fragment);
    if (own === '') return;
    this.#fragments += 1;
    this.#blanks = isBlank(own) ? this.#blanks + 1 : 0;
    if (this.#goesOn) this.#count();
    this.#write('text', own);
    if (this.#goesOn) this.counted(this.usage?.outputTokens ?? 0);
  }

  refusal(fragment: string): void {
    this.#write('refusal', fragment);
  }

  reasoning(fragment: string): void {
    // The first engine had thought, or was not to think.
    if (this.#goesOn && fragment !== '') this.fail(BROKE_OFF);
    this.#write('reasoning', fragment);
  }

  /**
   * Data of reasoning other than its text. Without text before it, it becomes a block of its own: some models sign what
   * they do not show, and want it back.
   */
  reasoningMark(mark: Pick<ReasoningItem, 'signature' | 'redacted' | 'opaque'>): void {
    if (mark.signature === '') return;
    for (const text of [mark.signature, mark.redacted, mark.opaque]) this.#characters += text?.length ?? 0;
    const last = this.#queue.at(-1);
    if (mark.redacted === undefined && last !== undefined && last.item.kind === 'reasoning' && !last.sealed) {
      Object.assign(last.item, mark);
      return;
    }
    this.#push({ kind: 'reasoning', text: '', ...mark });
  }

  /** What the server sealed for the call that comes next. */
  callSignature(data: string): void {
    if (this.#options.singleCall && this.#calls.size > 0) return;
    this.#characters += data.length;
    this.#push(signatureItem(data, this.#options.signer));
    this.seal();
  }

  /** A call begins, or its name arrives. `key` is the engine's index or item id. */
  call(key: string | number, callId: string, name: string): void {
    if (name.length > MAX_NAME) {
      this.#failName();
      return;
    }
    const known = this.#calls.get(key);
    if (known === undefined) this.#characters += callId.length + name.length;
    if (known !== undefined) {
      const item = known.item as CallItem;
      if (known.index === -1) item.name = longerName(item.name, name);
      if (item.name.length > MAX_NAME) this.#failName();
      this.#advance();
      return;
    }
    if (this.#calls.has(key)) return;
    if (this.#options.singleCall && this.#calls.size > 0) {
      this.#calls.set(key, undefined);
      this.#blocks += 1;
      return;
    }
    const unique = callId === '' || this.#callIds.has(callId) ? `call_${this.#options.id}${this.#calls.size}` : callId;
    this.#callIds.add(unique);
    this.#calls.set(key, this.#push({ kind: 'call', callId: unique, name, arguments: '' }));
  }

  #failName(): void {
    this.fail({
      status: 502,
      message: `The model server sent a tool call whose name is longer than ${MAX_NAME} characters.`,
    });
  }

  hasCall(key: string | number): boolean {
    return this.#calls.has(key);
  }

  /** More of a call's arguments. Ignored when the call is complete. */
  callArguments(key: string | number, fragment: string): void {
    const block = this.#calls.get(key);
    if (block === undefined || fragment === '' || block.sealed) return;
    const { arguments: before } = block.item as CallItem;
    const own = before === '' ? withoutNull(block.scan.push(fragment, before)) : block.scan.push(fragment, before);
    if (own === '') return;
    this.#came(own);
    this.#append(block, own);
    this.#advance();
  }

  /** Whether no arguments have arrived for this call. */
  isEmptyCall(key: string | number): boolean {
    const item = this.#calls.get(key)?.item;
    return item?.kind === 'call' && item.arguments === '';
  }

  /** Whether the arguments of a call are a whole JSON object or list. */
  isWholeCall(key: string | number): boolean {
    const block = this.#calls.get(key);
    return block !== undefined && isComplete(block);
  }

  sealCall(key: string | number): void {
    const block = this.#calls.get(key);
    if (block !== undefined) block.sealed = true;
    this.#advance();
  }

  /** The engine ended its current block. What follows is another one. */
  seal(): void {
    const last = this.#queue.at(-1);
    if (last !== undefined && last.item.kind !== 'call') last.sealed = true;
    this.#advance();
  }

  stop(reason: (hasCalls: boolean) => StopReason, stopSequence?: string): void {
    this.#stop = reason;
    this.#stopSequence = stopSequence;
  }

  /** Some servers write their last event also when they broke off. Half a call without a reason to stop is no answer. */
  finish(): void {
    if (this.#finished) return;
    if (this.#stop === undefined && (this.#hasHalfCall || this.#queue.some(isHalfCall))) {
      this.fail(BROKE_OFF);
      return;
    }
    this.#flush();
    this.#finished = true;
    const hasCalls = this.#done.some((item) => item.kind === 'call');
    this.#out += this.#options.emitter.finish({
      stop: this.#stop?.(hasCalls) ?? (hasCalls ? 'tool' : 'end'),
      stopSequence: this.#stopSequence,
      usage: this.isCounted ? this.usage : atLeast(this.estimatedOutputTokens, this.usage),
      items: this.#done,
    });
  }

  fail(error: ClientError): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#error = error;
    this.#out += this.#options.emitter.fail(error, this.items);
  }

  #write(kind: 'text' | 'refusal' | 'reasoning', fragment: string): void {
    if (fragment === '' || this.#finished) return;
    this.#came(fragment);
    const last = this.#queue.at(-1);
    if (last !== undefined && last.item.kind === kind && !last.sealed) {
      this.#append(last, fragment);
      last.blank &&= isBlank(fragment);
      if (this.#queue.length === 1) this.#advance();
    } else this.#push({ kind, text: fragment });
  }

  #push(item: OutputItem): Block {
    const block = newBlock(item);
    this.#blocks += 1;
    if (this.#queue.length >= MAX_WAITING) {
      this.fail({ status: 502, message: 'The model server sent too much before a tool call was complete.' });
    } else if (!this.#finished) {
      this.#queue.push(block);
      this.#advance();
    }
    return block;
  }

  /** Opens, feeds and closes blocks from the head of the queue, as far as their order allows. */
  #advance(): void {
    if (this.#finished) return;
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      const next = this.#queue[1];
      if (head.index === -1) {
        if (head.blank) {
          if (next === undefined) return;
          if (next.item.kind === 'call') {
            this.#queue.shift();
            continue;
          }
        }
        if (head.item.kind === 'call' && !this.#isNamed(head, next !== undefined)) return;
        this.#open(head);
      }
      this.#feed(head);
      if (!head.sealed && (next === undefined || !isComplete(head))) return;
      this.#close(head);
    }
  }

  /** Whether the name of a call is whole: engines write it in fragments, and arguments behind it. */
  #isNamed({ item, sealed }: Block, hasNext: boolean): boolean {
    if (item.kind !== 'call' || item.name === '') return false;
    return sealed || hasNext || item.arguments !== '';
  }

  #open(block: Block): void {
    this.start();
    block.index = this.#index++;
    const { id, origins } = this.#options;
    const origin = block.item.kind === 'call' ? origins.get(block.item.name) : undefined;
    block.item.id = itemId(block.item.kind, id, block.index, origin);
    this.#out += this.#options.emitter.open(block.item, block.index);
  }

  #feed(block: Block): void {
    if (block.pending === '') return;
    this.#out += this.#options.emitter.delta(block.item, block.index, block.pending);
    block.pending = '';
  }

  #close(block: Block): void {
    block.sealed = true;
    this.#hasHalfCall ||= isHalfCall(block);
    this.#queue.shift();
    this.#done.push(block.item);
    const isCut = this.#ending && this.#queue.length === 0 && this.#wasCut();
    this.#out += this.#options.emitter.close(block.item, block.index, isCut);
  }

  /** Whether a limit or a filter ended the answer. */
  #wasCut(): boolean {
    return this.#stop !== undefined && incompleteReason(this.#stop(true)) !== undefined;
  }

  /** Sends everything that waits, also a call whose name has not come. */
  #flush(): void {
    this.start();
    this.#ending = true;
    for (const block of this.#queue) block.sealed = true;
    this.#advance();
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      if (head.item.kind === 'call' && isNoCall(head.item)) this.#queue.shift();
      else {
        this.#open(head);
        this.#feed(head);
        this.#close(head);
      }
      this.#advance();
    }
  }
}

function isHalfCall(block: Block): boolean {
  return block.item.kind === 'call' && block.item.arguments !== '' && !isComplete(block);
}

/** A name with another fragment of it. Some engines write all of it in each fragment. */
function longerName(name: string, fragment: string): string {
  if (name.startsWith(fragment)) return name;
  return fragment.startsWith(name) ? fragment : name + fragment;
}

/** The input of a call as an object that has something. */
const HAS_INPUT = /"(?:input|arguments)"\s{0,8}:\s{0,8}\{\s{0,8}"/;

/** The JSON object of an event. Fails the stream and returns undefined when it is none. */
export function readEvent(data: string, sink: BlockSequencer): Json | undefined {
  const event = parseJson(data);
  if (isObject(event)) return HAS_INPUT.test(data) ? (withExactInputs(event, data) as Json) : event;
  sink.fail({ status: 502, message: 'The model server sent an event that is not JSON.' });
  return undefined;
}

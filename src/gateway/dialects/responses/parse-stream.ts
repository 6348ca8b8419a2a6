import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalNumber, optionalString, textValue } from '../fields.ts';
import { GAVE_UP, stopOfResponses } from '../stop-reason.ts';
import { readEvent, type BlockSequencer } from '../stream/sequencer.ts';
import { isDone } from '../stream/sse-reader.ts';
import type { OutputItem } from '../types.ts';
import { isErrorObject, readErrorObject } from '../errors/upstream-error.ts';
import { parseUsage } from '../usage.ts';
import { isGivenUpResponse, parseOutputItem } from './parse-response.ts';

type Key = string | number;

/** Feeds the events of a responses stream to a sequencer, each item once. Engines leave events out. */
export class ResponsesStreamParser {
  readonly #sink: BlockSequencer;
  /** The items of which a delta or a done event was passed on. */
  readonly #begun = new Set<Key>();
  /** The kinds of what was passed on. */
  readonly #kinds = new Set<OutputItem['kind']>();
  /** How each thought is told that has deltas: some servers write what the model thought and then a summary of it. */
  readonly #forms = new Map<Key, 'raw' | 'summary'>();
  /** The key of items whose events have neither index nor id. Each ends with its done event. */
  #nameless: Key = 0;

  constructor(sink: BlockSequencer) {
    this.#sink = sink;
  }

  event(data: string): void {
    if (isDone(data)) return;
    const event = readEvent(data, this.#sink);
    if (event === undefined) return;
    if (isErrorObject(event)) {
      this.#sink.fail(readErrorObject(event));
      return;
    }
    const known = keyOf(event);
    const key = known ?? this.#nameless;
    const delta = textValue(event.delta);
    switch (event.type) {
      case 'response.created':
      case 'response.in_progress':
        this.#sink.start();
        break;
      case 'response.output_item.added':
        if (isObject(event.item)) this.#added(key, event.item);
        break;
      case 'response.output_text.delta':
        this.#pass(key, 'text', () => this.#sink.text(delta));
        break;
      case 'response.refusal.delta':
        this.#pass(key, 'refusal', () => this.#sink.refusal(delta));
        break;
      case 'response.reasoning_summary_part.added':
        if ((optionalNumber(event.summary_index) ?? 0) > 0) this.#thought(key, 'summary', '\n\n');
        break;
      case 'response.reasoning_text.delta':
        this.#thought(key, 'raw', delta);
        break;
      case 'response.reasoning_summary_text.delta':
        this.#thought(key, 'summary', delta);
        break;
      case 'response.function_call_arguments.delta':
        this.#pass(key, 'call', () => this.#sink.callArguments(key, delta));
        break;
      case 'response.output_item.done':
        if (isObject(event.item)) this.#done(key, event.item);
        if (known === undefined) this.#nameless = `nameless ${this.#begun.size}`;
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#end(event);
        break;
      // Events of single parts repeat what others say. Hosted tools are skipped.
      default:
    }
  }

  #pass(key: Key, kind: OutputItem['kind'], feed: () => void): void {
    this.#begin(key);
    this.#kinds.add(kind);
    feed();
  }

  /** A thought is told once, in the form that begins: what a model thought is more than its summary, and comes first. */
  #thought(key: Key, form: 'raw' | 'summary', delta: string): void {
    if (!this.#forms.has(key)) this.#forms.set(key, form);
    if (this.#forms.get(key) === form) this.#pass(key, 'reasoning', () => this.#sink.reasoning(delta));
  }

  #begin(key: Key): void {
    if (this.#begun.has(key)) return;
    this.#begun.add(key);
    this.#sink.parserKeeps(String(key));
  }

  #added(key: Key, item: Json): void {
    if (item.type !== 'function_call') return;
    this.#kinds.add('call');
    this.#sink.call(key, textValue(item.call_id), textValue(item.name));
    this.#sink.callArguments(key, textValue(item.arguments));
  }

  /** Adds what the events of a complete item left out. */
  #done(key: Key, item: Json): void {
    for (const output of parseOutputItem(item)) this.#complete(key, output);
    this.#begin(key);
    this.#sink.seal();
  }

  #complete(key: Key, output: OutputItem): void {
    this.#kinds.add(output.kind);
    if (output.kind === 'call') {
      if (!this.#sink.hasCall(key)) this.#sink.call(key, output.callId, output.name);
      if (this.#sink.isEmptyCall(key)) this.#sink.callArguments(key, output.arguments);
      this.#sink.sealCall(key);
      return;
    }
    if (!this.#begun.has(key) && output.text !== '') this.#sink[output.kind](output.text);
    if (output.kind !== 'reasoning') return;
    const { signature, redacted, opaque } = output;
    if ((signature ?? redacted ?? opaque) !== undefined) this.#sink.reasoningMark({ signature, redacted, opaque });
  }

  /**
   * Some engines send all items in the last event alone, and some their calls. Where an answer has told one of a kind, it has
   * told all of it: engines number and name items there otherwise than before.
   */
  #addUntold(items: readonly Json[]): void {
    const told = new Set(this.#kinds);
    for (const [index, item] of items.entries())
      for (const output of parseOutputItem(item)) {
        if (told.has(output.kind)) continue;
        this.#complete(`last ${index}`, output);
        this.#sink.seal();
      }
  }

  #end(event: Json): void {
    const response = isObject(event.response) ? event.response : {};
    const usage = parseUsage('responses', response.usage);
    this.#sink.usage = usage ?? this.#sink.usage;
    if (event.type === 'response.failed' || isObject(response.error)) {
      this.#sink.fail(readErrorObject({ error: response.error ?? {} }));
      return;
    }
    if (isGivenUpResponse(response)) {
      this.#sink.fail(GAVE_UP);
      return;
    }
    this.#addUntold(objectsOf(response.output));
    this.#sink.counted(usage?.outputTokens ?? 0);
    const details = isObject(response.incomplete_details) ? response.incomplete_details : {};
    // vLLM ends each stream with `response.completed`, whatever its status.
    const isWhole = event.type !== 'response.incomplete' && response.status !== 'incomplete';
    this.#sink.stop((hasCalls) => stopOfResponses(details.reason, hasCalls, isWhole));
    this.#sink.finish();
  }
}

/** The index of an item, or its id: llama.cpp has sent items without `output_index` (#21174). */
function keyOf(event: Json): Key | undefined {
  const item = isObject(event.item) ? event.item : {};
  return optionalNumber(event.output_index) ?? optionalString(event.item_id) ?? optionalString(item.id);
}

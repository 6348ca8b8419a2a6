import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalNumber, optionalString, textValue } from '../fields.ts';
import { stopOfResponses } from '../shared/stop-reason.ts';
import { readEvent, type BlockSequencer } from '../stream/sequencer.ts';
import type { OutputItem } from '../types.ts';
import { readErrorObject } from '../errors/upstream-error.ts';
import { parseUsage } from '../shared/usage.ts';
import { parseOutputItem } from './parse-response.ts';

type Key = string | number;

/** Feeds the events of a responses stream to a sequencer. Engines leave events out; each item is told once. */
export class ResponsesStreamParser {
  readonly #sink: BlockSequencer;
  /** Items of which a delta or a done event has been passed on. */
  readonly #told = new Set<Key>();

  constructor(sink: BlockSequencer) {
    this.#sink = sink;
  }

  event(data: string): void {
    if (data === '[DONE]') return;
    const event = readEvent(data, this.#sink);
    if (event === undefined) return;
    const key = keyOf(event);
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
        this.#tell(key, () => this.#sink.text(delta));
        break;
      case 'response.refusal.delta':
        this.#tell(key, () => this.#sink.refusal(delta));
        break;
      case 'response.reasoning_summary_part.added':
        if ((optionalNumber(event.summary_index) ?? 0) > 0) this.#sink.reasoning('\n\n');
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        this.#tell(key, () => this.#sink.reasoning(delta));
        break;
      case 'response.function_call_arguments.delta':
        this.#tell(key, () => this.#sink.callArguments(key, delta));
        break;
      case 'response.output_item.done':
        if (isObject(event.item)) this.#done(key, event.item);
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#end(event);
        break;
      case 'error':
        this.#sink.fail(readErrorObject(event));
        break;
      // Parts, `.done` events of single parts and hosted tools say nothing that is not said elsewhere.
      default:
    }
  }

  #tell(key: Key, pass: () => void): void {
    this.#told.add(key);
    pass();
  }

  #added(key: Key, item: Json): void {
    if (item.type !== 'function_call') return;
    this.#sink.call(key, textValue(item.call_id), textValue(item.name));
    this.#sink.callArguments(key, textValue(item.arguments));
  }

  /** The finished item fills in whatever its events left out. */
  #done(key: Key, item: Json): void {
    for (const output of parseOutputItem(item)) this.#complete(key, output);
    this.#told.add(key);
    this.#sink.seal();
  }

  #complete(key: Key, output: OutputItem): void {
    if (output.kind === 'call') {
      if (!this.#sink.hasCall(key)) this.#sink.call(key, output.callId, output.name);
      if (this.#sink.isEmptyCall(key)) this.#sink.callArguments(key, output.arguments);
      this.#sink.sealCall(key);
      return;
    }
    if (!this.#told.has(key) && output.text !== '') this.#sink[output.kind](output.text);
    if (output.kind !== 'reasoning') return;
    const { signature, redacted, opaque } = output;
    if ((signature ?? redacted ?? opaque) !== undefined) this.#sink.reasoningMark({ signature, redacted, opaque });
  }

  #end(event: Json): void {
    const response = isObject(event.response) ? event.response : {};
    this.#sink.usage = parseUsage('responses', response.usage) ?? this.#sink.usage;
    if (event.type === 'response.failed') {
      this.#sink.fail(readErrorObject({ error: response.error ?? {} }));
      return;
    }
    // Some emitters put everything into the last event only.
    if (this.#told.size === 0) {
      for (const [index, item] of objectsOf(response.output).entries()) this.#done(index, item);
    }
    const details = isObject(response.incomplete_details) ? response.incomplete_details : {};
    this.#sink.stop((hasCalls) => stopOfResponses(details.reason, hasCalls));
    this.#sink.finish();
  }
}

/** llama.cpp has sent items without `output_index` (#21174): the item's id stands in. */
function keyOf(event: Json): Key {
  const item = isObject(event.item) ? event.item : {};
  return optionalNumber(event.output_index) ?? optionalString(event.item_id) ?? optionalString(item.id) ?? 0;
}

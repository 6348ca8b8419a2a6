import { isObject, type Json } from '../../../lib/json.ts';
import { signatureOfCall } from '../call-signature.ts';
import { objectsOf, optionalNumber, textValue } from '../fields.ts';
import { GAVE_UP, isGivenUp, isReason, stopOfChat } from '../stop-reason.ts';
import { readEvent, type BlockSequencer } from '../stream/sequencer.ts';
import { isDone } from '../stream/sse-reader.ts';

import { isErrorObject, readErrorObject } from '../errors/upstream-error.ts';
import { countedWith, laterUsage, parseUsage } from '../usage.ts';
import { matchedStop, reasoningOf, textOfContent } from './parse-response.ts';

/** Feeds chat.completion.chunk events to a sequencer. */
export class ChatStreamParser {
  readonly #sink: BlockSequencer;
  readonly #before: number;
  #calls = 0;
  /** The current call of each index. Some engines give every call the index 0 and a new id. */
  readonly #keys = new Map<number, { key: number; id: string }>();

  /** @param before tokens of the answer that the engine was given: it counts them as part of the prompt */
  constructor(sink: BlockSequencer, before = 0) {
    this.#sink = sink;
    this.#before = before;
  }

  event(data: string): void {
    if (isDone(data)) {
      this.#sink.finish();
      return;
    }
    const chunk = readEvent(data, this.#sink);
    if (chunk === undefined) return;
    if (isErrorObject(chunk)) {
      this.#sink.fail(readErrorObject(chunk));
      return;
    }
    const usage = parseUsage('chat', chunk.usage);
    if (usage !== undefined) this.#sink.usage = laterUsage(this.#sink.usage, countedWith(this.#before, usage));
    this.#sink.start();
    this.#choice(chunk);
    this.#sink.counted(usage?.outputTokens ?? 0);
  }

  #choice(chunk: Json): void {
    const [choice] = objectsOf(chunk.choices);
    if (choice === undefined || (optionalNumber(choice.index) ?? 0) !== 0) return;
    const delta = choice.delta ?? choice.message;
    if (isObject(delta)) this.#delta(delta);
    if (isGivenUp(choice.finish_reason)) this.#sink.fail(GAVE_UP);
    else if (isReason(choice.finish_reason)) {
      const matched = matchedStop(choice);
      const { finish_reason: finish } = choice;
      this.#sink.stop((hasCalls) => stopOfChat(finish, hasCalls, matched !== undefined), matched);
    }
  }

  /** One chunk may have reasoning, text and calls. They are passed on in the order in which models produce them. */
  #delta(delta: Json): void {
    const reasoning = reasoningOf(delta);
    if (reasoning) this.#sink.reasoning(reasoning);
    this.#sink.text(textOfContent(delta.content));
    if (typeof delta.refusal === 'string') this.#sink.refusal(delta.refusal);
    // TGI has sent one object instead of a list.
    if (isObject(delta.tool_calls)) this.#call(delta.tool_calls);
    else if (delta.tool_calls) for (const call of objectsOf(delta.tool_calls)) this.#call(call);
  }

  /** Whether a fragment with a name begins another call than the one that has its index. */
  #isAnother(known: { key: number; id: string }, id: string): boolean {
    if (known.id !== '' && id !== '') return known.id !== id;
    // Without ids, a name behind whole arguments begins a call. Some engines repeat the name with each fragment.
    return known.id === '' && id === '' && this.#sink.isWholeCall(known.key);
  }

  #call(call: Json): void {
    const fn = isObject(call.function) ? call.function : {};
    const id = textValue(call.id);
    const name = textValue(fn.name);
    const index = optionalNumber(call.index) ?? (name === '' ? this.#calls - 1 : this.#calls);
    const known = this.#keys.get(index);
    const isNew = known === undefined || (name !== '' && this.#isAnother(known, id));
    const key = isNew ? this.#calls++ : known.key;
    if (isNew) this.#keys.set(index, { key, id });
    const signature = isNew ? signatureOfCall(call) : undefined;
    if (signature !== undefined) this.#sink.callSignature(signature);
    if (isNew || name !== '') this.#sink.call(key, id, name);
    if (typeof fn.arguments === 'string') this.#sink.callArguments(key, fn.arguments);
    else if (isObject(fn.arguments)) this.#sink.callArguments(key, JSON.stringify(fn.arguments));
  }
}

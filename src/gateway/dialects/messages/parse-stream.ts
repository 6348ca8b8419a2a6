import { isObject, type Json } from '../../../lib/json.ts';
import { optionalNumber, optionalString, textValue } from '../fields.ts';
import { GAVE_UP, isGivenUp, isReason, stopOfMessages } from '../stop-reason.ts';
import { readEvent, type BlockSequencer } from '../stream/sequencer.ts';
import { argumentsOf } from '../tool-arguments.ts';

import { isErrorObject, readErrorObject } from '../errors/upstream-error.ts';
import { countsOutput, EventUsage } from '../usage.ts';

/** Feeds the events of a messages stream to a sequencer. */
export class MessagesStreamParser {
  readonly #sink: BlockSequencer;
  readonly #usage = new EventUsage();
  /** The kinds of the open blocks. For a call also the input in its start event, as arguments: parsed, it may take much. */
  readonly #open = new Map<number, { isCall: boolean; input: string }>();

  constructor(sink: BlockSequencer) {
    this.#sink = sink;
  }

  event(data: string): void {
    const event = readEvent(data, this.#sink);
    if (event === undefined) return;
    if (isErrorObject(event)) {
      this.#sink.fail(readErrorObject(event));
      return;
    }
    switch (event.type) {
      case 'message_start':
        if (isObject(event.message)) this.#count(event.message.usage);
        this.#sink.start();
        break;
      case 'content_block_start':
        if (isObject(event.content_block)) this.#start(optionalNumber(event.index) ?? 0, event.content_block);
        break;
      case 'content_block_delta':
        if (isObject(event.delta)) this.#delta(optionalNumber(event.index) ?? 0, event.delta);
        break;
      case 'content_block_stop':
        this.#stop(optionalNumber(event.index) ?? 0);
        break;
      case 'message_delta':
        this.#end(event);
        break;
      case 'message_stop':
        this.#sink.finish();
        break;
      // ping, and events of later versions.
      default:
    }
  }

  #count(usage: unknown): void {
    if (isObject(usage)) this.#sink.usage = this.#usage.add(usage);
  }

  #start(index: number, block: Json): void {
    const isCall = block.type === 'tool_use';
    const input = isCall && isObject(block.input) ? argumentsOf(block.input) : '';
    this.#open.set(index, { isCall, input });
    this.#sink.parserKeeps(input);
    if (isCall) this.#sink.call(index, textValue(block.id), textValue(block.name));
    else if (block.type === 'text') this.#sink.text(textValue(block.text));
    else if (block.type === 'thinking') {
      this.#sink.reasoning(textValue(block.thinking));
      // Most say it in a delta of its own.
      this.#sink.reasoningMark({ signature: textValue(block.signature) });
    } else if (block.type === 'redacted_thinking') {
      this.#sink.reasoningMark({ redacted: textValue(block.data) });
    }
  }

  #delta(index: number, delta: Json): void {
    switch (delta.type) {
      case 'text_delta':
        this.#sink.text(textValue(delta.text));
        break;
      case 'thinking_delta':
        this.#sink.reasoning(textValue(delta.thinking));
        break;
      case 'signature_delta':
        this.#sink.reasoningMark({ signature: textValue(delta.signature) });
        break;
      case 'input_json_delta':
        this.#sink.callArguments(index, textValue(delta.partial_json));
        break;
      default:
    }
  }

  #stop(index: number): void {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block === undefined || !block.isCall) {
      this.#sink.seal();
      return;
    }
    // Some engines put the whole input into the start event and send no delta.
    if (this.#sink.isEmptyCall(index)) this.#sink.callArguments(index, block.input);
    this.#sink.sealCall(index);
  }

  #end(event: Json): void {
    this.#count(event.usage);
    if (countsOutput(event.usage)) this.#sink.counted(this.#sink.usage?.outputTokens ?? 0);
    const delta = isObject(event.delta) ? event.delta : {};
    const { stop_reason: reason } = delta;
    if (!isReason(reason)) return;
    if (isGivenUp(reason)) {
      this.#sink.fail(GAVE_UP);
      return;
    }
    this.#sink.stop((hasCalls) => stopOfMessages(reason, hasCalls), optionalString(delta.stop_sequence));
  }
}

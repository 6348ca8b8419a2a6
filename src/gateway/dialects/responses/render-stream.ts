import type { Json } from '../../../lib/json.ts';
import { responseErrorCode } from '../errors/error-body.ts';
import { incompleteReason } from '../stop-reason.ts';
import type { Emitter, Ending } from '../stream/emitter.ts';
import { argumentText } from '../tool-arguments.ts';
import type { ClientError, OutputItem, TranslationContext } from '../types.ts';
import type { AnswerOptions } from '../answer-options.ts';
import { CustomInputReader } from './custom-input.ts';
import {
  customInput,
  renderOutput,
  renderOutputItem,
  renderPart,
  renderResource,
  type ResourceState,
} from './render-response.ts';

/** Writes the events of a responses stream, numbered without a gap. */
export class ResponsesEmitter implements Emitter {
  readonly #context: TranslationContext;
  readonly #options: AnswerOptions;
  #sequence = 0;
  response: Json | undefined;
  /** Of the custom tool call that is open. */
  #input = new CustomInputReader();

  constructor(context: TranslationContext, options: AnswerOptions) {
    this.#context = context;
    this.#options = options;
  }

  resume(sequence: number): void {
    this.#sequence = sequence;
  }

  start(): string {
    const state: ResourceState = { status: 'in_progress', output: [] };
    return this.#resource('response.created', state) + this.#resource('response.in_progress', state);
  }

  open(item: OutputItem, index: number): string {
    this.#input = new CustomInputReader();
    const added = this.#event('response.output_item.added', {
      output_index: index,
      item: renderOutputItem(item, 'in_progress', this.#options),
    });
    if (this.#isWhole(item)) return added;
    if (item.kind === 'text' || item.kind === 'refusal') {
      return added + this.#part('response.content_part.added', item, index, renderPart({ ...item, text: '' }));
    }
    if (item.kind === 'reasoning' && item.text !== '') return added + this.#reasoningPart('added', item, index, '');
    return added;
  }

  delta(item: OutputItem, index: number, fragment: string): string {
    if (this.#isWhole(item)) return '';
    const text = JSON.stringify(fragment);
    switch (item.kind) {
      case 'text':
        return this.#delta(
          'response.output_text.delta',
          item,
          index,
          `"content_index":0,"delta":${text},"logprobs":[]`,
        );
      case 'refusal':
        return this.#delta('response.refusal.delta', item, index, `"content_index":0,"delta":${text}`);
      case 'reasoning':
        return this.#options.summary
          ? this.#delta('response.reasoning_summary_text.delta', item, index, `"summary_index":0,"delta":${text}`)
          : this.#delta('response.reasoning_text.delta', item, index, `"content_index":0,"delta":${text}`);
      default:
        if (this.#isCustom(item)) return this.#inputDelta(item, index, this.#input.push(fragment));
        return this.#delta('response.function_call_arguments.delta', item, index, `"delta":${text}`);
    }
  }

  close(item: OutputItem, index: number, isCut: boolean): string {
    return (
      this.#closeContent(item, index) +
      this.#event('response.output_item.done', {
        output_index: index,
        item: renderOutputItem(item, isCut ? 'incomplete' : 'completed', this.#options),
      })
    );
  }

  finish(ending: Ending): string {
    const reason = incompleteReason(ending.stop);
    const status = reason === undefined ? 'completed' : 'incomplete';
    const output = renderOutput(ending.items, reason, this.#options);
    const state: ResourceState = { status, output, usage: ending.usage, incomplete: reason };
    this.response = renderResource(this.#context, this.#options, state);
    return `${this.#event(`response.${status}`, { response: this.response })}data: [DONE]\n\n`;
  }

  fail(error: ClientError, items: readonly OutputItem[]): string {
    // Clients expect a failed response to be created first.
    const start = this.#sequence === 0 ? this.start() : '';
    const output = items.map((item) => renderOutputItem(item, 'incomplete', this.#options));
    const failed: ResourceState = {
      status: 'failed',
      output,
      error: { code: responseErrorCode(error), message: error.message },
    };
    return `${start}${this.#resource('response.failed', failed)}data: [DONE]\n\n`;
  }

  #closeContent(item: OutputItem, index: number): string {
    if (this.#isWhole(item)) return '';
    const at = { item_id: item.id, output_index: index };
    switch (item.kind) {
      case 'text':
        return (
          this.#event('response.output_text.done', { ...at, content_index: 0, text: item.text, logprobs: [] }) +
          this.#part('response.content_part.done', item, index, renderPart(item))
        );
      case 'refusal':
        return (
          this.#event('response.refusal.done', { ...at, content_index: 0, refusal: item.text }) +
          this.#part('response.content_part.done', item, index, renderPart(item))
        );
      case 'reasoning':
        return item.text === '' ? '' : this.#closeReasoning(item, index);
      default:
        if (this.#isCustom(item)) {
          const input = customInput(item.arguments);
          return (
            this.#inputDelta(item, index, this.#input.rest(input)) +
            this.#event('response.custom_tool_call_input.done', { ...at, input })
          );
        }
        return (
          (item.arguments.trim() === '' ? this.delta(item, index, '{}') : '') +
          this.#event('response.function_call_arguments.done', {
            ...at,
            arguments: argumentText(item.arguments),
          })
        );
    }
  }

  #closeReasoning(item: OutputItem & { kind: 'reasoning' }, index: number): string {
    const at = { item_id: item.id, output_index: index };
    const done = this.#options.summary
      ? this.#event('response.reasoning_summary_text.done', { ...at, summary_index: 0, text: item.text })
      : this.#event('response.reasoning_text.done', { ...at, content_index: 0, text: item.text });
    return done + this.#reasoningPart('done', item, index, item.text);
  }

  #reasoningPart(step: 'added' | 'done', item: OutputItem, index: number, text: string): string {
    if (!this.#options.summary) {
      return this.#part(`response.content_part.${step}`, item, index, { type: 'reasoning_text', text });
    }
    return this.#event(`response.reasoning_summary_part.${step}`, {
      item_id: item.id,
      output_index: index,
      summary_index: 0,
      part: { type: 'summary_text', text },
    });
  }

  #inputDelta(item: OutputItem, index: number, text: string): string {
    if (text === '') return '';
    return this.#delta('response.custom_tool_call_input.delta', item, index, `"delta":${JSON.stringify(text)}`);
  }

  #isCustom(item: OutputItem): boolean {
    return item.kind === 'call' && this.#options.origins.get(item.name)?.type === 'custom';
  }

  /** Whether an item comes at its end alone: a summary, and a call that is an item of its own kind. */
  #isWhole(item: OutputItem): boolean {
    if (item.kind === 'call') return this.#options.origins.get(item.name)?.type === 'own';
    return this.#options.compacts && item.kind !== 'reasoning';
  }

  #part(type: string, item: OutputItem, index: number, part: Json): string {
    return this.#event(type, { item_id: item.id, output_index: index, content_index: 0, part });
  }

  #resource(type: string, state: ResourceState): string {
    return this.#event(type, { response: renderResource(this.#context, this.#options, state) });
  }

  #event(type: string, fields: Json): string {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...fields });
    return `event: ${type}\ndata: ${data}\n\n`;
  }

  /** Written by hand, because there is one per token. */
  #delta(type: string, item: OutputItem, index: number, fields: string): string {
    const head = `"type":"${type}","sequence_number":${this.#sequence++},"item_id":"${item.id}","output_index":${index}`;
    return `event: ${type}\ndata: {${head},${fields}}\n\n`;
  }
}

import { streamError } from '../errors/error-body.ts';
import { CHAT_FINISH } from '../stop-reason.ts';
import type { Emitter, Ending } from '../stream/emitter.ts';
import type { ClientError, OutputItem, TranslationContext } from '../types.ts';
import { renderChatUsage } from '../usage.ts';
import type { AnswerOptions } from '../answer-options.ts';

/** Writes chat.completion.chunk events. */
export class ChatEmitter implements Emitter {
  readonly #head: string;
  readonly #includeUsage: boolean;
  #calls = 0;

  constructor(context: TranslationContext, options: AnswerOptions) {
    const { id, chatId = `chatcmpl-${id}`, createdAt, model } = context;
    const common = JSON.stringify({ id: chatId, object: 'chat.completion.chunk', created: createdAt, model });
    this.#head = `data: ${common.slice(0, -1)},"choices":[`;
    this.#includeUsage = options.includeUsage;
  }

  start(): string {
    return this.#chunk('{"role":"assistant","content":""}');
  }

  open(item: OutputItem): string {
    if (item.kind !== 'call') return '';
    const call = {
      index: this.#calls++,
      id: item.callId,
      type: 'function',
      function: { name: item.name, arguments: '' },
    };
    return this.#chunk(`{"tool_calls":[${JSON.stringify(call)}]}`);
  }

  delta(item: OutputItem, _index: number, fragment: string): string {
    const text = JSON.stringify(fragment);
    if (item.kind === 'text') return this.#chunk(`{"content":${text}}`);
    if (item.kind === 'reasoning') return this.#chunk(`{"reasoning_content":${text}}`);
    if (item.kind === 'refusal') return this.#chunk(`{"refusal":${text}}`);
    return this.#chunk(`{"tool_calls":[{"index":${this.#calls - 1},"function":{"arguments":${text}}}]}`);
  }

  close(item: OutputItem, index: number): string {
    // Clients decode the arguments, and an empty string is no JSON.
    return item.kind === 'call' && item.arguments.trim() === '' ? this.delta(item, index, '{}') : '';
  }

  finish({ stop, usage }: Ending): string {
    const last = this.#chunk('{}', `"${CHAT_FINISH[stop]}"`);
    const counts =
      this.#includeUsage && usage !== undefined
        ? `${this.#head}],"usage":${JSON.stringify(renderChatUsage(usage))}}\n\n`
        : '';
    return `${last}${counts}data: [DONE]\n\n`;
  }

  fail(error: ClientError): string {
    return streamError('chat', error);
  }

  #chunk(delta: string, finish = 'null'): string {
    return `${this.#head}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;
  }
}

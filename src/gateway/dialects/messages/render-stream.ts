import { streamError } from '../errors/error-body.ts';
import { tokensOfItems } from '../inspect/estimate-tokens.ts';
import type { Emitter, Ending } from '../stream/emitter.ts';
import { estimatedUsage } from '../translate-response.ts';
import type { ClientError, OutputItem, TranslationContext, Usage } from '../types.ts';
import { renderMessagesUsage } from '../usage.ts';
import { emptyMessage, isSealed, renderReasoning, renderStop, signatureOf } from './render-response.ts';

function event(type: string, fields: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${fields}}\n\n`;
}

/** Writes the events of a messages stream. */
export class MessagesEmitter implements Emitter {
  readonly #context: TranslationContext;

  constructor(context: TranslationContext) {
    this.#context = context;
  }

  /** Agents read the size of their context here, for which an estimate is better than zero. */
  start(usage: Usage | undefined): string {
    const message = emptyMessage(this.#context, usage ?? estimatedUsage('messages', this.#context));
    return event('message_start', `,"message":${JSON.stringify(message)}`);
  }

  open(item: OutputItem, index: number): string {
    return event('content_block_start', `,"index":${index},"content_block":${JSON.stringify(emptyBlock(item))}`);
  }

  delta(item: OutputItem, index: number, fragment: string): string {
    const text = JSON.stringify(fragment);
    if (item.kind === 'call') return delta(index, `{"type":"input_json_delta","partial_json":${text}}`);
    if (item.kind === 'reasoning') return delta(index, `{"type":"thinking_delta","thinking":${text}}`);
    return delta(index, `{"type":"text_delta","text":${text}}`);
  }

  close(item: OutputItem, index: number): string {
    const stop = event('content_block_stop', `,"index":${index}`);
    if (item.kind !== 'reasoning' || isSealed(item)) return stop;
    const signature = JSON.stringify(signatureOf(item));
    return delta(index, `{"type":"signature_delta","signature":${signature}}`) + stop;
  }

  finish(ending: Ending): string {
    const reason = {
      ...renderStop(ending, this.#context),
      stop_details: null,
      container: null,
    };
    const usage = renderMessagesUsage(ending.usage ?? this.#estimate(ending.items));
    const fields = `,"delta":${JSON.stringify(reason)},"usage":${JSON.stringify(usage)}`;
    return event('message_delta', fields) + event('message_stop', '');
  }

  fail(error: ClientError): string {
    return streamError('messages', error);
  }

  #estimate(items: readonly OutputItem[]): Usage {
    return { ...estimatedUsage('messages', this.#context), outputTokens: tokensOfItems(items) };
  }
}

function delta(index: number, body: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":${body}}\n\n`;
}

function emptyBlock(item: OutputItem): unknown {
  switch (item.kind) {
    case 'call':
      return { type: 'tool_use', id: item.callId, caller: { type: 'direct' }, name: item.name, input: {} };
    case 'reasoning':
      return isSealed(item) ? renderReasoning(item) : { type: 'thinking', thinking: '', signature: '' };
    default:
      return { type: 'text', text: '', citations: [] };
  }
}

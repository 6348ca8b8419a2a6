import { StreamTranslator, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { contextOf } from './support.ts';
import { collectChat } from './strict-chat.ts';
import { collectMessages } from './strict-messages.ts';
import { collectResponses } from './strict-responses.ts';
import type { Collected } from './sse.ts';

export const COLLECT: Record<Dialect, (stream: string) => Collected> = {
  chat: collectChat,
  responses: collectResponses,
  messages: collectMessages,
};

/** A chat chunk as an engine sends it. */
export function chunk(delta: object, finish: string | null = null, extra: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return sse({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...extra });
}

export const ROLE = chunk({ role: 'assistant', content: '' });
export const DONE = 'data: [DONE]\n\n';
export const USAGE = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } };
export const USAGE_CHUNK = sse({ id: 'c', object: 'chat.completion.chunk', choices: [], usage: USAGE });

/** An event; the `event:` line is the body's type, as in responses and messages. */
export function sse(body: Record<string, unknown> & { type?: string }): string {
  const line = body.type === undefined ? '' : `event: ${body.type}\n`;
  return `${line}data: ${JSON.stringify(body)}\n\n`;
}

export function callDelta(index: number | undefined, call: { id?: string; name?: string; arguments?: string }): object {
  const { id, ...fn } = call;
  return {
    tool_calls: [
      { ...(index !== undefined && { index }), ...(id !== undefined && { id, type: 'function' }), function: fn },
    ],
  };
}

/** The client's stream for a whole upstream stream given as one chunk. */
export function translate(from: Dialect, to: Dialect, upstream: string, request: object = {}): string {
  const wanted = to === 'chat' ? { stream_options: { include_usage: true }, ...request } : request;
  const machine = new StreamTranslator(
    from,
    to,
    contextOf({ messages: [{ role: 'user', content: 'hello' }], ...wanted }),
  );
  return machine.push(Buffer.from(upstream)) + machine.end();
}

/** What a strict client reads. */
export function receive(from: Dialect, to: Dialect, upstream: string, request: object = {}): Collected {
  return COLLECT[to](translate(from, to, upstream, request));
}

import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { emptyCollected, must, readEvents, type Collected } from './sse.ts';

type Delta = ChatCompletionChunk.Choice.Delta & { reasoning_content?: string };

/** Reads a chat stream and throws at the first chunk a strict client would refuse. */
export function collectChat(stream: string): Collected {
  const result = emptyCollected();
  const events = readEvents(stream);
  must(events.at(-1)?.data === '[DONE]', 'no [DONE] at the end');
  let id: string | undefined;
  let finished = false;
  for (const [position, { event, data }] of events.slice(0, -1).entries()) {
    must(event === undefined && data !== '[DONE]', 'event line or [DONE] inside a chat stream');
    const chunk = JSON.parse(data) as ChatCompletionChunk;
    must(chunk.object === 'chat.completion.chunk', 'not a chunk');
    must(id === undefined || id === chunk.id, 'the id changed');
    ({ id } = chunk);
    const [choice] = chunk.choices;
    if (chunk.usage) {
      const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = chunk.usage;
      must(finished && choice === undefined, 'usage before the end or beside a choice');
      result.usage = { input, output, cached: details?.cached_tokens ?? 0 };
      continue;
    }
    must(choice !== undefined && !finished, 'a chunk without a choice, or after the last');
    must((position === 0) === (choice.delta.role === 'assistant'), 'the role belongs into the first chunk alone');
    addDelta(result, choice.delta);
    if (choice.finish_reason !== null) {
      finished = true;
      result.stop = choice.finish_reason;
    }
  }
  must(finished, 'no finish_reason');
  return result;
}

function addDelta(result: Collected, delta: Delta): void {
  if (delta.content) append(result, 'text', delta.content);
  if (delta.reasoning_content) append(result, 'reasoning', delta.reasoning_content);
  for (const call of delta.tool_calls ?? []) {
    if (call.id !== undefined) {
      must(call.index === result.calls.length, `call index ${call.index} out of order`);
      result.calls.push({ id: call.id, name: call.function?.name ?? '', arguments: '' });
      result.order.push('tool_use');
    }
    const known = result.calls[call.index];
    must(known !== undefined, `fragment for call ${call.index}, which has not begun`);
    known.arguments += call.function?.arguments ?? '';
  }
}

function append(result: Collected, kind: 'text' | 'reasoning', text: string): void {
  const name = kind === 'reasoning' ? 'thinking' : 'text';
  if (result.order.at(-1) !== name) result.order.push(name);
  result[kind] += text;
}

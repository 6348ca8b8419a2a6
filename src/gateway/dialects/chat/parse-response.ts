import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalString, textValue } from '../fields.ts';
import { stopOfChat } from '../shared/stop-reason.ts';
import type { IrResponse, OutputItem } from '../types.ts';
import { parseUsage } from '../shared/usage.ts';

/** A chat.completion body in the internal form. Tolerates what engines add or leave out. */
export function parseChatResponse(body: Json): IrResponse | undefined {
  const [choice] = objectsOf(body.choices);
  if (choice === undefined || !isObject(choice.message)) return undefined;
  const { message } = choice;
  const items: OutputItem[] = [];
  const reasoning = reasoningOf(message);
  if (reasoning) items.push({ kind: 'reasoning', text: reasoning });
  if (typeof message.content === 'string') items.push({ kind: 'text', text: message.content });
  if (typeof message.refusal === 'string') items.push({ kind: 'refusal', text: message.refusal });
  const calls = objectsOf(message.tool_calls).map(parseCall);
  const stopSequence = matchedStop(choice);
  return {
    items: [...items, ...calls],
    stop: stopOfChat(choice.finish_reason, calls.length > 0, stopSequence !== undefined),
    stopSequence,
    usage: parseUsage('chat', body.usage),
  };
}

/** SGLang, llama.cpp and DeepSeek send reasoning in `reasoning_content`, vLLM and Ollama in `reasoning`. */
export function reasoningOf(message: Json): string | undefined {
  return optionalString(message.reasoning_content) ?? optionalString(message.reasoning);
}

/** The stop string that ended generation, or a token id: `stop_reason` in vLLM, `matched_stop` in SGLang. */
export function matchedStop(choice: Json): string | undefined {
  return optionalString(choice.stop_reason) ?? optionalString(choice.matched_stop);
}

function parseCall(call: Json): OutputItem {
  const fn = isObject(call.function) ? call.function : {};
  return {
    kind: 'call',
    callId: textValue(call.id),
    name: textValue(fn.name),
    arguments: typeof fn.arguments === 'string' ? fn.arguments : JSON.stringify(fn.arguments ?? {}),
  };
}

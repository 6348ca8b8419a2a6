import { isObject, type Json } from '../../../lib/json.ts';
import { DialectError } from '../errors/dialect-error.ts';
import { signatureItem, signatureOfCall } from '../call-signature.ts';
import { objectsOf, optionalString, textValue } from '../fields.ts';
import { GAVE_UP, isGivenUp, stopOfChat } from '../stop-reason.ts';
import { ownArguments } from '../stream/block.ts';
import type { IrResponse, OutputItem } from '../types.ts';
import { parseUsage } from '../usage.ts';

/** A chat.completion body in the internal form. Tolerates what engines add or leave out. */
export function parseChatResponse(body: Json): IrResponse | undefined {
  const [choice] = objectsOf(body.choices);
  if (choice === undefined || !isObject(choice.message)) return undefined;
  const { message } = choice;
  if (isGivenUp(choice.finish_reason)) throw new DialectError(GAVE_UP);
  const items: OutputItem[] = [];
  const reasoning = reasoningOf(message);
  if (reasoning) items.push({ kind: 'reasoning', text: reasoning });
  const text = textOfContent(message.content);
  if (text !== '') items.push({ kind: 'text', text });
  if (typeof message.refusal === 'string') items.push({ kind: 'refusal', text: message.refusal });
  // TGI has sent one object instead of a list.
  const calls = isObject(message.tool_calls) ? [message.tool_calls] : objectsOf(message.tool_calls);
  const stopSequence = matchedStop(choice);
  return {
    items: [...items, ...calls.flatMap(parseCall)],
    stop: stopOfChat(choice.finish_reason, calls.length > 0, stopSequence !== undefined),
    stopSequence,
    usage: parseUsage('chat', body.usage),
  };
}

/**
 * SGLang, llama.cpp and DeepSeek send reasoning in `reasoning_content`, vLLM and Ollama in `reasoning`, Mistral as parts of
 * the content.
 */
export function reasoningOf(message: Json): string | undefined {
  return reasoningField(message) || thinkingIn(message.content);
}

/** The thought beside the content. Some send both fields, one of them empty. */
export function reasoningField({ reasoning_content, reasoning }: Json): string {
  return textValue(reasoning_content) || textValue(reasoning);
}

function thinkingIn(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  return objectsOf(content).map(thinkingOf).join('');
}

/** The text of a part of content that is a thought: Mistral's form, and that of others with a plain text. */
export function thinkingOf({ type, thinking }: Json): string {
  return type === 'thinking' ? textOfContent(thinking) : '';
}

/** Content as text. Some engines send it as a list of parts. */
export function textOfContent(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map((part) => textValue(part.text))
    .join('');
}

/** The stop string that ended generation, or a token id: `stop_reason` in vLLM, `matched_stop` in SGLang. */
export function matchedStop(choice: Json): string | undefined {
  return optionalString(choice.stop_reason) ?? optionalString(choice.matched_stop);
}

/** A call, and in front of it what the server sealed for it. The caller knows by which model. */
function parseCall(call: Json): OutputItem[] {
  const fn = isObject(call.function) ? call.function : {};
  const signature = signatureOfCall(call);
  return [
    ...(signature === undefined ? [] : [signatureItem(signature, '')]),
    {
      kind: 'call',
      callId: textValue(call.id),
      name: textValue(fn.name),
      arguments: typeof fn.arguments === 'string' ? ownArguments(fn.arguments) : JSON.stringify(fn.arguments ?? {}),
    },
  ];
}

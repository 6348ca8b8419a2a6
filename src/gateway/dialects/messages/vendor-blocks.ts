import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, stringAt, textValue } from '../fields.ts';
import { isVendorBlock } from '../inspect/request-features.ts';
import { argumentsOf } from '../tool-arguments.ts';
import type { Part, Step } from '../types.ts';

/**
 * A block of an earlier answer that Anthropic's servers made: a call that they ran, or its result. To another model it
 * is a call like any other. Clients replay them when they change the model in a session. Undefined for any other block.
 */
export function parseVendorBlock(block: Json, at: string): Step | undefined {
  if (block.type === 'compaction') return { kind: 'message', role: 'user', parts: [summaryOf(block)] };
  if (!isVendorBlock(block.type)) return undefined;
  if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') {
    return {
      kind: 'call',
      callId: stringAt(block.id, `${at}.id`),
      name: stringAt(block.name, `${at}.name`),
      arguments: argumentsOf(block.input),
    };
  }
  return {
    kind: 'result',
    callId: stringAt(block.tool_use_id, `${at}.tool_use_id`),
    parts: [{ type: 'text', text: resultText(block.content) }],
    ...(block.is_error === true && { isError: true }),
  };
}

const SUMMARY = 'Summary of the conversation until here:\n\n';

/** What Anthropic made of the conversation so far. It has no text where that failed. */
function summaryOf({ content }: Json): Part {
  return { type: 'text', text: `${SUMMARY}${textValue(content)}` };
}

/** Whether an item is such a summary, with a text. */
export function isSummary(item: Step): boolean {
  if (item.kind !== 'message' || item.role !== 'user') return false;
  const [first] = item.parts;
  return first?.type === 'text' && first.text.startsWith(SUMMARY) && first.text.length > SUMMARY.length;
}

/** Adds a result to calls of a vendor that have none, which paused there. Chat templates refuse a call without one. */
export function unanswered(blocks: readonly unknown[], items: Step[]): Step[] {
  const calls = objectsOf(blocks).flatMap(({ type, id }) =>
    isVendorBlock(type) && typeof id === 'string' ? [id] : [],
  );
  if (calls.length === 0) return items;
  const answered = new Set(items.flatMap((item) => (item.kind === 'result' ? [item.callId] : [])));
  const open = new Set(calls.filter((id) => !answered.has(id)));
  return items.flatMap((item): Step[] => {
    if (item.kind !== 'call' || !open.has(item.callId)) return [item];
    const parts = [{ type: 'text' as const, text: 'The call gave no result.' }];
    return [item, { kind: 'result', callId: item.callId, parts, isError: true }];
  });
}

/** The readable part of a result: texts, and titles with addresses of a search. The rest as JSON. */
function resultText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return isObject(content) ? JSON.stringify(content, withoutSealed) : '';
  return objectsOf(content)
    .map((part) => {
      if (part.type === 'text') return textValue(part.text);
      if (part.type === 'web_search_result') return `${textValue(part.title)} (${textValue(part.url)})`;
      return JSON.stringify(part, withoutSealed);
    })
    .join('\n');
}

/** Encrypted text is for the vendor alone. */
function withoutSealed(name: string, value: unknown): unknown {
  return name.startsWith('encrypted_') ? undefined : value;
}

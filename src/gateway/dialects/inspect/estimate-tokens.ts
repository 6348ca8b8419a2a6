import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, textValue } from '../fields.ts';
import { withoutBillingLine } from './billing-line.ts';
import type { Dialect, OutputItem } from '../types.ts';

const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_TOOL = 12;
/** Vision encoders use some hundred to two thousand tokens for an image. Anthropic's own rule gives 1.6 k at most. */
const TOKENS_PER_IMAGE = 1500;

/**
 * Estimates the tokens of a text from its encoded length, which is native and fast: one for 4 ASCII characters, as
 * current vocabularies average, and one for 1.5 characters of three bytes. Scripts of two bytes are in between.
 */
function tokensOfText(text: string): number {
  const wide = (Buffer.byteLength(text) - text.length) / 2;
  return Math.ceil((text.length - wide) / 4 + wide / 1.5);
}

export function tokensOfItems(items: readonly OutputItem[]): number {
  return items.reduce((sum, item) => sum + tokensOfText(item.kind === 'call' ? item.arguments : item.text), 0);
}

/** Estimates the tokens of a prompt, for `message_start` and for `count_tokens` where no engine counts them. */
export function estimateTokens(dialect: Dialect, body: unknown): number {
  if (!isObject(body)) return 0;
  let total = 3;
  for (const tool of objectsOf(body.tools))
    total += TOKENS_PER_TOOL + tokensOfText(JSON.stringify(tool.function ?? tool));
  if (dialect === 'responses') {
    if (typeof body.instructions === 'string') total += tokensOfText(body.instructions);
    return total + (typeof body.input === 'string' ? tokensOfText(body.input) : tokensOfEntries(body.input));
  }
  if (dialect === 'messages') total += tokensOfSystem(body);
  return total + tokensOfEntries(body.messages);
}

function tokensOfSystem(body: Json): number {
  if (typeof body.system === 'string') return tokensOfText(withoutBillingLine(body.system));
  return objectsOf(body.system).reduce(
    (sum, block) => sum + tokensOfText(withoutBillingLine(textValue(block.text))),
    0,
  );
}

function tokensOfEntries(entries: unknown): number {
  return objectsOf(entries).reduce((sum, entry) => sum + TOKENS_PER_MESSAGE + tokensOfValue(entry), 0);
}

const TEXT_FIELDS = [
  'text',
  'thinking',
  'content',
  'arguments',
  'output',
  'refusal',
  'reasoning_content',
  'name',
] as const;

/** The text of a message, block or item at any depth. Every image counts the same. */
function tokensOfValue(value: unknown): number {
  if (typeof value === 'string') return tokensOfText(value);
  if (Array.isArray(value)) return value.reduce((sum: number, inner) => sum + tokensOfValue(inner), 0);
  if (!isObject(value)) return 0;
  if (value.type === 'image' || value.type === 'image_url' || value.type === 'input_image') return TOKENS_PER_IMAGE;
  let total = 0;
  for (const field of TEXT_FIELDS) total += tokensOfValue(value[field]);
  if (value.type === 'tool_use') total += tokensOfText(JSON.stringify(value.input ?? {}));
  for (const call of objectsOf(value.tool_calls)) total += tokensOfValue(call.function);
  return total;
}

import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, textValue } from '../fields.ts';
import { withoutBillingLine } from './billing-line.ts';
import { mediaIn } from './prompt-media.ts';
import type { Dialect, HistoryItem, OutputItem } from '../types.ts';

const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_TOOL = 12;
/** Vision encoders use some hundred to two thousand tokens for an image. Anthropic's own rule gives 1.6 k at most. */
const TOKENS_PER_IMAGE = 1500;

/**
 * Estimates the tokens of a text from its encoded length, which is native and fast: one for 4 ASCII characters, as
 * current vocabularies average, and one for 1.5 characters of three bytes. Scripts of two bytes are in between.
 */
function tokensOfText(text: string): number {
  return tokensOfLength(text.length, Buffer.byteLength(text));
}

/** The same of texts of which only the lengths are known. */
export function tokensOfLength(characters: number, bytes: number): number {
  const wide = (bytes - characters) / 2;
  return Math.ceil((characters - wide) / 4 + wide / 1.5);
}

export function tokensOfItems(items: readonly OutputItem[]): number {
  return items.reduce((sum, item) => sum + tokensOfText(item.kind === 'call' ? item.arguments : item.text), 0);
}

/** Estimates the tokens of one item of a conversation. */
export function tokensOfItem(item: HistoryItem): number {
  if (item.kind === 'given') return promptTokens({ input: [item.item] }, Buffer.byteLength(JSON.stringify(item.item)));
  if (item.kind === 'tools') return TOKENS_PER_TOOL * item.tools.length + tokensOfText(JSON.stringify(item.tools));
  if (item.kind !== 'message' && item.kind !== 'result') return TOKENS_PER_MESSAGE + tokensOfItems([item]);
  return item.parts.reduce(
    (sum, part) => sum + (part.type === 'text' ? tokensOfText(part.text) : TOKENS_PER_IMAGE),
    TOKENS_PER_MESSAGE,
  );
}

/** Estimates the tokens of a prompt, for `message_start` and for `count_tokens` where no engine counts them. */
export function estimateTokens(dialect: Dialect, body: unknown): number {
  if (!isObject(body)) return 0;
  let total = 3;
  const added = dialect === 'responses' ? objectsOf(body.input).flatMap(({ tools }) => objectsOf(tools)) : [];
  for (const tool of [...objectsOf(body.tools), ...added])
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

/** A rough estimate: English text has about four characters to a token. */
const BYTES_PER_TOKEN = 4;
/** Shorter bodies are not searched. An image in them has few bytes. */
const SEARCHED_BYTES = 16_384;

/**
 * Estimates the tokens of a prompt from the bytes of its body, for limits and for what was cut off. Counts an image, a
 * sound or a file as one image, not by the bytes of its data. A file of text becomes text.
 */
export function promptTokens(body: Json, bytes: number): number {
  if (bytes < SEARCHED_BYTES) return Math.ceil(bytes / BYTES_PER_TOKEN);
  const found = mediaIn(body).filter(({ chars }) => chars > 0);
  const text = found.reduce((left, { chars }) => left - chars, bytes);
  return Math.ceil(Math.max(0, text) / BYTES_PER_TOKEN) + found.length * TOKENS_PER_IMAGE;
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

import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, textValue } from '../fields.ts';
import { isTextData, isTextType } from '../text-files.ts';
import { withoutBillingLine } from './billing-line.ts';
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
  const wide = (Buffer.byteLength(text) - text.length) / 2;
  return Math.ceil((text.length - wide) / 4 + wide / 1.5);
}

export function tokensOfItems(items: readonly OutputItem[]): number {
  return items.reduce((sum, item) => sum + tokensOfText(item.kind === 'call' ? item.arguments : item.text), 0);
}

/** Estimates the tokens of one item of a conversation. */
export function tokensOfItem(item: HistoryItem): number {
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
/** A message, its parts, and the parts of a tool result. */
const IMAGE_DEPTH = 3;

/**
 * Estimates the tokens of a prompt from the bytes of its body, for limits and for what was cut off. Counts an image, a
 * sound or a file as one image, not by the bytes of its data. A file of text becomes text.
 */
export function promptTokens(body: Json, bytes: number): number {
  if (bytes < SEARCHED_BYTES) return Math.ceil(bytes / BYTES_PER_TOKEN);
  const found = { count: 0, bytes: 0 };
  addImages(body.messages, found, IMAGE_DEPTH);
  addImages(body.input, found, IMAGE_DEPTH);
  return Math.ceil(Math.max(0, bytes - found.bytes) / BYTES_PER_TOKEN) + found.count * TOKENS_PER_IMAGE;
}

/** Adds the images, sounds and files that a list carries as data: in messages and items, their parts, and the parts of a tool result. */
function addImages(list: unknown, found: { count: number; bytes: number }, depth: number): void {
  if (!Array.isArray(list)) return;
  for (const part of list as unknown[]) {
    if (!isObject(part)) continue;
    const size = imageBytes(part);
    if (size > 0) {
      found.count += 1;
      found.bytes += size;
    } else if (depth > 1) {
      addImages(part.content, found, depth - 1);
      addImages(part.output, found, depth - 1);
    }
  }
}

function imageBytes({ type, source, image_url: image, input_audio: audio, file, file_data: data }: Json): number {
  if (type === 'image' || type === 'document')
    return isObject(source) && source.type === 'base64' && !isTextType(textValue(source.media_type))
      ? textValue(source.data).length
      : 0;
  if (type === 'input_audio') return isObject(audio) ? textValue(audio.data).length : 0;
  if (type === 'file' || type === 'input_file') {
    const url = textValue(isObject(file) ? file.file_data : data);
    return isTextData(url) ? 0 : url.length;
  }
  if (type !== 'image_url' && type !== 'input_image') return 0;
  const url = textValue(isObject(image) ? image.url : image);
  return url.startsWith('data:image/') ? url.length : 0;
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

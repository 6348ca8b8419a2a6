import type { Json } from '../../../lib/json.ts';
import type { HistoryItem } from '../types.ts';
import { tokensOfItem } from './estimate-tokens.ts';
import { mediaIn, type Medium } from './prompt-media.ts';

/** The estimate of a text has a token for four bytes. No tokeniser makes more of a text than a token of each byte. */
const MOST_TO_ESTIMATE = 4;
const BYTES_PER_CHAR = 3 / 4;
/** Whisper makes 50 tokens of a second, OpenAI's and other models 10 to 32, and no codec for speech takes less than 750 bytes. */
export const SOUND_BYTES_PER_TOKEN = 15;
/**
 * Anthropic counts a page of a PDF as its text, 1,500 to 3,000 tokens, and as an image (their "PDF support"), of which
 * its newest models make 4,784 tokens at most. A page takes 4 KiB and more in a file that a program writes.
 */
const TOKENS_PER_PAGE = 8000;
const BYTES_PER_PAGE = 4096;
/** Qwen's models make the most tokens of an image: one for 28 x 28 pixels, up to 16,384. A JPEG takes 32 bytes for these. */
const MOST_OF_IMAGE = 16_384;
const USUAL_IMAGE = 6000;
const IMAGE_BYTES_PER_TOKEN = 32;
/** No model of a provider that reads documents or hears has a longer context. */
const MOST_OF_MEDIUM = 1_000_000;

/** The tokens at most of a prompt of so many bytes. */
export function mostOfPrompt(body: Json, bytes: number): number {
  return mediaIn(body).reduce((sum, medium) => sum - medium.chars + mostOf(medium), bytes);
}

/** The tokens at most of an item that was stored. */
export function mostOfItem(item: HistoryItem): number {
  if (item.kind === 'given') return mostOfPrompt({ input: [item.item] }, Buffer.byteLength(JSON.stringify(item.item)));
  const text = tokensOfItem(item) * MOST_TO_ESTIMATE;
  if (item.kind !== 'message' && item.kind !== 'result') return text;
  const images = item.parts.flatMap((part) => (part.type === 'image' ? [part.url] : []));
  return images.reduce(
    (sum, url) => sum + mostOf({ kind: 'image', chars: url.startsWith('data:') ? url.length : 0 }),
    text,
  );
}

function mostOf({ kind, chars }: Medium): number {
  const bytes = Math.ceil(chars * BYTES_PER_CHAR);
  if (kind === 'image') {
    if (bytes === 0) return MOST_OF_IMAGE;
    return Math.min(MOST_OF_IMAGE, Math.max(USUAL_IMAGE, Math.ceil(bytes / IMAGE_BYTES_PER_TOKEN)));
  }
  if (bytes === 0) return MOST_OF_MEDIUM;
  const most = kind === 'sound' ? bytes / SOUND_BYTES_PER_TOKEN : Math.ceil(bytes / BYTES_PER_PAGE) * TOKENS_PER_PAGE;
  return Math.min(MOST_OF_MEDIUM, Math.ceil(most));
}

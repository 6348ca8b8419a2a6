import type { HistoryItem } from '../types.ts';

/** For the answer, when the request names no limit. */
const ANSWER_TOKENS = 1024;
/** Estimates may be a fifth too low. */
const MARGIN = 1.2;

/**
 * Leaves out the oldest items of a conversation until the rest fits, as `truncation: auto` asks for. System text stays,
 * and so does everything from the last user message on. A call goes together with its result.
 *
 * @param room tokens of prompt and answer together
 * @param sizeOf estimates the tokens of one item
 */
export function truncateItems(
  items: readonly HistoryItem[],
  { room, answer, sizeOf }: { room: number; answer: number | undefined; sizeOf: (item: HistoryItem) => number },
): HistoryItem[] {
  const limit = (room - Math.min(answer ?? ANSWER_TOKENS, room / 2)) / MARGIN;
  let size = items.reduce((sum, item) => sum + sizeOf(item), 0);
  const last = items.findLastIndex((item) => item.kind === 'message' && item.role === 'user');
  const dropped = new Set<HistoryItem>();
  const gone = new Set<string>();
  for (const [position, item] of items.entries()) {
    const isOrphan = item.kind === 'result' && gone.has(item.callId);
    if (!isOrphan && (size <= limit || position >= last)) continue;
    if (item.kind === 'message' && item.role === 'system') continue;
    dropped.add(item);
    if (item.kind === 'call') gone.add(item.callId);
    size -= sizeOf(item);
  }
  return items.filter((item) => !dropped.has(item));
}

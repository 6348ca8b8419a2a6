/** One event of a stream as a client reads it. */
export interface SseEvent {
  event: string | undefined;
  data: string;
}

/** Server-sent events, strictly: every event is one optional `event:` line and one `data:` line. */
export function readEvents(text: string): SseEvent[] {
  if (text === '') return [];
  if (!text.endsWith('\n\n')) throw new Error(`the stream ends inside an event: ${text.slice(-80)}`);
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((block) => {
      const match = /^(?:event: ([a-z_.]+)\n)?data: ([^\n]+)$/.exec(block);
      if (match === null) throw new Error(`not an event: ${block}`);
      return { event: match[1], data: match[2] ?? '' };
    });
}

/** What an answer says, in any dialect. */
export interface Collected {
  reasoning: string;
  text: string;
  calls: { id: string; name: string; arguments: string }[];
  stop: string;
  usage: { input: number; output: number; cached: number } | undefined;
  /** Block kinds in the order they appeared. */
  order: string[];
}

export function emptyCollected(): Collected {
  return { reasoning: '', text: '', calls: [], stop: '', usage: undefined, order: [] };
}

export function must(condition: boolean, complaint: string): asserts condition {
  if (!condition) throw new Error(complaint);
}

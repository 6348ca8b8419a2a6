import { z } from 'zod';

export interface SeenEvent {
  type: string;
  id: string;
  json: Record<string, unknown>;
}

export interface Events {
  seen: SeenEvent[];
  ended: Promise<void>;
  close(): Promise<void>;
}

function parse(block: string): SeenEvent | undefined {
  const fields = new Map(block.split('\n').map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)]));
  const data = fields.get('data');
  if (data === undefined) return undefined;
  const json = z.record(z.string(), z.unknown()).parse(JSON.parse(data));
  return { type: fields.get('event') ?? '', id: fields.get('id') ?? '', json };
}

/** Opens an event stream and collects what it sends. */
export async function openEvents(url: string, token: string, lastId?: string): Promise<Events> {
  const abort = new AbortController();
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'text/event-stream',
    ...(lastId !== undefined && { 'last-event-id': lastId }),
  };
  const response = await fetch(url, { headers, signal: abort.signal });
  if (response.status !== 200 || response.body === null) throw new Error(`${response.status} ${await response.text()}`);
  const seen: SeenEvent[] = [];
  const body = response.body.pipeThrough(new TextDecoderStream());
  async function read(): Promise<void> {
    let rest = '';
    for await (const chunk of body) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parse(block);
        if (event !== undefined) seen.push(event);
      }
    }
  }
  const ended = read().catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  return {
    seen,
    ended,
    close: async () => {
      abort.abort();
      await ended;
    },
  };
}

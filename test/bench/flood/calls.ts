import { Agent, request } from 'node:http';

/** Where calls go. */
export interface Way {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The address of the caller. */
  from: string;
}

const PROMPT_BYTES = 50_000;
const MOST_TOKENS = 32;

/** What an agent sends: a long history, and a short answer is asked for. */
export const BODY = Buffer.from(
  JSON.stringify({
    model: 'flood',
    stream: true,
    messages: [{ role: 'user', content: 'words '.repeat(PROMPT_BYTES / 6) }],
    max_tokens: MOST_TOKENS,
  }),
);

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 256 });

/**
 * One streamed call. `onToken` hears of the first token; comments that keep a stream alive are none. Resolves with the
 * status when all is over, also for a call that broke (0).
 */
export function call({ port, path, headers, from }: Way, onToken?: () => void): Promise<number> {
  return new Promise((resolve) => {
    const outgoing = request({
      agent,
      host: '127.0.0.1',
      localAddress: from,
      port,
      path,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': BODY.length, ...headers },
    });
    outgoing.on('error', () => resolve(0));
    outgoing.on('response', (response) => {
      let isSeen = onToken === undefined;
      response.on('data', (part: Buffer) => {
        if (isSeen || response.statusCode !== 200 || !part.includes('"content":" word"')) return;
        isSeen = true;
        onToken?.();
      });
      response.on('error', () => resolve(0));
      response.on('close', () => resolve(response.statusCode ?? 0));
    });
    outgoing.end(BODY);
  });
}

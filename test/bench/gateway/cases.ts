/** One kind of load. */
export interface Case {
  title: string;
  dialect: 'chat' | 'messages';
  connections: number;
  body: string;
  /** What the table shows of it. */
  figure: 'rate' | 'latency' | 'stream';
  /** How much of the bare handler's rate Berth is to reach, in a case that the bare handler knows. */
  least?: number;
}

const QUESTION = 'Tell me about the quick brown fox, please, in a sentence or two.';

function chat(more: object = {}, question = QUESTION): string {
  return JSON.stringify({ model: 'mock', messages: [{ role: 'user', content: question }], temperature: 0.7, ...more });
}

export const CASES: readonly Case[] = [
  { title: 'req/s, c = 10', dialect: 'chat', connections: 10, body: chat(), figure: 'rate', least: 0.7 },
  {
    title: 'req/s, c = 1 (p50 / p99 ms)',
    dialect: 'chat',
    connections: 1,
    body: chat(),
    figure: 'latency',
    least: 0.95,
  },
  {
    title: 'streams/s of 20 chunks, c = 10 (first byte p50 ms)',
    dialect: 'chat',
    connections: 10,
    body: chat({ stream: true }),
    figure: 'stream',
    least: 0.7,
  },
  {
    title: 'messages → chat, req/s, c = 10',
    dialect: 'messages',
    connections: 10,
    body: chat({ max_tokens: 100 }),
    figure: 'rate',
  },
  {
    title: '100 KB bodies, req/s, c = 10',
    dialect: 'chat',
    connections: 10,
    body: chat({}, QUESTION.repeat(1600)),
    figure: 'rate',
    least: 0.9,
  },
];

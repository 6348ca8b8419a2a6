import { setTimeout as delay } from 'node:timers/promises';
import { randomFrom } from '../../../support/random.ts';

export interface TrafficOptions {
  /** Of a server that speaks OpenAI's chat completions, up to `/v1`. */
  base: string;
  model: string;
  /** People who talk at the same time. */
  people: number;
  /** Conversations of each, one after the other. */
  conversations: number;
  turns: number;
  seed: number;
}

export interface Answered {
  /** Milliseconds. */
  firstToken: number;
  promptTokens: number;
  cachedTokens: number;
  /** What a server had to read for the turn before, so what one of them may have in its cache. */
  seenTokens: number;
}

interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  usage?: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } | null;
}

const WORDS = ['the', 'build', 'fails', 'when', 'this', 'module', 'reads', 'its', 'file', 'and', 'writes', 'another'];
const ANSWER_TOKENS = 24;
/** Characters, of which each is a token of the model. */
const SYSTEM = 400;
const FIRST = { least: 800, more: 1600 };
const NEXT = 120;
/** Milliseconds between an answer and the next question. */
const THINK = { least: 100, more: 900 };

/** The same conversations and pauses for each seed. All share one system prompt, as agents of one kind do. */
export async function talk(options: TrafficOptions): Promise<Answered[]> {
  const answers: Answered[] = [];
  const system = text(randomFrom(options.seed), SYSTEM);
  const person = async (number: number): Promise<void> => {
    const random = randomFrom(options.seed * 1000 + number);
    const think = (): Promise<void> => delay(THINK.least + random() * THINK.more);
    for (let count = 0; count < options.conversations; count += 1) {
      const messages: Message[] = [{ role: 'system', content: system }];
      let seenTokens = 0;
      for (let turn = 0; turn < options.turns; turn += 1) {
        await think();
        const size = turn === 0 ? FIRST.least + random() * FIRST.more : NEXT;
        messages.push({ role: 'user', content: text(random, size) });
        const { said, ...answer } = await ask(options, messages);
        messages.push({ role: 'assistant', content: said });
        answers.push({ ...answer, seenTokens });
        seenTokens = answer.promptTokens;
      }
    }
  };
  await Promise.all(Array.from({ length: options.people }, (_, number) => person(number)));
  return answers;
}

async function ask({ base, model }: TrafficOptions, messages: Message[]) {
  const startedAt = performance.now();
  const more = { stream: true, stream_options: { include_usage: true }, temperature: 0, max_tokens: ANSWER_TOKENS };
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, ...more }),
  });
  if (!response.ok || response.body === null)
    throw new Error(`A call failed with ${response.status}: ${await response.text()}`);
  let [said, firstToken, usage]: [string, number, Chunk['usage']] = ['', 0, undefined];
  for await (const chunk of chunksOf(response.body)) {
    const content = chunk.choices?.[0]?.delta?.content ?? '';
    if (content !== '' && firstToken === 0) firstToken = performance.now() - startedAt;
    said += content;
    usage = chunk.usage ?? usage;
  }
  if (usage === undefined || usage === null)
    throw new Error(`An answer had no usage, after ${said.length} characters.`);
  const cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
  return { said, firstToken, promptTokens: usage.prompt_tokens, cachedTokens };
}

async function* chunksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  const decoder = new TextDecoder();
  let held = '';
  for await (const bytes of body) {
    held += decoder.decode(bytes, { stream: true });
    const lines = held.split('\n');
    held = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: {')) yield JSON.parse(line.slice(6)) as Chunk;
  }
}

function text(random: () => number, size: number): string {
  let made = '';
  while (made.length < size) made += `${WORDS[Math.floor(random() * WORDS.length)]} `;
  return made.trimEnd();
}

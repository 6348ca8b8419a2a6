import { afterAll, beforeAll, expect, it } from 'vitest';
import { LLAMA_MODEL, startLlama, type LlamaServer } from '../../support/llama/server.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { describeWith } from '../../support/needs.ts';
import { randomFrom } from '../../support/random.ts';
import { eventsIn, textOf } from '../../support/streamed.ts';

/** Streams of which each has its server killed. */
const STREAMS = 24 * Number(process.env['BERTH_LIVES'] ?? 1);
const SEED = Number(process.env['BERTH_SEED'] ?? Date.now() % 2 ** 31);
const TOKENS = 160;
/** They are one token each, so that one that is lost or written twice shows. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

const ASKED = { role: 'user', content: 'Say the alphabet' };
const CALLS = {
  'chat/completions': { messages: [ASKED], max_tokens: TOKENS },
  messages: { messages: [ASKED], max_tokens: TOKENS },
  responses: { input: 'Say the alphabet', max_output_tokens: TOKENS },
} as const;
type Path = keyof typeof CALLS;
const PATHS = Object.keys(CALLS) as Path[];

describeWith('Python venv')("llama.cpp's servers that are killed", () => {
  let gateway: TestGateway;
  let servers: LlamaServer[];

  beforeAll(async () => {
    gateway = await startGateway();
    servers = await Promise.all([start(), start()]);
    await serve();
  }, 600_000);
  afterAll(async () => {
    await gateway.close();
    await Promise.all(servers.map((server) => server.close()));
  });

  function start(): Promise<LlamaServer> {
    return startLlama({ letters: LETTERS });
  }

  async function serve(): Promise<void> {
    gateway.cluster.serve({ name: 'llama', ports: servers.map(({ port }) => port) });
    await gateway.ready(LLAMA_MODEL, servers.length);
  }

  /** Asks for a stream, and calls back with each piece of its text. */
  async function stream(path: Path, onText: (text: string) => Promise<void>): Promise<string> {
    const body = JSON.stringify({ ...CALLS[path], model: LLAMA_MODEL, stream: true, temperature: 0 });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${gateway.base}/v1/${path}`, { method: 'POST', headers, body });
    let text = '';
    let rest = '';
    for await (const chunk of response.body ?? []) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const event of eventsIn(lines)) {
        text += textOf(event);
        await onText(text);
      }
    }
    return text;
  }

  /** Kills the server that has a call, and puts another in its place. False when it had written all by then. */
  async function killBusy(): Promise<boolean> {
    const states = await Promise.all(
      servers.map(async ({ port }) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
    );
    const busy = states.findIndex((text) => /^llamacpp:requests_processing [1-9]/m.test(text));
    const killed = servers[busy];
    if (killed === undefined) return false;
    await killed.kill();
    gateway.cluster.lose({ name: 'llama', port: killed.port });
    servers[busy] = await start();
    return true;
  }

  it(`${STREAMS} streams end whole, without a token lost or doubled (seed ${SEED})`, async () => {
    const random = randomFrom(SEED);
    const whole = await stream('chat/completions', () => Promise.resolve());
    expect(whole).toHaveLength(TOKENS);
    expect(whole.startsWith(`${LETTERS}\n${LETTERS}\n`)).toBe(true);
    let [cut, killed] = [0, 0];
    for (let count = 0; killed < STREAMS; count += 1) {
      expect(count, 'streams that a server had written before it was found').toBeLessThan(4 * STREAMS);
      const path = PATHS[count % PATHS.length] ?? 'messages';
      const at = 1 + Math.floor(random() * (TOKENS / 2));
      let kill: Promise<boolean> | undefined;
      const text = await stream(path, async (told) => {
        if (told.length >= at) kill ??= killBusy();
        await (told.length === TOKENS ? kill : undefined);
      });
      if (await kill) killed += 1;
      expect(whole.startsWith(text), `${path} after ${at}: ${text}`).toBe(true);
      if (text !== whole) cut += 1;
      await serve();
    }
    process.stderr.write(`${STREAMS - cut} of ${STREAMS} streams ended whole.\n`);
    expect(cut / STREAMS).toBeLessThanOrEqual(0.05);
  }, 900_000);
});

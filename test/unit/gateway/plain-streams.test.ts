/** Streams of transcriptions and completions, in the forms that OpenAI, vLLM and SGLang give them. */
import OpenAI, { toFile } from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually, gatewayTo, type TestGateway } from '../../support/model-gateway.ts';
import type { Behaviour, EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';

const JSON_TYPE = 'application/json';
const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const DONE = 'data: [DONE]\n\n';
const raw = (...chunks: string[]): Behaviour => ({ kind: 'raw', contentType: 'text/event-stream', chunks });

/** As OpenAI writes it: no `[DONE]`, and other names in the usage. */
const usage = { type: 'tokens', input_tokens: 14, output_tokens: 3, total_tokens: 17 };
const OPENAI = [
  event({ type: 'transcript.text.delta', delta: 'Hello' }),
  event({ type: 'transcript.text.delta', delta: ' there' }),
  event({ text: 'Hello there', type: 'transcript.text.done', usage }),
];
/** As vLLM and SGLang write it: like chat. */
const chunk = (content: string, finish_reason: string | null = null) =>
  event({
    id: 'trsc-1',
    object: 'transcription.chunk',
    created: 1,
    model: 'tiny',
    choices: [{ delta: { content }, finish_reason }],
  });
const VLLM = [chunk('Hello'), chunk(' there'), chunk('', 'stop')];

const PLAIN = {
  '/v1/audio/transcriptions': { contentType: JSON_TYPE, body: '{"text":"Hello there"}' },
  '/v1/completions': { contentType: JSON_TYPE, body: '{}' },
  '/v1/embeddings': { contentType: JSON_TYPE, body: '{"object":"list","data":[]}' },
};

describe('streams outside of the dialects', () => {
  let close: () => Promise<void> = () => Promise.resolve();
  afterEach(() => close());

  async function start(...options: EngineOptions[]): Promise<{ gateway: TestGateway; engines: ScriptedEngine[] }> {
    const servers = options.length === 0 ? [{}] : options;
    const started = await gatewayTo(...servers.map((one) => ({ dialects: [], plain: PLAIN, ...one })));
    ({ close } = started);
    return started;
  }

  async function transcribe({ base }: TestGateway, stream = 'true'): Promise<Response> {
    const form = new FormData();
    form.set('model', 'tiny');
    form.set('stream', stream);
    form.set('file', new Blob(['RIFF']), 'speech.wav');
    return fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body: form });
  }

  it.each([
    ['OpenAI', OPENAI],
    ['vLLM', [...VLLM, DONE]],
  ])('carry a transcription as it is: %s', async (_name, chunks) => {
    const { gateway, engines } = await start();
    engines[0]?.behave(raw(...chunks));
    const answer = await transcribe(gateway);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(await answer.text()).toBe(chunks.join(''));
    expect(engines[0]?.received[0]?.headers.accept).toBe('text/event-stream');
  });

  it('are read by OpenAI’s client, and counted as the engine reports', async () => {
    const { gateway, engines } = await start();
    engines[0]?.behave(raw(...OPENAI));
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${gateway.base}/v1`, maxRetries: 0 });
    const file = await toFile(Buffer.from('RIFF'), 'speech.wav');
    const stream = await openai.audio.transcriptions.create({ model: 'tiny', file, stream: true });
    const seen: string[] = [];
    for await (const part of stream) seen.push(part.type);
    expect(seen).toEqual(['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done']);
    await eventually(async () => {
      const metrics = await gateway.registry.metrics();
      expect(metrics).toMatch(/gen_ai_token_type="input"[^}]*\} 14/);
      expect(metrics).toMatch(/gen_ai_token_type="output"[^}]*\} 3/);
      expect(metrics).toMatch(/gen_ai_operation_name="transcriptions"[^}]*berth_outcome="ok"[^}]*\} 1/);
    });
  });

  it('get the last event that the server left out', async () => {
    const { gateway, engines } = await start();
    engines[0]?.behave(raw(...VLLM));
    expect(await (await transcribe(gateway)).text()).toBe([...VLLM, DONE].join(''));
  });

  it('that break off end with an error', async () => {
    const { gateway, engines } = await start();
    engines[0]?.behave(raw(OPENAI[0] ?? ''));
    expect(await (await transcribe(gateway)).text()).toContain('ended the stream before it was complete');
  });

  it('whose first event is an error fail over', async () => {
    const { gateway, engines } = await start({}, {});
    engines[0]?.behave(raw(event({ error: { message: 'sick', code: 500 } }), DONE));
    engines[1]?.behave(raw(...OPENAI));
    for (let calls = 0; engines[0]?.received.length === 0; calls += 1) {
      expect(calls).toBeLessThan(3);
      const answer = await transcribe(gateway);
      expect([answer.status, await answer.text()]).toEqual([200, OPENAI.join('')]);
    }
  });

  it.each(['1', 'True', 'yes', 'on'])('are asked for by %s, too', async (asked) => {
    const { gateway, engines } = await start();
    engines[0]?.behave(raw(...OPENAI));
    expect(await (await transcribe(gateway, asked)).text()).toBe(OPENAI.join(''));
  });

  it('are made of a whole answer of a server that ignores stream', async () => {
    const { gateway, engines } = await start();
    const text = await (await transcribe(gateway)).text();
    expect(text).toBe(event({ type: 'transcript.text.done', text: 'Hello there' }));
    const whole = { id: 'c', object: 'text_completion', choices: [{ index: 0, text: ' x', finish_reason: 'stop' }] };
    engines[0]?.behave({ kind: 'raw', contentType: JSON_TYPE, chunks: [JSON.stringify(whole)] });
    const body = JSON.stringify({ model: 'tiny', prompt: 'a', stream: true });
    const completed = await fetch(`${gateway.base}/v1/completions`, { method: 'POST', body });
    expect(await completed.text()).toBe(event(whole) + DONE);
  });

  it('are not there for embeddings', async () => {
    const { gateway } = await start();
    const body = JSON.stringify({ model: 'tiny', input: 'a', stream: true });
    const answer = await fetch(`${gateway.base}/v1/embeddings`, { method: 'POST', body });
    expect(await answer.json()).toEqual({ object: 'list', data: [] });
  });
});

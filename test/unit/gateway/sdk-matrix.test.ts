import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayToOwn, type TestGateway } from '../../support/model-gateway.ts';
import type { EngineDialect, EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';
import { sdkCallers } from '../../support/sdk-callers.ts';

const ALL = ['chat', 'responses', 'messages'] as const;

/** Engines, each with the dialects in which a call with a tool passes through. */
const ENGINES: [string, EngineOptions, readonly EngineDialect[]][] = [
  ['all three dialects', { engine: 'unknown', dialects: ALL }, ALL],
  ['chat alone', { engine: 'tgi', dialects: ['chat'] }, ['chat']],
  ['messages alone', { engine: 'unknown', dialects: ['messages'] }, ['messages']],
  ['responses alone', { engine: 'unknown', dialects: ['responses'] }, ['responses']],
  ['vLLM', { engine: 'vllm', version: '0.24.0', dialects: ALL }, ['chat', 'messages']],
  ['SGLang', { engine: 'sglang', version: '0.5.17', dialects: ALL }, ['chat']],
  ['Ollama', { engine: 'ollama', version: '0.32.15', dialects: ALL }, ALL],
  ['llama.cpp', { engine: 'llama.cpp', version: 'b9000', dialects: ALL }, ['chat', 'messages']],
];

const REPLY = {
  text: 'Let me look.',
  calls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' }],
  inputTokens: 100,
  outputTokens: 7,
  cachedTokens: 40,
};

const CELLS = sdkCallers('http://unused').flatMap(({ client, dialect }, index) =>
  [false, true].map((stream) => ({ index, client, dialect, stream })),
);

describe.each(ENGINES)('official clients over an engine that speaks or is %s', (_name, options, nativeDialects) => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayToOwn(options);
    gateway = started.gateway;
    engine = started.engines[0] as ScriptedEngine;
    close = started.close;
    engine.behave({ kind: 'answer', reply: REPLY });
  });
  afterAll(() => close());

  it.each(CELLS)('$client in $dialect, stream $stream', async ({ index, dialect, stream }) => {
    const caller = sdkCallers(gateway.base)[index];
    const answer = await caller?.call({ model: 'tiny', prompt: 'Weather in Oslo?', stream, tool: 'offered' });
    const native = nativeDialects.includes(dialect);
    expect(answer).toEqual({
      text: REPLY.text,
      calls: [{ name: 'weather', input: { city: 'Oslo' } }],
      inputTokens: 100,
      outputTokens: 7,
      route: expect.stringMatching(native ? /^native;/ : /^translated;/) as string,
    });
    expect(JSON.stringify(engine.received.at(-1)?.body)).toContain('Weather in Oslo?');
  });
});

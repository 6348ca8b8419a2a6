import { Agent } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { probe } from '../../../src/gateway/discovery/probe.ts';
import { ProbeError } from '../../../src/gateway/discovery/route-test.ts';
import { smallRequest } from '../../../src/gateway/discovery/small-http.ts';
import type { Probe, ServerSpec } from '../../../src/gateway/discovery/types.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

const SERVER: ServerSpec = {
  namespace: 'team',
  name: 'llm',
  uid: 'svc',
  aliases: [],
  problems: [],
};

describe('probe', () => {
  const dispatcher = new Agent();
  let engine: ScriptedEngine | undefined;
  afterEach(() => engine?.close());

  async function probed(options: EngineOptions, server: Partial<ServerSpec> = {}): Promise<Probe> {
    engine = await startEngine(options);
    const { origin } = engine;
    const ask = (path: string, body?: unknown) =>
      smallRequest(dispatcher, { origin, path, body, timeoutMs: 2000, maxBytes: 1 << 20 });
    return probe(ask, { ...SERVER, ...server });
  }

  it.each([
    ['vllm', '0.24.0'],
    ['sglang', '0.5.17'],
    ['llama.cpp', 'b7610-abc'],
    ['ollama', '0.14.1'],
    ['tgi', '3.3.0'],
  ] as const)('recognises %s', async (name, version) => {
    expect(await probed({ engine: name, version, models: ['m1', 'm2'] })).toMatchObject({
      engine: name,
      version,
      prefix: '',
      models: [{ id: 'm1', contextLength: 4096 }, { id: 'm2' }],
      dialects: ['chat'],
      countTokens: false,
    });
  });

  it('finds the dialects by their routes, and count_tokens', async () => {
    const found = await probed({ dialects: ['chat', 'messages'], countTokens: true });
    expect(found).toMatchObject({ dialects: ['chat', 'messages'], countTokens: true });
  });

  it('generates nothing', async () => {
    await probed({ dialects: ['chat', 'responses', 'messages'] });
    expect(engine?.received).toEqual([]);
  });

  it('finds the prefix of KServe by itself, and uses the one in the annotation', async () => {
    expect(await probed({ prefix: '/openai' })).toMatchObject({ prefix: '/openai', dialects: ['chat'] });
    await engine?.close();
    expect(await probed({ prefix: '/custom' }, { prefix: '/custom' })).toMatchObject({ prefix: '/custom' });
  });

  it('lets annotations override what it finds', async () => {
    const found = await probed({ engine: 'vllm' }, { engine: 'sglang', dialects: ['messages'] });
    expect(found).toMatchObject({ engine: 'sglang', dialects: ['messages'] });
  });

  it('gives a LoRA adapter the context length of its parent', async () => {
    // vllm/entrypoints/openai/serving_models.py: max_model_len is written on base models alone.
    const models = [
      { id: 'base', object: 'model', root: 'org/base', parent: null, max_model_len: 8192 },
      { id: 'adapter', object: 'model', root: '/loras/sql', parent: 'base', max_model_len: null },
      { id: 'orphan', object: 'model', parent: 'gone' },
      { id: 'itself', object: 'model', parent: 'itself' },
    ];
    const list = { status: 200, text: '', json: { data: models } };
    const nothing = { status: 400, text: '', json: {} };
    const ask = (path: string) => Promise.resolve(path === '/v1/models' ? list : nothing);
    const found = await probe(ask, { ...SERVER, dialects: ['chat'] });
    expect(found.models).toEqual([
      { id: 'base', contextLength: 8192 },
      { id: 'adapter', contextLength: 8192 },
      { id: 'orphan' },
      { id: 'itself' },
    ]);
  });

  it('ignores a time that a date cannot hold, and a context length that is no count', async () => {
    const models = [
      { id: 'good', created: 8.64e12, max_model_len: 4096 },
      { id: 'late', created: 8.64e12 + 1, max_model_len: 1e308 },
      { id: 'huge', created: 1e18, max_model_len: -1 },
      { id: 'early', created: -1 },
    ];
    const list = { status: 200, text: '', json: { data: models } };
    const nothing = { status: 400, text: '', json: {} };
    const ask = (path: string) => Promise.resolve(path === '/v1/models' ? list : nothing);
    const found = await probe(ask, { ...SERVER, dialects: ['chat'] });
    expect(found.models).toEqual([
      { id: 'good', contextLength: 4096, created: 8.64e12 },
      { id: 'late' },
      { id: 'huge' },
      { id: 'early' },
    ]);
  });

  it('says what is missing', async () => {
    await expect(probed({ models: [] })).rejects.toThrow(ProbeError);
    await engine?.close();
    await expect(probed({ dialects: [] })).rejects.toThrow('none of the routes chat/completions');
    await engine?.close();
    await expect(probed({ prefix: '/elsewhere' })).rejects.toThrow('The server answered GET /v1/models with 404.');
  });
});

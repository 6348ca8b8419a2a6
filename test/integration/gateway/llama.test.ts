import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLlama, type LlamaServer } from '../../support/llama/server.ts';
import { startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { sdkCallers } from '../../support/sdk-callers.ts';

const CELLS = sdkCallers('http://unused').flatMap(({ client, dialect }, index) =>
  [false, true].map((stream) => ({ index, client, dialect, stream })),
);

describe("llama.cpp's server behind the gateway", () => {
  let llama: LlamaServer;
  let gateway: TestGateway;

  beforeAll(async () => {
    llama = await startLlama();
    gateway = await startGateway();
    gateway.cluster.serve({ name: 'llama', ports: [llama.port] });
    await gateway.ready(llama.model);
  }, 600_000);
  afterAll(async () => {
    await gateway.close();
    await llama.close();
  });

  it('is recognised by its probe', async () => {
    const response = await fetch(`${gateway.base}/v1/models/${llama.model}`);
    expect(await response.json()).toMatchObject({
      id: llama.model,
      engine: 'llama.cpp',
      dialects: { chat: 'native' },
      ready_endpoints: 1,
      context_length: 4096,
    });
  });

  it.each(CELLS)('answers $client in $dialect, stream $stream', async ({ index, stream }) => {
    const caller = sdkCallers(gateway.base)[index];
    const answer = await caller?.call({ model: llama.model, prompt: 'Say hello', stream, maxTokens: 24 });
    expect(answer?.text).toContain('fn');
    expect(answer?.inputTokens).toBeGreaterThan(5);
    expect(answer?.outputTokens).toBeGreaterThan(10);
    expect(answer?.outputTokens).toBeLessThanOrEqual(24);
  });

  it.each(CELLS)('calls the tool that $client forces in $dialect, stream $stream', async ({ index, stream }) => {
    const caller = sdkCallers(gateway.base)[index];
    const request = { model: llama.model, prompt: 'Weather?', stream, tool: 'forced', maxTokens: 900 } as const;
    const answer = await caller?.call(request);
    expect(answer?.calls.length).toBeGreaterThan(0);
    for (const call of answer?.calls ?? []) {
      expect(call).toEqual({ name: 'weather', input: { city: expect.any(String) as string } });
    }
  });

  it('counts tokens', async () => {
    const body = { model: llama.model, messages: [{ role: 'user', content: 'How many tokens is this?' }] };
    const response = await fetch(`${gateway.base}/v1/messages/count_tokens`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
    expect(tokens).toBeGreaterThan(20);
  });
});

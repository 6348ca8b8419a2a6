import { afterEach, describe, expect, it } from 'vitest';
import { eventually, gatewayTo, post } from '../../support/model-gateway.ts';
import type { Behaviour, ScriptedEngine } from '../../support/scripted-engine.ts';

const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }] };
const GOOD: Behaviour = { kind: 'answer', reply: { text: 'Hello there' } };

function sent(engines: readonly ScriptedEngine[]): number[] {
  return engines.map(({ received }) => received.length);
}

describe('failover', () => {
  let close: (() => Promise<void>) | undefined;
  afterEach(() => close?.());

  async function setup(count: number, engine: 'vllm' | 'ollama' = 'vllm') {
    const started = await gatewayTo(...Array.from({ length: count }, () => ({ engine })));
    close = () => started.close();
    return started;
  }

  it.each([
    ['500', { kind: 'status', status: 500 }],
    ['503', { kind: 'status', status: 503 }],
    ['429', { kind: 'status', status: 429 }],
    ['a closed connection', { kind: 'reset' }],
    ['half an answer', { kind: 'break', reply: { text: 'x' }, events: 1 }],
    ['nonsense', { kind: 'raw', contentType: 'application/json', chunks: ['<html>'] }],
    ['the wrong media type', { kind: 'raw', contentType: 'text/html', chunks: ['<html>'] }],
  ] as [string, Behaviour][])('after %s another endpoint answers', async (_name, bad) => {
    const { gateway, engines } = await setup(2);
    // The same prompt goes to the same endpoint: make that one fail.
    await post(gateway, 'chat/completions', CHAT);
    const home = engines.findIndex(({ received }) => received.length > 0);
    engines[home]?.behave(bad);
    const response = await post(gateway, 'chat/completions', CHAT);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-berth-route')).toContain('attempt=2');
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello there' } }] });
    expect(engines[1 - home]?.received).toHaveLength(1);
  });

  it('before the first byte of a stream, also after the status line', async () => {
    const { gateway, engines } = await setup(2);
    await post(gateway, 'chat/completions', CHAT);
    const home = engines.findIndex(({ received }) => received.length > 0);
    engines[home]?.behave({ kind: 'break', reply: { text: 'x' }, events: 0 });
    const response = await post(gateway, 'chat/completions', { ...CHAT, stream: true });
    expect(response.headers.get('x-berth-route')).toContain('attempt=2');
    expect(await response.text()).toContain('[DONE]');
  });

  it('never after the first byte, where no server can go on: the stream ends with an error in its own shape', async () => {
    const { gateway, engines } = await setup(3, 'ollama');
    for (const engine of engines) engine.behave({ kind: 'break', reply: { text: 'Hello there' }, events: 2 });
    const text = await (await post(gateway, 'chat/completions', { ...CHAT, stream: true })).text();
    expect(text).toContain('"error"');
    expect(text).not.toMatch(/127\.0\.0\.1/);
    expect(sent(engines).reduce((sum, count) => sum + count)).toBe(1);
  });

  it('never to the same endpoint twice, and to three at most', async () => {
    const { gateway, engines } = await setup(5);
    for (const engine of engines) engine.behave({ kind: 'status', status: 503 });
    const response = await post(gateway, 'chat/completions', CHAT);
    expect(response.status).toBe(503);
    expect(sent(engines).filter((count) => count > 0)).toEqual([1, 1, 1]);
  });

  it('never for what is the fault of the request', async () => {
    const { gateway, engines } = await setup(2);
    const body = JSON.stringify({ error: { message: 'max_tokens is too large', type: 'BadRequestError', code: 400 } });
    for (const engine of engines) engine.behave({ kind: 'status', status: 400, body });
    const response = await post(gateway, 'chat/completions', CHAT);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('max_tokens is too large') as string },
    });
    expect(sent(engines).reduce((sum, count) => sum + count)).toBe(1);
  });

  it('leaves an endpoint alone for as long as its Retry-After says, and tells the client when all do', async () => {
    const { gateway, engines } = await setup(2);
    for (const engine of engines) engine.behave({ kind: 'status', status: 429, headers: { 'retry-after': '7' } }, GOOD);
    const limited = await post(gateway, 'chat/completions', CHAT);
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('7');
    const next = await post(gateway, 'chat/completions', CHAT);
    expect(next.status).toBe(503);
    expect(Number(next.headers.get('retry-after'))).toBeGreaterThanOrEqual(6);
    expect(sent(engines)).toEqual([1, 1]);
  });

  it('sends again on a fresh connection when a kept-alive one had died', async () => {
    const { gateway, engines } = await setup(1);
    await (await post(gateway, 'chat/completions', CHAT)).text();
    engines[0]?.behave({ kind: 'reset' }, GOOD);
    const response = await post(gateway, 'chat/completions', CHAT);
    expect(response.status).toBe(200);
    expect(engines[0]?.received).toHaveLength(3);
  });

  it('stops sending to an endpoint that keeps breaking connections', async () => {
    const { gateway, engines } = await setup(1);
    engines[0]?.behave({ kind: 'reset' });
    const statuses: number[] = [];
    for (let count = 0; count < 8; count += 1) statuses.push((await post(gateway, 'chat/completions', CHAT)).status);
    expect(statuses.slice(0, 3)).toEqual([502, 502, 502]);
    expect(statuses.slice(3)).toEqual([503, 503, 503, 503, 503]);
    expect(engines[0]?.received).toHaveLength(3);
  });

  it('serves others as soon as the first stream after a pause has begun', async () => {
    const { gateway, engines } = await setup(1);
    const stalling: Behaviour = { kind: 'stall', reply: { text: 'Hello there' }, events: 2 };
    engines[0]?.behave({ kind: 'reset' }, { kind: 'reset' }, { kind: 'reset' }, stalling, GOOD);
    for (let count = 0; count < 3; count += 1) await post(gateway, 'chat/completions', CHAT);
    const first = await eventually(async () => {
      const response = await post(gateway, 'chat/completions', { ...CHAT, stream: true });
      expect(response.status).toBe(200);
      return response.body?.getReader();
    });
    expect((await first?.read())?.value?.length).toBeGreaterThan(0);
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
    await first?.cancel();
  });

  it('bounds the retries to a failing model', async () => {
    const { gateway, engines } = await setup(3);
    for (const engine of engines) engine.behave({ kind: 'status', status: 500 });
    // Ten failures open a breaker: stay below that and look at the budget alone.
    for (let count = 0; count < 9; count += 1)
      await post(gateway, 'chat/completions', { ...CHAT, messages: [{ role: 'user', content: `${count}` }] });
    // 9 calls, 10 resends in reserve and one for every five calls.
    expect(sent(engines).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(9 + 10 + 2);
  });
});

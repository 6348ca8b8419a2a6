import { afterEach, describe, expect, it } from 'vitest';
import { modelPod } from '../../support/model-cluster.ts';
import { CALLER, gatewayTo, post, eventually } from '../../support/model-gateway.ts';
import type { EngineOptions } from '../../support/scripted-engine.ts';

const ENGINE: EngineOptions = { engine: 'vllm' };
let turn = 0;

/** Every call has a prompt of its own, which spreads them. */
function chat(model = 'tiny') {
  return { model, messages: [{ role: 'user', content: `Question ${(turn += 1)}` }] };
}

describe('a cluster that changes', () => {
  let close: (() => Promise<void>) | undefined;
  afterEach(() => close?.());

  async function setup(count: number) {
    const started = await gatewayTo(...Array.from({ length: count }, () => ENGINE));
    close = started.close;
    return started;
  }

  it('sends nothing new to a pod that terminates, and its calls under way finish', async () => {
    const { gateway, engines } = await setup(2);
    const [leaving, staying] = engines;
    leaving?.behave({ kind: 'answer', reply: { text: 'slow' }, gapMs: 30 });
    staying?.behave({ kind: 'answer', reply: { text: 'slow' }, gapMs: 30 });
    const calls = Array.from({ length: 8 }, () => post(gateway, 'chat/completions', { ...chat(), stream: true }));
    await eventually(() => expect(leaving?.received.length).toBeGreaterThan(0));
    const pod = modelPod('berth-system', `tiny-server-${leaving?.port}`);
    gateway.cluster.pods.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await gateway.ready('tiny', 1);
    for (const call of calls) expect(await (await call).text()).toContain('[DONE]');
    const before = leaving?.received.length;
    for (let count = 0; count < 10; count += 1)
      expect((await post(gateway, 'chat/completions', chat())).status).toBe(200);
    expect(leaving?.received.length).toBe(before);
  });

  it('sends calls to a new pod after its probe, and forgets a deleted Service', async () => {
    const { gateway, engines } = await setup(2);
    const [first, second] = engines;
    gateway.cluster.serve({ name: 'other', namespace: 'tenant-a', ports: [first?.port ?? 0, second?.port ?? 0] });
    await gateway.ready('tiny', 2);
    gateway.cluster.remove('berth-system', 'tiny-server');
    await gateway.ready('tiny', 2);
    gateway.cluster.remove('tenant-a', 'other');
    await eventually(async () => expect((await post(gateway, 'chat/completions', chat())).status).toBe(404));
  });

  it('keeps the models of tenants apart', async () => {
    const { gateway, engines } = await setup(1);
    gateway.cluster.serve({
      name: 'mine',
      namespace: 'tenant-a',
      ports: [engines[0]?.port ?? 0],
      annotations: { 'berth.dev/model-aliases': 'secret' },
    });
    await gateway.ready('secret');
    expect((await post(gateway, 'chat/completions', chat('secret'))).status).toBe(200);
    gateway.callAs({ ...CALLER, keyId: 'key-2', namespace: 'tenant-b' });
    const response = await post(gateway, 'chat/completions', chat('secret'));
    expect(response.status).toBe(404);
    expect(await response.text()).not.toContain("Known models: 'secret'");
    expect(JSON.stringify(await (await fetch(`${gateway.base}/v1/models`)).json())).not.toContain('secret');
  });

  it('sends one conversation to one endpoint in every dialect', async () => {
    const { gateway, engines } = await setup(4);
    const system = 'You are a helpful assistant with a long system prompt.';
    const question = 'What is the capital of Norway?';
    const messages = [{ role: 'user', content: question }];
    await post(gateway, 'chat/completions', {
      model: 'tiny',
      messages: [{ role: 'system', content: system }, ...messages],
    });
    await post(gateway, 'messages', { model: 'tiny', max_tokens: 9, system, messages });
    await post(gateway, 'responses', { model: 'tiny', instructions: system, input: question });
    const later = [...messages, { role: 'assistant', content: 'Oslo.' }, { role: 'user', content: 'And of Italy?' }];
    await post(gateway, 'chat/completions', {
      model: 'tiny',
      messages: [{ role: 'system', content: system }, ...later],
    });
    expect(engines.map(({ received }) => received.length)).toContain(4);
  });
});

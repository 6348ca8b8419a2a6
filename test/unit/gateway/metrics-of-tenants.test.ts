/** What the metrics of the gateway say about tenants: nothing, unless the operator asks for it. */
import { afterEach, describe, expect, it } from 'vitest';
import { CALLER, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';

const BODY = { messages: [{ role: 'user', content: 'Hi' }] };

describe('the metrics after calls to a shared and a private model', () => {
  const running: { close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.close();
  });

  async function called(metricsNameTenants: boolean): Promise<string> {
    const gateway: TestGateway = await startGateway(undefined, { metricsNameTenants });
    const [shared, own] = [await startEngine(), await startEngine({ models: ['merger-with-acme'] })];
    running.push(gateway, shared, own);
    gateway.cluster.serve({ name: 'shared', ports: [shared.port] });
    gateway.cluster.serve({ name: 'own', namespace: CALLER.namespace, ports: [own.port] });
    await gateway.ready('tiny');
    await gateway.ready('merger-with-acme');
    // The own model also fails over, and is gone.
    own.behave({ kind: 'status', status: 500 });
    for (const model of ['tiny', 'merger-with-acme', 'no-such-model'])
      for (const stream of [false, true])
        await (await post(gateway, 'chat/completions', { ...BODY, model, stream })).text();
    return gateway.registry.metrics();
  }

  it('name no tenant, key or private model', async () => {
    const metrics = await called(false);
    expect(metrics).not.toMatch(/merger|no-such|tenant-a|key-1/);
    expect(metrics).toMatch(/berth_gateway_requests_total\{gen_ai_request_model="tiny"[^}]*berth_key_id="all"\} 2/);
    expect(metrics).toMatch(/berth_gateway_requests_total\{gen_ai_request_model="private"[^}]*berth_key_id="all"\} 2/);
  });

  it('name keys and private models where the operator wants it', async () => {
    const metrics = await called(true);
    expect(metrics).toMatch(
      /berth_gateway_requests_total\{gen_ai_request_model="merger-with-acme"[^}]*berth_key_id="key-1"\} 2/,
    );
    expect(metrics).not.toMatch(/no-such/);
  });
});

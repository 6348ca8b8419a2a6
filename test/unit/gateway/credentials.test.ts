import { inspect } from 'node:util';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { ForbiddenError, NotFoundError } from '../../../src/kube/errors.ts';
import type { Secret } from '../../../src/kube/types.ts';
import { Credentials } from '../../../src/gateway/discovery/credentials.ts';
import { credentialIn, EngineCredential } from '../../../src/resources/model-servers/engine-credential.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine, type ScriptedEngine } from '../../support/scripted-engine.ts';

const KEY = 'sk-engine-0123456789';

function secretFor(owners: string | undefined, { name = 'vllm-key', key = KEY, version = '1' } = {}): Secret {
  return {
    metadata: {
      name,
      uid: name,
      resourceVersion: version,
      ...(owners !== undefined && { annotations: { 'berth.dev/model-credential-for': owners } }),
    },
    data: { 'api-key': Buffer.from(key).toString('base64') },
  };
}

function server(namespace: string, name = 'llm', credential = 'vllm-key') {
  return { namespace, name, uid: `${namespace}/${name}`, credential, aliases: [], problems: [] };
}

describe('a credential', () => {
  it.each([
    ['a/llm', 'a', 'llm', true],
    ['b/llm, a/llm', 'a', 'llm', true],
    ['a/llm', 'x', 'llm', false],
    ['a/llm', 'a', 'other', false],
    ['a', 'a', 'llm', false],
    ['*', 'a', 'llm', false],
    ['', 'a', 'llm', false],
    [undefined, 'a', 'llm', false],
  ])('of a Secret for %s goes to %s/%s: %s', (owners, namespace, name, expected) => {
    const found = credentialIn(secretFor(owners), server(namespace, name));
    expect(found instanceof EngineCredential).toBe(expected);
    expect(inspect(found)).not.toContain(KEY);
  });

  it.each(['', 'two words', 'line\nbreak', 'ümlaut', 'x'.repeat(8193)])('cannot be %j', (key) => {
    expect(credentialIn(secretFor('a/llm', { key }), server('a'))).toContain('api-key');
  });

  it('may end with the line break that editors add', () => {
    const found = credentialIn(secretFor('a/llm', { key: `${KEY}\n` }), server('a'));
    expect(found).toMatchObject({ authorization: `Bearer ${KEY}` });
  });

  it('shows itself to no log', () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => lines.push(line) });
    const credential = new EngineCredential(KEY);
    log.info({ credential, endpoint: { credential } }, 'Text');
    expect([...lines, JSON.stringify(credential), inspect({ credential }, { showHidden: true })].join()).not.toContain(
      KEY,
    );
  });
});

describe('the Secrets of engines', () => {
  function setup(names: readonly string[]) {
    const secrets = new Map<string, Secret | Error>();
    const reads: string[] = [];
    const clock = fakeClock();
    let changes = 0;
    const read = (name: string): Promise<Secret> => {
      reads.push(name);
      const found =
        secrets.get(name) ?? new NotFoundError({ status: 404, reason: 'NotFound', message: 'no such Secret' });
      return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
    };
    const credentials = new Credentials({ secrets: { names, read }, changed: () => (changes += 1), clock });
    credentials.start();
    return { secrets, reads, clock, credentials, changes: () => changes };
  }

  it('are followed, also when they go', async () => {
    const { secrets, clock, credentials, changes } = setup(['vllm-key']);
    secrets.set('vllm-key', secretFor('a/llm'));
    expect(credentials.of(server('a'))).toBe('');
    await settle();
    expect(credentials.of(server('a'))).toMatchObject({ authorization: `Bearer ${KEY}` });
    secrets.set('vllm-key', secretFor('a/llm', { key: 'sk-new', version: '2' }));
    await clock.advance(10_000);
    expect(credentials.of(server('a'))).toMatchObject({ authorization: 'Bearer sk-new' });
    secrets.set('vllm-key', new Error('the API server is away'));
    await clock.advance(10_000);
    expect(credentials.of(server('a'))).toMatchObject({ authorization: 'Bearer sk-new' });
    expect(changes()).toBe(2);
    for (const error of [NotFoundError, ForbiddenError]) {
      secrets.set('vllm-key', new error({ status: 403, reason: 'Forbidden', message: 'no' }));
      await clock.advance(10_000);
      expect(typeof credentials.of(server('a'))).toBe('string');
    }
    await credentials.stop();
    expect(clock.pending).toBe(0);
  });

  it('are not read unless the operator lists them: a tenant makes Berth ask for none', async () => {
    const { reads, clock, credentials } = setup(['vllm-key']);
    expect(credentials.of(server('x', 'llm', 'berth-port-session'))).toContain('has not listed');
    await clock.advance(30_000);
    expect(reads).toEqual([]);
    await credentials.stop();
  });
});

describe('an engine that asks for a key', () => {
  const running: { close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.close();
  });

  async function start(secret: Secret, apiKey = KEY) {
    const cluster = new ModelCluster();
    const held = { secret };
    const engine = await startEngine({ engine: 'vllm', apiKey, countTokens: true, dialects: ['chat', 'messages'] });
    const engineSecrets = { names: ['vllm-key', 'other-key'], read: () => Promise.resolve(held.secret) };
    const gateway = await startGateway(cluster, { engineSecrets });
    running.push(engine, gateway);
    return { cluster, engine, gateway, held };
  }

  const annotations = { 'berth.dev/model-credential': 'vllm-key' };
  const body = { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };

  function serve(gateway: TestGateway, engine: ScriptedEngine, namespace = 'tenant-a'): void {
    gateway.cluster.serve({ name: 'llm', namespace, annotations, ports: [engine.port] });
  }

  it('gets it in probes, calls and token counts, and the caller’s own key never', async () => {
    const { gateway, engine } = await start(secretFor('tenant-a/llm'));
    serve(gateway, engine);
    await gateway.ready('tiny');
    const headers = { authorization: 'Bearer berth-key', 'x-api-key': 'berth-key' };
    for (const path of ['chat/completions', 'messages', 'messages/count_tokens']) {
      const answer = await post(gateway, path, body, { headers });
      expect(answer.status).toBe(200);
      expect(JSON.stringify([...answer.headers]) + (await answer.text())).not.toContain(KEY);
    }
    expect([...engine.authorizations]).toEqual([`Bearer ${KEY}`]);
    expect(JSON.stringify(engine.received.map(({ headers: got }) => got))).not.toContain('berth-key');
    expect(await gateway.registry.metrics()).not.toContain(KEY);
  });

  it('cannot say it to callers in an error', async () => {
    const { gateway, engine } = await start(secretFor('tenant-a/llm'));
    serve(gateway, engine);
    await gateway.ready('tiny');
    for (const status of [400, 500, 200]) {
      const error = { error: { message: `bad header Bearer ${KEY}`, code: 400, param: KEY } };
      engine.behave({ kind: 'status', status, body: JSON.stringify(error) });
      const answer = await post(gateway, 'chat/completions', body);
      const text = await answer.text();
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(text).toContain('[credential]');
      expect(text).not.toContain(KEY);
    }
  });

  it('cannot say it in a stream that has begun', async () => {
    const { gateway, engine } = await start(secretFor('tenant-a/llm'));
    serve(gateway, engine);
    await gateway.ready('tiny');
    const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n';
    const error = `data: {"error":{"message":"bad header Bearer ${KEY}","code":400}}\n\n`;
    for (const path of ['chat/completions', 'messages', 'responses']) {
      const gate = Promise.withResolvers<void>();
      engine.behave({ kind: 'raw', contentType: 'text/event-stream', chunks: [chunk, error], gate: gate.promise });
      const answer = await post(gateway, path, { ...body, input: 'x', stream: true });
      let text = '';
      for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        gate.resolve();
      }
      expect(text).toContain('[credential]');
      expect(text).not.toContain(KEY);
    }
  });

  it('is not called without the key that its Service names', async () => {
    const { gateway, engine } = await start(secretFor(undefined), 'none');
    serve(gateway, engine);
    const open = await startEngine({ models: ['open'] });
    running.push(open);
    gateway.cluster.serve({ name: 'open', namespace: 'tenant-a', ports: [open.port] });
    await gateway.ready('open');
    expect(engine.authorizations.size).toBe(0);
  });

  it('of another namespace cannot be had by naming its Secret', async () => {
    const { gateway, engine } = await start(secretFor('tenant-a/llm'));
    serve(gateway, engine);
    await gateway.ready('tiny');
    // The attacker's Service has the name of the victim's, names its Secret, and leads to the attacker's own pod.
    const trap = await startEngine({ models: ['tiny'] });
    const honest = await startEngine({ models: ['other'] });
    running.push(trap, honest);
    serve(gateway, trap, 'tenant-x');
    gateway.cluster.serve({
      name: 'tenant-a',
      namespace: 'tenant-x',
      annotations: { ...annotations, 'berth.dev/model-aliases': 'tenant-a/llm' },
      ports: [trap.port],
    });
    gateway.cluster.serve({ name: 'honest', namespace: 'tenant-a', ports: [honest.port] });
    await gateway.ready('other');
    expect(trap.authorizations.size).toBe(0);
    // Nor by a second Service over the same pod, whose calls go out without the key.
    gateway.cluster.serve({ name: 'copy', namespace: 'tenant-a', ports: [trap.port] });
    await eventually(() => expect(trap.authorizations.size).toBe(1));
    expect([...trap.authorizations]).toEqual([undefined]);
  });
});

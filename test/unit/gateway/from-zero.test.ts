import { afterEach, describe, expect, it, vi } from 'vitest';
import { LEASE_PROBLEM, LEASE_SERVED, LEASE_START_SECONDS } from '../../../src/resources/model-servers/lease.ts';
import { keyOf } from '../../../src/kube/types.ts';
import type { Principal } from '../../../src/access/principal.ts';
import { Model } from '../../../src/gateway/balance/model.ts';
import { ModelLeases } from '../../../src/gateway/zero/model-leases.ts';
import { WaitingRoom } from '../../../src/gateway/zero/waiting-room.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { FakeLeases } from '../../support/fake-leases.ts';
import { modelPod } from '../../support/model-cluster.ts';
import {
  CALLER,
  eventually,
  type GatewayOptions,
  post,
  quiet,
  startGateway,
  type TestGateway,
} from '../../support/model-gateway.ts';
import { recordingClient } from '../../support/recording-client.ts';
import type { Priority } from '../../../src/resources/api-key.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const ANNOTATIONS = { 'berth.dev/scale-target': 'deployments.apps/tiny', 'berth.dev/model-names': 'tiny' };
/** What the helper gives the Service `tiny` of the namespace `berth-system`. */
const UID = 'svc-berth-system-tiny';
const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] };

interface World {
  gateway: TestGateway;
  /** How the key of the callers is by now; undefined when it is gone. */
  key: { now: Principal | undefined };
  leases: FakeLeases;
  stopping: AbortController;
  /** A pod of the server becomes ready. */
  appear(): Promise<ScriptedEngine>;
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closers.splice(0).toReversed()) await close();
});

async function atZero(
  annotations: Record<string, string> = {},
  {
    namespace = 'berth-system',
    lease = {},
    ...options
  }: { namespace?: string; lease?: Record<string, string> } & Pick<GatewayOptions, 'budgets' | 'client'> = {},
): Promise<World> {
  const leases = new FakeLeases();
  const key: World['key'] = { now: CALLER };
  const stopping = new AbortController();
  leases.sleep(`svc-${namespace}-tiny`, lease);
  const gateway = await startGateway(undefined, {
    ...options,
    caller: () => key.now,
    scaleFromZero: {
      client: leases.client,
      leases: leases.store,
      namespaces: ['berth-system', 'tenant-a'],
      identity: 'replica-1',
    },
    stopping: stopping.signal,
  });
  closers.push(() => gateway.close());
  const server = { name: 'tiny', namespace, annotations: { ...ANNOTATIONS, ...annotations } };
  gateway.cluster.serve({ ...server, ports: [] });
  const service = gateway.cluster.services.get(`${namespace}/tiny`);
  if (service !== undefined) gateway.cluster.services.put({ ...service, spec: { selector: { app: 'tiny' } } });
  return {
    gateway,
    key,
    leases,
    stopping,
    async appear() {
      const engine = await startEngine({ engine: 'vllm' });
      closers.push(() => engine.close());
      gateway.cluster.serve({ ...server, ports: [engine.port] });
      return engine;
    },
  };
}

async function record({ gateway }: World): Promise<Record<string, unknown>> {
  return (await (await fetch(`${gateway.base}/v1/models/tiny`)).json()) as Record<string, unknown>;
}

/** A pod of the server that Kubernetes says something bad about. */
function brokenPod({ gateway }: World, namespace: string, status: object): void {
  const pod = modelPod(namespace, 'tiny-1');
  gateway.cluster.pods.put({ metadata: { ...pod.metadata, labels: { app: 'tiny' } }, status });
}

describe('a model at zero replicas', () => {
  it('is listed as one that a call brings up', async () => {
    const world = await atZero({}, { lease: { [LEASE_START_SECONDS]: '42' } });
    await world.gateway.ready('tiny', 0);
    expect(await record(world)).toMatchObject({ scales_from_zero: true, expected_start_seconds: 42 });
  });

  it('holds all calls, asks once, and answers them when a server is ready', async () => {
    const world = await atZero();
    const { gateway, leases } = world;
    await gateway.ready('tiny', 0);
    const calls = Array.from({ length: 50 }, (_, index) =>
      post(gateway, 'chat/completions', { ...CHAT, stream: index % 2 === 0 }),
    );
    await eventually(() => expect(leases.isAsleep(UID)).toBe(false));
    await world.appear();
    for (const answer of await Promise.all(calls)) expect(answer.status).toBe(200);
    expect(leases.renewals).toBe(1);
    await eventually(() =>
      expect(leases.lease(UID).metadata.annotations).toMatchObject({ [LEASE_START_SECONDS]: '1' }),
    );
    // The next call finds the server, and asks for nothing.
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
    expect(leases.renewals).toBe(1);
    expect(await record(world)).toMatchObject({ ready_endpoints: 1, scales_from_zero: true });
  });

  it('holds no call that another model may take, and comes up for later ones', async () => {
    const { gateway, leases } = await atZero({ 'berth.dev/model-fallbacks': 'large' });
    const large = await startEngine({ models: ['large'] });
    closers.push(() => large.close());
    gateway.cluster.serve({ name: 'large', ports: [large.port] });
    await gateway.ready('large');
    await gateway.ready('tiny', 0);
    const answer = await post(gateway, 'chat/completions', CHAT);
    expect([answer.status, answer.headers.get('x-berth-route')]).toEqual([
      200,
      expect.stringContaining('fallback=large; reason=unavailable'),
    ]);
    expect([leases.isAsleep(UID), large.received.length]).toEqual([false, 1]);
  });

  it('says in a metric how many calls wait for it', async () => {
    const world = await atZero();
    const { gateway } = world;
    await gateway.ready('tiny', 0);
    const waiting = async (): Promise<string | undefined> =>
      /^berth_gateway_waiting\{gen_ai_request_model="tiny"\} (\d+)$/m.exec(await gateway.registry.metrics())?.[1];
    expect(await waiting()).toBeUndefined();
    const calls = Array.from({ length: 3 }, () => post(gateway, 'chat/completions', CHAT));
    await eventually(async () => expect(await waiting()).toBe('3'));
    await world.appear();
    for (const answer of await Promise.all(calls)) expect(answer.status).toBe(200);
    expect(await waiting()).toBe('0');
  });

  it('holds a call that met a server on its way to zero', async () => {
    const world = await atZero();
    const { gateway, leases } = world;
    const leaving = await world.appear();
    await gateway.ready('tiny', 1);
    leaving.behave({ kind: 'hang' });
    const call = post(gateway, 'chat/completions', CHAT);
    await eventually(() => expect(leaving.received.some(({ path }) => path.endsWith('/chat/completions'))).toBe(true));
    const { port } = leaving;
    gateway.cluster.slice({ service: 'tiny', pod: `tiny-${port}`, port, conditions: { terminating: true } });
    const asked = leases.renewals;
    await leaving.close();
    await eventually(() => expect(leases.renewals).toBeGreaterThan(asked));
    await world.appear();
    expect((await call).status).toBe(200);
  });

  it('is known to a replica that never saw a server, by what others remember', async () => {
    const first = await atZero();
    await first.appear();
    await first.gateway.ready('tiny', 1);
    await eventually(() => expect(first.leases.lease(UID).metadata.annotations).toHaveProperty([LEASE_SERVED]));
    const served = first.leases.lease(UID).metadata.annotations?.[LEASE_SERVED] ?? '';
    const second = await atZero({ 'berth.dev/model-names': '' }, { lease: { [LEASE_SERVED]: served } });
    await second.gateway.ready('tiny', 0);
    expect(await record(second)).toMatchObject({ engine: 'vllm' });
    const broken = await atZero({}, { lease: { [LEASE_SERVED]: '{"engine":7}' } });
    await broken.gateway.ready('tiny', 0);
  });

  it.each([
    ['messages', { type: 'error', error: { type: 'overloaded_error' } }],
    ['chat/completions', { error: { code: null } }],
  ])('answers %s with 503 in its shape when no server comes in time', async (path, shape) => {
    const { gateway } = await atZero({ 'berth.dev/scale-wait-seconds': '1' });
    await gateway.ready('tiny', 0);
    const answer = await post(gateway, path, { ...CHAT, max_tokens: 9 });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '15']);
    const body = (await answer.json()) as { error: { message: string } };
    expect(body).toMatchObject(shape);
    expect(body.error.message).toMatch(
      /'tiny' was at zero replicas, and none was ready after 1 s\. It is still starting\./,
    );
  });

  it('keeps a waiting stream alive with comments, and tells an error in it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const { gateway, leases } = await atZero();
    await gateway.ready('tiny', 0);
    const waiting = post(gateway, 'chat/completions', { ...CHAT, stream: true });
    await eventually(() => expect(leases.isAsleep(UID)).toBe(false));
    vi.advanceTimersByTime(10_000);
    const answer = await waiting;
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    leases.note(UID, { [LEASE_PROBLEM]: 'No such Deployment.' });
    const text = await answer.text();
    expect(text).toMatch(/^: waiting for the model\n\ndata: \{"error":/);
    expect(text).toContain('cannot start');
  });

  it('tells callers of its own namespace why it cannot start, and others nothing of its insides', async () => {
    const waiting = { reason: 'ImagePullBackOff', message: 'dial tcp 10.0.0.5:443: i/o timeout' };
    const status = { containerStatuses: [{ name: 'vllm', image: 'registry.internal/secret', state: { waiting } }] };
    const own = await atZero({}, { namespace: 'tenant-a' });
    await own.gateway.ready('tiny', 0);
    const held = post(own.gateway, 'chat/completions', CHAT);
    await eventually(() => expect(own.leases.isAsleep('svc-tenant-a-tiny')).toBe(false));
    brokenPod(own, 'tenant-a', status);
    const told = await (await held).text();
    expect(told).toContain(
      "Container 'vllm' of pod 'tiny-1': ImagePullBackOff: registry.internal/secret cannot be pulled",
    );
    expect(told).not.toContain('timeout');

    const shared = await atZero();
    await shared.gateway.ready('tiny', 0);
    brokenPod(shared, 'berth-system', status);
    const answer = await post(shared.gateway, 'chat/completions', CHAT);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '30']);
    const text = await answer.text();
    expect(text).toContain('cannot be pulled');
    expect(text).not.toContain('secret');
  });

  it('goes on waiting for a node, and says so in the end', async () => {
    const world = await atZero({ 'berth.dev/scale-wait-seconds': '1' }, { namespace: 'tenant-a' });
    await world.gateway.ready('tiny', 0);
    const message = '0/3 nodes are available: 3 Insufficient nvidia.com/gpu.';
    brokenPod(world, 'tenant-a', { conditions: [{ type: 'PodScheduled', status: 'False', message }] });
    const text = await (await post(world.gateway, 'chat/completions', CHAT)).text();
    expect(text).toContain(`after 1 s. No node has room for its server. Pod 'tiny-1': ${message}`);
  });

  it('lets go of a call whose caller leaves', async () => {
    const { gateway, leases } = await atZero();
    await gateway.ready('tiny', 0);
    const leaving = new AbortController();
    const held = post(gateway, 'chat/completions', CHAT, { signal: leaving.signal });
    await eventually(() => expect(leases.isAsleep(UID)).toBe(false));
    leaving.abort();
    await expect(held).rejects.toThrow();
    await eventually(async () =>
      expect(await gateway.registry.metrics()).toMatch(/berth_outcome="client_closed".*\} 1/),
    );
  });

  it('sends callers to another replica when this one stops', async () => {
    const { gateway, leases, stopping } = await atZero();
    await gateway.ready('tiny', 0);
    const held = post(gateway, 'chat/completions', CHAT);
    await eventually(() => expect(leases.isAsleep(UID)).toBe(false));
    stopping.abort();
    const answer = await held;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  });

  it('stays a model without a server where the operator did not name the namespace', async () => {
    const world = await atZero({ 'berth.dev/model-aliases': 'tiny' }, { namespace: 'tenant-c' });
    world.gateway.callAs({ ...CALLER, namespace: 'tenant-c' });
    await world.gateway.ready('tiny', 0);
    expect(await record(world)).not.toHaveProperty('scales_from_zero');
    expect((await post(world.gateway, 'chat/completions', CHAT)).status).toBe(503);
    expect(world.leases.renewals).toBe(0);
  });
});

function priced(perMillion: string): Record<string, string> {
  return {
    'berth.dev/price-input': perMillion,
    'berth.dev/price-output': perMillion,
    'berth.dev/price-currency': 'USD',
  };
}

describe('a call that waited for a model from zero', () => {
  /** A call that waits. */
  async function waiting(world: World, uid = UID): Promise<{ answered: Promise<Response> }> {
    await world.gateway.ready('tiny', 0);
    const answered = post(world.gateway, 'chat/completions', CHAT);
    await eventually(() => expect(world.leases.isAsleep(uid)).toBe(false));
    return { answered };
  }

  it.each<[string, Principal | undefined, number, string]>([
    ['the key is gone', undefined, 401, 'was revoked or deleted'],
    ['the key lost its scope', { ...CALLER, scopes: ['compute:read'] }, 403, "lacks the scope 'models'"],
    ['the key lost the model', { ...CALLER, models: ['other'] }, 404, 'does not exist or you do not have access'],
    ['its tokens of the minute are used up', { ...CALLER, limits: { tokensPerMinute: 1 } }, 429, 'tokens per minute'],
  ])('is refused when %s', async (_what, later, status, words) => {
    const world = await atZero();
    const first = await waiting(world);
    const second = await waiting(world);
    world.key.now = later;
    const engine = await world.appear();
    const answers = await Promise.all([first.answered, second.answered]);
    const refused = answers.filter((answer) => answer.status !== 200);
    expect(refused.map((answer) => answer.status)).toEqual(Array(status === 429 ? 1 : 2).fill(status));
    expect(await refused[0]?.text()).toContain(words);
    expect(engine.received).toHaveLength(status === 429 ? 1 : 0);
  });

  it('is refused when the budget was spent meanwhile', async () => {
    let spent = '0.00';
    const budgets = () => ({
      month: '',
      renewsAt: '',
      at: '',
      percent: 0,
      lines: [{ unit: 'USD', max: '4.00', spent }],
    });
    const world = await atZero(priced('1'), { budgets });
    const { answered } = await waiting(world);
    spent = '4.00';
    const engine = await world.appear();
    const answer = await answered;
    expect([answer.status, await answer.text()]).toEqual([429, expect.stringContaining('4.00 of 4.00 USD')]);
    expect(engine.received).toEqual([]);
  });

  it('holds nothing of a budget meanwhile', async () => {
    const lines = [{ unit: 'USD', max: '0.01', spent: '0.00' }];
    const budgets = () => ({ month: '', renewsAt: '', at: '', percent: 0, lines });
    const world = await atZero(priced('1'), { budgets });
    const { gateway, leases } = world;
    const leaving = await world.appear();
    await gateway.ready('tiny', 1);
    leaving.behave({ kind: 'hang' });
    const met = post(gateway, 'chat/completions', CHAT);
    await eventually(() => expect(leaving.received).toHaveLength(1));
    const { port } = leaving;
    gateway.cluster.slice({ service: 'tiny', pod: `tiny-${port}`, port, conditions: { terminating: true } });
    const asked = leases.renewals;
    await leaving.close();
    await eventually(() => expect(leases.renewals).toBeGreaterThan(asked));
    const other = await startEngine({ models: ['other'] });
    closers.push(() => other.close());
    gateway.cluster.serve({ name: 'other', annotations: priced('1'), ports: [other.port] });
    await gateway.ready('other');
    expect((await post(gateway, 'chat/completions', { ...CHAT, model: 'other' })).status).toBe(200);
    await world.appear();
    expect((await met).status).toBe(200);
  });

  it('gets no other server that has the name by then, and none of another price', async () => {
    const own = await atZero({}, { namespace: 'tenant-a' });
    const shared = await startEngine();
    closers.push(() => shared.close());
    own.gateway.cluster.serve({ name: 'dear', annotations: priced('1000'), ports: [shared.port] });
    const { answered } = await waiting(own, 'svc-tenant-a-tiny');
    own.gateway.cluster.services.remove('tenant-a/tiny');
    await own.gateway.ready('tiny', 1);
    const answer = await answered;
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('no longer served')]);
    expect(shared.received).toEqual([]);
  });

  it('gets no other server to which its alias was moved', async () => {
    const world = await atZero({ 'berth.dev/model-names': '', 'berth.dev/model-aliases': 'tiny=cheap' });
    const { answered } = await waiting(world);
    const dear = await startEngine({ models: ['dear'] });
    closers.push(() => dear.close());
    world.gateway.cluster.serve({ name: 'tiny', annotations: ANNOTATIONS, ports: [] });
    const service = world.gateway.cluster.services.get('berth-system/tiny');
    if (service !== undefined)
      world.gateway.cluster.services.put({
        ...service,
        metadata: {
          ...service.metadata,
          annotations: { ...ANNOTATIONS, 'berth.dev/model-names': '', 'berth.dev/model-aliases': 'other=cheap' },
        },
      });
    const annotations = { ...priced('1000'), 'berth.dev/model-aliases': 'tiny=dear' };
    world.gateway.cluster.serve({ name: 'dear', annotations, ports: [dear.port] });
    const answer = await answered;
    expect([answer.status, dear.received]).toEqual([503, []]);
  });

  it('is billed at the price of its server when it is let in', async () => {
    const { client, calls } = recordingClient();
    const world = await atZero(priced('1'), { client });
    const { answered } = await waiting(world);
    const engine = await startEngine({ engine: 'vllm' });
    closers.push(() => engine.close());
    world.gateway.cluster.serve({
      name: 'tiny',
      annotations: { ...ANNOTATIONS, ...priced('2') },
      ports: [engine.port],
    });
    expect((await answered).status).toBe(200);
    await eventually(() => expect(calls).not.toEqual([]));
    const [record] = calls.map(({ arguments: [, one] }) => one as TokenRecord);
    expect(record?.spec).toMatchObject({ entries: [{ calls: 1, inputPrice: '2' }] });
  });
});

describe('the waiting room', () => {
  const MIB = 2 ** 20;

  function setup() {
    const room = new WaitingRoom(fakeClock());
    const model = new Model('tiny', [], fakeClock());
    const leave: ((error: Error) => void)[] = [];
    const wait = (tenant: string, bytes = 1, priority: Priority = 'normal'): Promise<unknown> =>
      room.wait(
        { tenant, priority, name: 'tiny', isShared: true, uid: 'u', bytes },
        { mostMs: 1000, timedOut: () => new Error('late'), onLeave: (one) => leave.push(one) },
      );
    return { room, model, leave, wait };
  }

  it('has 256 places for the calls of a tenant, and a caller who leaves frees one', async () => {
    const { room, model, leave, wait } = setup();
    const held = Array.from({ length: 256 }, () => wait('a'));
    await expect(wait('a')).rejects.toThrow('at most 256 calls of your namespace wait');
    held.push(wait('b'));
    leave[0]?.(new Error('gone'));
    await expect(held.shift()).rejects.toThrow('gone');
    held.push(wait('a'));
    room.admit(() => model);
    expect(new Set(await Promise.all(held))).toEqual(new Set([model]));
    expect(room.uids.size).toBe(0);
  });

  it('gives a call of higher priority the place of the youngest of lower', async () => {
    const { room, model, wait } = setup();
    const held = Array.from({ length: 256 }, () => wait('a', 1, 'low'));
    held.push(wait('a'));
    await expect(held.splice(255, 1)[0]).rejects.toMatchObject({
      message: expect.stringContaining('a call of higher priority') as string,
      retryAfterMs: 5000,
    });
    room.admit(() => model);
    expect(new Set(await Promise.all(held))).toEqual(new Set([model]));
  });

  it('has 1,024 places for all, and room for another tenant whoever takes them', async () => {
    const { room, model, wait } = setup();
    const held: Promise<unknown>[] = [];
    const refused: unknown[] = [];
    for (const tenant of ['a', 'b', 'c', 'd', 'e', 'f'])
      for (let count = 0; count < 256; count += 1)
        held.push(wait(tenant).catch((error: unknown) => refused.push(error)));
    await Promise.resolve();
    expect(String(refused[0])).toContain('at most 1024 calls wait');
    const honest = wait('honest');
    room.admit(() => model);
    expect(await honest).toBe(model);
    await Promise.all(held);
  });

  it('has room for 64 MiB of a tenant, and for 128 MiB of all', async () => {
    const { room, model, wait } = setup();
    const held = [wait('a', 40 * MIB)];
    await expect(wait('a', 40 * MIB)).rejects.toThrow('at most 64 MiB of your namespace wait');
    held.push(wait('b', 40 * MIB), wait('c', 40 * MIB));
    await expect(wait('d', 40 * MIB)).rejects.toThrow('at most 128 MiB of calls wait');
    room.admit(() => model);
    await Promise.all(held);
  });
});

describe('the Lease of a model server', () => {
  function setup() {
    const clock = fakeClock();
    const fake = new FakeLeases();
    fake.sleep('u');
    const own = { client: fake.client, leases: fake.store, namespace: 'berth-system', clock, log: quiet };
    return {
      clock,
      fake,
      one: new ModelLeases({ ...own, identity: 'one' }),
      two: new ModelLeases({ ...own, identity: 'two' }),
    };
  }

  it('is renewed every ten seconds by all replicas together while calls are under way', async () => {
    const { clock, fake, one, two } = setup();
    for (let seconds = 0; seconds < 60; seconds += 2) {
      one.keepAwake('u');
      two.keepAwake('u');
      await clock.advance(2000);
    }
    expect(fake.renewals).toBeGreaterThanOrEqual(6);
    expect(fake.renewals).toBeLessThanOrEqual(8);
  });

  it('is renewed at once when the controller means to let the server sleep', async () => {
    const { clock, fake, one } = setup();
    one.keepAwake('u');
    await clock.advance(10);
    expect([fake.renewals, fake.isAsleep('u')]).toEqual([1, false]);
    fake.note('u', { 'berth.dev/asleep-after-renewal': fake.lease('u').spec?.renewTime ?? '' });
    expect(fake.isAsleep('u')).toBe(true);
    one.keepAwake('u');
    await clock.advance(10);
    expect([fake.renewals, fake.isAsleep('u')]).toEqual([2, false]);
  });

  it('is forgotten with all that was asked of it when it goes', async () => {
    const { clock, fake, one } = setup();
    one.wake('u');
    await clock.advance(10);
    fake.store.remove(keyOf(fake.lease('u')));
    fake.sleep('u');
    one.wake('u');
    await clock.advance(10);
    expect(fake.renewals).toBe(2);
  });

  it('is renewed every five seconds while calls wait, whatever other replicas do', async () => {
    const { clock, fake, one, two } = setup();
    for (let seconds = 0; seconds < 20; seconds += 1) {
      one.wake('u');
      two.wake('u');
      await clock.advance(1000);
    }
    expect(fake.renewals).toBe(8);
  });

  it('takes the mean of starts', async () => {
    const { clock, fake, one } = setup();
    one.noteStart('u', 10);
    await clock.advance(1);
    one.noteStart('u', 31);
    await clock.advance(1);
    expect(fake.lease('u').metadata.annotations?.[LEASE_START_SECONDS]).toBe('21');
  });
});

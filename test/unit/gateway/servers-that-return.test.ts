import { afterEach, describe, expect, it } from 'vitest';
import { FakeLeases } from '../../support/fake-leases.ts';
import { eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] };
const ANNOTATIONS = { 'berth.dev/scale-target': 'deployments.apps/tiny' };
const NAME = 'berth-system/tiny';
const UID = 'svc-berth-system-tiny';
const AGAIN = 'svc-made-again';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface World {
  gateway: TestGateway;
  engine: ScriptedEngine;
  leases: FakeLeases;
  /** Makes the Service again, with another UID. */
  makeAgain: () => void;
  inFlight: () => Promise<string | undefined>;
}

/** A model from zero with a stream under way. */
async function streaming(): Promise<World> {
  const engine = await startEngine({ engine: 'vllm' });
  closers.push(() => engine.close());
  const leases = new FakeLeases();
  leases.sleep(UID);
  leases.sleep(AGAIN);
  const { client, store } = leases;
  const gateway = await startGateway(undefined, {
    scaleFromZero: { client, leases: store, namespaces: ['berth-system'], identity: 'replica-1' },
  });
  closers.push(() => gateway.close());
  const serve = (): void => gateway.cluster.serve({ name: 'tiny', annotations: ANNOTATIONS, ports: [engine.port] });
  serve();
  await gateway.ready('tiny');
  engine.behave(
    { kind: 'stall', reply: { text: 'Hello there' }, events: 2 },
    { kind: 'answer', reply: { text: 'Hi' } },
  );
  const answer = await post(gateway, 'chat/completions', { ...CHAT, stream: true });
  closers.push(async () => answer.body?.cancel());
  return {
    gateway,
    engine,
    leases,
    makeAgain() {
      serve();
      const service = gateway.cluster.services.get(NAME);
      if (service !== undefined)
        gateway.cluster.services.put({ ...service, metadata: { ...service.metadata, uid: AGAIN } });
    },
    inFlight: async () => /^berth_gateway_in_flight (\d+)$/m.exec(await gateway.registry.metrics())?.[1],
  };
}

async function goes({ gateway }: World): Promise<void> {
  gateway.cluster.services.remove(NAME);
  await eventually(async () => expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(404));
}

/** The controller wants to let the server sleep: a replica that has calls objects. */
async function isKeptAwake({ leases }: World, uid: string): Promise<void> {
  leases.note(uid, { 'berth.dev/asleep-after-renewal': leases.lease(uid).spec?.renewTime ?? 'never' });
  expect(leases.isAsleep(uid)).toBe(true);
  await eventually(() => expect(leases.isAsleep(uid)).toBe(false));
}

describe('a server that goes away with a call under way', () => {
  it('has it still when its label is back, and is kept awake for it', async () => {
    const world = await streaming();
    await goes(world);
    expect(await world.inFlight()).toBe('1');
    world.gateway.cluster.serve({ name: 'tiny', annotations: ANNOTATIONS, ports: [world.engine.port] });
    await world.gateway.ready('tiny');
    expect(await world.inFlight()).toBe('1');
    await isKeptAwake(world, UID);
  });

  it('has it still when its Service is made again, and is kept awake for it', async () => {
    const world = await streaming();
    await goes(world);
    world.makeAgain();
    await world.gateway.ready('tiny');
    expect(await world.inFlight()).toBe('1');
    await isKeptAwake(world, AGAIN);
  });

  it('is kept awake while its Service is there without an address', async () => {
    const world = await streaming();
    const { cluster } = world.gateway;
    const { port } = world.engine;
    cluster.slices.remove(`berth-system/tiny-${port}-slice`);
    await world.gateway.ready('tiny', 0);
    await isKeptAwake(world, UID);
  });

  it('is forgotten when that has ended', async () => {
    const world = await streaming();
    await goes(world);
    await world.engine.close();
    await eventually(async () => expect(await world.inFlight()).toBe('0'));
    expect(await world.gateway.registry.metrics()).toContain('berth_gateway_endpoints{state="draining"} 0');
  });
});

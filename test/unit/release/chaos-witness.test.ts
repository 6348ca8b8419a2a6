import { expect, test } from 'vitest';
import { Accepted } from '../../chaos/accepted.ts';
import { Witness } from '../../chaos/witness.ts';
import { REAL_NODE } from '../../../tools/cluster/built/real-node.ts';
import { scriptedClient } from '../../support/scripted-client.ts';
import { waitFor } from '../../support/wait-for.ts';

const BEGIN = Date.parse('2026-11-26T10:00:00Z');
const time = (second: number): string => new Date(BEGIN + second * 1000).toISOString();
const SYNCED = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } },
};

const KINDS = ['/gpuinstances', '/pods'] as const;

let version = 1;

/** The pod of the first start of an instance, as its kubelet shows it. */
function pod(name: string, state: object, more: object = {}) {
  return {
    metadata: {
      namespace: 'a',
      name: `${name}-1`,
      uid: `pod-${name}`,
      resourceVersion: String(++version),
      creationTimestamp: time(0),
      labels: { 'berth.dev/instance-uid': name },
      ...more,
    },
    spec: { nodeName: REAL_NODE },
    status: { containerStatuses: [{ name: 'main', state }] },
  };
}

const RUNS = { running: { startedAt: time(5) } };
const DELETED = { deletionTimestamp: time(60) };

/** A witness of namespace a, whose watches of instances and of pods the test drives. */
async function start(accepted: Accepted) {
  const script = scriptedClient();
  const starting = Witness.start(script.client, { namespaces: ['a'], accepted });
  // The first watch of a kind lists what is there, the second goes on from there.
  const watch = (kind: string, index: number) =>
    waitFor(`watch ${index} of ${kind}`, () => script.watches.filter(({ path }) => path.endsWith(kind))[index]);
  for (const kind of KINDS) (await watch(kind, 0)).send(SYNCED);
  const witness = await starting;
  const [instances, pods] = await Promise.all([watch(KINDS[0], 1), watch(KINDS[1], 1)]);
  const page = (...items: object[]) => script.lists.push({ items: items as never[], resourceVersion: '1' });
  return { witness, instances, pods, page };
}

test('a program on demand that ends is disturbed, unless its owner or a fault of the run ended it', async () => {
  const accepted = new Accepted();
  for (const name of ['victim', 'evicted', 'returned']) accepted.add(name, `a/${name}`);
  accepted.add('spot', 'a/spot', { interruptible: true });
  const { witness, pods } = await start(accepted);
  await using _ = witness;
  const names = ['victim', 'evicted', 'returned', 'spot', 'stranger'];
  for (const name of names) pods.send({ type: 'ADDED', object: pod(name, RUNS) });
  await waitFor('the stranger', () => witness.untold.length > 0);
  accepted.disturbed.add('pod-evicted');
  accepted.letGo('returned');
  for (const name of names.toReversed()) pods.send({ type: 'MODIFIED', object: pod(name, RUNS, DELETED) });
  await waitFor('the victim', () => witness.disturbed.length > 0);
  expect(witness.disturbed).toEqual(['pod a/victim-1 was ended, and neither its owner nor a fault of this run did it']);
  expect(witness.untold).toEqual(['pod a/stranger-1 ran, and nobody was told that its instance was rented']);
});

test('bills and victims are judged by what the watches showed, after the objects are gone', async () => {
  const { witness, instances, pods, page } = await start(new Accepted());
  await using _ = witness;
  const ending = { reason: 'Preempted', message: '', at: time(60), by: 'gang' };
  const victim = {
    metadata: { namespace: 'a', name: 'spot', uid: 'spot', resourceVersion: '90' },
    spec: {},
    status: { incarnation: 1, ending },
  };
  const ended = { terminated: { startedAt: time(5), finishedAt: time(62) } };
  instances.send({ type: 'ADDED', object: victim }, { type: 'DELETED', object: victim });
  pods.send({ type: 'ADDED', object: pod('spot', RUNS) }, { type: 'MODIFIED', object: pod('spot', ended, DELETED) });
  pods.send({ type: 'DELETED', object: pod('spot', ended, DELETED) });
  await waitFor('the pod', () => witness.untold.length > 0);
  const judge = async (to: number) => {
    const interval = { start: 1, from: time(5), to: time(to), product: 'GPU', gpuCount: 1, currency: 'EUR' };
    const sum = { gpuSeconds: to - 5, cost: '0' };
    page({ spec: { instance: 'spot', instanceUid: 'spot', intervals: [{ ...interval, ...sum }], ...sum } });
    page();
    return witness.atRest();
  };
  const right = await judge(62);
  expect([right.bills, right.starts]).toEqual([[], 1]);
  expect(right.victims).toEqual(['a/spot was ended for gang, which never ran']);
  expect((await judge(70)).bills).toHaveLength(1);
  expect((await judge(60)).bills).toHaveLength(1);
});

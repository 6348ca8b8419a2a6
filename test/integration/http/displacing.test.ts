import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Answer, type Call, clientOf } from '../../support/http/client.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

// On demand takes the place of a program that does not end when it is told to, over HTTP and on a node where it runs.

const OBEDIENT = ['sh', '-c', 'trap "exit" TERM; sleep 600 & wait'];
const STUBBORN = ['sh', '-c', 'trap "" TERM; while :; do sleep 1; done'];
const L4S = { gpu: { name: 'NVIDIA-L4', count: 2 }, template_image: BUSYBOX_IMAGE, runtype: 'args' };
const GRACE_MS = 30_000;
/** A client hears within this time that others end for it. */
const HEARD_MS = 10_000;

describeWith('real node')('on demand', () => {
  let berth: BerthProcess;
  let tenants: TestNamespace[];
  let spot: Call;
  let asker: Call;

  beforeAll(async () => {
    tenants = [await testNamespace(), await testNamespace()];
    const [first] = tenants;
    if (first !== undefined) await kindsCounted(first.client);
    berth = await startBerth(inject('cluster').kubeconfig);
    const calls = tenants.map(async ({ client, name }) => {
      const { token } = await createKey(client, { namespace: name, displayName: 'displacing' });
      const call = clientOf(berth.url, token);
      await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
      return call;
    });
    [spot, asker] = (await Promise.all(calls)) as [Call, Call];
  });

  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    for (const tenant of tenants) await tenant[Symbol.asyncDispose]();
  });

  function state(call: Call, id: string, wanted: string): Promise<Answer['json']> {
    const read = async () => {
      const { json } = await call('GET', `/instances/${id}`);
      return json['state'] === wanted && json;
    };
    return waitFor(`${id} to be ${wanted}`, read, 2 * GRACE_MS);
  }

  it('waits with a 201 for a program that ignores SIGTERM, and ends it once', { timeout: 180_000 }, async () => {
    const victim = await spot('POST', '/instances', { ...L4S, type: 1, command: STUBBORN, on_no_capacity: 'queue' });
    await state(spot, victim.id, 'running');
    const key = { 'idempotency-key': 'displacing' };
    const body = { ...L4S, command: OBEDIENT };
    const asked = Date.now();
    const answer = await asker('POST', '/instances', body, key);
    expect(Date.now() - asked).toBeLessThan(HEARD_MS);
    expect([answer.status, answer.json['state'], answer.json['reason']]).toEqual([201, 'pending', 'PlaceComing']);
    const again = await asker('POST', '/instances', body, key);
    expect([again.status, again.id, again.headers.get('idempotent-replayed')]).toEqual([201, answer.id, 'true']);
    const running = await state(asker, answer.id, 'running');
    const { claimed } = running['stages'] as { claimed: string };
    expect(Date.parse(claimed) - asked).toBeGreaterThan(GRACE_MS / 2);
    const { data } = await spot('GET', `/instances/${victim.id}/events`);
    expect(data.filter(({ reason }) => reason === 'Preempted')).toHaveLength(1);
    const rented = [
      [spot, victim.id],
      [asker, answer.id],
    ] as const;
    for (const [call, id] of rented) await call('DELETE', `/instances/${id}`);
    for (const [call, id] of rented)
      await waitFor(`${id} to go`, async () => (await call('GET', `/instances/${id}`)).status === 404, 2 * GRACE_MS);
  });
});

import { expect, test } from 'vitest';
import { NotFoundError } from '../../src/kube/errors.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { afterWrites, type Write } from './support/counting-client.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

/** What the controller has decided about an instance. An edit makes it write again, but decides nothing. */
function decision({ status }: GpuInstance): string {
  return JSON.stringify([status?.incarnation, status?.claim?.grantedAt, status?.podUid, status?.ending?.reason]);
}

/** A replica beside an owner who edits the label of an instance after every write that decides something. */
async function editedWorld(world: World) {
  const creations: Write[] = [];
  const decisions = new Set<string>();
  const replica = await world.replica({
    wrap: (client) =>
      afterWrites(client, async (write) => {
        if (write.verb === 'create' && write.kind === 'Pod') creations.push(write);
        const instance = write.kind === 'GPUInstance' ? await world.get(write.name) : undefined;
        if (instance === undefined || decisions.has(decision(instance))) return;
        decisions.add(decision(instance));
        await world.patch(write.name, { spec: { label: `edit ${decisions.size}` } }).catch((error: unknown) => {
          if (!(error instanceof NotFoundError)) throw error;
        });
      }),
  });
  return { replica, creations, edits: () => decisions.size };
}

test('an owner who edits a label after every write gets one pod for each start', async () => {
  await using world = await createWorld({ nodes: 1 });
  const { replica, creations, edits } = await editedWorld(world);
  await world.create('one');
  await world.reached('one', 'Running');
  await world.patch('one', { spec: { powerState: 'Stopped' } });
  await world.reached('one', 'Stopped');
  await world.patch('one', { spec: { powerState: 'Running' } });
  await world.reached('one', 'Running');
  await world.remove('one');
  await world.gone('one', 60_000);
  expect(edits()).toBeGreaterThan(3);
  expect(creations).toHaveLength(2);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('an instance that expires goes, although its label is edited after every write', async () => {
  await using world = await createWorld({ nodes: 1 });
  const { replica, creations } = await editedWorld(world);
  await world.create('one', { maxDuration: '2s', onExpiry: 'Delete' });
  // It is deleted a minute after it was stopped.
  await world.gone('one', 120_000);
  expect(creations).toHaveLength(1);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

/** What the applier of a GitOps tool does: it writes the manifest again after every write that differs from it. */
async function gitOpsWorld(world: World, spec: object) {
  const creations: Write[] = [];
  let applied = 0;
  const replica = await world.replica({
    wrap: (client) =>
      afterWrites(client, async (write) => {
        if (write.verb === 'create' && write.kind === 'Pod') creations.push(write);
        if (write.kind !== 'GPUInstance') return;
        applied += 1;
        await world.patch(write.name, { spec }).catch((error: unknown) => {
          if (!(error instanceof NotFoundError)) throw error;
        });
      }),
  });
  return { replica, creations, applied: () => applied };
}

test('an applier that writes the manifest again and again starts nothing that has ended', async () => {
  await using world = await createWorld({ nodes: 1 });
  const manifest = { powerState: 'Running', maxDuration: '2s' } as const;
  const { replica, creations, applied } = await gitOpsWorld(world, manifest);
  await world.create('one', manifest);
  const ended = await world.reached('one', 'Expired', 60_000);
  expect(ended.spec.powerState).toBe('Running');
  const { generation } = ended.metadata;
  const edited = await world.patch('one', { spec: { ...manifest, label: 'again' } });
  await waitFor('the controller to have seen the edit', async () => {
    const { status } = (await world.get('one')) ?? {};
    return status?.observedGeneration === edited.metadata.generation;
  });
  expect(edited.metadata.generation).toBe((generation ?? 0) + 1);
  expect(readyReason(await world.get('one'))).toBe('Expired');
  expect(creations).toHaveLength(1);
  expect(applied()).toBeGreaterThan(3);
  // What the owner asks for starts it, and the bill goes on.
  await world.patch('one', { spec: { startRequest: 'once more' } });
  const again = await waitFor('another start', async () => {
    const one = await world.get('one');
    return one?.status?.incarnation === 2 && readyReason(one) === 'Expired' ? one : undefined;
  });
  expect(creations).toHaveLength(2);
  expect(again.status?.usage?.gpuSeconds).toBeGreaterThan(ended.status?.usage?.gpuSeconds ?? Number.NaN);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

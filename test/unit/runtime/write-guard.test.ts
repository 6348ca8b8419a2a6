import { expect, test, vi } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { CutWrites, guardWrites } from '../../../src/runtime/write-guard.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { recordingClient } from '../../support/recording-client.ts';

const POD = { metadata: { name: 'a', namespace: 'ns' } };

test('reads always pass, writes only while the lease is held', async () => {
  let leading = false;
  const { client, calls } = recordingClient();
  const guarded = guardWrites(
    client,
    () => leading,
    () => undefined,
  );
  const writes = [
    () => guarded.create(PODS, POD),
    () => guarded.replace(PODS, POD),
    () => guarded.apply(PODS, POD, { fieldManager: 'berth' }),
    () => guarded.patch(PODS, POD.metadata, {}, { type: 'merge' }),
    () => guarded.delete(PODS, POD.metadata),
    () => guarded.raw('POST', '/x', {}),
  ];
  for (const write of writes) await expect(write()).rejects.toMatchObject({ name: 'NotLeaderError' });
  expect(calls).toEqual([]);

  await guarded.get(PODS, POD.metadata);
  await guarded.list(PODS);
  await guarded.raw('GET', '/version');
  leading = true;
  for (const write of writes) await write();
  expect(calls.map(({ verb }) => verb)).toEqual([
    'get',
    'list',
    'raw',
    'create',
    'replace',
    'apply',
    'patch',
    'delete',
    'raw',
  ]);
});

test('a write that its signal cut off is told, and no other failure', async () => {
  const { client } = recordingClient();
  const cut = vi.fn<() => void>();
  const guarded = guardWrites(client, () => true, cut);
  const under = new AbortController();
  client.patch = () => Promise.reject(new Error('refused'));
  await expect(guarded.patch(PODS, POD.metadata, {}, { type: 'merge', signal: under.signal })).rejects.toThrow(
    'refused',
  );
  expect(cut).not.toHaveBeenCalled();
  client.patch = () => {
    under.abort();
    return Promise.reject(new Error('cut'));
  };
  await expect(guarded.patch(PODS, POD.metadata, {}, { type: 'merge', signal: under.signal })).rejects.toThrow('cut');
  expect(cut).toHaveBeenCalledExactlyOnceWith(PODS);
});

test('a write that was cut off may arrive for as long as an API server works on a request', async () => {
  const clock = fakeClock();
  const cut = new CutWrites(clock);
  expect(cut.mayArrive).toBe(false);
  cut.note();
  await clock.advance(59_999);
  expect(cut.mayArrive).toBe(true);
  await clock.advance(1);
  expect(cut.mayArrive).toBe(false);
});

import { describe, expect, test } from 'vitest';
import { applyIfChanged, applyStatusIfChanged } from '../../../src/kube/apply.ts';
import { type Pod, PODS } from '../../../src/kube/types.ts';
import { recordingClient } from '../../support/recording-client.ts';

const DESIRED = {
  metadata: { name: 'a', namespace: 'ns', labels: { app: 'x', tier: 'y' } },
  spec: { containers: [{ name: 'main', image: 'busybox' }] },
};

/** What the server has after the apply: our fields and its own. */
function stored(sent: unknown): Pod {
  const pod = structuredClone(sent) as Pod;
  pod.metadata.uid = 'u';
  pod.metadata.resourceVersion = '7';
  pod.status = { phase: 'Running' };
  return pod;
}

async function applied(desired: typeof DESIRED): Promise<Pod> {
  const { client, calls } = recordingClient();
  await applyIfChanged<Pod>(client, PODS, desired, { fieldManager: 'berth', current: undefined });
  return stored(calls[0]?.arguments[1]);
}

describe('applyIfChanged', () => {
  test('applies what is not there, taking our fields over', async () => {
    const { client, calls } = recordingClient();
    const result = await applyIfChanged<Pod>(client, PODS, DESIRED, { fieldManager: 'berth', current: undefined });
    expect(result.written).toBe(true);
    expect(calls).toMatchObject([
      { verb: 'apply', arguments: [PODS, DESIRED, { fieldManager: 'berth', force: true }] },
    ]);
  });

  test('writes nothing when the object has it all, whatever others added', async () => {
    const current = await applied(DESIRED);
    const { client, calls } = recordingClient();
    const result = await applyIfChanged<Pod>(client, PODS, structuredClone(DESIRED), {
      fieldManager: 'berth',
      current,
    });
    expect(result).toEqual({ object: current, written: false });
    expect(calls).toEqual([]);
  });

  test.each<[string, (pod: Pod) => void]>([
    ['a label was changed', (pod) => void (pod.metadata.labels = { app: 'z', tier: 'y' })],
    ['the labels were removed', (pod) => void delete pod.metadata.labels],
  ])('writes again when %s', async (_what, change) => {
    const current = await applied(DESIRED);
    change(current);
    const { client } = recordingClient();
    const result = await applyIfChanged<Pod>(client, PODS, DESIRED, { fieldManager: 'berth', current });
    expect(result.written).toBe(true);
  });

  test('writes when a field is no longer wanted, so that the server removes it', async () => {
    const current = await applied(DESIRED);
    const { client, calls } = recordingClient();
    const less = { ...DESIRED, metadata: { ...DESIRED.metadata, labels: { app: 'x' } } };
    await applyIfChanged<Pod>(client, PODS, less, { fieldManager: 'berth', current });
    expect(calls).toMatchObject([{ arguments: [PODS, less, {}] }]);
  });
});

describe('applyStatusIfChanged', () => {
  const current: Pod = {
    metadata: { name: 'a', namespace: 'ns', uid: 'u' },
    status: { phase: 'Running', message: 'm' },
  };

  test('writes nothing when the status says the same', async () => {
    const { client, calls } = recordingClient();
    const same = { message: 'm', phase: 'Running', reason: undefined };
    expect((await applyStatusIfChanged(client, PODS, same, { fieldManager: 'berth', current })).written).toBe(false);
    expect(calls).toEqual([]);
  });

  test('applies the whole status of this very object otherwise, also when only a field went', async () => {
    const { client, calls } = recordingClient();
    await applyStatusIfChanged(client, PODS, { phase: 'Running' }, { fieldManager: 'berth', current });
    const [call] = calls;
    expect(call?.arguments.slice(1)).toEqual([
      { metadata: { name: 'a', namespace: 'ns', uid: 'u' }, status: { phase: 'Running' } },
      { fieldManager: 'berth', force: true, subresource: 'status' },
    ]);
  });
});

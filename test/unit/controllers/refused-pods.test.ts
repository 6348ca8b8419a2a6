import { describe, expect, test } from 'vitest';
import { type KubeError, toKubeError } from '../../../src/kube/errors.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

function answer(status: number, reason: string, message: string): KubeError {
  return toKubeError('POST /api/v1/namespaces/default/pods', { status, body: { kind: 'Status', reason, message } });
}

/** Milliseconds from the grant to the end of a start whose pod the API server never takes; undefined: it has none. */
async function endsAfter(
  refusal: KubeError,
): Promise<{ ms: number; reason: string | undefined; words: string } | undefined> {
  const { instances, reconcile, clock, inventory, endings } = controllerWorld(undefined, undefined, {
    createPod: () => Promise.reject(refusal),
  });
  instances.upsert(held(gpuInstance('one')));
  const granted = clock.now();
  for (let looks = 0; looks < 60; looks += 1) {
    await reconcile('one').catch(() => undefined);
    if (endings.length > 0) {
      expect(inventory.claimsOn('n')).toEqual([]);
      const { ending } = instances.store.get('default/one')?.status ?? {};
      return { ms: clock.now() - granted, reason: ending?.reason, words: ending?.message ?? '' };
    }
    await clock.advance(10_000);
  }
  return undefined;
}

describe('a start whose pod is refused', () => {
  // A ValidatingAdmissionPolicy chooses among these reasons, and a webhook among all codes.
  test.each([
    [401, 'Unauthorized'],
    [413, 'RequestEntityTooLarge'],
    [404, 'NotFound'],
    [405, 'MethodNotAllowed'],
    [409, 'Conflict'],
    [410, 'Gone'],
    [451, ''],
  ])('ends soon and gives its place back, whatever the code is: %i', async (status, reason) => {
    const found = await endsAfter(answer(status, reason, 'not like that'));
    expect(found).toEqual({ ms: 10_000, reason: 'PodRejected', words: 'not like that' });
  });

  test.each([
    [429, 'TooManyRequests'],
    [504, 'Timeout'],
  ])('ends in the end where the answer is to come again: %i', async (status, reason) => {
    const found = await endsAfter(answer(status, reason, 'later'));
    expect(found).toEqual({ ms: 300_000, reason: 'PodRejected', words: 'later' });
  });

  test('does not end for a policy that a new API server does not know yet, within its half minute', async () => {
    const found = await endsAfter(answer(422, 'Invalid', 'failed to find resource referenced by paramKind: "x"'));
    expect(found?.ms).toBeGreaterThan(30_000);
  });
});

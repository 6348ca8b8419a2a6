import { expect, it } from 'vitest';
import { ensureDefaultPool } from '../../../src/controllers/default-pool.ts';
import { AlreadyExistsError, NotFoundError } from '../../../src/kube/errors.ts';
import { gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { recordingClient } from '../../support/recording-client.ts';

const spec = gpuPoolSpecSchema.parse({ currency: 'EUR' });

/** The calls by which a leader makes the pool when the API server gives these answers. */
async function verbsFor(...answers: unknown[]): Promise<string[]> {
  const { client, calls } = recordingClient(answers);
  await ensureDefaultPool(client, spec, new AbortController().signal);
  return calls.map(({ verb }) => verb);
}

const pools = (...names: string[]) => ({ items: names.map((name) => ({ metadata: { name } })), resourceVersion: '1' });
const failure = { message: 'no', status: 409, reason: 'AlreadyExists' };

it('is made where there is no pool', async () => {
  const { client, calls } = recordingClient([pools()]);
  await ensureDefaultPool(client, spec, new AbortController().signal);
  expect(calls[1]?.arguments[1]).toEqual({ metadata: { name: 'default' }, spec });
});

it('is not made beside another pool, which says what is for rent', async () => {
  expect(await verbsFor(pools('mine'))).toEqual(['list']);
});

it('may have been made meanwhile by another leader or a person', async () => {
  expect(await verbsFor(pools(), new AlreadyExistsError(failure))).toEqual(['list', 'create']);
});

it('is tried again while the API server does not serve pools yet', async () => {
  await expect(verbsFor(new NotFoundError({ ...failure, status: 404 }))).rejects.toThrow(NotFoundError);
});

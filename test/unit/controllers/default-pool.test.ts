import { expect, it } from 'vitest';
import { ensureDefaultPool } from '../../../src/controllers/default-pool.ts';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../../../src/kube/errors.ts';
import { gpuPoolSpecSchema, HAD_POOL } from '../../../src/resources/gpu-pool.ts';
import { recordingClient } from '../../support/recording-client.ts';

const namespace = 'berth-system';
const spec = gpuPoolSpecSchema.parse({ currency: 'EUR' });
const signal = new AbortController().signal;

const lease = (annotations?: Record<string, string>) => ({
  metadata: { name: 'berth-controller', namespace, resourceVersion: '7', ...(annotations && { annotations }) },
  spec: { holderIdentity: 'me' },
});
const MARKED = lease({ [HAD_POOL]: 'true' });
const pools = (...names: string[]) => ({ items: names.map((name) => ({ metadata: { name } })), resourceVersion: '1' });
const failure = { message: 'no', status: 409, reason: 'AlreadyExists' };

/** The calls by which a leader makes the pool when the API server gives these answers. */
async function callsFor(...answers: unknown[]) {
  const { client, calls } = recordingClient(answers);
  await ensureDefaultPool(client, { namespace, spec }, signal);
  return calls;
}

async function verbsFor(...answers: unknown[]): Promise<string[]> {
  return (await callsFor(...answers)).map(({ verb }) => verb);
}

it('is made where there never was a pool, and noted in the Lease, which stays as it is', async () => {
  const calls = await callsFor(lease({ mine: 'yes' }), pools());
  expect(calls.map(({ verb }) => verb)).toEqual(['get', 'list', 'create', 'replace']);
  expect(calls[2]?.arguments[1]).toEqual({ metadata: { name: 'default' }, spec });
  expect(calls[3]?.arguments[1]).toEqual(lease({ mine: 'yes', [HAD_POOL]: 'true' }));
});

it('is not made beside another pool, which says what is for rent, and not when that is gone', async () => {
  const calls = await callsFor(lease(), pools('mine'));
  expect(calls.map(({ verb }) => verb)).toEqual(['get', 'list', 'replace']);
  expect(calls[2]?.arguments[1]).toEqual(MARKED);
  expect(await verbsFor(MARKED, pools())).toEqual(['get']);
});

it('may have been made meanwhile by another leader or a person', async () => {
  expect(await verbsFor(lease(), pools(), new AlreadyExistsError(failure))).toEqual([
    'get',
    'list',
    'create',
    'replace',
  ]);
});

it.each([
  ['the API server does not serve pools yet', [lease(), new NotFoundError({ ...failure, status: 404 })]],
  ['the Lease was renewed meanwhile', [lease(), pools('default'), new ConflictError(failure)]],
])('is tried again while %s', async (_why, answers) => {
  await expect(callsFor(...answers)).rejects.toThrow();
});

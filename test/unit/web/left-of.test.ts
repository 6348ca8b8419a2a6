import { expect, it } from 'vitest';
import { CallError } from '../../../src/web/page/calls/call.ts';
import { leftOf } from '../../../src/web/page/instances/left-of.ts';
import type { InstanceRecord } from '../../../src/wire/records.ts';

const ALL = ['i-1', 'i-2', 'i-3', 'i-4'].map((id) => ({ id }) as InstanceRecord);
const LIMITED = new CallError(429, { message: 'Wait 5 s.', code: 'rate_limit_exceeded' });
const GONE = new CallError(404, { message: 'No instance has this id.', code: 'not_found' });
const OVER = new CallError(401, { message: 'Sign in.', code: 'not_signed_in' });
const LOST = new TypeError('Failed to fetch');

async function left(method: 'DELETE' | 'PATCH', errors: Readonly<Record<string, Error>>) {
  const called: string[] = [];
  const found = await leftOf(ALL, method, ({ id }) => {
    called.push(id);
    return errors[id] === undefined ? Promise.resolve() : Promise.reject(errors[id]);
  });
  return { called, left: found.map(({ instance, error }) => [instance.id, error]) };
}

it.each([
  ['is limited', { 'i-2': LIMITED }, [['i-2', LIMITED]]],
  [
    'gets no answer',
    { 'i-1': LOST, 'i-4': LOST },
    [
      ['i-1', LOST],
      ['i-4', LOST],
    ],
  ],
])('where one call %s, the others are made, and only it is left', async (_what, errors, found) => {
  for (const method of ['DELETE', 'PATCH'] as const) {
    expect(await left(method, errors)).toEqual({ called: ['i-1', 'i-2', 'i-3', 'i-4'], left: found });
  }
});

it('one that is gone is deleted, and was not stopped', async () => {
  expect((await left('DELETE', { 'i-1': GONE })).left).toEqual([]);
  expect((await left('PATCH', { 'i-1': GONE })).left).toEqual([['i-1', GONE]]);
});

it('a session that is over ends all of it', async () => {
  await expect(left('DELETE', { 'i-2': OVER })).rejects.toBe(OVER);
});

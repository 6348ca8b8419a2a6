import { expect, test } from 'vitest';
import { withRetry } from '../../../src/kube/client/retry.ts';
import {
  KubeError,
  PatchTestFailedError,
  QuotaContendedError,
  QuotaUncountedError,
  TooManyRequestsError,
  TransportError,
} from '../../../src/kube/errors.ts';

const failed = { message: '', reason: '', retryAfterMs: 1 };
const clock = { monotonic: () => 0, sleep: () => Promise.resolve() } as unknown as Parameters<
  typeof withRetry
>[1]['clock'];

/** What the last attempt of a call said that met these errors, one after the other. */
async function last(...errors: Error[]): Promise<unknown> {
  const options = { clock, random: () => 0, signal: undefined, safe: false };
  return withRetry(() => Promise.reject(errors.shift()), options).catch((error: unknown) => error);
}

const testFailed = (): Error => new PatchTestFailedError({ message: '', reason: 'Invalid', status: 422 });

test.each<[string, Error[], boolean]>([
  ['the first attempt', [testFailed()], false],
  ['a server that sheds load', [new TooManyRequestsError({ ...failed, status: 429 }), testFailed()], false],
  [
    'a connection that was refused',
    [new TransportError({ message: '', status: 0, reason: 'ECONNREFUSED' }), testFailed()],
    false,
  ],
  ['a quota that others took of', [new QuotaContendedError({ ...failed, status: 409 }), testFailed()], false],
  ['a quota that was not counted', [new QuotaUncountedError({ ...failed, status: 403 }), testFailed()], false],
  ['a proxy that asks to come again', [new KubeError({ ...failed, status: 503 }), testFailed()], true],
  [
    'such a proxy, two attempts ago',
    [new KubeError({ ...failed, status: 503 }), new TooManyRequestsError({ ...failed, status: 429 }), testFailed()],
    true,
  ],
])('a refusal after %s is certain or not', async (_what, errors, isAfterUnknown) => {
  const error = await last(...errors);
  expect(error).toBeInstanceOf(PatchTestFailedError);
  expect(error).toMatchObject({ isAfterUnknown });
});

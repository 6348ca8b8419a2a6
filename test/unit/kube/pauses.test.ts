import { expect, test } from 'vitest';
import { type KubeError, toKubeError, TransportError } from '../../../src/kube/errors.ts';
import { Pauses } from '../../../src/kube/watch/pauses.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { status } from '../../support/local-server.ts';

function transport(reason: string): TransportError {
  return new TransportError({ message: 'no answer', status: 0, reason });
}

/** The pauses after these errors, each of which comes as soon as the pause before it is over. */
async function pausesAfter(errors: readonly KubeError[], request: 'list' | 'watch' = 'list'): Promise<number[]> {
  const clock = fakeClock();
  const pauses = new Pauses({ clock, random: () => 0 });
  const found: number[] = [];
  for (const error of errors) {
    const wait = pauses.after(error, request);
    found.push(wait);
    await clock.advance(wait);
  }
  return found;
}

test('after a long time in which nothing answered, the next try is not further away than after a short one', async () => {
  // Some load balancers take the connection and close it.
  const errors = Array.from({ length: 60 }, (_, index) => transport(index % 2 === 0 ? 'ECONNREFUSED' : 'ECONNRESET'));
  expect(new Set(await pausesAfter(errors))).toEqual(new Set([500]));
});

test('a server that is there and fails is spared more and more', async () => {
  const errors = Array.from({ length: 7 }, () => toKubeError('list', { status: 500, body: '' }));
  expect(await pausesAfter(errors)).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
});

test('an API server that starts is asked soon for half a minute, and then as any other', async () => {
  const busy = toKubeError('list', { status: 503, body: status(503, 'ServiceUnavailable'), retryAfterMs: 5_000 });
  const found = await pausesAfter([transport('ECONNREFUSED'), ...Array.from({ length: 62 }, () => busy)]);
  expect(found.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 500));
  expect(found.slice(60)).toEqual([5_000, 5_000, 5_000]);
});

test('a watch that is cut off is opened again soon, also the fifth time, and a list is not', async () => {
  const cuts = Array.from({ length: 5 }, () => transport('CutOff'));
  expect(await pausesAfter(cuts, 'watch')).toEqual([500, 500, 500, 500, 500]);
  expect(await pausesAfter(cuts, 'list')).toEqual([800, 1_600, 3_200, 6_400, 12_800]);
});

test('the pauses begin anew after ten good seconds, and a long pause is not good time', async () => {
  const clock = fakeClock();
  const pauses = new Pauses({ clock, random: () => 0 });
  const failure = toKubeError('list', { status: 500, body: '' });
  const after = async (goodMs: number): Promise<number> => {
    await clock.advance(goodMs);
    const wait = pauses.after(failure, 'list');
    await clock.advance(wait);
    return wait;
  };
  for (const wait of [800, 1_600, 3_200, 6_400, 12_800]) expect(await after(0)).toBe(wait);
  expect(await after(10_000)).toBe(25_600);
  expect(await after(10_001)).toBe(800);
});

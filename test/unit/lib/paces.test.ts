import { expect, it } from 'vitest';
import { Paces } from '../../../src/lib/paces.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

function world() {
  const clock = fakeClock();
  const paces = new Paces(clock, 1000);
  const isReady = async (owner: string, signal?: AbortSignal): Promise<boolean> => {
    let ready = false;
    void paces.ready(owner, signal).then(() => (ready = true));
    await settle();
    return ready;
  };
  return { clock, paces, isReady };
}

it('an owner waits for what it took beyond a second of its pace, and no other does', async () => {
  const { clock, paces, isReady } = world();
  paces.count('hostile', 1000);
  expect(await isReady('hostile')).toBe(true);
  for (let count = 0; count < 4; count += 1) paces.count('hostile', 500);
  expect([await isReady('hostile'), await isReady('honest')]).toEqual([false, true]);
  await clock.advance(1999);
  expect(await isReady('hostile')).toBe(false);
  await clock.advance(1);
  expect(await isReady('hostile')).toBe(true);
});

it('a pause gives no more than a second ahead', async () => {
  const { clock, paces, isReady } = world();
  paces.count('a', 500);
  await clock.advance(60_000);
  paces.count('a', 1001);
  expect(await isReady('a')).toBe(false);
});

it('an owner that leaves waits for nothing', async () => {
  const { paces, isReady } = world();
  paces.count('a', 60_000);
  expect(await isReady('a', AbortSignal.abort())).toBe(true);
});

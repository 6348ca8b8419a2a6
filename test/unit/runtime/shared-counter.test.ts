import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Counters } from '../../../src/runtime/counter.ts';
import { sharedCounters } from '../../../src/runtime/shared-counter.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { quiet } from '../../support/model-gateway.ts';
import { ScriptedValkey } from '../../support/valkey/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';

let valkey: ScriptedValkey;
let counters: Counters;
let clock: FakeClock;

beforeEach(async () => {
  valkey = new ScriptedValkey();
  clock = fakeClock();
  counters = sharedCounters(await valkey.start(), quiet, clock);
});
afterEach(() => {
  counters.close();
  valkey.stop();
});

it('goes without a Valkey that hangs after the first call, and back to it when it answers', async () => {
  const counter = counters.counter('test');
  const isShared = async () => (await counter.add('key', 1)).total === 1000;
  await waitFor('the counter to be shared', isShared);
  valkey.hangs = true;
  valkey.counted = 0;
  for (let call = 1; call <= 50; call += 1) expect((await counter.add('alone', 1)).total).toBe(call);
  // The second is on its way when the connection of the first is closed.
  expect(valkey.counted).toBeLessThanOrEqual(2);
  valkey.hangs = false;
  await waitFor('the counter to be shared again', isShared);
});

it('goes without a Valkey that is slow after the first call, and looks aside whether it is quick again', async () => {
  const counter = counters.counter('test');
  const total = async () => (await counter.add('key', 1)).total;
  await waitFor('the counter to be shared', async () => (await total()) === 1000);
  const held = Promise.withResolvers<void>();
  valkey.gate = held.promise;
  valkey.counted = 0;
  const first = total();
  await waitFor('the call to arrive', () => valkey.counted === 1);
  await clock.advance(240);
  held.resolve();
  expect(await first).toBe(1000);
  const before = await total();
  for (let call = 1; call <= 50; call += 1) expect(await total()).toBe(before + call);
  expect(valkey.counted).toBe(1);
  // One look that takes as long costs nobody anything.
  const heldAgain = Promise.withResolvers<void>();
  valkey.gate = heldAgain.promise;
  await clock.advance(1_000);
  for (let call = 51; call <= 100; call += 1) expect(await total()).toBe(before + call);
  await waitFor('the look', () => valkey.counted === 2);
  await clock.advance(240);
  heldAgain.resolve();
  const { total: others } = await counter.add('other', 1);
  expect(others).toBe(1);
  await waitFor('the counter to be shared again', async () => {
    await clock.advance(1_000);
    return (await total()) === 1000;
  });
});

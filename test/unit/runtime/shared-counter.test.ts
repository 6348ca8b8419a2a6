import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Counters } from '../../../src/runtime/counter.ts';
import { sharedCounters } from '../../../src/runtime/shared-counter.ts';
import { quiet } from '../../support/model-gateway.ts';
import { ScriptedValkey } from '../../support/valkey/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';

let valkey: ScriptedValkey;
let counters: Counters;

beforeEach(async () => {
  valkey = new ScriptedValkey();
  counters = sharedCounters(await valkey.start(), quiet);
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

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ScriptedValkey } from '../../support/valkey/scripted.ts';
import { type Arena, compare, openArena, read } from './arena.ts';

const valkey = new ScriptedValkey();
let arena: Arena;

beforeAll(async () => {
  arena = await openArena({ BERTH_VALKEY_URL: await valkey.start() });
});
afterAll(async () => {
  await arena[Symbol.asyncDispose]();
  valkey.stop();
});

it('a Valkey that hangs', async () => {
  await compare(
    'a Valkey that hangs',
    () => read(arena.honest),
    async () => {
      valkey.hangs = true;
      valkey.counted = 0;
    },
  );
  expect(valkey.counted).toBeLessThanOrEqual(2);
});

import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Turns } from '../../../src/http/server/turns.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function world() {
  const clock = fakeClock();
  const turns = new Turns(clock);
  const begun: string[] = [];
  const take = (tenant: string, count = 1): void => {
    for (let each = 0; each < count; each += 1) turns.take(tenant, () => begun.push(tenant));
  };
  return { clock, begun, take };
}

describe('requests of tenants', () => {
  it('begin at once while a tenant is alone', () => {
    const { begun, take } = world();
    take('a', 3);
    expect(begun).toEqual(['a', 'a', 'a']);
  });

  it('begin one in a round each while several are active', async () => {
    const { begun, take } = world();
    take('a');
    take('b');
    take('a', 4);
    expect(begun.join('')).toBe('aba');
    take('b', 2);
    expect(begun.join('')).toBe('aba');
    await nextRound();
    expect(begun.join('')).toBe('abaab');
    await nextRound();
    expect(begun.join('')).toBe('abaabab');
    await nextRound();
    expect(begun.join('')).toBe('abaababa');
  });

  it('wait for none of another tenant that came in the same round', async () => {
    const { begun, take } = world();
    take('b');
    take('a', 1000);
    take('c');
    expect(begun.join('')).toBe('bac');
    for (let round = 0; round < 999; round += 1) await nextRound();
    expect(begun).toHaveLength(1002);
  });

  it('begin at once again when the others have been silent for a while', async () => {
    const { begun, clock, take } = world();
    take('b');
    await clock.advance(100);
    take('a', 2);
    expect(begun.join('')).toBe('ba');
    await nextRound();
    await clock.advance(100);
    take('a', 2);
    expect(begun.join('')).toBe('baaaa');
  });
});

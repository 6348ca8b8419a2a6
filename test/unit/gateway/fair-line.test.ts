import { expect, it } from 'vitest';
import { FairLine } from '../../../src/gateway/queue/fair-line.ts';
import type { Priority } from '../../../src/resources/api-key.ts';

interface Asked {
  tenant: string;
  priority?: Priority;
  tokens: number;
}

/** A line of calls. `serve` serves as many of them and says whose they were. */
function lineOf(...calls: Asked[]) {
  const line = new FairLine<Asked>();
  const join = (call: Asked) => line.join(call.tenant, call.priority ?? 'normal', call);
  for (const call of calls) join(call);
  const serve = (count: number) =>
    Array.from({ length: count }, () => {
      const [first] = line.inOrder();
      if (first === undefined) throw new Error('Nobody waits.');
      return { ...first.item, charge: line.serve(first, first.item.tokens) };
    });
  return { line, join, serve };
}

function times(count: number, call: Asked): Asked[] {
  return Array.from({ length: count }, () => call);
}

function countBy<K>(calls: readonly Asked[], key: (call: Asked) => K): Map<K, number> {
  return new Map([...Map.groupBy(calls, key)].map(([of, own]) => [of, own.length]));
}

it('serves one who comes after a flood next but one', () => {
  const { serve } = lineOf(...times(200, { tenant: 'flood', tokens: 100 }), { tenant: 'honest', tokens: 100 });
  expect(serve(2).map(({ tenant }) => tenant)).toEqual(['flood', 'honest']);
});

it('gives tenants as many tokens, and not as many calls', () => {
  const { serve } = lineOf(
    ...times(100, { tenant: 'long', tokens: 9000 }),
    ...times(1000, { tenant: 'short', tokens: 300 }),
  );
  const served = countBy(serve(310), ({ tenant }) => tenant);
  expect(served.get('long')).toBe(10);
});

it('counts what a call really took in place of its estimate', () => {
  const { serve } = lineOf(
    ...times(100, { tenant: 'modest', tokens: 4000 }),
    ...times(100, { tenant: 'greedy', tokens: 4000 }),
  );
  const served: Asked[] = [];
  for (let count = 0; count < 60; count += 1) {
    const [call] = serve(1);
    call?.charge.correct(call.tenant === 'modest' ? 1000 : 5000);
    if (call !== undefined) served.push(call);
  }
  expect(countBy(served, ({ tenant }) => tenant)).toEqual(
    new Map([
      ['modest', 50],
      ['greedy', 10],
    ]),
  );
});

it('remembers one whose calls are not counted yet, however far the line goes meanwhile', () => {
  const { join, serve } = lineOf({ tenant: 'greedy', tokens: 10 }, ...times(100, { tenant: 'modest', tokens: 10 }));
  const [first] = serve(1);
  serve(10);
  first?.charge.correct(300);
  for (let count = 0; count < 50; count += 1) join({ tenant: 'greedy', tokens: 10 });
  const served = countBy(serve(20), ({ tenant }) => tenant);
  expect(served.get('modest')).toBe(20);
});

it('saves no turns for a tenant that did not come', () => {
  const { join, serve } = lineOf(...times(100, { tenant: 'a', tokens: 10 }), { tenant: 'b', tokens: 10 });
  serve(60);
  for (let count = 0; count < 50; count += 1) join({ tenant: 'b', tokens: 10 });
  const served = countBy(serve(20), ({ tenant }) => tenant);
  expect(served).toEqual(
    new Map([
      ['a', 10],
      ['b', 10],
    ]),
  );
});

it('divides the turns of a tenant by priority, and takes none of another tenant', () => {
  const all = (['low', 'normal', 'high'] as const).flatMap((priority) =>
    times(200, { tenant: 'a', priority, tokens: 10 }),
  );
  const { serve } = lineOf(...all, ...times(200, { tenant: 'b', priority: 'low', tokens: 10 }));
  const served = serve(84);
  expect(countBy(served, ({ tenant }) => tenant)).toEqual(
    new Map([
      ['a', 42],
      ['b', 42],
    ]),
  );
  const own = countBy(
    served.filter(({ tenant }) => tenant === 'a'),
    ({ priority }) => priority,
  );
  expect(own.get('high')).toBeGreaterThanOrEqual(31);
  expect(own.get('normal')).toBeGreaterThanOrEqual(7);
  expect(own.get('low')).toBeGreaterThanOrEqual(2);
});

it('forgets who left, and says how many go first', () => {
  const { line, join } = lineOf(...times(5, { tenant: 'a', tokens: 10 }), { tenant: 'b', tokens: 10 });
  expect([line.ahead('a', 'normal'), line.ahead('b', 'normal'), line.ahead('c', 'normal')]).toEqual([6, 3, 2]);
  const leaving = join({ tenant: 'c', tokens: 10 });
  expect(line.size).toBe(7);
  line.leave(leaving);
  line.leave(leaving);
  expect([line.size, line.ahead('c', 'normal')]).toEqual([6, 2]);
});

it('says how many go before a call of another priority', () => {
  const { line } = lineOf(
    ...times(200, { tenant: 'a', priority: 'low', tokens: 10 }),
    ...times(10, { tenant: 'a', priority: 'normal', tokens: 10 }),
    ...times(50, { tenant: 'b', tokens: 10 }),
  );
  // Of its own one that is low and one that is normal, and of the other tenant as many and one.
  expect(line.ahead('a', 'high')).toBe(5);
  expect(line.ahead('a', 'normal')).toBe(10 + 3 + 14);
  expect(line.ahead('a', 'low')).toBe(200 + 10 + 50);
  const order: Priority[] = [];
  line.join('a', 'high', { tenant: 'a', priority: 'high', tokens: 10 });
  for (let count = 0; count < 6; count += 1) {
    const [next] = line.inOrder();
    if (next !== undefined) line.serve(next, 10);
    if (next?.tenant === 'a') order.push(next.priority);
  }
  expect(order).toContain('high');
});

import { expect, it } from 'vitest';
import { lifeOf } from '../../../src/web/page/instances/life.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const NOW = Date.parse(at(100));

it('a life is when it waited, started and ran, until now', () => {
  const events = [
    { at: at(0), reason: 'Accepted' },
    { at: at(4), reason: 'Claimed' },
    { at: at(5), reason: 'Scheduled' },
    { at: at(9), reason: 'Started' },
    { at: at(10), reason: 'Ready' },
    { at: at(20), reason: 'GPUBecameUnhealthy' },
    { at: at(50), reason: 'Preempted' },
    { at: at(52), reason: 'StartEnded' },
    { at: at(70), reason: 'Claimed' },
    { at: at(75), reason: 'Ready' },
  ];
  expect(lifeOf(events, NOW).map(({ kind, ms }) => [kind, ms / 1000])).toEqual([
    ['waits', 4],
    ['starts', 6],
    ['runs', 42],
    ['waits', 18],
    ['starts', 5],
    ['runs', 25],
  ]);
});

it('a life of which nothing is known is empty, and a clock that is behind makes no time of it', () => {
  expect(lifeOf([], NOW)).toEqual([]);
  expect(lifeOf([{ at: at(101), reason: 'Ready' }], NOW)).toEqual([{ kind: 'runs', ms: 0 }]);
});

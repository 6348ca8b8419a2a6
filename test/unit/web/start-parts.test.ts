import { expect, it } from 'vitest';
import { partsOf } from '../../../src/web/page/instances/start-parts.ts';
import { costSoFar } from '../../../src/wire/cost-so-far.ts';
import type { InstanceRecord } from '../../../src/wire/records.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const AT_30 = Date.parse(at(30));
const USAGE = { gpu_seconds: 1, cost: '1.00', currency: 'USD' };

function record(changes: Partial<InstanceRecord>): InstanceRecord {
  return {
    created_at: at(0),
    usage: null,
    price_per_hour: '3600',
    node: 'n',
    stages: {},
    billed_since: null,
    silences: [],
    ...changes,
  } as InstanceRecord;
}

it('a first start waited from when it was accepted on, and a later one not for the life of the instance', () => {
  const stages = {
    accepted: at(0),
    claimed: at(20),
    scheduled: at(21),
    pulled: at(22),
    started: at(22),
    ready: at(23),
  };
  const names = (usage: InstanceRecord['usage']) =>
    partsOf(record({ stages, usage }), 0).map(({ name, ms }) => [name, ms]);
  expect(names(null).slice(0, 2)).toEqual([
    ['Queued', 20_000],
    ['Scheduled', 1000],
  ]);
  expect(names(USAGE)[0]).toEqual(['Scheduled', 1000]);
});

it('an instance without a place costs nothing more, though its price is shown', () => {
  expect(costSoFar(record({ billed_since: at(20), usage: USAGE }), AT_30)).toBe(11);
  expect(costSoFar(record({ billed_since: null, usage: USAGE }), AT_30)).toBe(1);
});

it('the silences of a node cost nothing, the one that goes on among them', () => {
  const silences = [
    { from: at(5), to: at(12) },
    { from: at(15), to: at(18) },
    { from: at(26), to: null },
  ];
  expect(costSoFar(record({ billed_since: at(10), silences }), AT_30)).toBe(20 - 2 - 3 - 4);
});

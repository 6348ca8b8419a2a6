import type { InstanceRecord } from './records.ts';

/** What the instance has cost until now: the starts that ended, and the one that runs. An estimate until it ends. */
export function costSoFar(instance: InstanceRecord, now: number): number {
  const { usage, price_per_hour: price, billed_since: since, silences } = instance;
  const before = Number(usage?.cost ?? 0);
  if (price === null || since === null) return before;
  const began = Date.parse(since);
  const silent = silences
    .map(({ from, to }) => Math.min(now, to === null ? now : Date.parse(to)) - Math.max(began, Date.parse(from)))
    .reduce((sum, ms) => sum + Math.max(0, ms), 0);
  return before + (Number(price) * Math.max(0, now - began - silent)) / 3_600_000;
}

import type { Call, Kill, Log, Way } from './record.ts';

const WAYS: readonly Way[] = ['HTTP', 'SSH', 'model'];

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
const table = (head: readonly string[], rows: readonly string[]): string[] => [
  row(head),
  row(head.map(() => '---')),
  ...rows,
];

/**
 * Milliseconds to the end of the last call that failed by this kill; 0 when none did. Those are the calls that failed
 * before the next kill, and those that hung then: they had taken longer than any good call.
 * @param calls of one way
 * @param since milliseconds of performance.now(): the kill, or when its victim was ready again
 */
export function outage(calls: readonly Call[], kill: Kill, next: Kill | undefined, since = kill.at): number {
  const good = calls.filter(({ failure }) => failure === undefined);
  const longest = Math.max(0, ...good.map(({ start, end }) => end - start));
  const failed = calls.filter(({ failure, start, end }) => {
    if (failure === undefined || end <= kill.at) return false;
    return next === undefined || end <= next.at || next.at - start > longest;
  });
  return Math.max(0, ...failed.map(({ end }) => end - since));
}

/** Calls by way: how many were made, how many failed, and how long the others took. */
export function callTable(calls: readonly Call[]): string[] {
  const rows = WAYS.map((way) => {
    const all = calls.filter((call) => call.way === way);
    const good = all.filter(({ failure }) => failure === undefined).map(({ start, end }) => end - start);
    const times = [0.5, 0.99, 1].map((share) => seconds(percentile(good, share)));
    return row([way, all.length, all.length - good.length, ...times]);
  });
  return table(['calls', 'made', 'without a good answer', 'p50', 'p99', 'longest'], rows);
}

function spread(lengths: readonly number[]): string {
  return lengths.length === 0 ? '' : `${seconds(percentile(lengths, 0.5))} / ${seconds(Math.max(...lengths))}`;
}

/**
 * For each kind of kill: how often, how long until its victim was ready again, and for how long calls of each way
 * failed, from the kill and from ready again; median and longest.
 */
export function killTable(calls: readonly Call[], kills: readonly Kill[]): string[] {
  const ofWay = WAYS.map((way) => calls.filter((call) => call.way === way));
  const outages = kills.map((kill, index) => ({
    title: `${kill.target} ${kill.how.startsWith('killed') ? 'killed' : kill.how}`,
    away: kill.readyAt === undefined ? [] : [kill.readyAt - kill.at],
    lengths: ofWay.map((all) => ({
      fromKill: outage(all, kill, kills[index + 1]),
      fromReady: kill.readyAt === undefined ? [] : [outage(all, kill, kills[index + 1], kill.readyAt)],
    })),
  }));
  const groups = [...Map.groupBy(outages, ({ title }) => title)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const rows = groups.map(([title, group]) => {
    const cells = WAYS.flatMap((_, index) => [
      spread(group.map(({ lengths }) => lengths[index]?.fromKill ?? 0)),
      spread(group.flatMap(({ lengths }) => lengths[index]?.fromReady ?? [])),
    ]);
    return row([title, group.length, spread(group.flatMap(({ away }) => away)), ...cells]);
  });
  const heads = WAYS.flatMap((way) => [`${way}: fault → good again`, `${way}: ready again → good again`]);
  return table(['what, median / longest', 'times', 'fault → ready again', ...heads], rows);
}

/** The reasons of failed calls, the most frequent first. */
export function failureLines(calls: readonly Call[], most = 12): string[] {
  const reasons = Map.groupBy(
    calls,
    ({ way, failure }) => failure && `${way}: ${failure.replaceAll(/[\da-f-]{36}|i-\w{12}/g, '…')}`,
  );
  reasons.delete(undefined);
  return [...reasons]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, most)
    .map(([reason, all]) => `${String(all.length).padStart(6)} × ${reason?.replaceAll(/\s+/g, ' ').slice(0, 200)}`);
}

/**
 * Calls that failed although they began more than `after` milliseconds after the last kill, or after its victim was
 * ready again; with the second of the run in which each began, and that kill.
 */
export function lateFailureLines({ calls, kills, start }: Log, after: number): string[] {
  return calls.flatMap((call) => {
    const kill = kills.findLast(({ at }) => at <= call.end);
    const since = call.start - (kill?.readyAt ?? kill?.at ?? start);
    if (call.failure === undefined || since <= after) return [];
    const cause = kill === undefined ? 'before any kill' : `${seconds(since)} after ${kill.target} ${kill.how}`;
    return [`${seconds(call.start - start).padStart(9)}  ${call.way}, ${cause}: ${inOneLine(call.failure)}`];
  });
}

const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').slice(0, 160);

/** The failed calls that took longer than `than` milliseconds, with the second of the run in which each began. */
export function slowFailureLines({ calls, start }: Log, than: number): string[] {
  return calls.flatMap((call) => {
    const took = call.end - call.start;
    if (call.failure === undefined || took <= than) return [];
    return [`${seconds(call.start - start).padStart(9)}  ${call.way}, ${seconds(took)}: ${inOneLine(call.failure)}`];
  });
}

import type { EventListRecord } from '../../../wire/records.ts';

type Kind = 'waits' | 'starts' | 'runs';

/** What an instance does from an event on. Any other event changes nothing of that. */
const AFTER: Readonly<Record<string, Kind>> = {
  Accepted: 'waits',
  StartEnded: 'waits',
  Claimed: 'starts',
  Scheduled: 'starts',
  Started: 'starts',
  Ready: 'runs',
};

interface Part {
  kind: Kind;
  ms: number;
}

/** The life of an instance, from its first known event until now, or until it was gone. @param now wall time in ms */
export function lifeOf(events: readonly Pick<EventListRecord['data'][number], 'at' | 'reason'>[], now: number): Part[] {
  const parts: Part[] = [];
  let kind: Kind = 'waits';
  for (const [index, { at, reason }] of events.entries()) {
    kind = AFTER[reason] ?? kind;
    const next = events[index + 1];
    const ms = Math.max(0, (next === undefined ? now : Date.parse(next.at)) - Date.parse(at));
    const last = parts.at(-1);
    if (last?.kind === kind) last.ms += ms;
    else parts.push({ kind, ms });
  }
  return parts;
}

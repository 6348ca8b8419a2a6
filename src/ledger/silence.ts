import type { Silence } from '../resources/instances/silence.ts';

/** What of these silences falls between two moments, milliseconds since the epoch. An open one lasts until `to`. */
export function silencesIn(silences: readonly Silence[] | undefined, from: number, to: number): Silence[] {
  return (silences ?? []).flatMap((silence) => {
    const begin = Math.max(from, Date.parse(silence.from));
    const end = silence.to === undefined ? to : Math.min(to, Date.parse(silence.to));
    return begin < end ? [{ from: new Date(begin).toISOString(), to: new Date(end).toISOString() }] : [];
  });
}

/** How long a node was silent between two moments, in milliseconds. Silences do not overlap. */
export function silentMs(silences: readonly Silence[] | undefined, from: number, to: number): number {
  return silencesIn(silences, from, to).reduce(
    (sum, silence) => sum + Date.parse(silence.to ?? '') - Date.parse(silence.from),
    0,
  );
}

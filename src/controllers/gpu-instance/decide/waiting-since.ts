import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import type { Observed } from './observed.ts';

/** A creation has whole seconds. */
const SECOND_MS = 1000;

/**
 * Since when an instance has its place in line, RFC 3339 with milliseconds; undefined while it is switched off. It is
 * found once and kept: what Berth owes keeps its time, and a start that a person asks for begins anew.
 */
export function waitingSince({ instance, now }: Pick<Observed, 'instance' | 'now'>): string | undefined {
  const { metadata, status = {} } = instance;
  if (isSwitchedOff(instance)) return undefined;
  if (status.waitingSince !== undefined) return status.waitingSince;
  const seen = status.claim === undefined ? now : Date.parse(status.claim.grantedAt);
  // Later edits may have asked for this start.
  const isNew = (metadata.generation ?? 1) === 1;
  const created = isNew && metadata.creationTimestamp !== undefined ? Date.parse(metadata.creationTimestamp) : seen;
  return new Date(Math.min(Math.max(seen, created), created + SECOND_MS - 1)).toISOString();
}

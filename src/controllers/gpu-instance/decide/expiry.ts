import { LAST_ACTIVITY, type GpuInstance, type GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import type { LimitName } from '../../../resources/instances/limits.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { lacksReport } from './deadlines.ts';
import { settledEnding } from './endings.ts';
import type { Observed } from './observed.ts';
import { silentSince } from './silences.ts';

/** Milliseconds from the end of a start to the deletion that onExpiry asks for: two reports of the gateways. */
const DELETE_AFTER_MS = 60_000;
/** Milliseconds between two looks while a report is missing. */
const RETRY_MS = 5_000;

const LIMIT_OF: Readonly<Record<string, LimitName>> = { Expired: 'maxDuration', Idle: 'idleTimeout' };

/** The limit whose end deletes the instance, when a start ends for this reason. */
export function deletingLimit(reason: string, spec: GpuInstanceSpec): string | undefined {
  const name = LIMIT_OF[reason];
  return name === undefined || spec.onExpiry !== 'Delete' ? undefined : spec[name];
}

/** Whether the instance was in use at the end that was decided for it, as a report says that came later. */
function wasUsed({ metadata, status }: GpuInstance, limitMs: number): boolean {
  const last = Date.parse(metadata.annotations?.[LAST_ACTIVITY] ?? '');
  return last + limitMs > Date.parse(status?.ending?.at ?? '');
}

/**
 * Whether the time is over still, by the spec and all that is known now. Once it is not, the instance is an ordinary
 * stopped one.
 */
function isStillOver({ instance, sessions }: Observed): boolean {
  const { spec, status } = instance;
  const { reason = '', limit, at = '' } = status?.ending ?? {};
  const name = LIMIT_OF[reason];
  const current = name && spec[name];
  if (limit === undefined || current === undefined || parseDuration(current) > parseDuration(limit)) return false;
  if (spec.onExpiry !== 'Delete' || spec.powerState !== 'Running' || !isSwitchedOff(instance)) return false;
  if (silentSince(status) !== undefined) return false;
  if (name !== 'idleTimeout') return true;
  const wasAway = sessions !== undefined && sessions.since > Date.parse(at);
  return !wasAway && !wasUsed(instance, parseDuration(limit));
}

/** When the instance is deleted for its limit, milliseconds since the epoch; undefined when it is not. */
export function deletionAt(observed: Observed): number | undefined {
  const { stages, ending } = observed.instance.status ?? {};
  if (!isStillOver(observed)) return undefined;
  return Date.parse(stages?.stopped ?? ending?.at ?? '') + DELETE_AFTER_MS;
}

/** What comes next of a deletion that onExpiry asks for. It is decided a second time, on what came after the end. */
export function nextOfDeletion(
  observed: Observed,
): { do: 'wait'; until: number } | { do: 'deleteInstance' } | undefined {
  const at = deletionAt(observed);
  if (at === undefined) return undefined;
  if (at > observed.now) return { do: 'wait', until: at };
  return lacksReport(observed, at) ? { do: 'wait', until: observed.now + RETRY_MS } : { do: 'deleteInstance' };
}

/** The ending as the status goes on with it. What once kept the instance keeps it for good. */
export function keptEnding(observed: Observed): Pick<NonNullable<GpuInstance['status']>, 'ending'> {
  const { instance } = observed;
  const settled = settledEnding(instance);
  const ending = settled.ending ?? instance.status?.ending;
  if (ending?.limit === undefined || isStillOver(observed)) return settled;
  const { limit: _limit, ...rest } = ending;
  return { ending: rest };
}

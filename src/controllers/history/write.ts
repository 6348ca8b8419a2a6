import { mayBeAnswered } from '../../caches/line-order.ts';
import { findObject } from '../../kube/client/find-object.ts';
import { AlreadyExistsError, ConflictError, isNamespaceAbsent, NotFoundError } from '../../kube/errors.ts';
import { sameJson } from '../../lib/json.ts';
import { factsHash, fold } from '../../resources/history-fold.ts';
import { REQUEST_HASH } from '../../resources/ids.ts';
import {
  ENDED_AT,
  FACTS,
  HISTORY_OF,
  historyRef,
  INSTANCE_HISTORIES,
  type InstanceHistory,
} from '../../resources/instance-history.ts';
import { ANSWERED, type GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { RecordTimes } from '../../runtime/record-times.ts';
import type { CommonDeps } from '../common-deps.ts';
import type { News } from './pending.ts';

export interface WriteDeps extends Pick<CommonDeps, 'client' | 'clock'> {
  /** By which the entries of histories sort. */
  recordTimes: Pick<RecordTimes, 'now'>;
}

/** Whether a request with an Idempotency-Key made the instance and may be answered with it. */
export function answersKey(instance: GpuInstance): boolean {
  return instance.metadata.annotations?.[REQUEST_HASH] !== undefined && mayBeAnswered(instance);
}

/** What has a time of its own. What the instance waited for then would be told with the time of now. */
function dated({ metadata, status }: GpuInstance): Pick<GpuInstance, 'metadata' | 'status'> {
  const { conditions: _now, ...rest } = status ?? {};
  return { metadata, status: rest };
}

/** Writes the news of one instance into its history, as that was read. */
async function write(
  { client, clock, recordTimes }: WriteDeps,
  history: InstanceHistory | undefined,
  news: News,
  signal: AbortSignal,
) {
  const { instance, gone, ended } = news;
  const ref = historyRef(instance);
  const [now, recordedAt] = [clock.now(), recordTimes.now()];
  const before =
    ended === undefined ? history?.spec : fold(history?.spec, dated(ended), { gone: false, now, recordedAt });
  const { displayName } = instance.spec;
  const spec = { ...fold(before, instance, { gone, now, recordedAt }), ...(displayName && { displayName }) };
  const annotations = {
    [FACTS]: factsHash(instance, gone),
    ...(spec.endedAt !== undefined && { [ENDED_AT]: spec.endedAt }),
    ...(answersKey(instance) && { [ANSWERED]: 'true' }),
  };
  if (history === undefined) {
    const metadata = { ...ref, labels: { [HISTORY_OF]: instance.metadata.name }, annotations };
    await client.create(INSTANCE_HISTORIES, { metadata, spec }, { signal });
    return;
  }
  const had = history.metadata.annotations ?? {};
  const isMarked = annotations[ANSWERED] === undefined || had[ANSWERED] !== undefined;
  if (sameJson(history.spec, spec) && had[FACTS] === annotations[FACTS] && isMarked) return;
  // The version makes it conditional: the spec rests on what was read.
  const body = { metadata: { resourceVersion: history.metadata.resourceVersion, annotations }, spec };
  await client.patch(INSTANCE_HISTORIES, ref, body, { type: 'merge', signal });
}

/** Writes the news of one instance into its history. */
export async function writeNews(deps: WriteDeps, news: News, signal: AbortSignal): Promise<void> {
  const history = await findObject(deps.client, INSTANCE_HISTORIES, historyRef(news.instance), { signal });
  await write(deps, history, news, signal);
}

/** The controller of histories may write at the same moment, and somebody may delete a history. */
const TRIES = 3;

function hasChanged(error: unknown): boolean {
  if (error instanceof AlreadyExistsError || error instanceof ConflictError) return true;
  return error instanceof NotFoundError && !isNamespaceAbsent(error);
}

/** Has a history that answers the request in place of the instance, which goes, or is gone. */
export async function writeAnswer(
  deps: WriteDeps,
  news: Pick<News, 'instance' | 'gone'>,
  signal: AbortSignal,
): Promise<void> {
  for (let left = TRIES; left > 0; left -= 1) {
    const history = await findObject(deps.client, INSTANCE_HISTORIES, historyRef(news.instance), { signal });
    if (history?.metadata.annotations?.[ANSWERED] !== undefined) return;
    try {
      await write(deps, history, news, signal);
      return;
    } catch (error) {
      if (left === 1 || !hasChanged(error)) throw error;
    }
  }
}

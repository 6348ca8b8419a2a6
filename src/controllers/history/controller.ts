import { findObject } from '../../kube/client/find-object.ts';
import { isNamespaceTerminating, NotFoundError } from '../../kube/errors.ts';
import { sameJson } from '../../lib/json.ts';
import { refOf } from '../../kube/types.ts';
import { factsHash, fold } from '../../resources/history-fold.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { ENDED_AT, FACTS, HISTORY_OF, INSTANCE_HISTORIES } from '../../resources/instance-history.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { PendingNews } from './pending.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import { sweep } from './sweep.ts';

interface RecordDeps extends Pick<CommonDeps, 'client' | 'clock'> {
  pending: PendingNews;
}

/** What has a time of its own. What the instance waited for then would be told with the time of now. */
function dated({ metadata, status }: GpuInstance): Pick<GpuInstance, 'metadata' | 'status'> {
  const { conditions: _now, ...rest } = status ?? {};
  return { metadata, status: rest };
}

/** Writes the news of one instance into its history. */
async function recordNews({ client, clock, pending }: RecordDeps, key: string, signal: AbortSignal): Promise<void> {
  const news = pending.get(key);
  if (news === undefined) return;
  const ref = refOf(key);
  const { instance, gone, ended } = news;
  const history = await findObject(client, INSTANCE_HISTORIES, ref, { signal });
  const now = clock.now();
  const before = ended === undefined ? history?.spec : fold(history?.spec, dated(ended), { gone: false, now });
  const { displayName } = instance.spec;
  const spec = { ...fold(before, instance, { gone, now }), ...(displayName && { displayName }) };
  const annotations = {
    [FACTS]: factsHash(instance, gone),
    ...(spec.endedAt !== undefined && { [ENDED_AT]: spec.endedAt }),
  };
  const isWritten = sameJson(history?.spec, spec) && history?.metadata.annotations?.[FACTS] === annotations[FACTS];
  try {
    if (history === undefined) {
      const metadata = { ...ref, labels: { [HISTORY_OF]: instance.metadata.name }, annotations };
      await client.create(INSTANCE_HISTORIES, { metadata, spec }, { signal });
    } else if (!isWritten) {
      // The version makes it conditional: the spec rests on what was read.
      const body = { metadata: { resourceVersion: history.metadata.resourceVersion, annotations }, spec };
      await client.patch(INSTANCE_HISTORIES, ref, body, { type: 'merge', signal });
    }
  } catch (error) {
    // Nothing can be kept in a namespace that is going.
    if (!isNamespaceTerminating(error) && !(error instanceof NotFoundError)) throw error;
  }
  pending.written(key, news);
}

/** Few, because nobody waits for a history: GET adds what is not written yet. */
const WORKERS = 2;
/** The key of the comparison of all histories. No history has it: their keys have a namespace. */
const SWEEP = 'sweep';
/** Milliseconds after a term began: work that waited for a leader comes first. */
const FIRST_SWEEP_MS = 30_000;
const SWEEP_MS = 10 * 60_000;

/** Adds the key of the comparison once, some time after the start. */
function sweepSource({ clock }: Pick<CommonDeps, 'clock'>): Source {
  return {
    synced: Promise.resolve(),
    start: (add: AddKey) => clock.setTimeout(() => add(SWEEP), FIRST_SWEEP_MS),
  };
}

/** Keeps a history of each instance: it adds to no start, and its writes come after those of the instance. */
export function createHistoryController(deps: CommonDeps): Controller {
  const { clock, log, stores } = deps;
  const pending = new PendingNews(stores.instances, clock);
  return new Controller({
    name: 'history',
    sources: [pending, sweepSource(deps)],
    async reconcile(key, { signal }): Promise<Result> {
      if (key !== SWEEP) {
        await recordNews({ ...deps, pending }, key, signal);
        return undefined;
      }
      await sweep({ ...deps, pending }, signal);
      return { requeueAfterMs: SWEEP_MS };
    },
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    clock,
    log,
    metrics: deps.metrics('history', WORKERS),
  });
}

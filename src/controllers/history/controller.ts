import { isNamespaceTerminating, NotFoundError } from '../../kube/errors.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { PendingNews } from './pending.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import { sweep } from './sweep.ts';
import { type WriteDeps, writeNews } from './write.ts';

interface RecordDeps extends WriteDeps {
  pending: PendingNews;
}

/** Writes the news of one instance into its history. */
async function recordNews({ pending, ...deps }: RecordDeps, key: string, signal: AbortSignal): Promise<void> {
  const news = pending.get(key);
  if (news === undefined) return;
  try {
    await writeNews(deps, news, signal);
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
export function createHistoryController(deps: CommonDeps & WriteDeps): Controller {
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

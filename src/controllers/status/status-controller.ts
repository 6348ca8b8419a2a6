import type { KubeClient } from '../../kube/client/client.ts';
import { NotFoundError } from '../../kube/errors.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { type Condition, keyOf, type KubeObject, type ResourceType } from '../../kube/types.ts';
import { type Json, sameJson } from '../../lib/json.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { type Finding, setCondition } from '../../kube/conditions.ts';
import { Controller } from '../../runtime/controller.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';

/** Writes the fields of a status that differ, if the object is there. */
async function patchStatus<T extends KubeObject & { status?: object }>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { status, signal }: { status: object; signal: AbortSignal },
): Promise<void> {
  const fields = changed((object.status ?? {}) as Json, status as Json);
  if (Object.keys(fields).length === 0) return;
  const { namespace, name } = object.metadata;
  const body = statusPatch(object, fields);
  try {
    await client.patch(type, { namespace, name }, body, { type: 'json', subresource: 'status', signal });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}

/** The fields of `after` that are others than before; undefined where there is none any more. */
function changed(before: Json, after: Json): Json {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names.filter((name) => !sameJson(before[name], after[name])).map((name) => [name, after[name]]),
  );
}

interface ObjectWithStatus extends KubeObject {
  status?: { conditions?: Condition[] };
}

/** A kind of which a controller writes the status and nothing else. */
export interface StatusKind<T extends ObjectWithStatus> {
  /** Name of the controller. */
  name: string;
  type: ResourceType<T>;
  store: ReadStore<T>;
  /** What changes a status beside the object itself. */
  sources?: readonly Source[];
  /** The status that an object should have. `now`: milliseconds since the epoch. */
  statusOf: (object: T, now: number) => NonNullable<T['status']>;
  /** When the status changes by time alone, milliseconds since the epoch. NaN or a time in the past: never. */
  changesAt?: (object: T) => number;
}

/** A kind whose status is found out somewhere else. */
export interface LookedAtKind<T extends ObjectWithStatus> extends Omit<StatusKind<T>, 'statusOf'> {
  statusOf: (
    object: T,
    now: number,
    signal: AbortSignal,
  ) => NonNullable<T['status']> | Promise<NonNullable<T['status']>>;
}

/** What every status has: the generation that it is about, and the conditions, with a new Ready condition. */
export function readyStatus(
  { metadata: { generation }, status }: ObjectWithStatus,
  ready: Omit<Finding, 'type'>,
  now: number,
) {
  const finding = { type: 'Ready', ...ready };
  const conditions = setCondition(status?.conditions, finding, { observedGeneration: generation, now });
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    // metav1.Condition types its status as a string; Finding allows the three words alone.
    conditions: conditions as (Condition & Pick<Finding, 'status'>)[],
  };
}

const WORKERS = 2;

export function createStatusController<T extends ObjectWithStatus>(
  { client, clock, log, metrics }: CommonDeps,
  { name, type, store, sources = [], statusOf, changesAt }: LookedAtKind<T>,
): Controller {
  return new Controller({
    name,
    sources: [storeSource(store, (object) => [keyOf(object)]), ...sources],
    async reconcile(key, { signal }) {
      const object = store.get(key);
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
      const now = clock.now();
      await patchStatus(client, type, object, { status: await statusOf(object, now, signal), signal });
      const changes = changesAt?.(object) ?? NaN;
      return changes > now ? { requeueAfterMs: changes - now } : undefined;
    },
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    clock,
    log,
    metrics: metrics(name, WORKERS),
  });
}

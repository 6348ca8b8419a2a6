import { findCondition } from '../../kube/conditions.ts';
import type { Namespace } from '../../kube/types.ts';
import type { ReadStore, StoreChange } from '../../kube/watch/store.ts';
import { type Clock, wallTimeOf } from '../../lib/clock.ts';
import { sameJson } from '../../lib/json.ts';
import { Lru } from '../../lib/lru.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { firstRan, meterBegan } from '../../resources/instances/meter.ts';
import { type Held, MOST_HELD, type TenantLimit } from '../../resources/tenants/tenant-limit.ts';
import { isPlaceComing } from '../../caches/line-order.ts';
import { isSwitchedOff, type ReadyReason } from '../../resources/instances/instance-state.ts';
import { haveOthersEnded, preemptingRefusal } from './decide/preempting.ts';
import {
  haveEndedInVain,
  isMuch,
  UNBILLED_WINDOW_MS,
  type UnbilledPlace,
  unbilledPlaceOf,
  unbilledPlaceOfGone,
  unbilledRefusal,
} from './decide/unbilled.ts';

/** Tenants that are remembered, and places of each: the latest. */
const MOST_TENANTS = 4_096;
const MOST_PLACES = 256;
const MOST_WITHDRAWN = 16;

interface Deps {
  instances: Pick<ReadStore<GpuInstance>, 'by' | 'values'>;
  tenantLimits: Pick<ReadStore<TenantLimit>, 'values'>;
  clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** A place, and when this replica heard of its end: monotonic milliseconds. */
type Noted = UnbilledPlace & { notedAt: number };

/**
 * The places that tenants held for nothing, and the requests that ended others for nothing. Every replica sees them in the changes of the same cache, and at its start
 * those in the statuses of the instances that are there: so a new leader knows what the one before knew. Much of it is
 * in the status of the TenantLimit as well, for when all replicas start anew.
 */
export class UnbilledPlaces {
  readonly #deps: Deps;
  /** By namespace, then by instance and start, the latest last. */
  readonly #places = new Lru<string, Map<string, Noted>>(MOST_TENANTS);
  /** By namespace: when requests went, or starts ended before they ran, for which others had been told to end. */
  readonly #withdrawn = new Lru<string, readonly number[]>(MOST_TENANTS);

  constructor(deps: Deps) {
    this.#deps = deps;
    for (const { metadata, status } of deps.tenantLimits.values()) this.#recall(metadata.namespace ?? '', status?.held);
    for (const instance of deps.instances.values()) this.#note(instance, unbilledPlaceOf(instance.status));
  }

  /** Takes note of a change of the cache. */
  noteChange({ before, after }: StoreChange<GpuInstance>): void {
    const isSame = after !== undefined && after.metadata.uid === (before ?? after).metadata.uid;
    if (isSame && (before?.status?.claim !== undefined || before === undefined)) {
      this.#note(after, unbilledPlaceOf(after.status));
    }
    if (before === undefined) return;
    if (!isSame) this.#note(before, unbilledPlaceOfGone(before, this.#deps.clock.now()));
    if (isPlaceComing(before) && (!isSame || isTakenBack(before, after)) && this.#haveOthersEnded(before))
      this.#noteWithdrawn(before);
    if (haveEndedInVain(before.status, isSame ? (after.status ?? {}) : undefined)) this.#noteWithdrawn(before);
  }

  /** Takes note of a change of a namespace. Who has its name after another is another tenant, and held nothing. */
  noteNamespace({ key, before, after }: StoreChange<Namespace>): void {
    if (before?.metadata.uid === after?.metadata.uid) return;
    this.#places.set(key, new Map());
    this.#withdrawn.set(key, []);
  }

  /** Why the tenant does not get so many GPUs more beside those that it holds; undefined when it may have them. */
  refusal(
    namespace: string,
    wanted: number,
    holds: readonly Pick<GpuShare, 'gpus'>[],
  ): { message: string; until: number } | undefined {
    const past = this.#past(namespace).map(([, place]) => place);
    if (past.length === 0) return undefined;
    const { instances, clock } = this.#deps;
    const held = holds.reduce((sum, { gpus }) => sum + gpus, 0);
    let billed = 0;
    for (const { status } of instances.by('namespace', namespace)) {
      if (status?.claim !== undefined && meterBegan(status) !== undefined) billed += status.claim.gpuCount;
    }
    return unbilledRefusal({ past, billed, unbilled: Math.max(0, held - billed) }, wanted, clock.now());
  }

  /** What the status of the TenantLimit should have; undefined while it is little. */
  held(namespace: string): Held | undefined {
    const since = this.#deps.clock.now() - UNBILLED_WINDOW_MS;
    const recent = this.#past(namespace)
      .filter(([, { to }]) => to > since)
      .slice(-MOST_HELD);
    const withdrawn = (this.#withdrawn.get(namespace) ?? []).filter((at) => at > since);
    if (withdrawn.length === 0 && !isMuch(recent.map(([, place]) => place))) return undefined;
    return {
      places: recent.map(([start, { from, to, ...place }]) => ({
        start,
        from: timeOf(from),
        to: timeOf(to),
        ...place,
      })),
      withdrawn: withdrawn.map(timeOf),
    };
  }

  /** By start. The clock may have been ahead when a place was given back, and is right by now. */
  #past(namespace: string): [string, UnbilledPlace][] {
    const { clock } = this.#deps;
    return [...(this.#places.get(namespace) ?? [])].map(([start, { notedAt, ...place }]) => {
      return [start, { ...place, to: Math.max(place.from, Math.min(place.to, wallTimeOf(clock, notedAt))) }];
    });
  }

  #recall(namespace: string, held: Held | undefined): void {
    for (const { start, from, to, ...place } of held?.places ?? [])
      this.#keep(namespace, start, { from: Date.parse(from), to: Date.parse(to), ...place });
    if (held !== undefined)
      this.#withdrawn.set(
        namespace,
        held.withdrawn.map((at) => Date.parse(at)),
      );
  }

  /** Why nobody ends for a start of this image now; undefined when others may. */
  preemptingRefusal(namespace: string, image: string): { message: string; until: number } | undefined {
    const { instances, clock } = this.#deps;
    const past = this.#past(namespace).map(([, place]) => place);
    const withdrawn = this.#withdrawn.get(namespace) ?? [];
    if (past.length === 0 && withdrawn.length === 0) return undefined;
    const isRunning = instances
      .by('namespace', namespace)
      .some(
        ({ status }) => status?.claim !== undefined && status.image === image && firstRan(status.stages) !== undefined,
      );
    return preemptingRefusal({ past, withdrawn, isRunning }, image, clock.now());
  }

  /** Whether others had been told to end for the request: their statuses name it. */
  #haveOthersEnded(request: GpuInstance): boolean {
    return haveOthersEnded(this.#deps.instances.values(), request);
  }

  #noteWithdrawn({ metadata }: GpuInstance): void {
    const { namespace = '' } = metadata;
    const { clock } = this.#deps;
    const since = clock.now() - UNBILLED_WINDOW_MS;
    const known = (this.#withdrawn.get(namespace) ?? []).filter((at) => at > since);
    this.#withdrawn.set(namespace, [...known, clock.now()].slice(-MOST_WITHDRAWN));
  }

  #note({ metadata, status }: GpuInstance, place: UnbilledPlace | undefined): void {
    if (place === undefined) return;
    const { namespace = '', name, uid = name } = metadata;
    this.#keep(namespace, `${uid}/${status?.incarnation ?? 0}`, place);
  }

  #keep(namespace: string, start: string, place: UnbilledPlace): void {
    if (!(place.to > this.#deps.clock.now() - UNBILLED_WINDOW_MS)) return;
    const places = this.#places.get(namespace) ?? new Map<string, Noted>();
    places.set(start, { ...place, notedAt: this.#deps.clock.monotonic() });
    const [oldest] = places.keys();
    if (places.size > MOST_PLACES && oldest !== undefined) places.delete(oldest);
    this.#places.set(namespace, places);
  }
}

/**
 * What a tenant can make an instance wait for, by an edit or by what it has beside it. Pending: a disk of its name that is
 * being deleted.
 */
const BY_TENANT: ReadonlySet<string> = new Set<ReadyReason>([
  'Pending',
  'NetworkOpen',
  'NamespaceTerminating',
  'TenantLimit',
  'BudgetExceeded',
  'QuotaExceeded',
  'PriceTooHigh',
  'WaitingForOffer',
  'TemplateNotFound',
  'TemplateTooLarge',
]);

/** Whether an instance waits for what its tenant can bring about. Of one that Berth owes a start Ready says why it does. */
function isHeldUpByTenant({ status }: GpuInstance): boolean {
  return ['Claimed', 'Ready'].some((type) => BY_TENANT.has(findCondition(status?.conditions, type)?.reason ?? ''));
}

/** Whether an instance whose place was coming waits for that no more by the doing of its tenant, such as any edit. */
function isTakenBack(before: GpuInstance, after: GpuInstance): boolean {
  if (after.status?.claim !== undefined) return false;
  const isEdited = after.status?.observedGeneration !== before.status?.observedGeneration;
  if (isPlaceComing(after)) return isEdited && !sameJson(before.status?.reserved, after.status?.reserved);
  return isEdited || isSwitchedOff(after) || isHeldUpByTenant(after);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

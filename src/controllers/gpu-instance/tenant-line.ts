import { gpuRefusal } from '../../inventory/ceilings.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { compareRanks } from '../../caches/line-order.ts';
import { sameJson } from '../../lib/json.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import type { Claim, GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { meterBegan } from '../../resources/instances/meter.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { ControllerStores } from '../stores.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';

interface Deps {
  inventory: Pick<Inventory, 'heldBy' | 'onRelease'>;
  stores: Pick<ControllerStores, 'tenantLimits' | 'namespaces' | 'instances'>;
  ceilingsOf: LimitOf;
}

interface Waiter {
  instance: GpuInstance;
  wanted: GpuShare | undefined;
  /** The claim that a budget had no room for; undefined where it is no budget that refused. */
  claim: Claim | undefined;
}

function inOrder(waiters: ReadonlyMap<string, Waiter>): [string, Waiter][] {
  return [...waiters].toSorted(([, a], [, b]) => compareRanks(a.instance, b.instance));
}

/**
 * The instances that a ceiling or a budget of their tenant refused. A claim that the tenant gives back wakes those of them that then
 * have room, the oldest first, and so does each look at its budgets; a change of its ceilings wakes them all. Other
 * tenants are never looked at.
 */
export class TenantLine {
  readonly #deps: Deps;
  /** By namespace, then by key. */
  readonly #waiters = new Map<string, Map<string, Waiter>>();
  #wake: AddKey | undefined;

  readonly source: Source;

  constructor(deps: Deps) {
    const { inventory, stores } = deps;
    this.#deps = deps;
    this.source = {
      synced: stores.tenantLimits.synced,
      start: (add) => {
        this.#wake = add;
        const stops = [
          inventory.onRelease((namespace) => this.serve(namespace)),
          // A start that is billed makes room for others that are not yet.
          stores.instances.onChange(({ before, after }) => {
            if (before === undefined || meterBegan(before.status) !== undefined) return;
            if (meterBegan(after?.status) !== undefined) this.serve(after?.metadata.namespace ?? '');
          }),
          stores.tenantLimits.onChange(({ before, after }) => {
            const { namespace = '' } = (after ?? before)?.metadata ?? {};
            // The status says what is spent, and changes with each per cent.
            if (!sameJson(before?.spec, after?.spec)) this.wakeAll(namespace);
          }),
          // The ceilings of a namespace are not known before its labels.
          stores.namespaces.onChange(({ key, before }) => {
            if (before === undefined) this.wakeAll(key);
          }),
        ];
        return () => {
          this.#wake = undefined;
          for (const stop of stops) stop();
        };
      },
    };
  }

  /**
   * @param wants `wanted`: the GPUs that there was no room for. `claim`: the claim that a budget has no room for. Neither
   *   where no release of GPUs or money can help.
   */
  add(key: string, instance: GpuInstance, { wanted, claim }: Partial<Pick<Waiter, 'wanted' | 'claim'>>): void {
    const { namespace = '' } = instance.metadata;
    const waiters = this.#waiters.get(namespace) ?? new Map<string, Waiter>();
    this.#waiters.set(namespace, waiters.set(key, { instance, wanted, claim }));
  }

  remove(key: string): void {
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    const waiters = this.#waiters.get(namespace);
    if (waiters?.delete(key) && waiters.size === 0) this.#waiters.delete(namespace);
  }

  /** Wakes the instances of a tenant that its GPU ceilings have room for now, as far as they have room together. */
  serve(namespace: string): void {
    const waiters = this.#waiters.get(namespace);
    if (waiters === undefined || this.#wake === undefined) return;
    const limit = this.#deps.ceilingsOf(namespace);
    const held = [...this.#deps.inventory.heldBy(namespace)];
    for (const [key, { wanted }] of inOrder(waiters)) {
      if (wanted === undefined || gpuRefusal(limit, held, wanted) !== undefined) continue;
      held.push(wanted);
      this.#wake(key);
    }
  }

  /** Wakes the instances of a tenant that its budgets have room for now. `takes`: whether there is room for one more. */
  serveBudget(namespace: string, takes: (claim: Claim) => boolean): void {
    const waiters = this.#waiters.get(namespace);
    if (waiters === undefined || this.#wake === undefined) return;
    for (const [key, { claim }] of inOrder(waiters)) if (claim !== undefined && takes(claim)) this.#wake(key);
  }

  /** Wakes every instance of a tenant that a ceiling or a budget refused. */
  wakeAll(namespace: string): void {
    for (const key of this.#waiters.get(namespace)?.keys() ?? []) this.#wake?.(key);
  }
}

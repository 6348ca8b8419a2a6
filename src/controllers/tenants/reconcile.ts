import { parseQuantity } from '../../kube/quantity.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import {
  keyOf,
  type KubeObject,
  type Namespace,
  RESOURCE_QUOTAS,
  type ResourceQuota,
  type ResourceType,
} from '../../kube/types.ts';
import { API_KEYS } from '../../resources/api-key.ts';
import { GPU_INSTANCES } from '../../resources/instances/gpu-instance.ts';
import { INSTANCE_TEMPLATES } from '../../resources/instance-template.ts';
import { REGISTRY_CREDENTIALS } from '../../resources/registry-credential.ts';
import { SSH_KEYS } from '../../resources/ssh-key.ts';
import type { Ceilings } from '../../resources/tenants/ceilings.ts';
import { hasTenantLabel, isSystemNamespace } from '../../resources/tenants/tenancy.ts';
import { WEBHOOKS } from '../../resources/webhook.ts';
import type { Clock } from '../../lib/clock.ts';
import { KeyBackoff } from '../../runtime/ratelimiter.ts';
import { AlreadyExistsError, isNamespaceTerminating, NotFoundError } from '../../kube/errors.ts';
import { sameJson } from '../../lib/json.ts';
import {
  type KeptDisks,
  TENANT_LIMIT_NAME,
  TENANT_LIMITS,
  type TenantLimitSpec,
} from '../../resources/tenants/tenant-limit.ts';
import type { Result } from '../../runtime/controller.ts';
import type { Fence } from '../../runtime/fence.ts';
import type { CommonDeps } from '../common-deps.ts';
import type { UnbilledPlaces } from '../gpu-instance/unbilled-places.ts';
import { OWN_LABELS } from './own-labels.ts';
import { LOOK_MS, type PullSecrets } from './pull-secret.ts';
import type { LimitOf } from './tenant-ceilings.ts';
import { keptDisks } from '../../inventory/tenant-disks.ts';

type Hard = Readonly<Record<string, string>>;

/** Whether a namespace is a tenant's: labelled, or in use. Those of the cluster and of Berth itself are not. */
function isTenant(namespace: Namespace, facts: { own: string; isUsed: boolean }): boolean {
  if (isSystemNamespace(namespace.metadata.name, facts.own)) return false;
  return facts.isUsed || hasTenantLabel(namespace);
}

/** spec.hard of the ResourceQuota of a tenant. */
export function hardOf({ objects }: Pick<Ceilings, 'objects'>): Hard {
  const counts = [
    [GPU_INSTANCES, objects.instances],
    [SSH_KEYS, objects.sshKeys],
    [INSTANCE_TEMPLATES, objects.templates],
    [API_KEYS, objects.apiKeys],
    [REGISTRY_CREDENTIALS, objects.registries],
    [WEBHOOKS, objects.webhooks],
  ] as const;
  return Object.fromEntries(counts.map(([{ plural, group }, most]) => [`count/${plural}.${group}`, String(most)]));
}

/** Whether two lists mean the same: the API server writes 1000 as 1k. */
function sameHard(left: Hard = {}, right: Hard = {}): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => parseQuantity(left[name] ?? '') === parseQuantity(right[name] ?? ''));
}

/**
 * Whether Kubernetes does not know yet what a quota counts. The quota controller finds a new kind up to half a minute
 * after its CustomResourceDefinition was made, and looks at a quota again minutes later. Meanwhile the API server
 * refuses every object that the quota would count.
 */
export function isUncounted({ status }: ResourceQuota): boolean {
  return Object.keys(status?.hard ?? {}).some((name) => status?.used?.[name] === undefined);
}

/** Which namespaces go without their ResourceQuota for a while, because Kubernetes could not count its objects. */
export class UncountedQuotas {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #backoff = new KeyBackoff({ firstMs: 10_000, maxMs: 600_000 });
  /** When the quota may be made again, on the monotonic clock, milliseconds. */
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  note(namespace: string): void {
    this.#until.set(namespace, this.#clock.monotonic() + this.#backoff.next(namespace));
  }

  forget(namespace: string): void {
    this.#until.delete(namespace);
    this.#backoff.forget(namespace);
  }

  /** Milliseconds until the quota may be made; 0 for now. */
  waitMs(namespace: string): number {
    return Math.max(0, (this.#until.get(namespace) ?? 0) - this.#clock.monotonic());
  }
}

export interface TenantDeps extends Pick<CommonDeps, 'client' | 'stores' | 'clock'> {
  /** Ceilings of a tenant as the policies have them now. */
  ceilingsOf: LimitOf;
  /** What tenants held and ended for nothing. */
  unbilled: Pick<UnbilledPlaces, 'held'>;
  config: {
    /** Berth's own namespace. */
    namespace: string;
  };
}

interface Deps extends TenantDeps {
  fence: Fence;
  uncounted: UncountedQuotas;
  pullSecrets: Pick<PullSecrets, 'isNeeded' | 'keep'>;
}

/** A namespace that is used now and then must not cost four writes each time. */
const KEPT_MS = 60_000;

/** Makes TenantLimit and ResourceQuota of a namespace what the policies ask for. */
export async function reconcileTenant(deps: Deps, namespace: string, signal: AbortSignal): Promise<Result> {
  const { stores, config, ceilingsOf } = deps;
  const space = stores.namespaces.get(namespace);
  if (space === undefined || space.metadata.deletionTimestamp !== undefined) {
    deps.uncounted.forget(namespace);
    return undefined;
  }
  if (!isTenant(space, { own: config.namespace, isUsed: isUsed(deps, namespace) })) {
    return leave(deps, namespace, signal);
  }
  const limit = ceilingsOf(namespace);
  try {
    await keepLimit(deps, namespace, limit, signal);
    await keepStatus(deps, namespace, signal);
    const again = await keepQuota(deps, namespace, limit, signal);
    const look = await keepPullSecret(deps, namespace, signal);
    return again ?? look;
  } catch (error) {
    // Nothing can be made in a namespace that is going. What another writer just made comes with the watch.
    const isGoing = isNamespaceTerminating(error) || error instanceof NotFoundError;
    if (!isGoing && !(error instanceof AlreadyExistsError)) throw error;
    return undefined;
  }
}

function isUsed({ stores }: Deps, namespace: string): boolean {
  const { instances, sshKeys, apiKeys, templates } = stores;
  return [instances, sshKeys, apiKeys, templates].some((store) => store.by('namespace', namespace).length > 0);
}

function refTo(namespace: string): { namespace: string; name: string } {
  return { namespace, name: TENANT_LIMIT_NAME };
}

async function keepLimit(deps: Deps, namespace: string, spec: TenantLimitSpec, signal: AbortSignal): Promise<void> {
  const { client, stores, fence } = deps;
  const ref = refTo(namespace);
  const limit = stores.tenantLimits.get(keyOf(ref));
  if (limit !== undefined && sameJson(limit.spec, spec)) return;
  if (limit === undefined) {
    const made = await client.create(TENANT_LIMITS, { metadata: { ...ref, labels: OWN_LABELS }, spec }, { signal });
    fence.wrote(namespace, stores.tenantLimits, made);
    return;
  }
  // Not a merge patch: a ceiling that is gone must go here too.
  const body = [
    { op: 'test', path: '/metadata/uid', value: limit.metadata.uid },
    { op: 'add', path: '/spec', value: spec },
  ];
  fence.wrote(namespace, stores.tenantLimits, await client.patch(TENANT_LIMITS, ref, body, { type: 'json', signal }));
}

/** The copy has an owner: in a namespace that has just become a tenant's, it follows when the TenantLimit is seen. */
async function keepPullSecret({ stores, pullSecrets }: Deps, namespace: string, signal: AbortSignal): Promise<Result> {
  const limit = stores.tenantLimits.get(keyOf(refTo(namespace)));
  if (!pullSecrets.isNeeded || limit === undefined) return undefined;
  await pullSecrets.keep(limit, signal);
  return { requeueAfterMs: LOOK_MS };
}

function keptOf({ stores }: Deps, namespace: string): KeptDisks | undefined {
  const kept = keptDisks(stores, namespace);
  return kept.length === 0 ? undefined : { count: kept.length, gb: kept.reduce((sum, { gb }) => sum + gb, 0) };
}

/** Writes what must outlive a restart of all replicas, and what the tenant and the api role read of its disks. */
async function keepStatus(deps: Deps, namespace: string, signal: AbortSignal): Promise<void> {
  const { client, stores, fence, unbilled } = deps;
  const ref = refTo(namespace);
  const limit = stores.tenantLimits.get(keyOf(ref));
  const wanted = { held: unbilled.held(namespace), keptDisks: keptOf(deps, namespace) };
  const changed = (['held', 'keptDisks'] as const).filter((name) => !sameJson(limit?.status?.[name], wanted[name]));
  if (limit === undefined || changed.length === 0) return;
  const body = statusPatch(limit, Object.fromEntries(changed.map((name) => [name, wanted[name]])));
  const options = { type: 'json', subresource: 'status', signal } as const;
  fence.wrote(namespace, stores.tenantLimits, await client.patch(TENANT_LIMITS, ref, body, options));
}

async function keepQuota(deps: Deps, namespace: string, limit: TenantLimitSpec, signal: AbortSignal): Promise<Result> {
  const { client, stores, fence, uncounted } = deps;
  const ref = refTo(namespace);
  const hard = hardOf(limit);
  const quota = stores.quotas.get(keyOf(ref));
  if (quota === undefined) {
    const waitMs = uncounted.waitMs(namespace);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const wanted = { metadata: { ...ref, labels: OWN_LABELS }, spec: { hard } };
    fence.wrote(namespace, stores.quotas, await client.create(RESOURCE_QUOTAS, wanted, { signal }));
    return undefined;
  }
  // The scopes of a quota cannot be changed, so one that has any is made anew.
  const isScoped = quota.spec?.scopes !== undefined || quota.spec?.scopeSelector !== undefined;
  if (isScoped || isUncounted(quota)) {
    if (!isScoped) uncounted.note(namespace);
    await remove(deps, RESOURCE_QUOTAS, quota, signal);
    return undefined;
  }
  if (quota.status?.hard !== undefined) uncounted.forget(namespace);
  if (sameHard(quota.spec?.hard, hard)) return undefined;
  const gone = Object.keys(quota.spec?.hard ?? {}).filter((name) => hard[name] === undefined);
  const body = {
    metadata: { uid: quota.metadata.uid, labels: OWN_LABELS },
    spec: { hard: { ...hard, ...Object.fromEntries(gone.map((name) => [name, null])) } },
  };
  fence.wrote(namespace, stores.quotas, await client.patch(RESOURCE_QUOTAS, ref, body, { type: 'merge', signal }));
  return undefined;
}

/** Removes what the controller made in a namespace that is no tenant's any more. */
async function leave(deps: Deps, namespace: string, signal: AbortSignal): Promise<Result> {
  const { stores, clock, uncounted } = deps;
  uncounted.forget(namespace);
  const key = keyOf(refTo(namespace));
  const limit = stores.tenantLimits.get(key);
  const quota = stores.quotas.get(key);
  const ownQuota = quota !== undefined && isOwn(quota) ? quota : undefined;
  const madeAt = Date.parse(limit?.metadata.creationTimestamp ?? ownQuota?.metadata.creationTimestamp ?? '');
  const keptMs = madeAt + KEPT_MS - clock.now();
  if (keptMs > 0) return { requeueAfterMs: keptMs };
  if (limit !== undefined) await remove(deps, TENANT_LIMITS, limit, signal);
  if (ownQuota !== undefined) await remove(deps, RESOURCE_QUOTAS, ownQuota, signal);
  return undefined;
}

function isOwn({ metadata }: ResourceQuota): boolean {
  return Object.entries(OWN_LABELS).every(([name, value]) => metadata.labels?.[name] === value);
}

async function remove<T extends KubeObject>(
  { client }: Deps,
  type: ResourceType<T>,
  { metadata }: T,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = metadata;
  await client.delete(type, { namespace, name }, { signal, ...(uid !== undefined && { uid }) });
}

import { strictestBudget } from '../../budgets/strictest.ts';
import { isObject } from '../../lib/json.ts';
import {
  type Ceilings,
  CLOSED_CEILINGS,
  covers,
  DEFAULT_CEILINGS,
  MOST_ENTRIES,
} from '../../resources/tenants/ceilings.ts';
import { type TenantPolicy, tenantPolicySpecSchema } from '../../resources/tenants/tenant-policy.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Namespace } from '../../kube/types.ts';
import type { TenantLimitSpec } from '../../resources/tenants/tenant-limit.ts';

/** The ceilings of a namespace, and the names of the policies that they come from. */
interface Resolved {
  ceilings: Ceilings;
  policies: string[];
}

/**
 * The ceilings of a namespace with these labels. The policy that asks for the most labels wins. Several that ask for as
 * many hold together, each at its strictest. A policy that cannot be read closes what it covers.
 */
export function resolveCeilings(labels: Readonly<Record<string, string>>, policies: Iterable<TenantPolicy>): Resolved {
  const covering = [...policies].filter((policy) => doesCover(policy, labels));
  const most = Math.max(0, ...covering.map(askedLabels));
  const winners = covering
    .filter((policy) => askedLabels(policy) === most)
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const [first, ...rest] = winners.map(ceilingsOf);
  return {
    ceilings: first === undefined ? DEFAULT_CEILINGS : rest.reduce(strictest, first),
    policies: winners.map(({ metadata }) => metadata.name).slice(0, MOST_ENTRIES),
  };
}

/** What each version of a policy asks for. Objects of a cache are frozen, so a change is another object. */
const read = new WeakMap<TenantPolicy, { ceilings: Ceilings | undefined }>();

/** What a policy asks for, or undefined when its spec cannot be read. */
export function readPolicy(policy: TenantPolicy): Ceilings | undefined {
  const known = read.get(policy);
  if (known !== undefined) return known.ceilings;
  const ceilings = parsePolicy(policy);
  read.set(policy, { ceilings });
  return ceilings;
}

function parsePolicy({ spec }: TenantPolicy): Ceilings | undefined {
  const parsed = tenantPolicySpecSchema.safeParse(spec);
  if (!parsed.success) return undefined;
  const { namespaceLabels: _labels, ...ceilings } = parsed.data;
  return ceilings;
}

function ceilingsOf(policy: TenantPolicy): Ceilings {
  return readPolicy(policy) ?? CLOSED_CEILINGS;
}

/** The labels that a policy asks for. A policy whose labels cannot be read covers every tenant. */
function labelsOf({ spec }: TenantPolicy): [name: string, value: string][] {
  // A policy that an older or newer schema stored may be anything.
  const labels: unknown = isObject(spec) ? spec.namespaceLabels : undefined;
  return isObject(labels) ? Object.entries(labels).map(([name, value]) => [name, String(value)]) : [];
}

function askedLabels(policy: TenantPolicy): number {
  return labelsOf(policy).length;
}

/** Whether a policy asks for no other labels than these. */
export function doesCover(policy: TenantPolicy, labels: Readonly<Record<string, string>>): boolean {
  return labelsOf(policy).every(([name, value]) => labels[name] === value);
}

/** The ceilings under which both hold. */
function strictest(a: Ceilings, b: Ceilings): Ceilings {
  return {
    gpus: strictestGpus([...a.gpus, ...b.gpus]),
    ...least({ diskGb: a.diskGb }, { diskGb: b.diskGb }),
    budget: strictestBudget(a.budget, b.budget),
    objects: least(a.objects, b.objects),
    images: strictestImages(a.images, b.images),
    runtimeClassNames: a.runtimeClassNames.filter((name) => b.runtimeClassNames.includes(name)),
    userNamespaces: a.userNamespaces === 'Required' ? 'Required' : b.userNamespaces,
    http: least(a.http, b.http),
    models: least(a.models, b.models),
    ssh: least(a.ssh, b.ssh),
  };
}

/** What both lists allow, as far as a list may be long. */
function strictestImages(a: readonly string[], b: readonly string[]): string[] {
  const both = a.flatMap((one) =>
    b.flatMap((other) => (covers(one, other) ? [other] : covers(other, one) ? [one] : [])),
  );
  return [...new Set(both)].slice(0, MOST_ENTRIES);
}

/** The smallest number for each place; one for all places when the list would be too long. */
function strictestGpus(ceilings: Ceilings['gpus']): Ceilings['gpus'] {
  const byPlace = new Map<string, Ceilings['gpus'][number]>();
  for (const ceiling of ceilings) {
    const place = JSON.stringify([ceiling.pool, ceiling.product]);
    const known = byPlace.get(place);
    if (known === undefined || ceiling.max < known.max) byPlace.set(place, ceiling);
  }
  const all = [...byPlace.values()];
  if (all.length <= MOST_ENTRIES) return all;
  return [{ pool: '*', product: '*', max: Math.min(...all.map(({ max }) => max)) }];
}

/** Field by field the smaller number; an absent one is no ceiling. */
function least<T extends Record<string, number | undefined>>(a: T, b: T): T {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(
    names
      .map((name) => [name, Math.min(a[name] ?? Infinity, b[name] ?? Infinity)] as const)
      .filter(([, n]) => n < Infinity),
  ) as T;
}

/** The ceilings of a tenant, and the TenantPolicies that they come from. */
export type LimitOf = (namespace: string) => TenantLimitSpec;

/** Of a namespace that the cache does not show yet: its labels, and so its policies, are unknown. */
const UNKNOWN: TenantLimitSpec = { ...CLOSED_CEILINGS, policies: [] };

function pairOf(name: string, value: string): string {
  return `${name}=${value}`;
}

/**
 * Reads the ceilings of a tenant from the policies themselves. The leader asks this, not the TenantLimit: the first
 * instance of a namespace comes before its TenantLimit. What was found is kept until a policy or the namespace changes.
 */
export function limitReader(
  policies: Pick<ReadStore<TenantPolicy>, 'values' | 'resourceVersion'>,
  namespaces: Pick<ReadStore<Namespace>, 'get'>,
): LimitOf {
  let version: string | undefined;
  let byPair = new Map<string, TenantPolicy[]>();
  let known = new WeakMap<Namespace, TenantLimitSpec>();

  function refresh(): void {
    if (version === policies.resourceVersion) return;
    version = policies.resourceVersion;
    // By one of its labels a policy is found among many that do not cover the namespace.
    byPair = Map.groupBy(policies.values(), (policy) => {
      const [first] = labelsOf(policy);
      return first === undefined ? '' : pairOf(...first);
    });
    known = new WeakMap();
  }

  function resolve({ metadata: { labels = {} } }: Namespace): TenantLimitSpec {
    const pairs = ['', ...Object.entries(labels).map(([name, value]) => pairOf(name, value))];
    const { ceilings, policies: names } = resolveCeilings(
      labels,
      pairs.flatMap((pair) => byPair.get(pair) ?? []),
    );
    return { ...ceilings, policies: names };
  }

  return (name) => {
    refresh();
    const namespace = namespaces.get(name);
    if (namespace === undefined) return UNKNOWN;
    const limit = known.get(namespace) ?? resolve(namespace);
    known.set(namespace, limit);
    return limit;
  };
}

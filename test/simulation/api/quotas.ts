import { parseQuantity } from '../../../src/kube/quantity.ts';
import type { Pod, ResourceQuota } from '../../../src/kube/types.ts';
import { requestsOf } from '../nodes/amounts.ts';

/** By the names that quotas have for it: cores, bytes or pieces. */
export type Taken = Readonly<Record<string, number>>;

/** What a pod takes of quotas at a moment: nothing once it has ended, or should have. */
export function takenByPod(pod: Pod, now: number): Taken {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  const phase = pod.status?.phase;
  const dueAt = Date.parse(deletionTimestamp ?? '') + deletionGracePeriodSeconds * 1000;
  if (phase === 'Failed' || phase === 'Succeeded' || now > dueAt) return {};
  const named = Object.entries(requestsOf(pod)).map(([name, amount]) => [
    name === 'pods' ? name : `requests.${name}`,
    amount,
  ]);
  return Object.fromEntries(named) as Taken;
}

/** What a quota says is used, with more of it. */
export function withMore({ status }: ResourceQuota, more: Taken): Record<string, string> {
  const { hard = {}, used = {} } = status ?? {};
  const named = Object.keys(hard).map((name) => [name, (parseQuantity(used[name] ?? '') ?? 0) + (more[name] ?? 0)]);
  return Object.fromEntries(named.map(([name, amount]) => [name, String(amount)])) as Record<string, string>;
}

/** What of a quota has no room for this beside what is used, with what Kubernetes says of it. */
export function exceeded(quota: ResourceQuota, wanted: Taken): string | undefined {
  const { hard = {}, used = {} } = quota.status ?? {};
  const names = Object.keys(wanted).filter((name) => {
    const limit = parseQuantity(hard[name] ?? '');
    return limit !== undefined && (parseQuantity(used[name] ?? '') ?? 0) + (wanted[name] ?? 0) > limit;
  });
  if (names.length === 0) return undefined;
  const listed = (of: Readonly<Record<string, string | number>>): string =>
    names.map((name) => `${name}=${of[name] ?? 0}`).join(',');
  return `exceeded quota: ${quota.metadata.name}, requested: ${listed(wanted)}, used: ${listed(used)}, limited: ${listed(hard)}`;
}

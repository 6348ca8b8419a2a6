import type { Claim } from '../../resources/instances/gpu-instance.ts';
import type { NodeFacts } from './node-view.ts';

/** Whether a node has GPUs like those of a claim: of their resource, and divided as they are. Names may change. */
function hasLike({ resources }: NodeFacts, { resourceName, isolation, migProfile, gpuShare }: Claim): boolean {
  const now = resources.find((resource) => resource.resourceName === resourceName);
  if (now === undefined || now.isolation !== isolation || now.migProfile !== migProfile) return false;
  // Claims of older versions do not say what part of a GPU they have.
  return gpuShare === undefined ? isolation !== 'whole' || now.share === '1' : now.share === gpuShare;
}

/**
 * Whether GPUs of a node were switched under its claims, between whole ones, MIG slices and time-sliced ones, or became
 * fewer than are claimed. Programs still have the GPUs of before, and which of the present ones those are, nobody says.
 */
export function areSwitched(facts: NodeFacts, claims: readonly Claim[]): boolean {
  // A device plugin that starts again, or holds all for unhealthy, gives none that could be rented.
  if (facts.resources.length === 0) return false;
  const claimed = new Map<string, number>();
  for (const { resourceName, gpuCount } of claims)
    claimed.set(resourceName, (claimed.get(resourceName) ?? 0) + gpuCount);
  // An unhealthy GPU is still there.
  const isShort = [...claimed].some(
    ([name, count]) => count > Math.max(facts.allocatable[name] ?? 0, facts.capacity[name] ?? 0),
  );
  return isShort || claims.some((claim) => !hasLike(facts, claim));
}

import { ConflictError, KubeError, TimeoutError, TransportError } from '../../../kube/errors.ts';
import type { Place } from '../../../inventory/grant.ts';
import { requestsOf } from '../../../inventory/nodes/node-view.ts';
import type { Preemption } from '../../../inventory/preempt.ts';
import { keyOf } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Run } from './run.ts';
import { nodesOfDisk } from './disk-nodes.ts';
import type { Ending } from '../decide/endings.ts';
import type { Observed } from '../decide/observed.ts';
import { requestOf, withoutPlace } from '../decide/place.ts';
import { quotaRefusal } from '../decide/quota.ts';
import type { Waiting } from '../decide/status/ready.ts';
import type { Settings } from '../decide/settings.ts';
import { statusOf } from '../decide/status/status.ts';
import { claimedStatus, claimOf, endedStatus } from '../decide/transitions.ts';
import { writeStatus } from './writes.ts';

type ClaimOutcome =
  | { instance: GpuInstance }
  /** Nothing yet; the instance stays in line. */
  | { waiting: Waiting }
  /** Nothing, and waiting would not help. */
  | { refused: Ending };

/** Asks interruptible instances for their GPUs; they go by themselves once that is in their status. */
async function askBack(run: Run, { place, victims }: Preemption): Promise<Waiting> {
  const { deps } = run;
  for (const { key } of victims) {
    const victim = deps.stores.instances.get(key);
    if (victim === undefined || victim.status?.ending !== undefined) continue;
    const message = `On-demand instance ${run.key} needs the GPUs. This one comes back by itself when others are free.`;
    await writeStatus(run, victim, endedStatus(victim, { reason: 'Preempted', message }, deps.clock.now()));
  }
  return { reason: 'WaitingForCapacity', message: `A place on node ${place.node} is becoming free.` };
}

function quotaWords({ deps }: Run, instance: GpuInstance, place: Place, settings: Settings): string | undefined {
  const quotas = deps.stores.quotas.by('namespace', instance.metadata.namespace ?? '');
  const facts = deps.inventory.viewOf(place.node)?.facts;
  const resource = facts?.resources.find(({ resourceName }) => resourceName === place.offerClass.resourceName);
  if (quotas.length === 0 || facts === undefined || resource === undefined) return undefined;
  const share = { resource, count: place.offerClass.gpuCount };
  return quotaRefusal(quotas, requestsOf(facts, share, place.diskPersistent ? 0 : settings.diskGb));
}

/** Whether a failed write may have been made all the same. */
function isUncertain(error: unknown): boolean {
  if (error instanceof TimeoutError || error instanceof TransportError) return true;
  return !(error instanceof KubeError) || (error.status >= 500 && !(error instanceof ConflictError));
}

/**
 * Grants a place. The decision and its note in the inventory happen without a pause in between, so that two grants never
 * see the same place as free; the write that follows is conditional on what was seen of the instance.
 */
export async function claimPlace(run: Run, observed: Observed, settings: Settings): Promise<ClaimOutcome> {
  const { deps, key } = run;
  const { instance, now } = observed;
  const request = requestOf(observed, settings, await nodesOfDisk(run, instance));
  const earlier = deps.line.before(key, instance);
  deps.line.add(key, instance, request);
  if (earlier !== undefined) {
    return { waiting: { reason: 'WaitingForCapacity', message: 'Instances that wait longer come first.' } };
  }
  const granted = deps.inventory.grant(request);
  const isFull = 'refusal' in granted && granted.refusal === 'NoCapacity';
  const preemption = isFull && request.type === 'OnDemand' ? deps.inventory.preempt(request) : undefined;
  const place = 'place' in granted ? granted.place : preemption?.place;
  // Asked before anybody is sent away for a place that the quota would not let this instance have.
  const overQuota = place && quotaWords(run, instance, place, settings);
  if (overQuota !== undefined) {
    // Not in line: whoever waits for quota must not hold up those who wait for GPUs.
    deps.line.remove(key);
    return { waiting: { reason: 'QuotaExceeded', message: overQuota } };
  }
  if (preemption !== undefined) return { waiting: await askBack(run, preemption) };
  if ('refusal' in granted) return withoutPlace(instance, granted.refusal, granted.message);
  const claim = claimOf(instance, granted, now);
  const persistent = granted.place.diskPersistent;
  deps.inventory.assume(instance, claim, { gb: settings.diskGb, persistent });
  // Served: from here on it holds nobody up, although the write is still to come.
  deps.line.remove(key);
  const next = { ...instance, status: claimedStatus(instance, claim, { persistent, settings }) };
  const status = statusOf({ ...observed, instance: next, pod: undefined }, deps.config.ssh);
  try {
    const written = await writeStatus(run, instance, status);
    deps.inventory.written(written);
    return { instance: written };
  } catch (error) {
    // Kept when it may have been written: the next run reads the instance anew and finds out.
    if (!isUncertain(error)) deps.inventory.forget(keyOf(instance));
    throw error;
  }
}

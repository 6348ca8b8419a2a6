import type { Lease } from '../../kube/types.ts';

// A model server whose workload scales to zero has a Lease in Berth's own namespace. The replicas of the gateway renew
// it while they have calls for the server, waiting or under way. The controller reads from it when the last call was.

/** The label of these Leases. */
export const MODEL_LEASE_LABEL = 'berth.dev/model-lease';
/** `namespace/name` of the Service. */
export const LEASE_SERVICE = 'berth.dev/service';
/** The renewal after which the controller let the workload go to zero. A later renewal brings it back. */
export const LEASE_ASLEEP = 'berth.dev/asleep-after-renewal';
/** Why the controller cannot scale the workload, in words for callers. */
export const LEASE_PROBLEM = 'berth.dev/scale-problem';
/** What the last probe of the server found, as JSON. */
export const LEASE_SERVED = 'berth.dev/last-probe';
/** Seconds from the first call to the first ready replica, as earlier starts took. */
export const LEASE_START_SECONDS = 'berth.dev/start-seconds';

const NEVER = 'never';

/** Name of the Lease of the Service with this uid. A Service that is made again begins anew. */
export function modelLeaseName(uid: string): string {
  return `berth-model-${uid}`;
}

/** Tells one renewal from another. Says nothing about time: the clocks of replicas differ. */
export function renewalOf({ spec }: Lease): string {
  return spec?.renewTime ?? NEVER;
}

/** Whether no replica of the gateway has had a call since the controller decided on zero. */
export function isAsleep(lease: Lease): boolean {
  return lease.metadata.annotations?.[LEASE_ASLEEP] === renewalOf(lease);
}

/** The annotations of a Lease. */
export function notesOf({ metadata }: Lease): Readonly<Record<string, string>> {
  return metadata.annotations ?? {};
}

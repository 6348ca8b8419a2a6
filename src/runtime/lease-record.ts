import type { Lease } from '../kube/types.ts';

/** Name of the Lease in Berth's namespace whose holder leads the controllers. */
export const CONTROLLER_LEASE = 'berth-controller';
/** Name of the Lease there whose holder delivers to webhooks. */
export const NOTIFIER_LEASE = 'berth-notifier';

export interface LeaseRecord {
  /** Empty when the holder gave the lease back. */
  holder: string;
  durationSeconds: number;
  acquireTime: string | undefined;
  renewTime: string | undefined;
  transitions: number;
}

/** A metav1.MicroTime: always six digits after the point. */
export function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`;
}

export function readRecord({ spec }: Lease): LeaseRecord {
  return {
    holder: spec?.holderIdentity ?? '',
    durationSeconds: spec?.leaseDurationSeconds ?? 0,
    acquireTime: spec?.acquireTime,
    renewTime: spec?.renewTime,
    transitions: spec?.leaseTransitions ?? 0,
  };
}

/**
 * The latest time that a holder of this record may have written anywhere, by its own clock, milliseconds since the epoch.
 * Its term began behind all that earlier holders wrote.
 */
export function lastTimeOf({ holder, durationSeconds, acquireTime = '', renewTime = '' }: LeaseRecord): number {
  const renewed = Date.parse(renewTime) + (holder === '' ? 0 : durationSeconds * 1000);
  return Math.max(Date.parse(acquireTime) || 0, renewed || 0);
}

/** The Lease with this record; `base` carries name and, for a conditional update, resourceVersion. */
export function withRecord(base: Lease, record: LeaseRecord): Lease {
  return {
    ...base,
    spec: {
      ...base.spec,
      holderIdentity: record.holder,
      leaseDurationSeconds: record.durationSeconds,
      leaseTransitions: record.transitions,
      ...(record.acquireTime !== undefined && { acquireTime: record.acquireTime }),
      ...(record.renewTime !== undefined && { renewTime: record.renewTime }),
    },
  };
}

export function sameRecord(left: LeaseRecord, right: LeaseRecord): boolean {
  return (
    left.holder === right.holder &&
    left.durationSeconds === right.durationSeconds &&
    left.acquireTime === right.acquireTime &&
    left.renewTime === right.renewTime &&
    left.transitions === right.transitions
  );
}

import { isObject } from '../lib/json.ts';
import type { KubeObject } from '../kube/types.ts';

/** The roles whose replicas know who uses an instance, each with a Lease in Berth's namespace. */
export const ACTIVITY_ROLES = ['api', 'ssh'] as const;
export type ActivityRole = (typeof ACTIVITY_ROLES)[number];

export function activityLeaseOf(role: ActivityRole): string {
  return `berth-activity-${role}`;
}

/** How the names of annotations begin that have what one replica says. */
const REPLICA = 'activity.berth.dev/';

/** Annotation: when the controller last gave up a replica that had gone without a word, RFC 3339. */
export const LOST_AT = 'berth.dev/lost-at';

/** Annotation: when a replica of the role last reported, RFC 3339. Without it none ever did. */
export const REPORTED_AT = 'berth.dev/reported-at';

/** What a replica says of the instances that it serves. */
export interface ActivityReport {
  /** Since when it reports, milliseconds since the epoch. */
  since: number;
  /** Every use until then is in the annotations of the instances, milliseconds since the epoch. */
  until: number;
  /** Version of its cache of instances then. */
  version: string;
}

export function replicaKey(id: string): string {
  return `${REPLICA}${id}`;
}

export function reportText({ since, until, version }: ActivityReport): string {
  return JSON.stringify({ since: new Date(since).toISOString(), until: new Date(until).toISOString(), version });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The report of a replica. What cannot be read says nothing of any time. */
export function parseReport(text: string): ActivityReport {
  const read = parsed(text);
  const { since, until, version } = isObject(read) ? read : {};
  const [from, to] = [Date.parse(String(since)), Date.parse(String(until))];
  const isReport = Number.isFinite(from) && Number.isFinite(to) && typeof version === 'string';
  return isReport ? { since: from, until: to, version } : { since: 0, until: 0, version: '' };
}

/** The annotations of a Lease that are replicas' reports, by their names. */
export function replicasOf({ metadata }: KubeObject): Map<string, string> {
  return new Map(Object.entries(metadata.annotations ?? {}).filter(([name]) => name.startsWith(REPLICA)));
}

/** A Kubernetes time as RFC 3339 in UTC; the empty epoch for an object that never was on a server. */
export function timeText(time: string | Date | undefined): string {
  return typeof time === 'string' ? time : new Date(time ?? 0).toISOString();
}

import type { KubeClient } from '../../../kube/client/client.ts';
import { type Event, EVENTS, type Pod } from '../../../kube/types.ts';

const TIMEOUT_MS = 5_000;
/** A tenant may write Events about its pods. */
const MOST = 500;

function timeOf({ lastTimestamp, eventTime, firstTimestamp }: Event): number {
  return Date.parse(lastTimestamp ?? eventTime ?? firstTimestamp ?? '') || 0;
}

/** The newest Warning about a pod, such as FailedMount, in the words of its node; undefined for none. Never rejects. */
export async function readTrouble(client: Pick<KubeClient, 'list'>, { metadata }: Pod): Promise<string | undefined> {
  const { namespace, uid } = metadata;
  const fieldSelector = `involvedObject.uid=${uid},type=Warning`;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { items } = await client.list(EVENTS, { namespace, fieldSelector, limit: MOST, signal });
    const newest = items.toSorted((a, b) => timeOf(b) - timeOf(a))[0];
    return newest && `${newest.reason ?? 'Warning'}: ${newest.message ?? ''}`.trim();
  } catch {
    // The start goes on without the words, and a later look may have them.
    return undefined;
  }
}

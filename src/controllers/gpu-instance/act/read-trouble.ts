import type { KubeClient } from '../../../kube/client/client.ts';
import { type Event, EVENTS, type Pod } from '../../../kube/types.ts';
import { diskNameOf } from '../../../resources/pod/disk.ts';
import { INSTANCE_LABEL } from '../../../resources/pod/owner.ts';
import { scheduledCondition } from '../decide/pod/pod-facts.ts';

const TIMEOUT_MS = 5_000;
/** A tenant may write Events about its pods. */
const MOST = 500;

function timeOf({ lastTimestamp, eventTime, firstTimestamp }: Event): number {
  return Date.parse(lastTimestamp ?? eventTime ?? firstTimestamp ?? '') || 0;
}

/** What Kubernetes says of a claim that nobody provisions, as an Event that is no Warning (pkg/controller/volume/persistentvolume). */
const NOT_PROVISIONED = new Set(['ExternalProvisioning', 'FailedBinding']);

function said({ reason = 'Warning', message = '' }: Event): string {
  return `${reason}: ${message}`.trim();
}

async function eventsOf(client: Pick<KubeClient, 'list'>, { metadata }: Pod, fieldSelector: string): Promise<Event[]> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { items } = await client.list(EVENTS, { namespace: metadata.namespace, fieldSelector, limit: MOST, signal });
  return items.toSorted((a, b) => timeOf(b) - timeOf(a));
}

async function troubleOfClaim(client: Pick<KubeClient, 'list'>, pod: Pod): Promise<string | undefined> {
  const name = diskNameOf({ metadata: { name: pod.metadata.labels?.[INSTANCE_LABEL] ?? '' } });
  const selector = `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${name}`;
  const events = await eventsOf(client, pod, selector);
  const newest =
    events.find(({ type }) => type === 'Warning') ?? events.find(({ reason = '' }) => NOT_PROVISIONED.has(reason));
  return newest && `PersistentVolumeClaim ${name}: ${said(newest)}`;
}

/**
 * The newest Warning about a pod as a whole, such as FailedMount, in the words of its node: those about one of its
 * containers tell what their registry said. Of a pod without a node, what is said about its claim, such as
 * ProvisioningFailed. Undefined for none. Never rejects.
 */
export async function readTrouble(client: Pick<KubeClient, 'list'>, pod: Pod): Promise<string | undefined> {
  try {
    if (scheduledCondition(pod)?.status !== 'True') return await troubleOfClaim(client, pod);
    const events = await eventsOf(client, pod, `involvedObject.uid=${pod.metadata.uid},type=Warning`);
    const newest = events.find(({ involvedObject }) => involvedObject.fieldPath === undefined);
    return newest && said(newest);
  } catch {
    // The start goes on without the words, and a later look may have them.
    return undefined;
  }
}

import type { KubeClient } from '../../../kube/client/client.ts';
import { everyObject } from '../../../kube/client/every.ts';
import { HISTORY_OF, INSTANCE_HISTORIES, type InstanceHistory } from '../../../resources/instance-history.ts';

/** A label's value, which the names of instances are. */
const ID = /^[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?$/;
/** Histories of one page. An id has one as a rule, and a thousand where a tenant makes the same instance again and again. */
const PAGE = 10;

/** Whose history it is. */
interface Wanted {
  namespace: string;
  /** The id of the instance. */
  id: string;
  /** Of the instance that has the id now; absent: of the newest that had it. */
  uid?: string | undefined;
}

/** The histories of all instances that had the id. */
export async function* historiesOf(
  client: KubeClient,
  { namespace, id }: Omit<Wanted, 'uid'>,
): AsyncGenerator<InstanceHistory> {
  if (!ID.test(id)) return;
  yield* everyObject(client, INSTANCE_HISTORIES, { namespace, labelSelector: `${HISTORY_OF}=${id}`, page: PAGE });
}

/** What is stored of the history of one instance. */
export async function findHistory(client: KubeClient, wanted: Wanted): Promise<InstanceHistory | undefined> {
  const { uid } = wanted;
  let newest: InstanceHistory | undefined;
  for await (const history of historiesOf(client, wanted)) {
    if (history.spec.instanceUid === uid) return history;
    if (newest === undefined || createdAt(newest) <= createdAt(history)) newest = history;
  }
  return uid === undefined ? newest : undefined;
}

function createdAt({ metadata }: InstanceHistory): string {
  return String(metadata.creationTimestamp);
}

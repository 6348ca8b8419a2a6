import type { InstanceRecord } from '../../../wire/records.ts';

/** What a start costs, and from when: the meter runs from the first moment at which the container ran. */
export const COSTS_FROM = 'costs from the moment its container first runs';

/** Whether the files of an instance go when it stops. A simulated node has none. */
export function losesFilesAtStop({ disk_persistent: isKept, simulated }: InstanceRecord): boolean {
  return isKept === false && !simulated;
}

/** What becomes of the disk of an instance that stops; nothing while it has none. */
export function diskAtStop(instance: InstanceRecord): string {
  if (losesFilesAtStop(instance)) return 'Its disk is on the node: the files in /workspace are deleted.';
  return instance.disk_persistent === true && !instance.simulated ? 'Its disk stays.' : '';
}

/** The same of several. */
export function disksAtStop(instances: readonly InstanceRecord[]): string {
  const lost = instances.filter((one) => losesFilesAtStop(one)).length;
  return lost === 0 ? '' : `The files in /workspace are deleted on ${lost} of them: their disk is on the node.`;
}

import { READY_REASONS } from '../../../src/resources/instances/instance-state.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { readyReason } from './world.ts';

const WAITS = new Set(['WaitingForCapacity', 'WaitingForOffer', 'Preempted', 'TemplateNotFound', 'PodRejected']);
const PAUSES = new Set(['BackingOff', 'StartLimit']);

/** Whether the controllers have seen an instance as it is and nothing more will happen by itself soon. */
export function isSettled(instance: GpuInstance): boolean {
  const reason = readyReason(instance);
  if (instance.metadata.deletionTimestamp !== undefined || reason === undefined) return false;
  if (instance.status?.observedGeneration !== instance.metadata.generation) return false;
  const { state } = READY_REASONS[reason as keyof typeof READY_REASONS];
  // A pause may be minutes long; it is a state at rest for a test.
  return WAITS.has(reason) || PAUSES.has(reason) || ['running', 'stopped', 'failed'].includes(state);
}

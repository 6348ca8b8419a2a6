import type { Pod } from '../../kube/types.ts';

/** Keeps a pod with GPUs until its program has ended, however it is deleted. Only the controller takes it off. */
export const POD_FINALIZER = 'berth.dev/pod';

export function hasPodFinalizer({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(POD_FINALIZER) === true;
}

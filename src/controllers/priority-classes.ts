import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../kube/errors.ts';
import { PRIORITY_CLASSES, type PriorityClass } from '../kube/types.ts';
import { PRIORITY_CLASS } from './gpu-instance/decide/pod/desired-pod.ts';
import { PULL_PRIORITY_CLASS } from './images/pull-pod.ts';

const CLASSES: readonly PriorityClass[] = [
  {
    metadata: { name: PRIORITY_CLASS.OnDemand },
    // The same as pods without a class: an instance never preempts another pod.
    value: 0,
    description: 'On-demand GPU instances.',
  },
  {
    metadata: { name: PRIORITY_CLASS.Interruptible },
    value: -1000,
    preemptionPolicy: 'Never',
    description: 'Interruptible GPU instances: they give way to everything else.',
  },
  {
    metadata: { name: PULL_PRIORITY_CLASS },
    // Below every instance.
    value: -1001,
    preemptionPolicy: 'Never',
    description: 'Pods that bring images to GPU nodes before instances ask for them.',
  },
];

async function isPresent(client: KubeClient, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.get(PRIORITY_CLASSES, { name }, { signal });
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

/** Creates the missing classes. Looks first: where the chart created them, the controller may not create any. */
export async function ensurePriorityClasses(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (const priorityClass of CLASSES) {
    if (await isPresent(client, priorityClass.metadata.name, signal)) continue;
    try {
      await client.create(PRIORITY_CLASSES, priorityClass, { signal });
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
    }
  }
}

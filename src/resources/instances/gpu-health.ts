import { z } from 'zod';
import { findCondition } from '../../kube/conditions.ts';
import { timeSchema } from '../schema.ts';

export const onGPUFailureSchema = z
  .enum(['Keep', 'Restart'])
  .default('Keep')
  .describe(
    'The action of the controller when a GPU of the instance stays unhealthy for a minute. Keep: nothing. Restart: it ends the start and begins another on healthy GPUs. It loses what is in memory, and the files of a disk that is on the node itself.',
  );

/** What the status of an instance says of its GPUs. */
export const gpuHealthShape = {
  unhealthyGPUs: z
    .array(
      z
        .object({
          id: z.string().max(128).describe('Id of the GPU: its UUID, where the node tells it.'),
          since: timeSchema.describe('When the controller first saw it so.'),
        })
        .describe('A GPU that is unhealthy.'),
    )
    // As many as spec.gpu.count can ask for.
    .max(64)
    .optional()
    .describe(
      'GPUs of the instance that the kubelet reports as unhealthy, or that have a taint in ResourceSlices. Absent: none, or a kubelet before Kubernetes 1.36, which reports nothing.',
    ),
};

export type UnhealthyGPU = NonNullable<z.infer<(typeof gpuHealthShape)['unhealthyGPUs']>>[number];

/** Longer lists would fill a message. */
const MOST_NAMED = 8;

/** Names GPUs for people, with the verb that follows: `GPU a is`, `GPUs a and b are`. Never for an empty list. */
export function gpusAre(gpus: readonly Pick<UnhealthyGPU, 'id'>[], verb: 'is' | 'was' = 'is'): string {
  const named = gpus.slice(0, MOST_NAMED).map(({ id }) => id);
  const more = gpus.length - named.length;
  const all = more > 0 ? [...named, `${more} more`] : named;
  if (all.length === 1) return `GPU ${all.join('')} ${verb}`;
  return `GPUs ${all.slice(0, -1).join(', ')} and ${all.at(-1)} ${verb === 'is' ? 'are' : 'were'}`;
}

/** Reason of the condition GPUHealthy where a GPU of this start was unhealthy before. */
export const RECOVERED = 'Recovered';

interface Reported {
  claim?: { grantedAt: string } | undefined;
  conditions?: readonly { type: string; reason: string; lastTransitionTime: string }[] | undefined;
}

/** When the GPUs of this start were healthy again, RFC 3339. A condition may still be that of the start before. */
export function recoveredAt({ claim, conditions }: Reported): string | undefined {
  const condition = findCondition(conditions, 'GPUHealthy');
  if (claim === undefined || condition?.reason !== RECOVERED) return undefined;
  return Date.parse(condition.lastTransitionTime) < Date.parse(claim.grantedAt)
    ? undefined
    : condition.lastTransitionTime;
}

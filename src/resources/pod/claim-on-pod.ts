import { z } from 'zod';
import type { Pod } from '../../kube/types.ts';
import { type Claim, claimSchema } from '../instances/claim.ts';
import {
  diskSchema,
  type GpuInstance,
  type GpuInstanceStatus,
  gpuInstanceStatusSchema,
} from '../instances/gpu-instance.ts';
import { runtypeSchema } from '../instance-template.ts';
import { CLAIM_ANNOTATION, controllerUidOf, podNameOf } from './owner.ts';

/** Characters. Images may have 512, a line for known_hosts some hundred. */
const MAX_LENGTH = 4_096;
const STORED = new WeakMap<GpuInstance, GpuInstance>();
/** Conditions of an instance that waited for its place: with the claim they are past. */
const PAST = new Set(['Ready', 'Claimed']);

const claimOnPodSchema = z.object({
  /** Absent on pods of earlier releases. */
  instance: z.string().optional(),
  claim: claimSchema,
  image: z.string(),
  runtype: runtypeSchema,
  diskGb: z.int(),
  diskPersistent: z.boolean(),
  disk: diskSchema.optional(),
  ssh: gpuInstanceStatusSchema.shape.ssh,
  startRequests: gpuInstanceStatusSchema.shape.startRequests,
});

/** The name of the pod that may bear the claim of an instance. */
export function firstPodOf(instance: Pick<GpuInstance, 'metadata'>): string {
  return podNameOf(instance, 1);
}

/** The key of the instance whose claim a pod of this key may bear; undefined for a pod of a later start. */
export function instanceKeyOfFirstPod(podKey: string): string | undefined {
  return podKey.endsWith('-1') ? podKey.slice(0, -2) : undefined;
}

/** Whether the claim of an instance may be on its pod alone: its status knows of no start yet. */
export function isBeforeFirstStart({ status }: Pick<GpuInstance, 'status'>): boolean {
  return status?.claim === undefined && (status?.incarnation ?? 0) === 0 && status?.ending === undefined;
}

/**
 * The annotation of a pod of an instance. `status`: the claim that it bears; undefined for none. `startHash`: of the spec
 * that the pod is made of.
 */
export function claimText(instance: string | undefined, status: GpuInstanceStatus = {}, startHash?: string): string {
  const { claim, image, runtype, diskGb, diskPersistent, disk, ssh, startRequests } = status;
  const borne = { claim, image, runtype, diskGb, diskPersistent, disk, ssh, startRequests };
  return JSON.stringify({ instance, ...borne, startHash });
}

/** In a text of JSON only a name is followed so. */
const MADE_OF = /"startHash":"([\w-]{1,64})"\}$/;

/** The hash of the spec that a pod is made of; undefined on pods of earlier releases. */
export function startHashOn({ metadata }: Pick<Pod, 'metadata'>): string | undefined {
  return MADE_OF.exec(metadata.annotations?.[CLAIM_ANNOTATION] ?? '')?.[1];
}

/** Whether a pod says that it bears a claim. {@link withClaimOf} checks it. */
export function bearsClaim({ metadata }: Pick<Pod, 'metadata'>): boolean {
  return metadata.annotations?.[CLAIM_ANNOTATION]?.includes('"claim":') === true;
}

function parse(text: string | undefined): z.infer<typeof claimOnPodSchema> | undefined {
  if (text === undefined || text.length > MAX_LENGTH) return undefined;
  try {
    return claimOnPodSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Whether the pod takes what the claim says, where it says: its GPUs, on its node and no other. */
function agrees({ spec }: Pod, { node, resourceName, gpuCount }: Claim): boolean {
  const requested = spec?.containers.map(({ resources }) => Number(resources?.requests?.[resourceName] ?? 0)) ?? [];
  if (requested.reduce((sum, gpus) => sum + gpus, 0) !== gpuCount) return false;
  if (spec?.nodeName !== undefined && spec.nodeName !== node) return false;
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const [field, ...others] = terms.flatMap(({ matchFields = [] }) => matchFields);
  if (terms.length !== 1 || field === undefined || others.length > 0) return false;
  return field.key === 'metadata.name' && field.operator === 'In' && field.values?.join() === node;
}

/**
 * The instance with the claim that its pod bears, as long as its status knows of none; else the instance as it is. The
 * pod must be the one of the first start, be made for this instance, and take just what the claim says.
 */
export function withClaimOf(instance: GpuInstance, pod: Pod | undefined): GpuInstance {
  if (pod === undefined || !isBeforeFirstStart(instance)) return instance;
  const { metadata, status } = instance;
  const { name, namespace, annotations } = pod.metadata;
  if (name !== firstPodOf(instance) || namespace !== metadata.namespace) return instance;
  const borne = parse(annotations?.[CLAIM_ANNOTATION]);
  if (borne === undefined || !agrees(pod, borne.claim)) return instance;
  const { instance: madeFor = controllerUidOf(pod), ...found } = borne;
  if (madeFor === undefined || madeFor !== metadata.uid) return instance;
  const { conditions, stages, ...rest } = status ?? {};
  const accepted = stages?.accepted ?? new Date(metadata.creationTimestamp ?? 0).toISOString();
  const kept = conditions?.filter(({ type }) => !PAST.has(type));
  const claimed = {
    ...rest,
    ...found,
    ...(kept && { conditions: kept }),
    uid: madeFor,
    incarnation: 1,
    podName: name,
    stages: { accepted, claimed: found.claim.grantedAt },
  };
  const completed = { ...instance, status: claimed };
  STORED.set(completed, instance);
  return completed;
}

/** The instance as the API server has it, of one that may have the claim of its pod. */
export function storedOf(instance: GpuInstance): GpuInstance {
  return STORED.get(instance) ?? instance;
}

import type { KubeClient } from '../../kube/client/client.ts';
import { findObject } from '../../kube/client/find-object.ts';
import { ForbiddenError } from '../../kube/errors.ts';
import { NETWORK_POLICIES } from '../../kube/installation-types.ts';
import { NAMESPACES, type Pod, PODS } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { closingPolicy, missingPod, type ProbeImage, probeNamespace, reachingPod, serverPod } from './objects.ts';

export type ProbeOutcome =
  | { result: 'closed' | 'open' }
  /** Nothing can be said, and why. */
  | { result: 'unknown'; why: string };

export interface ProbeDeps {
  client: Pick<KubeClient, 'create' | 'get' | 'delete'>;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** A namespace that does not exist yet, for the probe alone. */
  namespace: string;
  image: ProbeImage;
}

const STEP_MS = 500;
/** A pod may have to pull its image, and a client tries for a minute and a half at most. */
const POD_MS = 150_000;
const ACCOUNT_MS = 15_000;

/** Kubernetes makes the service account of a new namespace a moment after it. */
async function createPod({ client, clock }: ProbeDeps, pod: Pod): Promise<void> {
  const until = clock.monotonic() + ACCOUNT_MS;
  for (;;) {
    try {
      await client.create(PODS, pod);
      return;
    } catch (error) {
      const isEarly = error instanceof ForbiddenError && error.statusMessage.includes('serviceaccount');
      if (!isEarly || clock.monotonic() > until) throw error;
      await clock.sleep(STEP_MS);
    }
  }
}

/** Makes a pod and waits until it is as wanted. Returns undefined when it is not in time. */
async function made(deps: ProbeDeps, pod: Pod, isDone: (pod: Pod) => boolean): Promise<Pod | undefined> {
  const { client, clock, namespace } = deps;
  await createPod(deps, pod);
  const until = clock.monotonic() + POD_MS;
  for (;;) {
    const found = await findObject(client, PODS, { namespace, name: pod.metadata.name });
    if (found !== undefined && isDone(found)) return found;
    if (found === undefined || clock.monotonic() > until) return undefined;
    await clock.sleep(STEP_MS);
  }
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

async function run(deps: ProbeDeps): Promise<ProbeOutcome> {
  const { client, namespace, image } = deps;
  const server = await made(
    deps,
    serverPod(namespace, image),
    (pod) => pod.status?.phase === 'Running' || hasEnded(pod),
  );
  const ip = server?.status?.podIP;
  if (server?.status?.phase !== 'Running' || ip === undefined)
    return { result: 'unknown', why: 'the pod of the probe did not run' };
  const before = await made(deps, reachingPod(namespace, ip, image), hasEnded);
  if (before?.status?.phase !== 'Succeeded')
    return { result: 'unknown', why: 'one pod did not reach another one without any NetworkPolicy' };
  await client.create(NETWORK_POLICIES, closingPolicy(namespace));
  const after = await made(deps, missingPod(namespace, ip, image), hasEnded);
  if (after === undefined) return { result: 'unknown', why: 'the second pod of the probe did not end' };
  return { result: after.status?.phase === 'Succeeded' ? 'closed' : 'open' };
}

/**
 * Whether a NetworkPolicy closes a pod: two pods in a namespace of their own, before and after the policy. The namespace
 * is deleted in every case. Throws KubeError where a call is refused.
 */
export async function probeNetwork(deps: ProbeDeps): Promise<ProbeOutcome> {
  await deps.client.create(NAMESPACES, probeNamespace(deps.namespace));
  try {
    return await run(deps);
  } finally {
    await deps.client.delete(NAMESPACES, { name: deps.namespace });
  }
}

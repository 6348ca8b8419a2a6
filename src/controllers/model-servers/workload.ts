import { type KubeClient, pathOf } from '../../kube/client/client.ts';
import type { KubeObject, ResourceType } from '../../kube/types.ts';
import type { ScaleTarget } from '../../resources/model-servers/scale.ts';

/** `autoscaling/v1` Scale, as far as Berth reads it. */
interface ScaleObject extends KubeObject {
  spec?: { replicas?: number };
}

/** What the scale subresource of a workload says, and of which version of the workload. */
export interface Scale {
  replicas: number;
  resourceVersion: string | undefined;
}

interface Workload {
  namespace: string;
  target: ScaleTarget;
  signal: AbortSignal;
}

function typeOf({ group, version, plural }: ScaleTarget): ResourceType<ScaleObject> {
  return { group, version, plural, kind: 'Scale', namespaced: true };
}

/** Rejects with NotFoundError when there is no such workload, or it does not scale. */
export async function readReplicas(
  client: Pick<KubeClient, 'raw'>,
  { namespace, target, signal }: Workload,
): Promise<Scale> {
  const path = pathOf(typeOf(target), { namespace, name: target.name }, 'scale');
  const { metadata, spec } = await client.raw<ScaleObject>('GET', path, undefined, { signal });
  return { replicas: spec?.replicas ?? 0, resourceVersion: metadata.resourceVersion };
}

/** Writes the replicas if the workload is as it was read. Rejects with ConflictError otherwise. */
export async function writeReplicas(
  client: Pick<KubeClient, 'patch'>,
  { namespace, target, signal }: Workload,
  { replicas, resourceVersion }: Scale,
): Promise<void> {
  const ref = { namespace, name: target.name };
  const body = { metadata: { resourceVersion }, spec: { replicas } };
  await client.patch(typeOf(target), ref, body, { type: 'merge', subresource: 'scale', signal });
}

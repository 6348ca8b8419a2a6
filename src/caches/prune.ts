import type { Container, Node, PersistentVolumeClaim, Pod } from '../kube/types.ts';
import { isExtendedResource } from '../kube/quantity.ts';
import { pick } from '../lib/json.ts';
import { bearsClaim } from '../resources/pod/claim-on-pod.ts';
import { CLAIM_ANNOTATION } from '../resources/pod/owner.ts';

// What the caches keep of objects that a cluster may have tens of thousands of. To read another field, add it here.

function pruneContainer(container: Container): Container {
  return pick(container, ['name', 'image', 'ports', 'resources', 'restartPolicy', 'volumeMounts']);
}

export function prunePod({ metadata, spec, status }: Pod): Pod {
  const claim = metadata.annotations?.[CLAIM_ANNOTATION];
  return {
    metadata: {
      ...pick(metadata, [
        'name',
        'namespace',
        'uid',
        'resourceVersion',
        'labels',
        'ownerReferences',
        'finalizers',
        'deletionTimestamp',
        'deletionGracePeriodSeconds',
      ]),
      ...(claim !== undefined && { annotations: { [CLAIM_ANNOTATION]: claim } }),
    },
    ...(spec !== undefined && {
      spec: {
        ...pick(spec, ['nodeName', 'overhead', 'imagePullSecrets']),
        // A pod that bears a claim is held against it.
        ...(bearsClaim({ metadata }) && pick(spec, ['affinity'])),
        containers: spec.containers.map(pruneContainer),
        ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(pruneContainer) }),
      },
    }),
    ...(status !== undefined && {
      status: pick(status, [
        'phase',
        'reason',
        'message',
        'podIP',
        'conditions',
        'containerStatuses',
        'initContainerStatuses',
        'extendedResourceClaimStatus',
      ]),
    }),
  };
}

/** Of a node's capacity nothing else is read than its GPUs, and only its pool says which resources these are. */
function devicesOf(capacity: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(capacity).filter(([name]) => isExtendedResource(name)));
}

export function pruneNode({ metadata, spec, status = {} }: Node): Node {
  const { annotations: _annotations, ...kept } = metadata;
  const { images } = status;
  return {
    metadata: kept,
    ...(spec !== undefined && { spec }),
    status: {
      ...pick(status, ['allocatable', 'conditions', 'runtimeHandlers']),
      capacity: devicesOf(status.capacity),
      ...(images !== undefined && { images: images.map(({ names }) => ({ names: names ?? [] })) }),
    },
  };
}

export function pruneDisk({ metadata, spec }: PersistentVolumeClaim): PersistentVolumeClaim {
  const requests = spec?.resources?.requests;
  return { metadata, ...(requests !== undefined && { spec: { resources: { requests } } }) };
}

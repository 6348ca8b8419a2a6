import type { Container, Node, PersistentVolumeClaim, Pod } from '../kube/types.ts';

// What the caches keep of objects that there may be tens of thousands of. Whoever reads a field that is not here must
// add it.

function pruneContainer({ name, image, ports, resources, restartPolicy, volumeMounts }: Container): Container {
  return {
    name,
    ...(image !== undefined && { image }),
    ...(ports !== undefined && { ports }),
    ...(resources !== undefined && { resources }),
    ...(restartPolicy !== undefined && { restartPolicy }),
    ...(volumeMounts !== undefined && { volumeMounts }),
  };
}

export function prunePod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, ownerReferences, deletionTimestamp } = pod.metadata;
  const { spec, status } = pod;
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(labels !== undefined && { labels }),
      ...(ownerReferences !== undefined && { ownerReferences }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    ...(spec !== undefined && {
      spec: {
        containers: spec.containers.map(pruneContainer),
        ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(pruneContainer) }),
        ...(spec.nodeName !== undefined && { nodeName: spec.nodeName }),
        ...(spec.overhead !== undefined && { overhead: spec.overhead }),
      },
    }),
    ...(status !== undefined && {
      status: {
        ...(status.phase !== undefined && { phase: status.phase }),
        ...(status.reason !== undefined && { reason: status.reason }),
        ...(status.message !== undefined && { message: status.message }),
        ...(status.podIP !== undefined && { podIP: status.podIP }),
        ...(status.conditions !== undefined && { conditions: status.conditions }),
        ...(status.containerStatuses !== undefined && { containerStatuses: status.containerStatuses }),
        ...(status.initContainerStatuses !== undefined && { initContainerStatuses: status.initContainerStatuses }),
      },
    }),
  };
}

export function pruneNode(node: Node): Node {
  const { annotations: _annotations, ...metadata } = node.metadata;
  const { allocatable, conditions, images } = node.status ?? {};
  return {
    metadata,
    ...(node.spec !== undefined && { spec: node.spec }),
    status: {
      ...(allocatable !== undefined && { allocatable }),
      ...(conditions !== undefined && { conditions }),
      ...(images !== undefined && { images: images.map(({ names }) => ({ names: names ?? [] })) }),
    },
  };
}

export function pruneDisk({ metadata }: PersistentVolumeClaim): PersistentVolumeClaim {
  return { metadata };
}

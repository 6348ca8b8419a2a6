import { desiredPod, type PodInput } from '../../src/controllers/gpu-instance/decide/pod/desired-pod.ts';
import { settingsOf } from '../../src/controllers/gpu-instance/decide/settings.ts';
import type { Pod } from '../../src/kube/types.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { claimOn } from './inventory-world.ts';

/** The pod that the controller makes for the first start of an instance, with little beside what the instance asks for. */
export function podOf(instance: GpuInstance, over: Partial<PodInput> = {}): Pod {
  return desiredPod({
    instance,
    claim: claimOn('n'),
    incarnation: 1,
    settings: settingsOf(instance.spec, undefined, 'debian:12'),
    requests: { pods: 1 },
    memoryLimit: 0,
    scratchLimit: 0,
    diskPersistent: false,
    diskGroup: 1000,
    isolation: { runtimeClassName: undefined, userNamespaces: false, isRequired: false },
    tolerations: [],
    imagePullPolicy: 'IfNotPresent',
    restricted: false,
    toolsImage: 'tools',
    hasPullSecret: false,
    claimed: undefined,
    ...over,
  });
}

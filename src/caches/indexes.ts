import type { IndexFunctions } from '../kube/watch/store.ts';
import type { KubeObject, Pod, ResourceQuota } from '../kube/types.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import type { SshKey } from '../resources/ssh-key.ts';
import { EXPORTER_LABEL } from '../controllers/gpu-instance/act/observe.ts';
import { instanceUidsOf } from '../resources/pod/owner.ts';
import { INDEX, instanceIndexKey } from '../controllers/stores.ts';

function inNamespace({ metadata }: KubeObject): string[] {
  return [metadata.namespace ?? ''];
}

/** The indexes that the controllers need on the caches they read. */
export const CONTROLLER_INDEXERS = {
  instances: {
    [INDEX.namespace]: inNamespace,
    [INDEX.node]: ({ status }) => (status?.claim === undefined ? [] : [status.claim.node]),
    [INDEX.reason]: ({ status }) => {
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      return ready === undefined ? [] : [ready.reason];
    },
  } satisfies IndexFunctions<GpuInstance>,
  keys: { [INDEX.namespace]: inNamespace } satisfies IndexFunctions<SshKey>,
  pods: {
    [INDEX.instance]: (pod) => instanceUidsOf(pod).map((uid) => instanceIndexKey(pod.metadata.namespace, uid)),
    // Of exporters alone: an index of all pods by node would be kept for nothing.
    [INDEX.node]: ({ metadata, spec }) =>
      metadata.labels?.['app'] === EXPORTER_LABEL.app && spec?.nodeName !== undefined ? [spec.nodeName] : [],
  } satisfies IndexFunctions<Pod>,
  quotas: { [INDEX.namespace]: inNamespace } satisfies IndexFunctions<ResourceQuota>,
};

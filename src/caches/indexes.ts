import { findCondition } from '../kube/conditions.ts';
import type { IndexFunctions } from '../kube/watch/store.ts';
import type { KubeObject, Pod, ResourceQuota } from '../kube/types.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { CONFIRM_BY, type GpuInstance } from '../resources/gpu-instance.ts';
import { numericId } from '../resources/ids.ts';
import { type InstanceTemplate, templateHash } from '../resources/instance-template.ts';
import { EXPORTER_LABEL } from '../resources/pod/exporter.ts';
import { instanceUidsOf } from '../resources/pod/owner.ts';
import type { SshKey } from '../resources/ssh-key.ts';

/** Key of the index of pods by instance. The namespace is in it: a uid alone is a label that any tenant can write. */
export function instanceIndexKey(namespace = '', uid = ''): string {
  return `${namespace}/${uid}`;
}

/** Key of the index of SSH keys by their id in the HTTP interface. */
export function sshKeyIndexKey(namespace = '', id = 0): string {
  return `${namespace}/${id}`;
}

function namespace({ metadata }: KubeObject): string[] {
  return [metadata.namespace ?? ''];
}

/** What the objects of each cache can be found by. */
export const INDEXES = {
  instances: {
    namespace,
    /** The node of the claim. */
    node: ({ status }) => (status?.claim === undefined ? [] : [status.claim.node]),
    /** The reason of the Ready condition. */
    reason: ({ status }) => {
      const ready = findCondition(status?.conditions, 'Ready');
      return ready === undefined ? [] : [ready.reason];
    },
    /** `true` for those whose client has no answer yet. */
    unconfirmed: ({ metadata }) => (metadata.annotations?.[CONFIRM_BY] === undefined ? [] : ['true']),
  } satisfies IndexFunctions<GpuInstance>,
  sshKeys: {
    namespace,
    id: ({ metadata }) => [sshKeyIndexKey(metadata.namespace, numericId(metadata.uid ?? ''))],
  } satisfies IndexFunctions<SshKey>,
  templates: {
    id: ({ metadata }) => [String(numericId(metadata.uid ?? ''))],
    hash: ({ spec }) => [templateHash(spec)],
  } satisfies IndexFunctions<InstanceTemplate>,
  apiKeys: {
    namespace,
    /** The SHA-256 of the token. */
    hash: ({ spec }) => [spec.hash],
    uid: ({ metadata }) => [metadata.uid ?? ''],
  } satisfies IndexFunctions<ApiKey>,
  pods: {
    /** Of instances alone, by {@link instanceIndexKey}. */
    instance: (pod) => instanceUidsOf(pod).map((uid) => instanceIndexKey(pod.metadata.namespace, uid)),
    /** Of metrics exporters alone, by their node: an index of all pods by node would be kept for nothing. */
    exporterNode: ({ metadata, spec }) =>
      metadata.labels?.['app'] === EXPORTER_LABEL.app && spec?.nodeName !== undefined ? [spec.nodeName] : [],
  } satisfies IndexFunctions<Pod>,
  quotas: { namespace } satisfies IndexFunctions<ResourceQuota>,
};

import { findCondition } from '../kube/conditions.ts';
import type { NetworkPolicy } from '../kube/network-policy.ts';
import type { IndexFunctions } from '../kube/watch/store.ts';
import type { KubeObject, PersistentVolumeClaim, Pod, ResourceQuota } from '../kube/types.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { CONFIRM_BY, type GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { InstanceHistory } from '../resources/instance-history.ts';
import { numericId } from '../resources/ids.ts';
import { type InstanceTemplate, SHARED_TEMPLATE_LABEL, templateHash } from '../resources/instance-template.ts';
import { poolOfPull } from '../resources/pod/image-pull.ts';
import { EXPORTER_LABEL } from '../resources/pod/monitor.ts';
import { instanceUidOf } from '../resources/pod/owner.ts';
import { hasPodFinalizer } from '../resources/pod/pod-finalizer.ts';
import type { RegistryCredential } from '../resources/registry-credential.ts';
import { fingerprintKeysOf, type SshKey } from '../resources/ssh-key.ts';
import type { TenantLimit } from '../resources/tenants/tenant-limit.ts';
import type { Webhook } from '../resources/webhook.ts';
import { isWaiting } from './line-order.ts';

/** Key of the index of pods by instance. */
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

/** The indexes of each cache. */
export const INDEXES = {
  instances: {
    namespace,
    /** The name alone, of instances whose records published it as their login. */
    bareLogin: ({ metadata, status }) => (status?.ssh?.user === metadata.name ? [metadata.name] : []),
    /** The node of the claim. */
    node: ({ status }) => (status?.claim === undefined ? [] : [status.claim.node]),
    /** Why it is as it is, and what it waits for: of one that was preempted Claimed alone says that. */
    reason: ({ status }) => {
      const ready = findCondition(status?.conditions, 'Ready');
      const claimed = findCondition(status?.conditions, 'Claimed');
      const found = [ready, claimed?.status === 'False' ? claimed : undefined];
      return [...new Set(found.flatMap((condition) => condition?.reason ?? []))];
    },
    /** `true` for instances that wait for a place, whatever their state is called. */
    waiting: (instance) => (isWaiting(instance) ? ['true'] : []),
    /** The uid of the template that the instance was rented with. */
    template: ({ status }) => (status?.template === undefined ? [] : [status.template.uid]),
    /** `true` for instances whose client has no answer yet. */
    unconfirmed: ({ metadata }) => (metadata.annotations?.[CONFIRM_BY] === undefined ? [] : ['true']),
  } satisfies IndexFunctions<GpuInstance>,
  sshKeys: {
    namespace,
    id: ({ metadata }) => [sshKeyIndexKey(metadata.namespace, numericId(metadata.uid ?? ''))],
    fingerprint: fingerprintKeysOf,
  } satisfies IndexFunctions<SshKey>,
  templates: {
    namespace,
    id: ({ metadata }) => [String(numericId(metadata.uid ?? ''))],
    hash: ({ spec }) => [templateHash(spec)],
    /** `true` for templates whose authors want every tenant to see them. */
    shared: ({ metadata }) => (metadata.labels?.[SHARED_TEMPLATE_LABEL] === 'true' ? ['true'] : []),
  } satisfies IndexFunctions<InstanceTemplate>,
  apiKeys: {
    namespace,
    /** The SHA-256 of the token. */
    hash: ({ spec }) => [spec.hash],
    uid: ({ metadata }) => [metadata.uid ?? ''],
  } satisfies IndexFunctions<ApiKey>,
  pods: {
    /** Pods of instances, by {@link instanceIndexKey}. */
    instance: (pod) => {
      const uid = instanceUidOf(pod);
      return uid === undefined ? [] : [instanceIndexKey(pod.metadata.namespace, uid)];
    },
    /** Pods that are kept until their program has ended, by their node. */
    keptOn: (pod) => (hasPodFinalizer(pod) && pod.spec?.nodeName !== undefined ? [pod.spec.nodeName] : []),
    /** Pods that bring images to nodes, by the name of their pool. */
    imagePull: (pod) => {
      const pool = poolOfPull(pod);
      return pool === undefined ? [] : [pool];
    },
    /** Pods of metrics exporters by their node. Nothing reads other pods by node. */
    exporterNode: ({ metadata, spec }) =>
      metadata.labels?.['app'] === EXPORTER_LABEL.app && spec?.nodeName !== undefined ? [spec.nodeName] : [],
  } satisfies IndexFunctions<Pod>,
  disks: { namespace } satisfies IndexFunctions<PersistentVolumeClaim>,
  registries: { namespace } satisfies IndexFunctions<RegistryCredential>,
  webhooks: { namespace } satisfies IndexFunctions<Webhook>,
  histories: { namespace } satisfies IndexFunctions<InstanceHistory>,
  quotas: { namespace } satisfies IndexFunctions<ResourceQuota>,
  networkPolicies: { namespace } satisfies IndexFunctions<NetworkPolicy>,
  tenantLimits: {
    /** The TenantPolicies that a TenantLimit comes from. */
    policy: ({ spec }) => spec?.policies ?? [],
  } satisfies IndexFunctions<TenantLimit>,
};

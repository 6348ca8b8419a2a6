import { NAMESPACE } from './release.ts';

export interface Attempt {
  /** User name to act as; a cluster administrator without. */
  as?: string;
  command: readonly string[];
  input?: object;
}

/** An attempt to use rights that the user does not have, or has for another purpose. */
export interface Attack extends Attempt {
  title: string;
  /** Words of the refusal. */
  refusal: string;
}

export interface Targets {
  /** An instance of the tenant, and its uid. */
  instance: { name: string; uid: string };
  /** The pod of that instance. */
  pod: string;
  /** A pod of the tenant that belongs to no instance. */
  otherPod: string;
  /** A pod of Berth's own. */
  ownPod: string;
  /** A user with the cluster role `admin` in the tenant's namespace. */
  admin: string;
}

/** A namespace of a tenant that has no Pod Security level. */
export const LENIENT = 'lenient';

/** Annotations of the attacked instance, and their field manager. An apply by that manager without them removes them. */
export const KEPT = { 'example.com/kept': 'yes' };
export const MANAGER = 'attack';

export const account = (role: string): string => `system:serviceaccount:${NAMESPACE}:berth-${role}`;
export const CREATE = ['create', '-f', '-'];

/** A custom resource named `attack`. */
export function custom(kind: string, namespace: string, spec: object): object {
  return { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { namespace, name: 'attack' }, spec };
}

export const INSTANCE = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance' };

/** A POST from a client that does not ask first whether the pod exists. */
export const post = (namespace: string, path: string): string[] => [
  'create',
  '--raw',
  `/api/v1/namespaces/${namespace}/pods/${path}`,
  '-f',
  '-',
];

/** What Berth asks for a container of an instance at least. */
export const CONTAINED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['MKNOD', 'NET_RAW'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

const ONE_GPU = { limits: { 'nvidia.com/gpu': '1' } };

/** A pod that Pod Security does not check and that is otherwise allowed, so that only Berth's own policy can refuse it. */
export function pod(metadata: object, spec: object = {}, container: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: LENIENT, name: 'attack', ...metadata },
    spec: {
      automountServiceAccountToken: false,
      priorityClassName: 'berth-on-demand',
      ...spec,
      containers: [{ name: 'main', image: 'any', securityContext: CONTAINED, resources: ONE_GPU, ...container }],
    },
  };
}

/** The metadata of a pod of this instance. */
export function ownedBy(instance: Targets['instance']): object {
  return { ownerReferences: [{ ...INSTANCE, ...instance }] };
}

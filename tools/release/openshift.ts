import { parseAllDocuments } from 'yaml';
import type { Container, Pod } from '../../src/kube/types.ts';

type PodSpec = NonNullable<Pod['spec']>;
type ContainerContext = NonNullable<Container['securityContext']>;

/** SecurityContextConstraints of OpenShift in its own words, as far as pods of Berth can differ in them. */
export interface Constraints {
  runAsUser: 'MustRunAsRange' | 'MustRunAsNonRoot' | 'RunAsAny';
  fsGroup: 'MustRunAs' | 'RunAsAny';
  seccompProfiles: readonly string[];
  allowPrivilegeEscalation: boolean;
  allowedCapabilities: readonly string[];
  requiredDropCapabilities: readonly string[];
}

const V2 = {
  seccompProfiles: ['runtime/default'],
  allowPrivilegeEscalation: false,
  allowedCapabilities: ['NET_BIND_SERVICE'],
  requiredDropCapabilities: ['ALL'],
};

/** Those of OpenShift 4.11 and newer that a pod without rights to the node can have. */
export const CONSTRAINTS = {
  'restricted-v2': { ...V2, runAsUser: 'MustRunAsRange', fsGroup: 'MustRunAs' },
  'nonroot-v2': { ...V2, runAsUser: 'MustRunAsNonRoot', fsGroup: 'RunAsAny' },
  anyuid: {
    runAsUser: 'RunAsAny',
    fsGroup: 'RunAsAny',
    seccompProfiles: [],
    allowPrivilegeEscalation: true,
    allowedCapabilities: [],
    requiredDropCapabilities: ['MKNOD'],
  },
} as const satisfies Record<string, Constraints>;

const VOLUMES = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]);

/** The users of a namespace, as its annotation `openshift.io/sa.scc.uid-range` has them. Its first is its `fsGroup`. */
const USERS = { first: 1_000_680_000, last: 1_000_689_999 };

/** What OpenShift writes to a namespace with these users. */
export const SCC_GROUPS = {
  'openshift.io/sa.scc.mcs': 's0:c26,c5',
  'openshift.io/sa.scc.supplemental-groups': `${USERS.first}/10000`,
  'openshift.io/sa.scc.uid-range': `${USERS.first}/10000`,
};

/** What OpenShift's admission writes to a pod that these constraints admit. */
export const SCC_ANNOTATIONS = {
  'openshift.io/scc': 'restricted-v2',
  'security.openshift.io/validated-scc-subject-type': 'user',
  'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
};

function isRuntimeDefault(type: string | undefined): boolean {
  return type === 'RuntimeDefault';
}

/** Whether a profile is one of the constraints'. Without any, a pod may name none. */
function allowsProfile({ seccompProfiles }: Constraints, type: string | undefined): boolean {
  return seccompProfiles.length === 0 ? type === undefined : isRuntimeDefault(type);
}

function filledContext(context: ContainerContext, pod: PodSpec['securityContext'], own: Constraints): ContainerContext {
  const isRange = own.runAsUser === 'MustRunAsRange';
  const runAsUser = context.runAsUser ?? pod?.runAsUser ?? (isRange ? USERS.first : undefined);
  const isNonRoot = runAsUser === undefined ? own.runAsUser === 'MustRunAsNonRoot' : runAsUser > 0;
  const runAsNonRoot = context.runAsNonRoot ?? pod?.runAsNonRoot ?? (isNonRoot ? true : undefined);
  const { capabilities } = context;
  return {
    ...context,
    allowPrivilegeEscalation: context.allowPrivilegeEscalation ?? own.allowPrivilegeEscalation,
    ...(runAsUser !== undefined && { runAsUser }),
    ...(runAsNonRoot !== undefined && { runAsNonRoot }),
    capabilities: {
      ...capabilities,
      drop: [...new Set([...(capabilities?.drop ?? []), ...own.requiredDropCapabilities])],
    },
  };
}

/** A pod as OpenShift's admission fills it in before it judges it. What the pod says already stays. */
export function filled(pod: Pod, own: Constraints): Pod {
  const { spec } = pod;
  if (spec === undefined) return pod;
  const context = spec.securityContext;
  const fill = (container: Container): Container => ({
    ...container,
    securityContext: filledContext(container.securityContext ?? {}, context, own),
  });
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...SCC_ANNOTATIONS } },
    spec: {
      ...spec,
      containers: spec.containers.map(fill),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(fill) }),
      securityContext: {
        seLinuxOptions: { level: 's0:c26,c5' },
        ...(own.fsGroup === 'MustRunAs' && { fsGroup: USERS.first }),
        ...(own.seccompProfiles.length > 0 && { seccompProfile: { type: 'RuntimeDefault' } }),
        ...context,
      },
    },
  };
}

function userRefusals({ runAsUser, runAsNonRoot }: ContainerContext, own: Constraints): string[] {
  if (own.runAsUser === 'RunAsAny') return [];
  if (own.runAsUser === 'MustRunAsNonRoot')
    return runAsUser === 0 || runAsNonRoot !== true ? ['runAsUser: must not be root'] : [];
  const isOwn = runAsUser !== undefined && runAsUser >= USERS.first && runAsUser <= USERS.last;
  return isOwn ? [] : [`runAsUser: ${runAsUser} is not of the namespace`];
}

function containerRefusals(container: Container, pod: PodSpec, own: Constraints): string[] {
  const context = container.securityContext ?? {};
  const { add = [], drop = [] } = context.capabilities ?? {};
  const profile = context.seccompProfile ?? pod.securityContext?.seccompProfile;
  const refused: [string, boolean][] = [
    ['privileged', context.privileged === true],
    ['allowPrivilegeEscalation', context.allowPrivilegeEscalation !== false && !own.allowPrivilegeEscalation],
    ['capabilities.add', add.some((name) => !own.allowedCapabilities.includes(name))],
    ['capabilities.drop', own.requiredDropCapabilities.some((name) => !drop.includes(name))],
    ['seccompProfile', !allowsProfile(own, profile?.type)],
    ['hostPort', container.ports?.some(({ hostPort }) => (hostPort ?? 0) !== 0) === true],
  ];
  const names = refused.filter(([, is]) => is).map(([name]) => name);
  return [...names, ...userRefusals(context, own)].map((text) => `${container.name}: ${text}`);
}

/** What these constraints refuse of a pod, after they filled it in; empty when they admit it. */
export function refusalsOf(pod: Pod, own: Constraints): string[] {
  const { spec } = filled(pod, own);
  if (spec === undefined) return [];
  const { fsGroup, seccompProfile } = spec.securityContext ?? {};
  const kinds = (spec.volumes ?? []).flatMap(({ name: _name, ...source }) => Object.keys(source));
  const refused: [string, boolean][] = [
    ['a namespace of the node', [spec.hostNetwork, spec.hostPID, spec.hostIPC].includes(true)],
    [`fsGroup: ${fsGroup} is not that of the namespace`, own.fsGroup === 'MustRunAs' && fsGroup !== USERS.first],
    ['seccompProfile', !allowsProfile(own, seccompProfile?.type)],
    ['volumes', kinds.some((kind) => !VOLUMES.has(kind))],
  ];
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return [
    ...refused.filter(([, is]) => is).map(([name]) => name),
    ...containers.flatMap((container) => containerRefusals(container, spec, own)),
  ];
}

function specsIn(value: unknown): PodSpec[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('containers' in value && Array.isArray(value.containers)) return [value as PodSpec];
  return Object.values(value).flatMap(specsIn);
}

/** The pods that objects of a YAML stream are or make. */
export function podsIn(stream: string): Pod[] {
  return parseAllDocuments(stream).flatMap((document) => {
    const object = document.toJS() as Pod | null;
    return specsIn(object).map((spec) => ({ metadata: { name: object?.metadata.name ?? '' }, spec }));
  });
}

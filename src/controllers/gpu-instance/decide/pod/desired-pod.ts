import type { Container, Pod } from '../../../../kube/types.ts';
import type { Amounts } from '../../../../inventory/amounts.ts';
import type { PodIsolation } from '../../../../inventory/nodes/isolation.ts';
import type { Claim, GpuInstance, GpuInstanceStatus } from '../../../../resources/instances/gpu-instance.ts';
import { startHash } from '../../../../resources/instances/instance-state.ts';
import type { Toleration } from '../../../../resources/gpu-pool.ts';
import { CLOSED_DEVICES } from '../../../../resources/pod/device-env.ts';
import { JUPYTER_PORT } from '../../../../resources/pod/jupyter.ts';
import { diskNameOf } from '../../../../resources/pod/disk.ts';
import { literal } from '../../../../resources/pod/literal.ts';
import { MONITOR_LABELS } from '../../../../resources/pod/monitor.ts';
import { MAIN_CONTAINER, toolsVolume } from '../../../../resources/pod/tools-volume.ts';
import { entrypointOf, WORKSPACE } from './container.ts';
import { claimText } from '../../../../resources/pod/claim-on-pod.ts';
import { CLAIM_ANNOTATION, podNameOf } from '../../../../resources/pod/owner.ts';
import { POD_FINALIZER } from '../../../../resources/pod/pod-finalizer.ts';
import { PULL_SECRET } from '../../../../resources/registry-credential.ts';
import { podMetadata } from '../names.ts';
import type { Settings } from '../settings.ts';

export const PRIORITY_CLASS = { OnDemand: 'berth-on-demand', Interruptible: 'berth-interruptible' } as const;

export type ImagePullPolicy = 'Always' | 'IfNotPresent';

export interface PodInput {
  instance: GpuInstance;
  claim: Claim;
  incarnation: number;
  settings: Settings;
  /** What the pod requests of its node. */
  requests: Amounts;
  /** Its share of the node's memory in bytes, which is its limit; 0 when unknown. */
  memoryLimit: number;
  /** Its share of the node's own disk in bytes: what it may write beside its disk; 0 when unknown. */
  scratchLimit: number;
  diskPersistent: boolean;
  /** Group of the files on a PersistentVolumeClaim. */
  diskGroup: number;
  isolation: PodIsolation;
  /** The taints of the nodes of its pool. */
  tolerations: readonly Toleration[];
  /** When the kubelet asks the registry for the image: Always is also how the registry checks the credentials. */
  imagePullPolicy: ImagePullPolicy;
  /** Whether the namespace enforces Pod Security restricted. */
  restricted: boolean;
  toolsImage: string;
  /** Whether the namespace has credentials for the images of Berth. */
  hasPullSecret: boolean;
  /** The status whose claim the pod bears; undefined where the API server has it already. */
  claimed: GpuInstanceStatus | undefined;
}

const SCRATCH = 'ephemeral-storage';

type SecurityContext = NonNullable<Container['securityContext']>;

// Always Pod Security baseline. In a namespace that enforces restricted, the rest of restricted too: only images that
// run as a numbered user other than root start there. Elsewhere images keep the default capabilities of the runtime,
// because apt, dnf, su and sshd in ordinary images need CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID, SETFCAP, SYS_CHROOT
// and AUDIT_WRITE; but none that forges packets, makes device nodes or changes the capabilities of other processes.
const DROPPED = ['MKNOD', 'NET_RAW', 'SETPCAP'];

//
// No process gains privileges, so sudo in an image with a user of its own does nothing. Who rents the container may be its
// root from the start: with the same capabilities, as in an image that names no user.
function securityContext(restricted: boolean, asRoot: boolean): SecurityContext {
  return {
    allowPrivilegeEscalation: false,
    ...(asRoot && { runAsUser: 0 }),
    seccompProfile: { type: 'RuntimeDefault' },
    capabilities: { drop: restricted ? ['ALL'] : DROPPED },
    ...(restricted && { runAsNonRoot: true }),
  };
}

function quantities(amounts: Amounts): Record<string, string> {
  const entries = Object.entries(amounts).filter(([name]) => name !== 'pods');
  return Object.fromEntries(entries.map(([name, amount]) => [name, name === 'cpu' ? `${amount}m` : String(amount)]));
}

// A disk on the node has its limit in its request, and everything else that the container writes counts in it.
function hasScratch({ diskPersistent, scratchLimit }: PodInput): boolean {
  return diskPersistent && scratchLimit > 0;
}

function resourcesOf(input: PodInput): NonNullable<Container['resources']> {
  const { requests, memoryLimit, scratchLimit } = input;
  const { cpu: _cpu, memory: _memory, ...hard } = requests;
  const scratch = hasScratch(input);
  return {
    // Without a request Kubernetes would request the limit.
    requests: { ...quantities(requests), ...(scratch && { [SCRATCH]: '0' }) },
    limits: {
      ...quantities(hard),
      ...(memoryLimit > 0 && { memory: String(memoryLimit) }),
      ...(scratch && { [SCRATCH]: String(scratchLimit) }),
    },
  };
}

/** Shared memory for what PyTorch's data loaders and NCCL exchange: half of the memory, which it counts to. */
function sharedMemory({ memoryLimit }: PodInput) {
  const size = memoryLimit > 0 && { sizeLimit: String(Math.floor(memoryLimit / 2)) };
  return {
    volume: { name: 'shm', emptyDir: { medium: 'Memory', ...size } },
    mount: { name: 'shm', mountPath: '/dev/shm' },
  };
}

function envOf({ instance, claim, settings }: PodInput): { name: string; value: string }[] {
  const own = {
    BERTH_INSTANCE_ID: instance.metadata.name,
    BERTH_NAMESPACE: instance.metadata.namespace ?? '',
    BERTH_OFFER_ID: String(claim.offerId),
    BERTH_NODE: claim.node,
    BERTH_GPU_NAME: claim.product,
    BERTH_GPU_COUNT: String(claim.gpuCount),
    BERTH_WORKSPACE: WORKSPACE,
  };
  const named = new Set(settings.env.map(({ name }) => name));
  const added = Object.entries(own).filter(([name]) => !named.has(name));
  const all = [...settings.env, ...added.map(([name, value]) => ({ name, value })), ...CLOSED_DEVICES];
  return all.map(({ name, value }) => ({ name, value: literal(value) }));
}

function portsOf(settings: Settings): NonNullable<Container['ports']> {
  const ports = settings.ports.map((port) => ({ ...port, protocol: port.protocol ?? 'TCP' }));
  const hasJupyter = ports.some(({ containerPort, protocol }) => containerPort === JUPYTER_PORT && protocol === 'TCP');
  if (settings.runtype !== 'jupyter' || hasJupyter) return ports;
  return [...ports, { containerPort: JUPYTER_PORT, protocol: 'TCP' }];
}

/** The exporter needs the tools, and an entrypoint that is not the image's. */
function isMonitored({ instance, settings }: PodInput): boolean {
  return instance.spec.installMonitoring && settings.runtype !== 'args';
}

function mainContainer(input: PodInput, mounts: NonNullable<Container['volumeMounts']>): Container {
  const { settings } = input;
  const { command, args } = entrypointOf(settings, isMonitored(input));
  return {
    name: MAIN_CONTAINER,
    image: settings.image,
    imagePullPolicy: input.imagePullPolicy,
    ...(command && { command: command.map(literal) }),
    ...(args && { args: args.map(literal) }),
    env: envOf(input),
    ports: portsOf(settings),
    resources: resourcesOf(input),
    securityContext: securityContext(input.restricted, input.instance.spec.runAsRoot === true),
    volumeMounts: mounts,
    // When the container fails, the end of its log becomes its message.
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
}

/**
 * The pod of one start, bound to its node by affinity: the scheduler still checks the grant against what is really
 * free. Init containers get no GPU: some device plugins hand it out twice (kubernetes#124345).
 */
export function desiredPod(input: PodInput): Pod {
  const { instance, claim, settings } = input;
  const { runtimeClassName, userNamespaces } = input.isolation;
  const tools = settings.runtype === 'args' ? undefined : toolsVolume(input.toolsImage);
  const disk = input.diskPersistent
    ? { name: 'disk', persistentVolumeClaim: { claimName: diskNameOf(instance) } }
    : { name: 'disk', emptyDir: { sizeLimit: `${settings.diskGb}Gi` } };
  const shm = sharedMemory(input);
  const own = input.hasPullSecret ? [{ name: PULL_SECRET }] : [];
  const pullSecrets = [...settings.imagePullSecrets.map((one) => ({ ...one })), ...own];
  const mounts = [{ name: 'disk', mountPath: WORKSPACE }, shm.mount, ...(tools ? [tools.mount] : [])];
  const metadata = podMetadata(instance, podNameOf(instance, input.incarnation));
  return {
    metadata: {
      ...metadata,
      finalizers: [POD_FINALIZER],
      ...(isMonitored(input) && { labels: { ...metadata.labels, ...MONITOR_LABELS } }),
      annotations: { [CLAIM_ANNOTATION]: claimText(instance.metadata.uid, input.claimed, startHash(instance.spec)) },
    },
    spec: {
      containers: [mainContainer(input, mounts)],
      ...(tools && { initContainers: [tools.initContainer] }),
      volumes: [disk, shm.volume, ...(tools ? [tools.volume] : [])],
      ...(input.diskPersistent && {
        securityContext: { fsGroup: input.diskGroup, fsGroupChangePolicy: 'OnRootMismatch' },
      }),
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [claim.node] }] }],
          },
        },
      },
      tolerations: [...input.tolerations],
      priorityClassName: PRIORITY_CLASS[instance.spec.type],
      restartPolicy: settings.runtype === 'args' ? 'Never' : 'Always',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      ...(pullSecrets.length > 0 && { imagePullSecrets: pullSecrets }),
      ...(runtimeClassName !== undefined && { runtimeClassName }),
      ...(userNamespaces && { hostUsers: false }),
    },
  };
}

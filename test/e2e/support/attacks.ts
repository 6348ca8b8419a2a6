import type { Outcome } from '../../../tools/lib/shell.ts';
import { NAMESPACE, TENANT } from './release.ts';
import {
  account,
  type Attack,
  type Attempt,
  CONTAINED,
  CREATE,
  custom,
  INSTANCE,
  KEPT,
  MANAGER,
  ownedBy,
  pod,
  post,
  type Targets,
} from './attack.ts';
import { forKeys, onCeilings } from './attacks-on-limits.ts';
import { onClaims } from './attacks-on-claims.ts';
import { onModels } from './attacks-on-models.ts';
import { forRegistries, forSecrets } from './attacks-on-secrets.ts';
import type { World } from './world.ts';

/** The pod from which each attack on pods differs in one thing. The controller may create it. */
export function harmless({ instance }: Targets): Attempt {
  return { as: account('controller'), command: [...CREATE, '--dry-run=server'], input: pod(ownedBy(instance)) };
}

/** Tries to let the pod of an instance run on for a month, by every way to delete it. */
function byGrace({ instance, pod: name, admin }: Targets): Attack[] {
  const seconds = 30 * 86_400;
  const path = `/api/v1/namespaces/${TENANT}/pods`;
  const metadata = { namespace: TENANT, name };
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata,
    deleteOptions: { gracePeriodSeconds: seconds },
  };
  const selector = `labelSelector=berth.dev/instance%3D${instance.name}`;
  const ways: { command: string[]; input?: object }[] = [
    { command: ['delete', 'pod', name, '-n', TENANT, '--wait=false', `--grace-period=${seconds}`] },
    { command: ['delete', '--raw', `${path}?${selector}&gracePeriodSeconds=${seconds}`] },
    { command: post(TENANT, `${name}/eviction`), input: eviction },
  ];
  return ways.map((way) => ({
    title: `a tenant keeps a pod that is not billed: ${way.command.join(' ')}`,
    as: admin,
    ...way,
    refusal: 'the pod of an instance has 30 seconds to end at most',
  }));
}

/** Tries to be on the GPUs of the next tenant. */
function byForce({ pod: name, admin }: Targets): Attack[] {
  const withoutFinalizers = JSON.stringify({ metadata: { finalizers: null } });
  return [
    {
      title: 'a tenant deletes the pod of an instance by force',
      as: admin,
      command: ['delete', 'pod', name, '-n', TENANT, '--wait=false', '--force', '--grace-period=0'],
      refusal: 'delete the pod without --force',
    },
    {
      title: 'a tenant removes the finalizer that keeps a pod until its program has ended',
      as: admin,
      command: ['patch', 'pod', name, '-n', TENANT, '--type=merge', '-p', withoutFinalizers],
      refusal: "only Berth's controller takes the finalizer berth.dev/pod off",
    },
  ];
}

function byHand({ instance, admin }: Targets): Attack[] {
  const claim = JSON.stringify({ status: { claim: { node: 'elsewhere' } } });
  const write = ['patch', 'gpuinstance', instance.name, '-n', TENANT, '--subresource=status', '--type=merge'];
  const claimIt = { command: [...write, '-p', claim] };
  const withoutFinalizers = JSON.stringify({ metadata: { finalizers: null } });
  const bill = { instance: instance.name };
  const history = { instance: instance.name, instanceUid: instance.uid, dropped: 0, entries: [] };
  const env = [{ name: 'NVIDIA_VISIBLE_DEVICES', value: 'all' }];
  const opens = 'NVIDIA_VISIBLE_DEVICES: the container runtime of the node reads it';
  const rent = { command: CREATE, input: custom('GPUInstance', 'default', { gpu: { count: 1 } }) };
  return [
    {
      title: 'an administrator claims a GPU',
      ...claimIt,
      refusal: "only Berth's controller writes gpuinstances/status",
    },
    { title: 'a tenant claims a GPU', as: admin, ...claimIt, refusal: 'resource "gpuinstances/status"' },
    { title: 'the api role claims a GPU', as: account('api'), ...claimIt, refusal: 'resource "gpuinstances/status"' },
    {
      title: 'a tenant writes a bill',
      as: admin,
      command: CREATE,
      input: custom('UsageRecord', TENANT, bill),
      refusal: 'cannot create resource "usagerecords"',
    },
    {
      title: 'an administrator writes the history of an instance',
      command: CREATE,
      input: custom('InstanceHistory', TENANT, history),
      refusal: "only Berth's controller writes instancehistories",
    },
    {
      title: 'a tenant writes the history of an instance',
      as: admin,
      command: CREATE,
      input: custom('InstanceHistory', TENANT, history),
      refusal: 'cannot create resource "instancehistories"',
    },
    {
      title: 'a tenant removes the finalizer that keeps an instance until it is billed',
      as: admin,
      command: ['patch', 'gpuinstance', instance.name, '-n', TENANT, '--type=merge', '-p', withoutFinalizers],
      refusal: 'keep metadata.finalizers as they are',
    },
    ...['GPUInstance', 'InstanceTemplate'].map((kind) => ({
      title: `a tenant opens all GPUs of the node by the environment of a ${kind}`,
      as: admin,
      command: CREATE,
      input: custom(kind, TENANT, { env }),
      refusal: opens,
    })),
    {
      title: 'somebody rents in a namespace that is no tenant',
      ...rent,
      refusal: 'namespace default is no tenant of Berth',
    },
    {
      title: 'a tenant makes a pod that mounts the disk of the node',
      as: admin,
      command: CREATE,
      input: pod({ namespace: TENANT }, { volumes: [{ name: 'root', hostPath: { path: '/' } }] }),
      refusal: 'violates PodSecurity',
    },
  ];
}

function asController({ instance, otherPod }: Targets): Attack[] {
  const as = account('controller');
  const owned = ownedBy(instance);
  const labelled = { labels: { 'berth.dev/instance': instance.name } };
  const sandbox = 'an instance gets no host network, process or IPC namespace';
  const identity = 'an instance runs as the service account `default` without its token';
  const volumes = 'an instance has its own disk and empty volumes, and no other volume';
  const contained = 'an instance makes no device nodes, sends no raw packets';
  const devices = 'an instance gets its GPUs from the device plugin';
  const devicesAsked = 'an instance asks for GPUs, and for no other device';
  const plain = 'an instance names no node, scheduler, ResourceClaim, probe, hook';
  const annotations = "Berth's controller writes the annotation berth.dev/claim of pods, and no other";
  const get = { httpGet: { host: '169.254.169.254', port: 80 } };
  const secret = { name: 'any', key: 'any' };
  const token = { projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } };
  const disk = { persistentVolumeClaim: { claimName: 'of-somebody-else' } };
  const withVolume = (volume: object): object => pod(owned, { volumes: [{ name: 'any', ...volume }] });
  const withSecurity = (context: object): object => pod(owned, {}, { securityContext: { ...CONTAINED, ...context } });
  const withEnv = (name: string, value: string): object => pod(owned, {}, { env: [{ name, value }] });
  const annotated = (key: string): object => pod({ ...owned, annotations: { [key]: 'nvidia.com/gpu=all' } });
  const init = { name: 'init', image: 'any', securityContext: { privileged: true } };
  const escapes: [string, object, string][] = [
    ["the node's network", pod(owned, { hostNetwork: true }), sandbox],
    ["the node's processes", pod(owned, { hostPID: true }), sandbox],
    ["the node's IPC", pod(owned, { hostIPC: true }), sandbox],
    ['a port of the node', pod(owned, {}, { ports: [{ containerPort: 80, hostPort: 80 }] }), sandbox],
    ['a sysctl', pod(owned, { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }), sandbox],
    ['all privileges', pod(owned, {}, { securityContext: { privileged: true } }), sandbox],
    ['all privileges before its start', pod(owned, { initContainers: [init] }), sandbox],
    ['the way to more privileges', withSecurity({ allowPrivilegeEscalation: true }), sandbox],
    ['one capability more', withSecurity({ capabilities: { add: ['SYS_ADMIN'] } }), sandbox],
    ['device nodes', withSecurity({ capabilities: { drop: ['NET_RAW'] } }), contained],
    ['raw packets', withSecurity({ capabilities: { drop: ['MKNOD'] } }), contained],
    ['every system call', withSecurity({ seccompProfile: { type: 'Unconfined' } }), contained],
    ['all GPUs', withEnv('NVIDIA_VISIBLE_DEVICES', 'all'), devices],
    ["another's MPS server", withEnv('CUDA_MPS_PIPE_DIRECTORY', '/tmp/mps'), devices],
    ['RDMA', withEnv('NVIDIA_MOFED', 'enabled'), devices],
    ['all GPUs by CDI', annotated('cdi.k8s.io/attack'), annotations],
    ["all GPUs by NVIDIA's NRI plugin", annotated('nvidia.cdi.k8s.io/container.main'), annotations],
    ['devices of CRI-O', annotated('io.kubernetes.cri-o.Devices'), annotations],
    ['another network', annotated('k8s.v1.cni.cncf.io/networks'), annotations],
    ['another hypervisor', annotated('io.katacontainers.config.hypervisor.path'), annotations],
    ['a node of its choice', pod(owned, { nodeName: 'any' }), plain],
    ['another scheduler', pod(owned, { schedulerName: 'another' }), plain],
    ['a device of DRA', pod(owned, { resourceClaims: [{ name: 'any', resourceClaimName: 'any' }] }), plain],
    ['a call of the kubelet', pod(owned, {}, { livenessProbe: get }), plain],
    ['a call of the kubelet at its start', pod(owned, {}, { lifecycle: { postStart: get } }), plain],
    ['no AppArmor', withSecurity({ appArmorProfile: { type: 'Unconfined' } }), plain],
    ['an SELinux type', pod(owned, { securityContext: { seLinuxOptions: { type: 'spc_t' } } }), plain],
    [
      'every system call of its pod',
      pod(owned, { securityContext: { seccompProfile: { type: 'Unconfined' } } }),
      plain,
    ],
    [
      'every taint',
      pod(owned, { tolerations: [{ operator: 'Exists' }] }),
      'an instance tolerates the taints of its pool',
    ],
    ['no GPU', pod(owned, {}, { resources: {} }), devicesAsked],
    ['another device', pod(owned, {}, { resources: { limits: { 'example.com/fuse': '1' } } }), devicesAsked],
    ['a token', pod(owned, { automountServiceAccountToken: true }), identity],
    ['another account', pod(owned, { serviceAccountName: 'another' }), identity],
    ['a Secret', pod(owned, {}, { env: [{ name: 'A', valueFrom: { secretKeyRef: secret } }] }), identity],
    ['a whole Secret', pod(owned, {}, { envFrom: [{ secretRef: { name: 'any' } }] }), identity],
    ["the node's disk", withVolume({ hostPath: { path: '/' } }), volumes],
    ['a token as a volume', withVolume(token), volumes],
    ['a Secret as a volume', withVolume({ secret: { secretName: 'any' } }), volumes],
    ["another's disk", withVolume(disk), volumes],
    [
      'the priority of the system',
      pod(owned, { priorityClassName: 'berth-system' }),
      'an instance has the PriorityClass',
    ],
    // Two policies refuse it, and either may answer first.
    ['the rights of the cluster', pod({ ...owned, namespace: 'kube-system' }), 'namespace kube-system'],
  ];
  return [
    {
      title: 'the controller makes a pod of its own',
      as,
      command: CREATE,
      input: pod({}),
      // Two policies refuse it, and either may answer first.
      refusal: "Berth's controller ",
    },
    {
      title: 'the controller makes a pod that only looks like an instance',
      as,
      command: CREATE,
      input: pod(labelled),
      refusal: "Berth's controller makes pods for GPUInstances only",
    },
    ...escapes.map(([what, input, refusal]) => ({
      title: `the controller makes a pod with ${what}`,
      as,
      command: CREATE,
      input,
      refusal,
    })),
    {
      title: "the controller deletes somebody else's pod",
      as,
      command: ['delete', 'pod', otherPod, '-n', TENANT],
      refusal: "Berth's controller touches only what belongs to a GPUInstance",
    },
  ];
}

function asGateway({ instance, otherPod, ownPod }: Targets): Attack[] {
  const as = account('ssh');
  const nobody = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'f6e3b1f0-0000-4000-8000-000000000000' };
  const own = 'Berth does not enter pods of the cluster';
  const changes: [string, object][] = [
    ['gives an instance an owner that is gone', { ownerReferences: [nobody], annotations: KEPT }],
    ['takes an annotation off an instance', {}],
    ['annotates an instance', { annotations: { ...KEPT, 'example.com/note': 'attack' } }],
  ];
  return [
    ...changes.map(([what, metadata]) => ({
      title: `the ssh role ${what}`,
      as,
      // Unlike `kubectl patch`, this reads nothing first.
      command: ['apply', '--server-side', `--field-manager=${MANAGER}`, '-f', '-'],
      input: { ...INSTANCE, metadata: { namespace: TENANT, name: instance.name, ...metadata } },
      refusal: "Berth's SSH gateway writes the annotation berth.dev/last-activity of instances, and nothing else",
    })),
    {
      title: 'the ssh role enters a container that is no instance',
      as,
      command: post(TENANT, `${otherPod}/exec?container=server&command=true&stdout=true`),
      refusal: 'Berth enters the container `main` of instances only',
    },
    {
      title: 'the ssh role enters a pod of Berth',
      as,
      command: post(NAMESPACE, `${ownPod}/exec?container=main&command=true&stdout=true`),
      refusal: own,
    },
    {
      title: 'the ssh role reaches a port of a pod of Berth',
      as,
      command: post(NAMESPACE, `${ownPod}/portforward?ports=9090`),
      refusal: own,
    },
  ];
}

/** What a role could try after a break-in, and what people could try. */
export function attacks(targets: Targets): Attack[] {
  return [
    ...byHand(targets),
    ...byGrace(targets),
    ...byForce(targets),
    ...onClaims(targets),
    ...asController(targets),
    ...asGateway(targets),
    ...forSecrets(),
    ...forRegistries(),
    ...onCeilings(targets),
    ...forKeys(),
    ...onModels(targets),
  ];
}

/** Makes one attempt. */
export function attempt(world: World, { as, command, input }: Attempt): Promise<Outcome> {
  const who = as === undefined ? [] : ['--as', as];
  return world.kubectl([...command, ...who], JSON.stringify(input ?? {}));
}

/** Makes all attempts. Returns those that were not refused, or not for the expected reason. */
export async function tryAll(world: World, all: readonly Attack[]): Promise<string[]> {
  const unexpected: string[] = [];
  for (const { title, refusal, ...how } of all) {
    const { code, stdout, stderr } = await attempt(world, how);
    if (code === 0 || !stderr.includes(refusal)) unexpected.push(`${title}: ${stdout}${stderr}`);
  }
  return unexpected;
}
